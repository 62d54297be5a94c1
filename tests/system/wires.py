"""For the tests of the wires that carry tensors (shm, rdma): a job whose parameters are compared with those over TCP, and
a job without an end, whose tasks are killed."""
import os
import signal

from harness import DIGITS, SystemTest
from ports import free_ports

JOB = """
[job]
name = "wires"
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
# Each shard has five buckets, so an asynchronous worker begins a step while its parameters arrive.
EARLY = "[784, 1200, 1000, 10]"


class WireTest(SystemTest):
    CLUSTER = ""  # the text of a cluster file with two ps and two workers
    LAYERS = ""  # of the usual model
    STEPS = 0  # after so many steps a job clearly makes progress

    def cluster(self, kind):
        # The name is in the names of the sockets of shm.
        self.name = f"wires-{os.getpid()}-{kind}"
        path = self.folder / f"{kind}.toml"
        path.write_text(self.CLUSTER.format(*free_ports(5), name=self.name, kind=kind, folder=self.folder / kind))
        return path

    def write_job(self, mode, train, checkpoint="", layers=None):
        path = self.folder / "job.toml"
        path.write_text(JOB.format(mode=mode, train=train, layers=layers or self.LAYERS, checkpoint=checkpoint, digits=DIGITS))
        return path

    def hash_over(self, kind, job, workers=2):
        cluster = self.cluster(kind)
        if workers == 1:
            cluster.write_text(cluster.read_text().rsplit("[[worker]]", 1)[0])
        result = self.assert_finished(self.run_program("disttrain", "up", cluster, "--job", job, "--json"))
        self.assertEqual(result["transport"], {"auto": "shm"}.get(kind, kind))
        return result["evaluation"]["parameters_hash"]

    def check_steps_that_begin_early(self, *kinds, steps):
        """With one worker, a step that begins early computes the same bits as one that waits for all parameters."""
        hashes = {}
        for mode, kind in (("sync", "tcp"), *(("async", kind) for kind in kinds)):
            job = self.write_job(mode, f"steps = {steps}", layers=EARLY)
            hashes[mode, kind] = self.hash_over(kind, job, workers=1)
        self.assertEqual(len(set(hashes.values())), 1, hashes)

    def start_long(self, kind, mode, layers=None):
        cluster = self.cluster(kind)
        (self.folder / "checkpoints").mkdir()
        job = self.write_job(mode, "steps = 1000000",
                             f'[checkpoint]\ndirectory = "{self.folder}/checkpoints"\nevery_steps = {self.STEPS}', layers)
        self.up = self.start("disttrain", "up", cluster, "--job", job, "--json")
        self.until_steps(3 * self.STEPS, "--cluster", cluster)
        return cluster

    def kill_one_after_another(self, cluster, tasks):
        for task in tasks:
            before = self.status("--cluster", cluster)
            os.kill(self.pid_of(before, task), signal.SIGKILL)
            self.until(f"steps after the loss of {task}", lambda: self.has_moved(cluster, before, task))

    def kill_all(self):
        self.up.send_signal(signal.SIGKILL)
        for pid in self.processes_of_this_test():
            os.kill(pid, signal.SIGKILL)

    def has_moved(self, cluster, before, task=None):
        """Whether the job has made steps since the status `before`, and the task is another process than then."""
        now = self.status("--cluster", cluster)
        if not now or now["state"] != "running" or not now["global_step"]:
            return False
        if task and self.pid_of(now, task) in (None, self.pid_of(before, task)):
            return False
        return now["generation"] > before["generation"] or now["global_step"] > before["global_step"] + self.STEPS
