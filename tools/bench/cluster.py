"""Real daemons on this machine that the benchmarks of failures start, kill and restart. Times are seconds of
time.time(), which is also the clock of the chief's events."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
from ports import free_address  # noqa: E402

DIGITS = ROOT / "tests/data/mnist-mini"
PATIENCE = 60.0 * float(os.environ.get("DISTTRAIN_PATIENCE", "1"))  # seconds until a wait fails
PROGRAMS = {"chief": "chiefd", "ps": "psd", "worker": "workerd"}
SMALL, LARGE = [784, 100, 10], [784, 4096, 4096, 10]
# A benchmark kills tasks often. With this max_restarts the job doesn't fail because of the kills. With this
# restart_window the chief takes a lost worker back without a pause.
JOB = """
[job]
name = "{name}"
max_restarts = 100000
restart_window = "1s"
[model]
builtin = "mlp"
layers = {layers}
[data]
path = "{data}"
files = "train-images-idx3-ubyte*"
scale = 0.00392156862745098
[train]
batch_size = {batch}
mode = "{mode}"
epochs = 1000000
optimizer = {{ rule = "{rule}", learning_rate = 0.0001 }}
"""


def parameter_bytes(layers):
    return sum(4 * (inputs + 1) * outputs for inputs, outputs in zip(layers, layers[1:]))


class Cluster:
    """A chief, ps and workers in a folder of their own. A context manager: its end kills all of them."""

    def __init__(self, build, folder, ps=1, workers=2, shard_threads=1, transport="auto"):
        self.build, self.folder = build, Path(folder)
        self.file = self.folder / "cluster.toml"
        self.addresses = {"chief/0": free_address()}
        self.addresses.update({f"ps/{i}": free_address() for i in range(ps)})
        self.addresses.update({f"worker/{i}": free_address() for i in range(workers)})
        text = f'[chief]\naddress = "{self.addresses["chief/0"]}"\nstate_directory = "{self.folder / "chief"}"\n'
        text += f'[metrics]\nlisten = "127.0.0.1:0"\n[transport]\nkind = "{transport}"\n'
        for task, address in self.addresses.items():
            if task.startswith("ps"):
                text += f'[[ps]]\naddress = "{address}"\nshards = {shard_threads}\n'
            elif task.startswith("worker"):
                text += f'[[worker]]\naddress = "{address}"\nthreads = 1\n'
        self.file.write_text(text)
        self.processes = {}

    def __enter__(self):
        for task in self.addresses:
            self.start(task)
        self.until("the chief to answer", lambda: self.ask("status") is not None)
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()

    # Processes.

    def start(self, task):
        role, index = task.split("/")
        command = [self.build / PROGRAMS[role], "--cluster", self.file] + ([] if role == "chief" else ["--index", index])
        # With huge pages the kernel closes a dead worker's sockets sooner. `disttrain up` gives workers huge pages too.
        environment = os.environ | ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} if role == "worker" else {})
        with open(self.log_of(task), "ab") as log:
            self.processes[task] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=environment)

    def kill(self, task):
        """Kills the task. Returns when."""
        now = time.time()
        self.processes[task].kill()
        return now

    def restart(self, task):
        self.processes[task].wait()
        self.start(task)

    def signal(self, task, number):
        now = time.time()
        self.processes[task].send_signal(number)
        return now

    def pid(self, task):
        return self.processes[task].pid

    def log_of(self, task):
        return self.folder / (task.replace("/", "-") + ".log")

    def resident(self, task):
        """The task's resident bytes now."""
        return int(re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid(task)}/status").read_text())[1]) * 1024

    # The command line.

    def disttrain(self, *command, timeout=PATIENCE):
        return subprocess.run([self.build / "disttrain", *map(str, command), "--cluster", self.file], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)

    def ask(self, *command):
        """The JSON that the command prints; None while the chief doesn't answer."""
        done = self.disttrain(*command, "--json")
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else None

    def event_after(self, since, kind, task=None, job=None):
        """Waits for an event of the kind from this time on, and returns the first one."""
        def found():
            for event in self.ask("events", "--all") or []:
                is_meant = task is None or event["task"] == task or task in event["text"]
                if event["time"] >= since - 0.001 and event["kind"] == kind and is_meant:
                    return event
            return None
        return self.until(f"the event {kind} of {task}", found)

    def until(self, what, predicate):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if value := predicate():
                return value
            time.sleep(0.03)
        status = self.ask("status")
        sys.exit(f"waited {PATIENCE:.0f} s for {what}; the job is {status and (status['state'], status['reason'])}; "
                 f"logs are in {self.folder}")

    # Jobs.

    def submit(self, data, layers=SMALL, batch=100, mode="async", rule="sgd", name="bench", settings=()):
        """Submits a job that doesn't end, and returns once it has made some steps."""
        job = self.folder / f"{name}.toml"
        job.write_text(JOB.format(name=name, layers=layers, data=data, batch=batch, mode=mode, rule=rule))
        changes = [word for setting in settings for word in ("--set", setting)]
        done = self.disttrain("submit", job, "--detach", *changes)
        if done.returncode != 0:
            sys.exit(f"the job was refused:\n{done.stdout}{done.stderr}")
        return self.until_steps(5)

    def until_steps(self, steps, workers=None):
        """Waits until the job runs, has made so many steps and, if given, has so many running workers. Returns the
        status."""
        def reached():
            status = self.ask("status")
            if not status or status["state"] != "running" or status["global_step"] < steps:
                return None
            at_work = sum(task["task"].startswith("worker") and task["state"] == "running" for task in status["tasks"])
            return status if workers is None or at_work >= workers else None
        return self.until(f"step {steps}", reached)

    def end_job(self):
        self.disttrain("kill")
        self.until("the job to end", lambda: (self.ask("status") or {}).get("state") in ("stopped", "failed"))


@contextlib.contextmanager
def alone():
    """Makes SIGTERM end the program by an exception, as Ctrl-C does, so that no daemon is left."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def load():
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
