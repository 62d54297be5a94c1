"""examples/images: the script makes tar files of the digits that come with the source, and the job trains on them."""
import subprocess
import sys
import tarfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
from harness import DIGITS, PATIENCE, SystemTest  # noqa: E402

EXAMPLE = ROOT / "examples/images"


class ImagesTest(SystemTest):
    def make_shards(self, training, test):
        folder = self.folder / "shards"
        subprocess.run([sys.executable, EXAMPLE / "make_shards.py", DIGITS, folder, str(training), str(test)], check=True)
        return folder

    def test_the_script_writes_shards_of_a_thousand_images(self):
        folder = self.make_shards(1500, 10)
        names = {}
        for path in folder.iterdir():
            with tarfile.open(path) as tar:
                names[path.name] = tar.getnames()
        self.assertEqual({name: len(members) for name, members in names.items()},
                         {"train-000.tar": 2000, "train-001.tar": 1000, "test-000.tar": 20})
        self.assertEqual(names["train-001.tar"][:2], ["01000.png", "01000.cls"])

    def test_the_job_trains_on_the_shards(self):
        folder = self.make_shards(600, 100)
        result = self.assert_finished(self.up(
            EXAMPLE / "job.toml", "--set", f"data.path={folder}", "--set", "train.epochs=2", "--set",
            "train.optimizer.learning_rate=0.02", timeout=3 * PATIENCE))
        self.assertEqual(result["global_step"], 20)
        self.assertEqual(result["evaluation"]["examples"], 100)
        # So few steps don't suffice for batch norm's statistics, which the evaluation uses.
        self.assertGreater(result["metrics"]["accuracy"], 0.4)


if __name__ == "__main__":
    unittest.main()
