"""examples/torchvision: the script exports resnet18, and the job trains it on tar files of digits."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/system"), str(ROOT / "tests/python")]
from fake_worker import PACKAGE, require_python  # noqa: E402
from harness import DIGITS, PATIENCE, SystemTest  # noqa: E402

EXAMPLE = ROOT / "examples/torchvision"


class TorchvisionTest(SystemTest):
    def test_the_exported_model_trains(self):
        python = require_python("torch, torchvision")
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        package = self.folder / "step.pt"  # step.pt2 takes a minute or more
        exported = subprocess.run([python, EXAMPLE / "export.py", package], env=environment, capture_output=True, text=True)
        self.assertEqual(exported.returncode, 0, exported.stderr)
        shards = self.folder / "shards"
        subprocess.run([sys.executable, ROOT / "examples/images/make_shards.py", DIGITS, shards, "600", "100"], check=True)
        result = self.assert_finished(self.up(EXAMPLE / "job.toml", "--set", f"data.path={shards}", "--set",
                                              f"model.program={package}", "--set", "train.epochs=2", timeout=3 * PATIENCE))
        self.assertEqual(result["global_step"], 20)
        self.assertEqual(result["evaluation"]["examples"], 100)
        # So few steps don't suffice for batch norm's statistics, which the evaluation uses.
        self.assertGreater(result["metrics"]["accuracy"], 0.4)


if __name__ == "__main__":
    unittest.main()
