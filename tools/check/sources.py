"""Which files the checks look at: what git tracks or would (not ignored), or, outside of git, all but build folders."""

import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True

SKIPPED = {".git", "build", "shared"}


def files(root, patterns, tracked_only=False):
    """Paths relative to root that match one of the patterns (as in "*.h"), sorted; existing files only."""
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
    """Prints the problems, or one line that says how much was looked at; returns the exit code."""
    for problem in problems:
        print(problem)
    if problems:
        print(f"{what}: {len(problems)} problem(s) in {checked} files")
        return 1
    if checked == 0:
        print(f"{what}: found nothing to check, which is a problem of the check")
        return 1
    print(f"{what}: {checked} files are right")
    return 0
