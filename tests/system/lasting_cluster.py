"""A cluster that must outlive every job that users give it: what a user's program or file does wrong ends the job with
one clear error. The daemons go on, keep nothing of the job, and train the next one."""
import collections
import os
import sys
from pathlib import Path

from harness import ROOT, SystemTest, alive
from ports import free_address

sys.path.insert(0, str(ROOT / "tests/python"))
from pythons import require_python  # noqa: E402

WORKERS = 2
SOFTWARE = 70  # the exit code of a bug of disttrain

# A trainer without the package disttrain: it speaks the protocol of engine/trainer/trainer_protocol.h itself, so that
# it can break it.
RAW_TRAINER = """
import json, os, signal, socket, struct, sys
connection = socket.socket(fileno=int(os.environ["DISTTRAIN_TRAINER"]))
def send(**message):
    text = json.dumps(message).encode()
    connection.sendall(struct.pack("<II", len(text), 0) + text)
def receive():
    text, payload = struct.unpack("<II", connection.recv(8, socket.MSG_WAITALL))
    return json.loads(connection.recv(text, socket.MSG_WAITALL))
def describe(**changes):
    send(type="hello", protocol=1, sdk="raw")
    receive()
    send(**{"type": "describe", "variables": [["w", [2, 3], "trainable"]], "metrics": [], "records": 1000,
            "evaluation_records": 0, "evaluates": False, "predicts": False, "clears_ahead": False,
            **changes})
def finish(step, **changes):
    send(**{"type": "finished", "number": step["number"], "loss_sum": 1.0, "metrics": [], **changes})
def next_step():
    while True:
        message = receive()
        if message["type"] == "values": send(type="values")
        if message["type"] == "start": return message
        if message["type"] == "end": sys.exit()
"""

# A trainer in NumPy. The body of its loop follows.
NUMPY_TRAINER = """
import os, signal, sys
import disttrain, numpy as np
job = disttrain.init(metrics=[])
job.wrap({"w": np.zeros((2, 3))})
for batch in job.batches(range(10_000)):
"""

TRAINER_JOB = """
[job]
name = "{name}"
min_workers = {workers}
max_restarts = 2
{job}
[model]
trainer = ["{python}", "{script}"]
{model}
[train]
batch_size = 5
{train}
"""

PROGRAM_JOB = """
[job]
name = "bad"
min_workers = {workers}
[model]
program = "{program}"
[data]
path = "{data}"
format = "npy"
files = "inputs.npy"
labels = "labels.npy"
[train]
batch_size = 8
epochs = {epochs}
{train}
"""


def numpy_python():
    return require_python("numpy")


def children_of(pid):
    """The pids of a process's living children."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in found if alive(child)]


class LastingClusterTest(SystemTest):
    """Each test has a cluster of one ps and two workers."""

    def setUp(self):
        super().setUp()
        self.environment["PYTHONPATH"] = str(ROOT / "python")
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        self.start_cluster()

    def start_cluster(self, worker=""):
        """`worker`: further keys of each [[worker]]."""
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text(f'[cluster]\nname = "lasting"\n[chief]\naddress = "{free_address()}"\n'
                                f'state_directory = "{self.folder / "chief"}"\n[metrics]\nlisten = "127.0.0.1:0"\n'
                                f'[[ps]]\naddress = "{free_address()}"\nshards = 1\n'
                                + "".join(f'[[worker]]\naddress = "{free_address()}"\nthreads = 1\n{worker}\n'
                                          for _ in range(WORKERS)))
        self.daemons = {"chief/0": self.start("chiefd", "--cluster", self.cluster),
                        "ps/0": self.start("psd", "--cluster", self.cluster)}
        for index in range(WORKERS):
            self.daemons[f"worker/{index}"] = self.start("workerd", "--cluster", self.cluster, "--index", index)
        self.until_chief_answers(self.cluster)
        self.assert_next_job_finishes()
        # The chief's sockets are its two listeners and one for each other daemon, once the command line has gone.
        self.until("the chief to close the command line's connection",
                   lambda: self.held()["chief/0"]["socket"] == 2 + len(self.daemons) - 1)
        self.held_at_first = self.held()

    def stop_cluster(self):
        for daemon in self.daemons.values():
            daemon.terminate()
        for task, daemon in self.daemons.items():
            outcome = self.finish(daemon)
            self.assertEqual(outcome.code, 0, f"{task}: {outcome}")

    # Jobs.

    def submit(self, job, *arguments):
        """Submits a job and waits for its end."""
        return self.run_program("disttrain", "submit", "--cluster", self.cluster, "--json", *arguments, job)

    def trainer_job(self, script, name="bad", job="", model="", train="epochs = 1000", python=None):
        """Writes a trainer and its job. Returns the job's path."""
        (self.folder / f"{name}.py").write_text(script)
        path = self.folder / f"{name}.toml"
        path.write_text(TRAINER_JOB.format(name=name, script=f"{name}.py", workers=WORKERS, python=python or numpy_python(),
                                           job=job, model=model, train=train))
        return path

    # Outcomes.

    def held(self):
        """What each daemon holds: its children, and its descriptors by kind, such as {"socket": 3, "memfd": 2}."""
        held = {}
        for task, daemon in self.daemons.items():
            kinds = collections.Counter()
            for link in Path(f"/proc/{daemon.pid}/fd").iterdir():
                try:
                    kinds["memfd" if (to := os.readlink(link)).startswith("/memfd:") else to.split(":")[0]] += 1
                except FileNotFoundError:
                    continue
            kinds["child"] = len(children_of(daemon.pid))
            held[task] = kinds
        return held

    def next_job(self):
        return self.job("next", job=f"min_workers = {WORKERS}", train="epochs = 1")

    def assert_next_job_finishes(self):
        self.assert_finished(self.submit(self.next_job()))

    def assert_unharmed(self):
        """All daemons live, and train the next job. After it they hold what they held before the first job that went
        wrong: no process, descriptor or shared memory is left of it."""
        self.assert_next_job_finishes()
        for task, daemon in self.daemons.items():
            self.assertIsNone(daemon.poll(), f"{task} has ended")
        self.until(f"the daemons to hold {self.held_at_first} again; they hold {self.held()}",
                   lambda: self.held() == self.held_at_first)

    def assert_fails(self, outcome, *words):
        """The job has failed with one clear error, which has these words and doesn't call itself a bug of disttrain. The
        cluster is unharmed. Returns the error."""
        self.assertNotIn(outcome.code, (0, SOFTWARE), str(outcome))
        self.assertEqual(outcome.json["state"], "failed", str(outcome))
        for word in words:
            self.assertIn(word, outcome.err)
        self.assertEqual(outcome.err.count("job bad failed"), 1, outcome.err)
        self.assert_unharmed()
        return outcome.err
