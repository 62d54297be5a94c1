"""examples/gpt2: how little its two scripts differ, and that both train."""
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
from fake_worker import PACKAGE, require_python  # noqa: E402

EXAMPLE = ROOT / "examples/gpt2"
MOST_DIFFERENT_LINES = 20


class Gpt2Test(unittest.TestCase):
    def run_script(self, name):
        """Trains on a short text. Returns what the script printed."""
        python = require_python("torch, transformers")
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(EXAMPLE / name, folder)
            (Path(folder) / "input.txt").write_bytes((ROOT / "ARCHITECTURE.md").read_bytes()[:12000])
            done = subprocess.run([python, name], cwd=folder, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def test_train_py_differs_in_few_lines_from_plain_py(self):
        plain, train = ((EXAMPLE / name).read_text().splitlines() for name in ("plain.py", "train.py"))
        different = [line for line in difflib.ndiff(plain, train) if line[0] in "+-"]
        self.assertGreater(len(different), 0)
        self.assertLessEqual(len(different), MOST_DIFFERENT_LINES, "\n".join(different))

    def test_plain_py_runs_alone(self):
        self.assertRegex(self.run_script("plain.py"), r"epoch 1: validation loss [2-4]\.\d+")

    def test_train_py_runs_alone(self):
        self.assertRegex(self.run_script("train.py"), r"evaluation after epoch 1: loss [2-4]\.\d+")

    def test_the_job_is_valid(self):
        done = subprocess.run([os.environ["BIN"] + "/disttrain", "check", EXAMPLE / "job.toml"], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
