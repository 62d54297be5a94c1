"""examples/mnist: its two jobs train on the digits that come with the source."""
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
from harness import DIGITS, PATIENCE, SystemTest  # noqa: E402

EXAMPLE = ROOT / "examples/mnist"
SMALL = ["--set", f"data.path={DIGITS}", "--set", "data.records=[]"]


class MnistTest(SystemTest):
    def test_in_the_sigmoid_job_each_worker_goes_through_all_records(self):
        # The learning rate of the experiment needs more steps than these to show what the net learns.
        result = self.assert_finished(self.up(EXAMPLE / "job.toml", *SMALL, "--set", "train.optimizer.learning_rate=0.1"))
        self.assertEqual(result["global_step"], 2 * 20 * 60)
        self.assertGreater(result["evaluation"]["accuracy"], 0.7)

    def test_the_convolutional_net_learns(self):
        result = self.assert_finished(self.up(EXAMPLE / "cnn.toml", *SMALL, "--set", "train.epochs=1", timeout=3 * PATIENCE))
        self.assertEqual(result["global_step"], 60)
        self.assertGreater(result["evaluation"]["accuracy"], 0.8)


if __name__ == "__main__":
    unittest.main()
