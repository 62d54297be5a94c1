"""Daemons that were started by hand outlive the jobs, the chief and each other."""
import signal
import socket
import unittest

from harness import SystemTest

LONG = "epochs = 1000000"


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


class DaemonsTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text(f'[cluster]\nname = "by-hand"\n[chief]\naddress = "{free_address()}"\n'
                                f'state_directory = "{self.folder / "chief"}"\n'
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

    def assert_failed_because_of(self, process, task):
        outcome = self.finish(process)
        self.assertEqual(outcome.code, 1, str(outcome))
        self.assertEqual(outcome.json["root_cause"]["task"], task, str(outcome))
        self.assertIn(task, outcome.err)

    def assert_next_job_finishes(self):
        """A synchronous step of both workers takes 100 of the 6,000 records."""
        outcome = self.finish(self.submit('mode = "sync"\nepochs = 2'))
        self.assertEqual(self.assert_finished(outcome)["global_step"], 2 * 6000 / 100)
        for task, process in self.daemons.items():
            self.assertIsNone(process.poll(), task)

    def test_killed_task_fails_the_job_and_its_successor_serves_the_next(self):
        for task, mode in [("ps/0", "async"), ("ps/1", "sync"), ("worker/1", "sync")]:
            with self.subTest(task):
                process = self.start_long_job(mode)
                self.kill(task)
                self.assert_failed_because_of(process, task)
                self.start_daemon(task)
                self.assert_next_job_finishes()

    def test_restarted_chief_is_found_again_and_runs_the_next_job(self):
        for mode in ["async", "sync"]:
            with self.subTest(mode):
                process = self.start_long_job(mode)
                self.kill("chief/0")
                self.start_daemon("chief/0")
                outcome = self.finish(process)
                self.assertEqual(outcome.code, 1, str(outcome))
                self.assertEqual(outcome.json["state"], "failed", str(outcome))
                self.assertIn("the chief was restarted", outcome.json["reason"])
                self.until_chief_answers(self.cluster)
                self.assert_next_job_finishes()

    def test_stopped_tasks_that_are_continued_serve_the_next_job(self):
        for task, mode in [("ps/0", "async"), ("worker/1", "sync")]:
            with self.subTest(task):
                process = self.start_long_job(mode)
                self.daemons[task].send_signal(signal.SIGSTOP)
                self.assert_failed_because_of(process, task)
                self.daemons[task].send_signal(signal.SIGCONT)
                self.assert_next_job_finishes()

    def test_stopped_worker_that_is_continued_finds_itself_removed(self):
        process = self.start_long_job()
        self.daemons["worker/1"].send_signal(signal.SIGSTOP)
        self.until("worker/1 to be removed",
                   lambda: self.status("--cluster", self.cluster)["warnings"])
        self.daemons["worker/1"].send_signal(signal.SIGCONT)
        self.until("worker/1 to be ready again", lambda: "ready" in [
            task["state"] for task in self.status("--cluster", self.cluster)["tasks"] if task["task"] == "worker/1"])
        self.assertEqual(self.run_program("disttrain", "stop", "--cluster", self.cluster).code, 0)
        self.assertEqual(self.finish(process).json["state"], "stopped")
        self.assert_next_job_finishes()


if __name__ == "__main__":
    unittest.main()
