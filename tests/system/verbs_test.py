"""submit, status, stop, kill, logs, bench, plan and check, with daemons that were started by hand."""
import json
import signal
import threading
import unittest

from bad_input_test import CLUSTER
from harness import PATIENCE, SystemTest
from ports import free_ports

LONG = "epochs = 1000000"


class VerbsTest(SystemTest):
    def setUp(self):
        super().setUp()
        chief, ps, worker = free_ports(3)
        self.chief = f"127.0.0.1:{chief}"
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text(CLUSTER.format(name="test", port=chief, ps=ps, worker=worker, folder=self.folder))
        self.daemons = [self.start(daemon, "--cluster", self.cluster) for daemon in ("chiefd", "psd", "workerd")]
        self.until_chief_answers(self.cluster)

    def verb(self, *arguments):
        return self.run_program("disttrain", *arguments, "--cluster", self.cluster)

    def test_jobs_run_one_after_the_other_and_daemons_stay(self):
        first = self.start("disttrain", "submit", self.job("first", train="epochs = 3"), "--json", "--cluster", self.cluster)
        second = self.start("disttrain", "submit", self.job("second", train="epochs = 1"), "--json", "--cluster", self.cluster)
        self.assert_finished(self.finish(first))
        self.assert_finished(self.finish(second))
        every = self.verb("status", "--all", "--json").json["jobs"]
        self.assertEqual(sorted(job["job"] for job in every), ["first", "second"])
        self.assertEqual({job["state"] for job in every}, {"finished"})
        for daemon in self.daemons:
            self.assertIsNone(daemon.poll())

    def test_detached_job_is_stopped_by_name(self):
        number = self.verb("submit", "--detach", self.job("endless", train=LONG)).out.strip()
        self.assertTrue(number.isdigit(), number)
        self.until_steps(5, "--cluster", self.cluster)
        stopped = self.verb("stop", "endless")
        self.assertEqual((stopped.code, stopped.out), (
            0, f"job {number} (endless) ends when each worker has finished its current step; see: disttrain status\n"))
        state = self.until("the end", lambda: self.ended("endless"))
        self.assertEqual(state, "stopped")

    def ended(self, job):
        state = self.verb("status", "--json", job).json["state"]
        return state if state in ("finished", "failed", "stopped") else None

    def test_killed_job_frees_the_cluster_for_the_next(self):
        number = self.verb("submit", "--detach", self.job("endless", train=LONG)).out.strip()
        self.until_steps(5, "--cluster", self.cluster)
        killed = self.verb("kill")
        self.assertEqual((killed.code, killed.out), (0, f"job {number} (endless) ends now; see: disttrain status\n"))
        self.assertEqual(self.until("the end", lambda: self.ended("endless")), "stopped")
        self.assert_finished(self.verb("submit", "--json", self.job("next", train="epochs = 1")))

    def test_name_of_a_running_job_is_refused(self):
        self.verb("submit", "--detach", self.job("endless", train=LONG))
        self.until_steps(1, "--cluster", self.cluster)
        outcome = self.verb("submit", self.job("endless", train=LONG))
        self.assertEqual(outcome.code, 78, str(outcome))
        self.assertIn("endless", outcome.err)

    def test_status_works_with_the_chiefs_address_alone(self):
        outcome = self.run_program("disttrain", "status", "--chief", self.chief, "--json")
        self.assertEqual(outcome.code, 0, str(outcome))

    def test_interrupted_submit_detaches(self):
        process = self.start("disttrain", "submit", self.job("endless", train=LONG), "--cluster", self.cluster)
        self.until_steps(5, "--cluster", self.cluster)
        process.send_signal(signal.SIGINT)
        outcome = self.finish(process)
        self.assertEqual(outcome.code, 130, str(outcome))
        self.assertIn("endless", outcome.err + outcome.out)
        self.until_steps(6, "--cluster", self.cluster)

    def test_interrupted_submit_does_not_wait_for_a_chief_that_is_away(self):
        process = self.start("disttrain", "submit", self.job("endless", train=LONG), "--cluster", self.cluster)
        self.until_steps(5, "--cluster", self.cluster)
        waiting = self.start("disttrain", "events", "-f", "--cluster", self.cluster)
        self.until_line(waiting, "running:")
        self.daemons[0].kill()
        for each in (process, waiting):
            self.until_line(each, "trying to reconnect for 15 s", "stderr")
        process.send_signal(signal.SIGTERM)
        outcome = self.finish(process)
        self.assertIsNone(waiting.poll(), "without a signal `events -f` must still try to reach the chief")
        self.assertEqual(outcome.code, 143, str(outcome))
        self.assertIn("detached", outcome.err)

    def test_logs_are_prefixed_by_task(self):
        self.assert_finished(self.verb("submit", "--json", self.job(train="epochs = 1")))
        logs = self.verb("logs").out
        for task in ("chief/0", "ps/0", "worker/0"):
            self.assertIn(task, logs)
        # Each line has the date, the time, the level, the task and the text.
        tasks = {line.split()[3] for line in self.verb("logs", "--task", "worker/0").out.splitlines()}
        self.assertEqual(tasks, {"worker/0"})

    def until_line(self, process, word, stream="stdout"):
        """Reads the process's lines up to the first one with the word, and returns them."""
        patience = threading.Timer(PATIENCE, process.kill)
        patience.start()
        try:
            lines = []
            for line in getattr(process, stream):
                lines.append(line)
                if word in line:
                    return lines
        finally:
            patience.cancel()
        self.fail(f"{process.args} ended before it said {word!r}: {lines} {process.stderr.read()}")

    def test_followed_logs_come_while_the_job_runs(self):
        process = self.start("disttrain", "logs", "-f", "--cluster", self.cluster)
        number = self.verb("submit", "--detach", self.job("endless", train=LONG)).out.strip()
        self.until_line(process, "): running: ")
        self.assertEqual(self.verb("kill", number).code, 0)
        self.until_line(process, "): stopped: ")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)

    def test_followers_go_on_with_the_next_chief_and_repeat_nothing(self):
        number = self.verb("submit", "--detach", self.job("endless", train=LONG)).out.strip()
        logs = self.start("disttrain", "logs", "-f", "--cluster", self.cluster)
        status = self.start("disttrain", "status", "--watch", number, "--cluster", self.cluster)
        self.until_line(logs, "): running: ")
        self.until_line(status, "endless: running")
        self.daemons[0].kill()
        self.finish(self.daemons[0])
        self.daemons[0] = self.start("chiefd", "--cluster", self.cluster)
        self.until_line(logs, "chief/0")
        self.assertEqual(self.verb("kill", number).code, 0)
        told = self.until_line(logs, "): stopped: ")
        self.assertEqual(sorted(told), sorted(set(told)))
        self.until_line(status, "stopped")
        watched = self.finish(status)
        self.assertEqual((watched.code, watched.err.count("trying to reconnect")), (0, 1), str(watched))
        logs.send_signal(signal.SIGINT)
        followed = self.finish(logs)
        self.assertEqual((followed.code, followed.err.count("trying to reconnect")), (130, 1), str(followed))

    def test_watched_status_goes_on_until_the_job_ends(self):
        number = self.verb("submit", "--detach", self.job("endless", train=LONG)).out.strip()
        process = self.start("disttrain", "status", "--watch", number, "--cluster", self.cluster)
        self.until_line(process, "endless: running")
        self.until_line(process, "endless: running")
        self.assertEqual(self.verb("stop", number).code, 0)
        self.until_line(process, "stopped")
        self.assertEqual(self.finish(process).code, 0)

    def test_chief_that_is_away_is_unavailable(self):
        self.daemons[0].send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(self.daemons[0]).code, 0)
        self.assertEqual(self.verb("status").code, 69)

    def test_daemons_leave_in_order_on_sigterm(self):
        self.assert_finished(self.verb("submit", "--json", self.job(train="epochs = 1")))
        for daemon in self.daemons:
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            outcome = self.finish(daemon)
            self.assertEqual(outcome.code, 0, str(outcome))


