"""examples/huggingface: the job trains on a short text."""
import os
import sys
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/system"), str(ROOT / "tests/python")]
from fake_worker import PACKAGE, require_python  # noqa: E402
from harness import PATIENCE, SystemTest  # noqa: E402

JOB = ROOT / "examples/huggingface/job.toml"
TEXT_BYTES = 1115394  # of tinyshakespeare's input.txt
STRIDE = 63           # the default of data.stride: a window of 64 bytes less 1


class HuggingFaceTest(SystemTest):
    def test_the_job_trains_on_a_text(self):
        python = require_python("torch, transformers")
        self.environment.update(PATH=f"{Path(python).parent}:{os.environ['PATH']}", PYTHONPATH=str(PACKAGE),
                                PYTHONDONTWRITEBYTECODE="1")
        (self.folder / "input.txt").write_bytes((ROOT / "ARCHITECTURE.md").read_bytes()[:12000])
        result = self.assert_finished(self.up(
            JOB, "--set", f"data.path={self.folder}", "--set", "data.records=[0, 170]", "--set",
            "evaluate.records=[171, 190]", timeout=3 * PATIENCE))
        self.assertEqual(result["examples"], 2 * 170)
        self.assertEqual(result["evaluation"]["examples"], 19)
        self.assertLess(result["evaluation"]["loss"], 4.5)  # it begins at ln(256) = 5.5

    def test_training_and_evaluation_share_no_byte(self):
        job = tomllib.loads(JOB.read_text())
        _, last = job["data"]["records"]
        first, end = job["evaluate"]["records"]
        self.assertEqual(last, (TEXT_BYTES * 9 // 10 - 64) // STRIDE + 1)
        self.assertGreaterEqual(first * STRIDE, TEXT_BYTES * 9 // 10)
        self.assertEqual(end, (TEXT_BYTES - 64) // STRIDE + 1)


if __name__ == "__main__":
    unittest.main()
