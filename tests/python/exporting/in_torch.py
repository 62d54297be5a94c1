"""Runs a test file in the Python environment that has PyTorch. Import it before torch:

    import in_torch

    in_torch.run(__file__)
"""

import importlib.util
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))


def run(file):
    """Goes on if torch can be imported. Otherwise starts the environment's Python in place of this one, or skips."""
    if importlib.util.find_spec("torch") is not None:
        return
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "disttrain"
    python = cache / "torch-python-2.11.0" / "bin" / "python"
    if not python.exists():
        raise unittest.SkipTest(f"PyTorch isn't installed in {python.parent.parent}: run tools/setup export")
    sys.stdout.flush()
    os.execv(python, [str(python), str(ROOT / "tests" / "run_unittest.py"), file])
