"""A cluster of real daemons that trains, and the check that an attack does it no harm.

A test attacks within `with self.unharmed():`. At the end of the block:
1. Every daemon lives.
2. The job has made more steps and lost none: no rollback, the same generation, no task lost.
3. No daemon's memory has grown by more than its bound.
"""
import contextlib
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))

from harness import PATIENCE, SANITIZED, SystemTest  # noqa: E402,F401
from ports import free_address  # noqa: E402

PROGRAMS = {"chief": "chiefd", "ps": "psd", "worker": "workerd"}
# One daemon may grow by this much in one attack. Its queues and payload buffers together need less.
GROWTH_BYTES = 256 << 20


def peak_bytes(pid):
    """The process's largest resident size so far."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"/proc/{pid}/status has no VmHWM")


class Drained:
    """Reads a daemon's stderr as it comes: a full pipe would block the daemon."""

    def __init__(self, pipe):
        self.lines = []
        self.thread = threading.Thread(target=lambda: self.lines.extend(iter(pipe.readline, "")), daemon=True)
        self.thread.start()

    @property
    def text(self):
        return "".join(self.lines)


class AttackTest(SystemTest):
    PS, WORKERS = 1, 2
    UNLISTED = False
    CHECKPOINTS = False

    def setUp(self):
        super().setUp()
        (self.folder / "checkpoints").mkdir()
        self.addresses = {"chief/0": free_address()}
        self.addresses.update({f"ps/{i}": free_address() for i in range(self.PS)})
        self.addresses.update({f"worker/{i}": free_address() for i in range(self.WORKERS)})
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text(
            f'[cluster]\nname = "attacked"\nallow_unlisted_workers = {str(self.UNLISTED).lower()}\n'
            f'[chief]\naddress = "{self.addresses["chief/0"]}"\nstate_directory = "{self.folder / "chief"}"\n'
            + "".join(f'[[{task.split("/")[0]}]]\naddress = "{address}"\n'
                      + ("shards = 1\n" if task.startswith("ps") else "threads = 1\n")
                      for task, address in self.addresses.items() if task != "chief/0"))
        self.daemons, self.logs = {}, {}
        for task in self.addresses:
            self.start_daemon(task)
        self.until_chief_answers(self.cluster)
        self.until("all daemons to be there", lambda: all(
            task["state"] == "ready" for task in self.now()["tasks"] if task["task"] in self.daemons
            and task["task"] != "chief/0"))

    def start_daemon(self, task, *more):
        role, index = task.split("/")
        arguments = ["--cluster", self.cluster, *([] if role == "chief" else ["--index", index]), *more]
        self.daemons[task] = self.start(PROGRAMS[role], *arguments)
        self.logs[task] = Drained(self.daemons[task].stderr)

    def tearDown(self):
        # Kills the daemons first. When a daemon ends, the thread that reads its stderr ends too, and only then can the
        # pipe be closed.
        for task, process in self.daemons.items():
            process.kill()
            process.wait()
            self.logs[task].thread.join()
        super().tearDown()

    @property
    def chief(self):
        return self.addresses["chief/0"]

    def train(self, **job):
        """Starts a job that doesn't end by itself. Returns the status after 20 steps."""
        extra = f'[checkpoint]\ndirectory = "{self.folder / "checkpoints"}"\nevery_steps = 50\n' if self.CHECKPOINTS else ""
        path = self.job(job=f"min_workers = {self.WORKERS}", train="epochs = 1000000",
                        evaluate=extra, **job)
        self.start("disttrain", "submit", path, "--json", "--cluster", self.cluster)
        return self.until_steps(20, "--cluster", self.cluster)

    def now(self):
        status = self.status("--cluster", self.cluster)
        self.assertIsNotNone(status, "the chief doesn't answer its command line")
        return status

    def events(self, *kinds):
        outcome = self.run_program("disttrain", "events", "--all", "--json", "--cluster", self.cluster)
        self.assertEqual(outcome.code, 0, str(outcome))
        return [event for event in outcome.json if not kinds or event["kind"] in kinds]

    @contextlib.contextmanager
    def unharmed(self, growth=GROWTH_BYTES):
        before = self.now()
        peaks = {task: peak_bytes(process.pid) for task, process in self.daemons.items()}
        yield
        for task, process in self.daemons.items():
            self.assertIsNone(process.poll(), f"{task} has ended\n{self.logs[task].text}")
        after = self.until_steps(self.now()["global_step"] + 5, "--cluster", self.cluster)
        self.assertGreater(after["global_step"], before["global_step"])
        for key in ["job", "generation", "recoveries"]:
            self.assertEqual(after[key], before[key], f"{key}: {after}")
        lost = self.events("task_lost", "worker_lost", "rolled_back", "failed")
        self.assertEqual([event for event in lost if event["task"] in (None, *self.addresses)], [])
        if SANITIZED:  # the sanitizer's own memory grows too, so growth proves nothing
            return
        for task, process in self.daemons.items():
            self.assertLess(peak_bytes(process.pid) - peaks[task], growth, f"{task} has grown")
