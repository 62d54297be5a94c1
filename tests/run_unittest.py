"""Runs one file of unittest for ctest: tests/run_unittest.py FILE.

ctest knows a skipped test by its exit code alone: 77 where all that ran passed and something was left out. Each test that
was left out is named, with its reason, in a line that tools/check/skips reads. By hand a file runs as well by itself.
"""
import sys
import unittest
from pathlib import Path

SKIPPED = 77


def say_skipped(name, reason):
    print(f"SKIPPED: {name}: {' '.join(str(reason).split())}", flush=True)


def name_of(test):
    """ "Class.test_x", or with the parameters of a subTest; of a skipped class or module what unittest calls it."""
    return ".".join(str(test.id()).split(".")[1:]) or str(test)


def main():
    file = Path(sys.argv[1]).resolve()
    sys.path[0] = str(file.parent)
    try:
        program = unittest.main(module=file.stem, argv=[str(file), *sys.argv[2:]], exit=False)
    except unittest.SkipTest as skip:  # as the file was imported
        say_skipped("all of it", skip)
        return SKIPPED
    result = program.result
    for test, reason in result.skipped:
        say_skipped(name_of(test), reason)
    if not result.wasSuccessful():
        return 1
    if result.testsRun == 0 and not result.skipped:
        print(f"{file} has no tests")
        return 1
    return SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
