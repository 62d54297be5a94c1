"""Runs a test file in the Python environment that has PyTorch. Import it before torch:

    import in_torch

    in_torch.run(__file__)
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/python")]
from pythons import run_in_python_with  # noqa: E402


def run(file):
    """Goes on in the environment's Python, in place of the running one. Without the environment the file is skipped."""
    run_in_python_with("torch", [ROOT / "tests/run_unittest.py", file])
