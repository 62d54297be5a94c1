"""examples/shakespeare: the job trains on a short text, and its records are nine tenths of the real text and the rest."""
import sys
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
from harness import SystemTest  # noqa: E402

JOB = ROOT / "examples/shakespeare/job.toml"
TEXT_BYTES = 1115394  # of tinyshakespeare's input.txt
CONTEXT = 64


class ShakespeareTest(SystemTest):
    def test_the_job_trains_on_a_text(self):
        (self.folder / "input.txt").write_bytes((ROOT / "ARCHITECTURE.md").read_bytes()[:12000])
        result = self.assert_finished(self.up(
            JOB, "--set", f"data.path={self.folder}", "--set", "data.records=[0, 10736]", "--set",
            "evaluate.records=[169, 187]", "--set", "train.steps=30"))
        self.assertEqual(result["global_step"], 30)
        self.assertEqual(result["evaluation"]["examples"], 18)
        self.assertLess(result["evaluation"]["loss"], 4.5)  # it begins at ln(256) = 5.5

    def test_training_and_evaluation_share_no_byte(self):
        job = tomllib.loads(JOB.read_text())
        self.assertEqual(job["data"]["records"], [0, TEXT_BYTES * 9 // 10 - CONTEXT])
        first, end = job["evaluate"]["records"]
        self.assertGreaterEqual(first * CONTEXT, TEXT_BYTES * 9 // 10)
        self.assertLess((first - 1) * CONTEXT, TEXT_BYTES * 9 // 10)
        self.assertEqual(end, (TEXT_BYTES - 1) // CONTEXT)


if __name__ == "__main__":
    unittest.main()
