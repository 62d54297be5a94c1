"""Starts, watches and ends the real programs for the system tests.

Each test gets a folder of its own, which is also its XDG_RUNTIME_DIR, so that tests never see each other's clusters.
BIN (environment) is the folder with the programs; ctest sets it.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("BIN", ROOT / "build/bin")).resolve()
DIGITS = ROOT / "tests/data/mnist-mini"
# How many seconds a test waits. After that the wait fails, so that a broken program fails the test instead of hanging
# it. With a sanitizer, a test waits longer.
PATIENCE = 60.0 * float(os.environ.get("DISTTRAIN_PATIENCE", "1"))
TOLD_LINES = 30  # of each process of a test that failed
SANITIZED = os.environ.get("DISTTRAIN_SANITIZE", "")  # "", "address,undefined" or "thread"

QUICK = """
[job]
name = "{name}"
{job}
[model]
builtin = "mlp"
layers = [784, 32, 10]
[data]
path = "{digits}"
files = "train-images-idx3-ubyte.gz"
scale = 0.00392156862745098
{data}
[train]
batch_size = 50
{train}
[evaluate]
files = "t10k-images-idx3-ubyte.gz"
{evaluate}
"""


def alive(pid):
    """Returns True if the process exists and isn't a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Outcome:
    """A finished command."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out.strip().splitlines()[-1])

    def __str__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class SystemTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="disttrain-test-"))
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.folder), "TMPDIR": str(self.folder)}
        self.environment.pop("DISTTRAIN_CLUSTER", None)
        self.processes = []

    def run(self, result=None):
        self.result = result if result is not None else self.defaultTestResult()
        self.failed_before = self.failures()
        return super().run(self.result)

    def failures(self):
        return len(self.result.failures) + len(self.result.errors)

    def tearDown(self):
        has_failed = self.failures() > self.failed_before
        for process in self.processes:
            ended_by_itself = process.poll() is not None
            if not ended_by_itself:
                process.kill()
            process.wait()
            if has_failed:
                self.tell(process, ended_by_itself)
            process.stdout.close()
            process.stderr.close()
        left = self.processes_of_this_test()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.assertEqual(left, [], "processes were left behind")

    def tell(self, process, ended_by_itself):
        """Prints the last lines of a process of a test that failed, if no wait has read them."""
        if process.stderr.closed:
            return
        os.set_blocking(process.stderr.fileno(), False)  # a process that it left may still hold the other end
        try:
            lines = (os.read(process.stderr.fileno(), 1 << 20)).decode(errors="replace").splitlines()
        except BlockingIOError:
            lines = []
        how = f"ended with {process.returncode}" if ended_by_itself else "ran until the test's end"
        print(f"--- {' '.join(process.args)} ({how})", *lines[-TOLD_LINES:], sep="\n", file=sys.stderr)

    # Jobs and clusters.

    def job(self, name="quick", job="", data="", train="epochs = 2", evaluate=""):
        """Writes a job on the small digits and returns its path."""
        path = self.folder / f"{name}.toml"
        path.write_text(QUICK.format(name=name, digits=DIGITS, job=job, data=data, train=train, evaluate=evaluate))
        return path

    # Commands.

    def start(self, *command, environment=None):
        """Starts one of our programs. The end of the test kills it if it still runs."""
        program, *arguments = command
        return self.start_command(BIN / program, *arguments, environment=environment)

    def start_command(self, *command, environment=None):
        process = subprocess.Popen(list(map(str, command)), env={**self.environment, **(environment or {})},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.processes.append(process)
        return process

    def finish(self, process, timeout=PATIENCE):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"{process.args} did not end within {timeout} s\n{Outcome(None, out, err)}")
        return Outcome(process.returncode, out, err)

    def run_program(self, *command, timeout=PATIENCE):
        return self.finish(self.start(*command), timeout)

    def up(self, job, *arguments, ps=1, workers=2, timeout=PATIENCE):
        return self.run_program("disttrain", "up", "--job", job, "--ps", ps, "--workers", workers, "--json", *arguments,
                                timeout=timeout)

    def start_up(self, job, *arguments, ps=1, workers=2):
        return self.start("disttrain", "up", "--job", job, "--ps", ps, "--workers", workers, "--json", *arguments)

    def status(self, *arguments):
        """The current status, or None while no cluster answers."""
        outcome = self.run_program("disttrain", "status", "--json", *arguments)
        return outcome.json if outcome.code == 0 and outcome.out.strip() else None

    # Waiting.

    def until(self, what, predicate, patience=PATIENCE):
        """Waits for a true value of predicate() and returns it."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            value = predicate()
            if value:
                return value
            time.sleep(0.02)
        self.fail(f"waited {patience} s for {what}")

    def until_chief_answers(self, cluster):
        self.until("the chief to answer",
                   lambda: self.run_program("disttrain", "status", "--json", "--cluster", cluster).code == 0)

    def until_steps(self, steps=1, *arguments):
        """Waits until the job has made so many steps. Returns the status."""
        def reached():
            status = self.status(*arguments)
            return status if status and status["state"] == "running" and status["global_step"] >= steps else None
        return self.until(f"step {steps}", reached)

    def processes_of_this_test(self):
        """Pids of our daemons that run in this test's folder."""
        mark = f"XDG_RUNTIME_DIR={self.folder}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if mark in (entry / "environ").read_bytes() and alive(int(entry.name)):
                    found.append(int(entry.name))
            except (OSError, PermissionError):
                continue
        return found

    def pid_of(self, status, task):
        return next(entry["pid"] for entry in status["tasks"] if entry["task"] == task)

    # Outcomes.

    def assert_finished(self, outcome):
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertEqual(outcome.json["state"], "finished", str(outcome))
        return outcome.json

    def assert_refused(self, outcome, code, *words):
        """Checks for one clear error with the right exit code, and that no process is left."""
        self.assertEqual(outcome.code, code, str(outcome))
        for word in words:
            self.assertIn(word, outcome.err + outcome.out)
        self.assertEqual(self.processes_of_this_test(), [])
