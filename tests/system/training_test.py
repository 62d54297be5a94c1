"""Jobs in every mode, with several placements and numbers of tasks, under `up`."""
import os
import signal
import unittest

from harness import SystemTest

KEYS = ["job", "state", "reason", "global_step", "seconds", "steps_per_second", "examples_per_second", "loss",
        "evaluation", "transport", "generation", "recoveries", "checkpoint", "tasks"]


class TrainingTest(SystemTest):
    def test_asynchronous_job_visits_each_record_once_an_epoch(self):
        result = self.assert_finished(self.up(self.job(train="epochs = 3")))
        self.assertEqual(result["global_step"], 3 * 6000 / 50)
        self.assertEqual(result["evaluation"]["examples"], 1000)
        self.assertGreater(result["evaluation"]["accuracy"], 0.5)

    def test_result_has_the_documented_keys(self):
        result = self.assert_finished(self.up(self.job(train="epochs = 1"), ps=2))
        for key in KEYS:
            self.assertIn(key, result)
        self.assertEqual(result["transport"], "shm")
        self.assertEqual(result["generation"], 1)
        self.assertEqual([task["task"] for task in result["tasks"]], ["chief/0", "ps/0", "ps/1", "worker/0", "worker/1"])
        for task in result["tasks"]:
            self.assertGreater(task["pid"], 0)
            self.assertIn(":", task["address"])

    def test_synchronous_parameters_are_those_of_one_process_bit_for_bit(self):
        # 6,000 records in batches of 70: at the end of an epoch, the last step is smaller, and some workers have no
        # records in it.
        for rule in ['{ rule = "adam", learning_rate = 0.01 }', '{ rule = "sgd", learning_rate = 0.1 }']:
            train = f'mode = "sync"\nepochs = 2\noptimizer = {rule}'
            for workers, ps, shards, placement in [(1, 1, 1, "balanced"), (2, 2, 3, "round_robin"),
                                                   (3, 1, 2, "greedy"), (3, 3, 3, "partitioned")]:
                with self.subTest(rule=rule, workers=workers, ps=ps, shards=shards, placement=placement):
                    job = self.job(job=f'placement = "{placement}"\nshards = {shards}', train=train)
                    job.write_text(job.read_text().replace("batch_size = 50", "batch_size = 70"))
                    result = self.assert_finished(self.up(job, ps=ps, workers=workers))
                    alone = self.run_program("one_process", job, workers)
                    self.assertEqual(result["evaluation"]["parameters_hash"], alone.out.strip(), str(alone))

    def test_lamb_with_accumulated_gradients_is_that_of_one_process_bit_for_bit(self):
        # 6,000 records in batches of 70: three batches make a step of a worker, and the last step of an epoch is smaller.
        train = ('mode = "sync"\nepochs = 2\naccumulate = 3\n'
                 'optimizer = { rule = "lamb", learning_rate = 0.01, weight_decay = 0.01 }')
        for workers, ps, shards in [(1, 1, 1), (2, 2, 3)]:
            with self.subTest(workers=workers, ps=ps, shards=shards):
                job = self.job(job=f"shards = {shards}", train=train)
                job.write_text(job.read_text().replace("batch_size = 50", "batch_size = 70"))
                result = self.assert_finished(self.up(job, ps=ps, workers=workers))
                alone = self.run_program("one_process", job, workers)
                self.assertEqual(result["evaluation"]["parameters_hash"], alone.out.strip(), str(alone))

    def test_evaluation_uses_the_averages(self):
        job = self.job(train='mode = "sync"\nepochs = 1', evaluate="average = 0.9")
        result = self.assert_finished(self.up(job))
        other = self.assert_finished(self.up(self.job(train='mode = "sync"\nepochs = 1')))
        self.assertNotEqual(result["evaluation"]["parameters_hash"], other["evaluation"]["parameters_hash"])

    def test_backup_worker_makes_steps_without_the_slowest(self):
        result = self.assert_finished(self.up(self.job(train='mode = "sync"\naggregate = 2\nepochs = 2'), workers=3))
        self.assertEqual(result["evaluation"]["examples"], 1000)

    def test_bounded_staleness_trains(self):
        self.assert_finished(self.up(self.job(train='mode = "ssp"\nstaleness = 2\nepochs = 2'), workers=3))

    def test_bounded_staleness_holds_the_fast_worker_when_the_other_is_slow(self):
        # The timeout is long, so that a stopped worker counts as slow and not as lost; heartbeats come every 3 s. The
        # job has no leases: with leases, the others wouldn't wait for a worker that waits for a lease, and that worker
        # would come back with a new clock.
        process = self.start_up(self.job(data='sharding = "none"', train='mode = "ssp"\nstaleness = 4\nepochs = 1000000'),
                                "--set", 'heartbeat.timeout="30s"')
        status = self.until_steps(50)
        slow = self.pid_of(status, "worker/1")
        os.kill(slow, signal.SIGSTOP)

        def fast_one_waits_within_the_bound():
            now = self.status()
            fast = next(task for task in now["tasks"] if task["task"] == "worker/0")
            ahead = fast["step"] - (now["global_step"] - fast["step"])  # inexact while a heartbeat is due
            # The worker may push one step more than the bound allows, but gets no parameters for that push.
            is_held = fast["phase"] == "wait" and fast["phase_seconds"] > 4 and 1 <= ahead <= 4 + 1
            return now["global_step"] if is_held else None

        global_step = self.until("the fast worker to wait within the bound", fast_one_waits_within_the_bound)
        os.kill(slow, signal.SIGCONT)
        self.until_steps(global_step + 50)
        self.run_program("disttrain", "stop")
        self.assertEqual(self.finish(process).json["state"], "stopped")

    def test_each_worker_goes_through_the_whole_set_without_leases(self):
        result = self.assert_finished(self.up(self.job(data='sharding = "none"', train="epochs = 2")))
        self.assertEqual(result["global_step"], 2 * 2 * 6000 / 50)

    def test_synchronous_job_without_leases_counts_its_steps_from_the_epochs(self):
        result = self.assert_finished(self.up(self.job(data='sharding = "none"', train='mode = "sync"\nepochs = 2')))
        self.assertEqual(result["global_step"], 2 * 6000 / 50)

    def test_steps_end_the_job_before_the_epochs(self):
        # Pushes that are under way at the last step count too, as many as etc/job.toml says.
        for keys, more in (("", 2), ("pipeline = 1", 4), ('mode = "ssp"\nstaleness = 2', 2), ('mode = "sync"', 0),
                           ('mode = "sync"\npipeline = 1', 0)):
            with self.subTest(keys):
                result = self.assert_finished(self.up(self.job(train=f"epochs = 50\nsteps = 100\n{keys}")))
                self.assertIn(result["global_step"], range(100, 100 + more + 1))

    def test_job_that_somebody_watches_does_not_wait_for_ever(self):
        process = self.start_up(self.job(train="epochs = 1000000"))
        stopped = self.pid_of(self.until_steps(10), "ps/0")
        os.kill(stopped, signal.SIGSTOP)
        self.until("the job to say when it fails",
                   lambda: "fails if this takes 120 s (job.ps_timeout)" in (self.status() or {}).get("reason", ""))
        os.kill(stopped, signal.SIGCONT)
        self.until_steps(20)
        self.run_program("disttrain", "stop")
        self.assertEqual(self.finish(process).json["state"], "stopped")

    def test_pipelined_job_trains(self):
        result = self.assert_finished(self.up(self.job(train="pipeline = 1\nepochs = 2")))
        self.assertEqual(result["global_step"], 2 * 6000 / 50)

    def test_evaluation_in_mid_run_does_not_end_training(self):
        job = self.job(train="epochs = 3", evaluate="every_steps = 100")
        result = self.assert_finished(self.up(job))
        self.assertEqual(result["global_step"], 360)

    def test_set_overrides_any_key_of_the_job(self):
        result = self.assert_finished(self.up(self.job(), "--set", "train.steps=7", "--set", "job.name=other"))
        self.assertEqual(result["job"], "other")
        self.assertIn(result["global_step"], (7, 8))

    def test_convolutional_net_trains(self):
        job = self.folder / "cnn.toml"
        job.write_text(self.job().read_text().replace('builtin = "mlp"\nlayers = [784, 32, 10]', 'builtin = "cnn"'))
        self.assert_finished(self.up(job, "--set", "train.steps=10", "--set", "job.name=cnn"))


if __name__ == "__main__":
    unittest.main()