class OfflineVerbsTest(SystemTest):
    def test_up_starts_the_daemons_of_a_cluster_file(self):
        cluster = self.folder / "mine.toml"
        chief, first, second, worker = (f"127.0.0.1:{port}" for port in free_ports(4))
        cluster.write_text(f'[cluster]\nname = "mine"\n[chief]\naddress = "{chief}"\n'
                           f'state_directory = "{self.folder / "chief"}"\n[metrics]\nlisten = "127.0.0.1:0"\n'
                           f'[[ps]]\naddress = "{first}"\n'
                           f'[[ps]]\naddress = "{second}"\n[[worker]]\naddress = "{worker}"\n')
        outcome = self.run_program("disttrain", "up", cluster, "--job", self.job(job="shards = 2"), "--json")
        result = self.assert_finished(outcome)
        self.assertEqual({task["task"]: task["address"] for task in result["tasks"]},
                         {"chief/0": chief, "ps/0": first, "ps/1": second, "worker/0": worker})

    def test_plan_prints_shards_and_memory(self):
        outcome = self.run_program("disttrain", "plan", self.job(), "--json")
        self.assertEqual(outcome.code, 0, str(outcome))
        json.loads(outcome.out)

    def test_check_accepts_good_files(self):
        self.assertEqual(self.run_program("disttrain", "check", self.job()).code, 0)

    def test_version(self):
        self.assertIn("0.1.0", self.run_program("disttrain", "version").out)

    def test_bench_reports_phases(self):
        outcome = self.run_program("disttrain", "bench", self.job(train="steps = 200"), "--ps", "1", "--workers", "1",
                                   "--warmup", "20", "--json")
        result = self.assert_finished(outcome)
        self.assertGreater(result["examples_per_second"], 0)
        worker = next(task for task in result["tasks"] if task["task"] == "worker/0")
        for phase in ("input", "pull", "compute", "push", "wait"):
            self.assertIn(phase, worker["phase_times"])


if __name__ == "__main__":
    unittest.main()
