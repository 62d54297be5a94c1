"""Runs one file of unittest for ctest: tests/run_unittest.py FILE.

ctest recognises a skipped test only by exit code 77: a test was left out, and all others passed. A line for
tools/check/skips names each test that was left out, with the reason. By hand, a file also runs without this script.

Programs that are built with a sanitizer write their findings to files in a folder that this script makes, so that a
finding isn't lost if a test kills the program or doesn't read its stderr. A finding fails the file.
"""
import contextlib
import os
import sys
import tempfile
import unittest
from pathlib import Path

SKIPPED = 77
# ctest sets the sanitizer's variable if the programs are built with a sanitizer.
SANITIZERS = ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")


@contextlib.contextmanager
def findings_of_sanitizers():
    """A list. After the block it holds what sanitizers wrote."""
    found = []
    sanitizers = [options for options in SANITIZERS if options in os.environ]
    if not sanitizers:
        yield found
        return
    with tempfile.TemporaryDirectory(prefix="disttrain-findings-") as folder:
        os.chmod(folder, 0o1777)  # a test may start daemons as another user
        for options in sanitizers:
            os.environ[options] += f":log_path={folder}/report"
        yield found
        found += [report.read_text(errors="replace") for report in sorted(Path(folder).iterdir())]


def say_skipped(name, reason):
    print(f"SKIPPED: {name}: {' '.join(str(reason).split())}", flush=True)


def name_of(test):
    """ "Class.test_x", with the parameters of a subTest; for a skipped class or module the name that unittest gives
    it."""
    return ".".join(str(test.id()).split(".")[1:]) or str(test)


def main():
    with findings_of_sanitizers() as found:
        code = run(Path(sys.argv[1]).resolve())
    for report in found:
        print(report)
    if found:
        print(f"{len(found)} processes wrote a sanitizer's report (above)", flush=True)
        return 1
    return code


def run(file):
    sys.path[0] = str(file.parent)
    try:
        program = unittest.main(module=file.stem, argv=[str(file), *sys.argv[2:]], exit=False)
    # A module skips all of its tests by raising SkipTest when it is imported.
    except unittest.SkipTest as skip:
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
