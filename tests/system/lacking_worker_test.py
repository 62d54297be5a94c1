"""One of three workers can't take part in a job, because it lacks memory, a device or the data. The others train without
it, at the cost of at most one rollback before the first step, and it is left out until its process is another one."""
import resource
import shutil
import subprocess
import unittest
from pathlib import Path

from harness import BIN, DIGITS, SystemTest
from ports import free_address

MIB = 1 << 20
LONG = "epochs = 1000000"


class LackingWorkerTest(SystemTest):
    def start_cluster(self, lacks_device=None, lacks_data=None):
        """A ps and three workers. The index of a worker that lacks something may be given."""
        self.data = self.folder / "data"
        shutil.copytree(DIGITS, self.data)
        self.cluster = self.folder / "cluster.toml"
        workers = "".join(f'[[worker]]\naddress = "{free_address()}"\nthreads = 1\n'
                          + ('device = "pjrt:/no/such/plugin.so"\n' if index == lacks_device else "") for index in range(3))
        self.cluster.write_text(f'[cluster]\nname = "lacking"\n[chief]\naddress = "{free_address()}"\n'
                                f'state_directory = "{self.folder / "chief"}"\n[metrics]\nlisten = "127.0.0.1:0"\n'
                                f'[[ps]]\naddress = "{free_address()}"\nshards = 1\n{workers}')
        self.start("chiefd", "--cluster", self.cluster)
        self.start("psd", "--cluster", self.cluster)
        self.workers = [self.start_worker(index, lacks_data=index == lacks_data) for index in range(3)]
        self.until_chief_answers(self.cluster)

    def start_worker(self, index, lacks_data=False):
        if not lacks_data:
            return self.start("workerd", "--cluster", self.cluster, "--index", index)
        # This worker sees an empty folder in place of the data.
        return self.start_command("unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$1"; shift; exec "$@"', "sh", self.data,
                                  BIN / "workerd", "--cluster", self.cluster, "--index", index)

    def job_with(self, layers):
        job = self.job(train=LONG)
        job.write_text(job.read_text().replace("[784, 32, 10]", layers).replace(str(DIGITS), str(self.data)))
        return job

    def submit(self, layers="[784, 32, 10]"):
        return self.start("disttrain", "submit", "--cluster", self.cluster, "--json", self.job_with(layers))

    def task(self, status, name):
        return next(task for task in status["tasks"] if task["task"] == name)

    def running(self, status):
        return sorted(task["task"] for task in status["tasks"] if task["task"].startswith("worker/") and task["state"] == "running")

    def until_runs_with(self, workers):
        def judged():
            status = self.status("--cluster", self.cluster)
            good = status and status["state"] == "running" and status["global_step"] > 0 and self.running(status) == workers
            return status if good else None
        return self.until(f"the job to train with {workers}", judged)

    def check(self, lacking, reason):
        """The others train. The worker joins as soon as it is another process, which lacks nothing."""
        others = [f"worker/{index}" for index in range(3) if index != lacking]
        status = self.until_runs_with(others)
        self.assertLessEqual(status["recoveries"], 1)
        left_out = self.task(status, f"worker/{lacking}")
        self.assertEqual(left_out["state"], "ready", left_out)
        self.assertRegex(left_out["reason"], "^can't take part in the job until its process is another one: .*" + reason)
        self.assertRegex(status["reason"], f"worker/{lacking} can't take part")
        self.assertIsNone(self.workers[lacking].poll(), "the worker waits for another job")
        return status

    def end(self, submitted):
        self.assertEqual(self.run_program("disttrain", "kill", "quick", "--cluster", self.cluster).code, 0)
        self.assertEqual(self.finish(submitted).json["state"], "stopped")

    def test_memory(self):
        self.start_cluster()
        self.until("the workers to be ready", lambda: [
            task for task in (self.status("--cluster", self.cluster) or {"tasks": []})["tasks"] if task["state"] == "ready"][3:])
        pid = self.workers[1].pid
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        used = 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmSize")))
        # Its parameters and gradients take 91 MiB each.
        resource.prlimit(pid, resource.RLIMIT_AS, (used + 120 * MIB, used + 120 * MIB))
        submitted = self.submit("[784, 30000, 10]")
        self.check(1, "not enough memory")
        events = self.run_program("disttrain", "events", "--cluster", self.cluster).out
        self.assertEqual(events.count("worker/1 can't take part: "), 1, events)
        self.workers[1].terminate()
        self.finish(self.workers[1])
        self.workers[1] = self.start_worker(1)
        self.until_runs_with(["worker/0", "worker/1", "worker/2"])
        self.end(submitted)

    def test_device_of_the_worker_that_describes_the_job(self):
        self.start_cluster(lacks_device=0)
        submitted = self.submit()
        status = self.check(0, "device")
        self.assertEqual(status["recoveries"], 0)
        self.end(submitted)

    def test_data(self):
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            self.skipTest("this process may not make a mount namespace")
        self.start_cluster(lacks_data=2)
        submitted = self.submit()
        self.check(2, "train-images-idx3-ubyte.gz")
        self.end(submitted)


if __name__ == "__main__":
    unittest.main()
