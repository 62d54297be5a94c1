"""Daemons that were started by hand outlive the jobs, the chief and each other."""
import signal
import time
import unittest

from harness import PATIENCE, SystemTest
from ports import free_address

LONG = "epochs = 1000000"


class DaemonsTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text(f'[cluster]\nname = "by-hand"\n[chief]\naddress = "{free_address()}"\n'
                                f'state_directory = "{self.folder / "chief"}"\n[metrics]\nlisten = "127.0.0.1:0"\n'
                                + "".join(f'[[ps]]\naddress = "{free_address()}"\nshards = 1\n' for _ in range(2))
                                + "".join(f'[[worker]]\naddress = "{free_address()}"\nthreads = 1\n' for _ in range(2)))
        self.daemons = {}
        for task in ["chief/0", "ps/0", "ps/1", "worker/0", "worker/1"]:
            self.start_daemon(task)
        self.until_chief_answers(self.cluster)

    def start_daemon(self, task):
        role, index = task.split("/")
        program = {"chief": "chiefd", "ps": "psd", "worker": "workerd"}[role]
        arguments = ["--cluster", self.cluster] + ([] if role == "chief" else ["--index", index])
        self.daemons[task] = self.start(program, *arguments)

    def kill(self, task):
        self.daemons[task].kill()
        self.daemons[task].wait()

    def submit(self, train):
        return self.start("disttrain", "submit", self.job(job="shards = 2\nmin_workers = 2", train=train), "--json",
                          "--cluster", self.cluster)

    def start_long_job(self, mode="async"):
        process = self.submit(f'mode = "{mode}"\n{LONG}')
        self.until_steps(20, "--cluster", self.cluster)
        return process

    def until_state(self, state, patience=PATIENCE):
        """Waits until the job is in this state. Returns the status."""
        def reached():
            status = self.status("--cluster", self.cluster)
            return status if status and status["state"] == state else None
        return self.until(f"the job to be {state}", reached, patience)

    def assert_goes_on_and_stops(self, process, recoveries):
        """Waits until the job has made more steps than before, and stops it."""
        now = self.until_state("running")
        self.until_steps(now["global_step"] + 1, "--cluster", self.cluster)
        self.assertEqual(self.run_program("disttrain", "stop", "--cluster", self.cluster).code, 0)
        outcome = self.finish(process)
        self.assertEqual((outcome.code, outcome.json["state"]), (2, "stopped"), str(outcome))
        self.assertEqual(outcome.json["recoveries"], recoveries, str(outcome))

    def assert_next_job_finishes(self):
        """Checks that a synchronous job finishes with both workers in every step: a step takes 100 of the 6,000
        records."""
        outcome = self.finish(self.submit('mode = "sync"\nepochs = 2'))
        self.assertEqual(self.assert_finished(outcome)["global_step"], 2 * 6000 / 100)
        for task, process in self.daemons.items():
            self.assertIsNone(process.poll(), task)

    def test_job_waits_for_a_killed_task_and_goes_on_with_its_successor(self):
        for task, mode, recoveries in [("ps/0", "async", 1), ("ps/1", "sync", 1), ("worker/1", "sync", 0)]:
            with self.subTest(task):
                process = self.start_long_job(mode)
                self.kill(task)
                self.assertIn("waiting for", self.until_state("paused")["reason"])
                self.start_daemon(task)
                self.assert_goes_on_and_stops(process, recoveries)
                self.assert_next_job_finishes()

    def test_worker_that_the_file_does_not_name_joins_where_it_is_allowed(self):
        process = self.start_long_job()
        arguments = ["workerd", "--cluster", self.cluster, "--index", 5, "--address", free_address()]
        outcome = self.run_program(*arguments)
        self.assertEqual(outcome.code, 78, str(outcome))
        self.assertIn("allow_unlisted_workers", outcome.err)
        self.kill("chief/0")
        text = self.cluster.read_text()
        self.cluster.write_text(text.replace("[cluster]\n", "[cluster]\nallow_unlisted_workers = true\n"))
        self.start_daemon("chief/0")
        self.until_state("running")
        self.daemons["worker/5"] = self.start(*arguments)

        def takes_part():
            status = self.status("--cluster", self.cluster)
            return status and any(task["task"] == "worker/5" and task["step"] > 0 for task in status["tasks"])
        # The running job has reserved memory only for the workers in the cluster file. So worker/5 can train only in a
        # new job.
        self.run_program("disttrain", "stop", "--cluster", self.cluster)
        self.finish(process)
        process = self.start_long_job()
        self.until("worker/5 to make steps", takes_part)
        self.assert_goes_on_and_stops(process, 0)

    def test_job_that_waits_for_a_rank_stops_when_it_is_told(self):
        job = self.job(job='on_worker_loss = "wait"', train=f'mode = "sync"\n{LONG}')
        process = self.start("disttrain", "submit", job, "--json", "--cluster", self.cluster)
        self.until_steps(20, "--cluster", self.cluster)
        self.kill("worker/1")
        self.until_state("paused")
        self.assertEqual(self.run_program("disttrain", "stop", "--cluster", self.cluster).code, 0)
        outcome = self.finish(process)
        self.assertEqual(outcome.json["state"], "stopped", str(outcome))
        self.assertNotIn("did not end", outcome.json["reason"])
        self.start_daemon("worker/1")
        self.assert_next_job_finishes()

    def test_restarted_chief_takes_the_job_up_again(self):
        for mode in ["async", "sync"]:
            with self.subTest(mode):
                process = self.start_long_job(mode)
                self.kill("chief/0")
                self.start_daemon("chief/0")
                self.until_chief_answers(self.cluster)
                self.assert_goes_on_and_stops(process, 0)
                self.assert_next_job_finishes()

    def test_chief_that_is_away_for_longer_than_anybody_may_wait_costs_nothing(self):
        """The workers use up their leases, about two seconds of records, and wait. Without a chief no time limit
        runs."""
        process = self.start("disttrain", "submit", self.job(train=LONG), "--json", "--cluster", self.cluster,
                             "--set", "job.shards=2", "--set", 'job.stall_timeout="2s"')
        self.until_steps(20, "--cluster", self.cluster)
        self.kill("chief/0")
        killed = time.monotonic()
        self.until("more than leases and job.stall_timeout take", lambda: time.monotonic() > killed + 8)
        self.start_daemon("chief/0")
        self.until_chief_answers(self.cluster)
        self.assert_goes_on_and_stops(process, 0)

    def test_stopped_task_that_is_continued_goes_on(self):
        for task, mode in [("ps/0", "async"), ("worker/1", "sync"), ("worker/1", "async")]:
            with self.subTest(f"{task}, {mode}"):
                process = self.start_long_job(mode)
                self.daemons[task].send_signal(signal.SIGSTOP)
                self.assertIn("waiting for", self.until_state("paused")["reason"])
                self.daemons[task].send_signal(signal.SIGCONT)
                self.assert_goes_on_and_stops(process, 0)
                self.assert_next_job_finishes()

    def test_events_tell_who_was_lost_and_came_back(self):
        process = self.start_long_job()
        self.kill("worker/1")
        self.until_state("paused")
        self.start_daemon("worker/1")
        self.assert_goes_on_and_stops(process, 0)
        events = self.run_program("disttrain", "events", "--json", "--cluster", self.cluster).json
        self.assertEqual({event["job"] for event in events}, {1})
        lost = next(event for event in events if event["kind"] == "worker_lost")
        joined = next(event for event in events if event["kind"] == "worker_joined")
        self.assertEqual((lost["task"], joined["task"]), ("worker/1", "worker/1"))
        self.assertLess(lost["time"], joined["time"])
        lines = self.run_program("disttrain", "events", "1", "--cluster", self.cluster).out.splitlines()
        self.assertEqual(len(lines), len(events))
        self.assertIn(" worker/1  goes on without worker/1", "\n".join(lines))
        every = self.run_program("disttrain", "events", "--all", "--json", "--cluster", self.cluster).json
        self.assertEqual(every[0]["kind"], "chief_started")


if __name__ == "__main__":
    unittest.main()
