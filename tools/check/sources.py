"""The files that the checks read: in git those that are tracked or not ignored, otherwise all except build folders."""

import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True

SKIPPED = {".git", "build", "shared"}


def files(root, patterns, tracked_only=False):
    """Paths of existing files that match one of the patterns (such as "*.h"), relative to root, sorted."""
    command = ["git", "-C", str(root), "ls-files", "--cached"]
    if not tracked_only:
        command += ["--others", "--exclude-standard"]
    found = []
    if (root / ".git").exists():
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    else:
        found = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    paths = (pathlib.PurePosixPath(name) for name in found)
    return sorted(
        p
        for p in set(paths)
        if not SKIPPED & set(p.parts) and any(p.match(pattern) for pattern in patterns) and (root / p).is_file()
    )


def report(problems, checked, what):
    """Prints the problems, or one line with the number of checked files. Returns the exit code."""
    for problem in problems:
        print(problem)
    if problems:
        print(f"{what}: {len(problems)} problem(s) in {checked} files")
        return 1
    if checked == 0:
        print(f"{what}: found nothing to check; expected at least one file: is this the root of the tree?")
        return 1
    print(f"{what}: {checked} files are right")
    return 0
