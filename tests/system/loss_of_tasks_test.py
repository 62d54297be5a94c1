"""Tasks die and stay down, are stopped, or are interrupted: the job goes on without them or ends with its root cause,
and no process is left. up_restart_test.py has tasks that come back."""
import os
import re
import signal
import unittest

from harness import SystemTest, alive

LONG = "epochs = 1000000"


class LossOfTasksTest(SystemTest):
    def start_long_job(self, *arguments, ps=1, workers=2):
        process = self.start_up(self.job(train=LONG), *arguments, ps=ps, workers=workers)
        return process, self.until_steps(20)

    def assert_failed_because_of(self, process, task):
        outcome = self.finish(process)
        self.assertEqual(outcome.code, 1, str(outcome))
        self.assertEqual(outcome.json["state"], "failed")
        self.assertEqual(outcome.json["root_cause"]["task"], task, str(outcome))
        self.assertIn(task, outcome.json["reason"])
        self.assertIn(task, outcome.err)
        self.assertEqual(self.processes_of_this_test(), [])

    def run_folders(self):
        return [path for path in self.folder.iterdir() if re.fullmatch("disttrain-[a-zA-Z0-9]{6}", path.name)]

    def test_killed_only_ps_ends_the_job(self):
        process, status = self.start_long_job("--no-restart")
        os.kill(self.pid_of(status, "ps/0"), signal.SIGKILL)
        self.assert_failed_because_of(process, "ps/0")

    def test_shards_of_a_killed_ps_are_made_anew_on_the_others(self):
        process = self.start_up(self.job(job="shards = 2", train="epochs = 40"), "--no-restart", ps=2)
        status = self.until_steps(20)
        os.kill(self.pid_of(status, "ps/0"), signal.SIGKILL)
        outcome = self.finish(process)
        result = self.assert_finished(outcome)
        self.assertEqual((result["recoveries"], result["global_step"]), (1, 40 * 6000 / 50))
        self.assertIn("it stays down: --no-restart", outcome.err)

    def test_killed_chief_ends_the_job(self):
        process, status = self.start_long_job("--no-restart")
        os.kill(self.pid_of(status, "chief/0"), signal.SIGKILL)
        self.assert_failed_because_of(process, "chief/0")

    def test_killed_worker_that_the_job_needs_ends_it(self):
        for train, job in [('mode = "async"\n', "min_workers = 2"), ('mode = "sync"\n', 'on_worker_loss = "wait"')]:
            with self.subTest(job):
                process = self.start_up(self.job(job=job, train=train + LONG), "--no-restart")
                status = self.until_steps(20)
                os.kill(self.pid_of(status, "worker/1"), signal.SIGKILL)
                self.assert_failed_because_of(process, "worker/1")

    def test_killed_last_worker_ends_the_job(self):
        process, status = self.start_long_job("--no-restart", workers=1)
        os.kill(self.pid_of(status, "worker/0"), signal.SIGKILL)
        self.assert_failed_because_of(process, "worker/0")

    def test_killed_worker_leaves_its_records_to_the_others(self):
        for mode in ["async", "ssp", "sync"]:
            with self.subTest(mode):
                process = self.start_up(self.job(train=f'mode = "{mode}"\nepochs = 40'), "--no-restart", workers=3)
                status = self.until_steps(20)
                os.kill(self.pid_of(status, "worker/2"), signal.SIGKILL)
                result = self.assert_finished(self.finish(process))
                self.assertEqual(result["examples"], 40 * 6000)

    def test_stopped_worker_is_removed_and_the_others_go_on(self):
        process = self.start_up(self.job(train="epochs = 40"), workers=2)
        status = self.until_steps(20)
        os.kill(self.pid_of(status, "worker/1"), signal.SIGSTOP)
        result = self.assert_finished(self.finish(process))
        self.assertGreaterEqual(result["global_step"], 40 * 6000 / 50)

    def test_interrupted_up_stops_in_order(self):
        process, status = self.start_long_job(ps=2)
        process.send_signal(signal.SIGINT)
        outcome = self.finish(process)
        self.assertEqual(outcome.code, 130, str(outcome))
        self.assertEqual(self.processes_of_this_test(), [])

    def test_two_signals_at_once_are_an_interrupt_too(self):
        process, status = self.start_long_job()
        for number in [signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT]:
            process.send_signal(number)
        outcome = self.finish(process)
        self.assertIn(outcome.code, [128 + signal.SIGINT, 128 + signal.SIGTERM], str(outcome))
        self.assertEqual(self.processes_of_this_test(), [])

    def test_stopped_chief_is_the_root_cause(self):
        process, status = self.start_long_job("--no-restart")
        os.kill(self.pid_of(status, "chief/0"), signal.SIGSTOP)
        self.assert_failed_because_of(process, "chief/0")

    def test_killed_up_leaves_no_process(self):
        process, status = self.start_long_job(ps=2)
        process.kill()
        process.wait()
        pids = [task["pid"] for task in status["tasks"]]
        self.until("all daemons to end", lambda: not any(alive(pid) for pid in pids))
        # The next `up` removes its run folder.
        self.assertEqual(len(self.run_folders()), 1)
        self.assert_finished(self.up(self.job()))
        self.assertEqual(self.run_folders(), [])


if __name__ == "__main__":
    unittest.main()
