"""A worker whose threads hang in the bytes of a job that is over ends its process, and the next job begins without
waiting for those bytes. tests/chiefd/core/queue_test.cc tests that the chief gives such a worker no other job."""
import os
import time
import unittest
import zipfile
from pathlib import Path

from harness import BIN
from lasting_cluster import PROGRAM_JOB, WORKERS, LastingClusterTest, children_of
from npy import write_npy

PROGRAMS = Path(os.environ.get("PROGRAMS", BIN.parent / "tests/data/program/unpacked"))
RECORDS = 64
TEMPORARY = 75  # systemd and `disttrain up` start a process again that ends with this code
CALL = "    _0 = (model).forward(input, )\n"
ENDLESS_CALL = ("    _again = True\n    _endless = input\n    while _again:\n      _endless = torch.add(_endless, 0.)\n"
                "    _0 = (model).forward(_endless, )\n")


class HungWorkerTest(LastingClusterTest):
    def endless_job(self):
        """A job whose program never ends its first step."""
        path = self.folder / "endless.pt"
        with zipfile.ZipFile(PROGRAMS / "batch_norm.pt") as package, \
                zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as copy:
            for member in package.infolist():
                content = package.read(member)
                if member.filename.endswith("exporting/torchscript.py"):
                    self.assertEqual(content.count(CALL.encode()), 1)
                    content = content.replace(CALL.encode(), ENDLESS_CALL.encode())
                copy.writestr(zipfile.ZipInfo(member.filename), content)
        data = self.folder / "data"
        data.mkdir()
        write_npy(data / "inputs.npy", "<f4", (RECORDS, 6), [i / 100 for i in range(RECORDS * 6)])
        write_npy(data / "labels.npy", "<i8", (RECORDS,), [i % 3 for i in range(RECORDS)])
        job = self.folder / "bad.toml"
        job.write_text(PROGRAM_JOB.format(workers=WORKERS, program=path, data=data, epochs=2, train=""))
        return job

    def all_workers_compute(self):
        """In the job "bad". A worker's phase may be that of the job before until its next heartbeat."""
        status = self.status("--cluster", self.cluster)
        if not status or (status["job"], status["state"]) != ("bad", "running"):
            return False
        workers = [task for task in status["tasks"] if task["task"].startswith("worker/")]
        return all(task["phase"] == "compute" and task["phase_seconds"] > 0.5 for task in workers)

    def restart_workers_that_end(self):
        """Each worker ends by itself. As systemd does, starts it again."""
        for index in range(WORKERS):
            task = f"worker/{index}"
            outcome = self.finish(self.daemons[task])
            self.assertEqual(outcome.code, TEMPORARY, f"{task}: {outcome}")
            self.assertRegex(outcome.err, r"error worker/\d job \d+ is over for this worker, but its program, trainer or data "
                                          r"still keeps the step thread, which hasn't moved for .*: ending this process "
                                          r"with exit code 75")
            self.daemons[task] = self.start("workerd", "--cluster", self.cluster, "--index", index)

    def test_program_that_never_ends_costs_the_next_job_only_seconds(self):
        endless = self.start("disttrain", "submit", "--cluster", self.cluster, "--json", self.endless_job())
        self.until("all workers to compute", self.all_workers_compute)
        killed_at = time.monotonic()
        self.assertEqual(self.run_program("disttrain", "kill", "bad", "--cluster", self.cluster).code, 0)
        following = self.start("disttrain", "submit", "--cluster", self.cluster, "--json", self.next_job())
        self.restart_workers_that_end()
        self.assert_finished(self.finish(following))
        print(f"the next job has ended {time.monotonic() - killed_at:.1f} s after the kill")
        self.assertEqual(self.finish(endless).json["state"], "stopped")
        logs = self.run_program("disttrain", "logs", "--cluster", self.cluster).out
        self.assertEqual(logs.count("ending this process with exit code 75"), WORKERS, "the chief has heard why")

    def test_trainer_that_never_describes_its_model_costs_the_next_job_only_seconds(self):
        silent = self.start("disttrain", "submit", "--cluster", self.cluster, "--json",
                            self.trainer_job("import time\ntime.sleep(1e6)\n"))
        self.until("a trainer to begin", lambda: any(children_of(self.daemons[f"worker/{index}"].pid)
                                                     for index in range(WORKERS)))
        following = self.start("disttrain", "submit", "--cluster", self.cluster, "--json", self.next_job())
        self.until("the next job to wait", lambda: "queued" in self.run_program(
            "disttrain", "status", "--cluster", self.cluster, "next").out)
        self.assertEqual(self.run_program("disttrain", "kill", "bad", "--cluster", self.cluster).code, 0)
        self.assert_finished(self.finish(following))
        self.assertEqual(self.finish(silent).json["state"], "stopped")
        self.assertEqual([children_of(self.daemons[f"worker/{index}"].pid) for index in range(WORKERS)], [[]] * WORKERS)


if __name__ == "__main__":
    unittest.main()
