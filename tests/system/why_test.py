"""disttrain why, for jobs that train or wait, and without a job."""
import signal
import unittest

from bad_input_test import CLUSTER
from harness import SystemTest
from ports import free_ports

LONG = "epochs = 1000000"
# For each phase of a worker's step: the causes that `why` may name if a single worker spends most of its time in this
# phase. On a busy machine, this may be any phase.
BRAKES = {"input": ["input"], "compute": ["compute"], "evaluate": ["evaluation"], "exchange": ["shard", "link"]}


STREAMED = """
[job]
name = "streamed"
[model]
builtin = "mlp"
layers = [1, 8, 2]
[data]
format = "csv"
path = "data"
files = "*.csv"
memory = "1KiB"
[data.columns]
x = { kind = "numeric" }
k = { kind = "label" }
[train]
batch_size = 20
epochs = 1000000
"""


class WhyTest(SystemTest):
    def setUp(self):
        super().setUp()
        chief, ps, worker = free_ports(3)
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text(CLUSTER.format(name="test", port=chief, ps=ps, worker=worker, folder=self.folder))
        self.chief, self.ps, self.worker = (self.start(daemon, "--cluster", self.cluster)
                                            for daemon in ("chiefd", "psd", "workerd"))
        self.until_chief_answers(self.cluster)

    def why(self, *arguments):
        outcome = self.run_program("disttrain", "why", *arguments, "--cluster", self.cluster)
        self.assertEqual((outcome.code, outcome.err), (0, ""), str(outcome))
        return outcome

    def train(self, *sets):
        outcome = self.run_program("disttrain", "submit", "--detach", self.job(train=LONG), *sets, "--cluster", self.cluster)
        self.assertEqual(outcome.code, 0, str(outcome))
        return self.until_steps(5, "--cluster", self.cluster)

    def test_without_any_job_it_says_so(self):
        self.assertEqual(self.why().out, "no job was submitted yet\n")
        answer = self.why("--json").json
        self.assertEqual((answer["brake"], answer["job"], answer["state"]), ("no_job", None, None))

    def test_job_that_trains_is_held_back_by_what_takes_most_of_its_step(self):
        self.train("--set", "train.batch_size=400", "--set", "model.layers=[784, 512, 10]")
        answer = self.why("--json").json
        worker, = answer["workers"]
        self.assertGreaterEqual(worker["steps"], 3)
        self.assertIn(answer["brake"], BRAKES[max(BRAKES, key=worker.get)], answer)
        self.assertEqual(answer["task"], "ps/0" if answer["brake"] == "shard" else "worker/0", answer)
        self.assertTrue(answer["sentence"].startswith("job quick "), answer)
        sentence, *figures = self.why("quick").out.splitlines()
        self.assertIn("job quick ", sentence)
        self.assertTrue(figures and all(line.startswith("  ") for line in figures), figures)
        self.assertIn("worker/0", figures[1])

    def test_stages_of_making_batches_from_files_are_told(self):
        (self.folder / "data").mkdir()
        (self.folder / "data" / "a.csv").write_text("x,k\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(3000)))
        job = self.folder / "streamed.toml"
        job.write_text(STREAMED)
        outcome = self.run_program("disttrain", "submit", "--detach", job, "--cluster", self.cluster)
        self.assertEqual(outcome.code, 0, str(outcome))
        self.until_steps(5, "--cluster", self.cluster)
        stages = self.why("--json").json["workers"][0]["data"]
        self.assertEqual(sorted(stages), ["batch", "decode", "read", "transform"])
        self.assertGreater(min(stages.values()), 0, stages)

    def test_job_in_memory_has_no_stages(self):
        status = self.train()
        self.assertEqual([task["data_times"] for task in status["tasks"] if task["task"] == "worker/0"], [None])

    def test_shards_say_how_busy_they_are(self):
        before = self.train()["tasks"][1]["shards"]
        answer = self.why("--json").json
        after = self.status("--cluster", self.cluster)["tasks"][1]["shards"]
        self.assertTrue(after)
        self.assertEqual([each["shard"] for each in after], list(range(len(after))))
        self.assertEqual([each["shard"] for each in answer["shards"]], list(range(len(after))))
        for earlier, later in zip(before, after):
            for key in ("seconds", "busy_seconds", "apply_seconds"):
                self.assertGreater(later[key], earlier[key], key)
            self.assertLessEqual(later["busy_seconds"], later["seconds"])

    def test_paused_job_names_the_ps_that_it_waits_for(self):
        self.train()
        self.ps.send_signal(signal.SIGSTOP)
        self.until("the pause", lambda: self.status("--cluster", self.cluster)["state"] == "paused")
        answer = self.why("--json").json
        self.ps.send_signal(signal.SIGCONT)
        self.assertEqual((answer["brake"], answer["state"], answer["task"]), ("state", "paused", "ps/0"), answer)
        self.assertIn("job quick is paused: ps/0: ", answer["sentence"])
        self.assertIn(f"check its process {self.ps.pid} on ", answer["sentence"])

    def test_starting_job_names_the_worker_that_is_missing(self):
        self.worker.kill()
        self.finish(self.worker)
        self.run_program("disttrain", "submit", "--detach", self.job(), "--cluster", self.cluster)
        # The chief names the ps first for as long as psd hasn't joined.
        answer = self.until("the ps to join", lambda: self.without_ps(self.why("--json").json))
        self.assertEqual((answer["state"], answer["task"]), ("starting", "worker/0"), answer)
        self.assertIn("worker/0 isn't there: start workerd (127.0.0.1:", answer["sentence"])

    def without_ps(self, answer):
        """Returns the answer, or None while the sentence names the ps."""
        return None if "ps/0" in answer["sentence"] else answer


if __name__ == "__main__":
    unittest.main()
