"""The only ps goes away for longer than any time limit of the chief, and comes back: the job waits, says for what, and
goes on. With a limit the job fails after it, and goes on from its newest checkpoint when it is submitted again."""
import json
import signal
import threading
import unittest

from harness import PATIENCE, SystemTest
from ports import free_address

LONG = "epochs = 1000000"


class ClusterByHand(SystemTest):
    """Each test has a cluster of one ps and one worker, with short heartbeat timeouts."""

    def setUp(self):
        super().setUp()
        self.cluster = self.folder / "cluster.toml"
        # The time limit of each stage is 120 heartbeat timeouts, here 24 s.
        self.cluster.write_text(f'[cluster]\nname = "absence"\n[chief]\naddress = "{free_address()}"\n'
                                f'state_directory = "{self.folder / "chief"}"\n[metrics]\nlisten = "127.0.0.1:0"\n'
                                f'[heartbeat]\ntimeout = "200ms"\n'
                                f'[[ps]]\naddress = "{free_address()}"\nshards = 1\n'
                                f'[[worker]]\naddress = "{free_address()}"\nthreads = 1\n')
        self.daemons = {}
        for task in ["chief/0", "ps/0", "worker/0"]:
            self.start_daemon(task)
        self.until_chief_answers(self.cluster)
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()

    def start_daemon(self, task):
        role, index = task.split("/")
        program = {"chief": "chiefd", "ps": "psd", "worker": "workerd"}[role]
        arguments = ["--cluster", self.cluster] + ([] if role == "chief" else ["--index", index])
        self.daemons[task] = self.start(program, *arguments)

    def kill(self, task):
        self.daemons[task].kill()
        self.daemons[task].wait()

    def start_job(self, job="", train=LONG):
        """Submits a job and waits until it has a checkpoint. Returns the process that follows it."""
        path = self.job(job=job + "\nmax_restarts = 1000",
                        train=f'{train}\n[checkpoint]\ndirectory = "{self.checkpoints}"\nevery_steps = 100')
        process = self.start("disttrain", "submit", path, "--json", "--cluster", self.cluster)

        def has_checkpoint():
            status = self.status("--cluster", self.cluster)
            return status and status["state"] == "running" and status["checkpoint"]
        self.until("a checkpoint", has_checkpoint)
        return process

    def until_state(self, state, job=None):
        def reached():
            status = self.status("--cluster", self.cluster)
            return status if status and status["state"] == state and job in (None, status["id"]) else None
        return self.until(f"the job to be {state}", reached, 2 * PATIENCE)

    def events(self, kind=None):
        outcome = self.run_program("disttrain", "events", "--all", "--json", "--cluster", self.cluster)
        return [event for event in json.loads(outcome.out) if kind in (None, event["kind"])]

    def assert_trains_on(self):
        now = self.until_state("running")
        self.until_steps(now["global_step"] + 1, "--cluster", self.cluster)

    def end(self, process):
        self.assertEqual(self.run_program("disttrain", "stop", "--cluster", self.cluster).code, 0)
        self.assertEqual(self.finish(process).json["state"], "stopped")


class AbsenceTest(ClusterByHand):
    def test_job_waits_for_its_only_ps_for_longer_than_any_time_limit(self):
        process = self.start_job()
        self.kill("ps/0")
        # The chief reports the wait after 12 s and after 36 s.
        self.until("the second report of the wait", lambda: len(self.events("still_waiting")) >= 2, 2 * PATIENCE)
        status = self.status("--cluster", self.cluster)
        self.assertEqual(status["state"], "paused")
        self.assertIn("waiting for ps/0", status["reason"])
        self.assertIn("job.ps_timeout sets no limit", status["reason"])
        self.assertEqual([(wait["role"], wait["limit"]) for wait in status["absences"]], [("ps", None)])
        why = self.run_program("disttrain", "why", "--cluster", self.cluster)
        self.assertIn("ps/0 isn't there: start psd", why.out)
        self.start_daemon("ps/0")
        self.assert_trains_on()
        self.assertEqual(self.status("--cluster", self.cluster)["absences"], [])
        self.end(process)

    def test_limit_fails_the_job_and_resubmit_goes_on_from_its_newest_checkpoint(self):
        process = self.start_job(job='ps_timeout = "4s"')
        self.kill("ps/0")
        outcome = self.finish(process)
        self.assertEqual((outcome.code, outcome.json["state"]), (1, "failed"), str(outcome))
        self.assertIn("for 4 s (job.ps_timeout)", outcome.json["reason"])
        kinds = [event["kind"] for event in self.events()]
        self.assertIn("still_waiting", kinds[:kinds.index("failed")], "the report comes before the failure")
        self.start_daemon("ps/0")
        again = self.run_program("disttrain", "resubmit", "--cluster", self.cluster)
        self.assertEqual((again.code, again.out),
                         (0, "job 2 goes on from its newest checkpoint, if it has one; see: disttrain status\n"),
                         str(again))
        self.until_state("running", job=2)
        self.assertRegex(self.events("restored")[-1]["text"], r"the job begins at step [1-9]\d* of the checkpoint")
        self.assertEqual(self.run_program("disttrain", "status", "1", "--json", "--cluster", self.cluster)
                         .json["resubmitted_as"], 2)
        refused = self.run_program("disttrain", "resubmit", "quick", "--cluster", self.cluster)
        self.assertEqual(refused.code, 64, str(refused))
        self.assertIn("job quick (number 2) is running: only a job that has failed or was stopped", refused.err)
        self.assertEqual(self.run_program("disttrain", "kill", "--cluster", self.cluster).code, 0)

    def test_chief_submits_a_failed_job_again_and_the_client_follows_it(self):
        process = self.start_job(job='ps_timeout = "4s"\non_failure = "resubmit"')
        self.kill("ps/0")
        lines = []
        patience = threading.Timer(2 * PATIENCE, process.kill)
        patience.start()
        for line in process.stderr:
            lines.append(line)
            if "as job 2: following it" in line:
                break
        patience.cancel()
        self.assertIn("as job 2: following it", "".join(lines))
        self.start_daemon("ps/0")
        self.assert_trains_on()
        self.assertRegex(self.events("resubmitted")[0]["text"], r"as job 2; this is number 1 of at most 3")
        process.send_signal(signal.SIGINT)  # detaches
        self.finish(process)
        self.assertEqual(self.run_program("disttrain", "kill", "--cluster", self.cluster).code, 0)


if __name__ == "__main__":
    unittest.main()
