"""Workers and ps of one host exchange tensors through shared memory: with the same bits as over TCP, and nothing is left
behind, whatever ends a process."""
import os
import signal
import unittest
from pathlib import Path

from harness import DIGITS, SystemTest
from ports import free_ports

CLUSTER = """
[cluster]
name = "{name}"
[chief]
address = "127.0.0.1:{}"
state_directory = "{folder}/chief"
[metrics]
listen = "127.0.0.1:0"
[transport]
kind = "{kind}"
[[ps]]
address = "127.0.0.1:{}"
[[ps]]
address = "127.0.0.1:{}"
[[worker]]
address = "127.0.0.1:{}"
[[worker]]
address = "127.0.0.1:{}"
"""
JOB = """
[job]
name = "shm"
seed = 3
shards = 2
[model]
builtin = "mlp"
layers = {layers}
[data]
path = "{digits}"
files = "train-images-idx3-ubyte.gz"
labels = "train-labels-idx1-ubyte.gz"
scale = 0.00392156862745098
[train]
mode = "{mode}"
batch_size = 20
{train}
optimizer = {{ rule = "adam", learning_rate = 0.001 }}
{checkpoint}
[evaluate]
files = "t10k-images-idx3-ubyte.gz"
labels = "t10k-labels-idx1-ubyte.gz"
"""
LARGE = "[784, 1500, 1500, 10]"


def abstract_names(cluster):
    return [line for line in Path("/proc/net/unix").read_text().splitlines() if f"@disttrain/{cluster}/" in line]


class ShmTest(SystemTest):
    def cluster(self, kind):
        # The name is in the names of the sockets.
        self.name = f"shm-{os.getpid()}-{kind}"
        path = self.folder / f"{kind}.toml"
        path.write_text(CLUSTER.format(*free_ports(5), name=self.name, kind=kind, folder=self.folder / kind))
        return path

    # By default each shard has several buckets.
    def write_job(self, mode, train, checkpoint="", layers="[784, 1000, 10]"):
        path = self.folder / "job.toml"
        path.write_text(JOB.format(mode=mode, train=train, layers=layers, checkpoint=checkpoint, digits=DIGITS))
        return path

    def hash_over(self, kind, job):
        outcome = self.run_program("disttrain", "up", self.cluster(kind), "--job", job, "--json")
        result = self.assert_finished(outcome)
        self.assertEqual(result["transport"], {"auto": "shm"}.get(kind, kind))
        self.assertEqual(abstract_names(self.name), [])
        return result["evaluation"]["parameters_hash"]

    def test_bits_are_those_over_tcp(self):
        for train in ("steps = 60", "steps = 60\npipeline = 1", 'steps = 60\nclip = { kind = "global_norm", value = 0.5 }'):
            with self.subTest(train=train):
                job = self.write_job("sync", train)
                self.assertEqual(self.hash_over("shm", job), self.hash_over("tcp", job))

    def test_each_mode_trains(self):
        for mode, more in (("async", ""), ("ssp", "staleness = 3"), ("async", "pipeline = 1")):
            with self.subTest(mode=mode):
                self.hash_over("auto", self.write_job(mode, f"epochs = 1\n{more}"))

    # Each shard has so many buckets that an asynchronous worker begins a step while its parameters arrive. With one
    # worker this changes no bit.
    def test_steps_that_begin_early_have_the_bits_of_others(self):
        hashes = {}
        for mode, kind in (("sync", "shm"), ("async", "shm"), ("async", "tcp")):
            cluster = self.cluster(kind)
            cluster.write_text(cluster.read_text().rsplit("[[worker]]", 1)[0])
            job = self.write_job(mode, "steps = 40", layers=LARGE)
            result = self.assert_finished(self.run_program("disttrain", "up", cluster, "--job", job, "--json"))
            self.assertEqual(result["global_step"], 40)
            hashes[mode, kind] = result["evaluation"]["parameters_hash"]
        self.assertEqual(len(set(hashes.values())), 1, hashes)

    def test_kills_leave_nothing(self):
        self.check_kills("sync", "[784, 1000, 10]")

    def test_kills_while_steps_begin_early(self):
        self.check_kills("async", LARGE)

    def check_kills(self, mode, layers):
        shared = set(os.listdir("/dev/shm"))
        cluster = self.cluster("shm")
        (self.folder / "checkpoints").mkdir()
        job = self.write_job(mode, "steps = 1000000",
                             f'[checkpoint]\ndirectory = "{self.folder}/checkpoints"\nevery_steps = 20', layers)
        process = self.start("disttrain", "up", cluster, "--job", job, "--json")
        self.until_steps(60, "--cluster", cluster)
        for task in ("worker/0", "ps/1", "worker/1", "ps/0", "chief/0"):
            before = self.status("--cluster", cluster)
            os.kill(self.pid_of(before, task), signal.SIGKILL)
            self.until(f"steps after the loss of {task}", lambda: self.has_moved(cluster, before, task))
        # The workers tell a new chief with their next heartbeats.
        self.until("the wire", lambda: (self.status("--cluster", cluster) or before)["transport"] == "shm")
        process.send_signal(signal.SIGKILL)
        for pid in self.processes_of_this_test():
            os.kill(pid, signal.SIGKILL)
        self.until("the sockets to be gone", lambda: not abstract_names(self.name))
        self.assertEqual(set(os.listdir("/dev/shm")) - shared, set())

    def has_moved(self, cluster, before, task):
        now = self.status("--cluster", cluster)
        if not now or now["state"] != "running" or not now["global_step"]:
            return False
        if self.pid_of(now, task) in (None, self.pid_of(before, task)):
            return False
        return now["generation"] > before["generation"] or now["global_step"] > before["global_step"] + 20


if __name__ == "__main__":
    unittest.main()
