"""kill -9 of each kind of daemon of `up`, and of `up` itself: the job goes on and finishes, and events show what
happened."""
import json
import os
import signal
import unittest
from pathlib import Path

from bad_input_test import CLUSTER
from harness import BIN, SystemTest, alive
from ports import free_ports

EPOCHS = 100
LONG = "epochs = 1000000"


class UpRestartTest(SystemTest):
    def start_job(self, mode="async", checkpoints=True, train=f"epochs = {EPOCHS}", job="shards = 2"):
        """Starts `up` and `events -f`, and waits until the job trains and, with checkpoints, has taken one. Returns
        both processes and the status."""
        arguments = []
        if checkpoints:
            folder = self.folder / f"checkpoints-{len(self.processes)}"
            folder.mkdir()
            arguments = ["--set", f"checkpoint.directory={folder}", "--set", "checkpoint.every_steps=500"]
        process = self.start_up(self.job(job=job, train=f'mode = "{mode}"\n{train}'), *arguments, ps=2, workers=2)
        status = self.until_steps(20)
        story = self.start("disttrain", "events", "-f", "--json")
        if checkpoints:
            status = self.until("a checkpoint", lambda: self.with_checkpoint(self.status()))
        return process, story, status

    @staticmethod
    def with_checkpoint(status):
        return status if status and status["state"] == "running" and status["checkpoint"] else None

    def task(self, status, name):
        return next(task for task in status["tasks"] if task["task"] == name)

    def kill(self, status, task):
        os.kill(self.pid_of(status, task), signal.SIGKILL)

    def events_of(self, story):
        outcome = self.finish(story)
        self.assertEqual(outcome.code, 0, str(outcome))
        return [json.loads(line) for line in outcome.out.splitlines()]

    def assert_restarted(self, outcome, before, task):
        """Checks that the job finished with another process of the task at the same address, and that `up` reported
        it."""
        result = self.assert_finished(outcome)
        self.assertRegex(outcome.err, rf"{task} \(pid \d+\) was killed by signal 9 \(Killed\); restarting it")
        old, new = self.task(before, task), self.task(result, task)
        self.assertNotEqual(old["pid"], new["pid"])
        self.assertEqual(old["address"], new["address"])
        self.assertEqual(self.processes_of_this_test(), [])
        return result

    def assert_in_order(self, events, *kinds):
        """Checks that the events have these kinds in this order, perhaps with others between them, and end with
        finished."""
        found = [event["kind"] for event in events]
        rest = iter(found)
        for kind in kinds:
            self.assertIn(kind, rest, found)
        self.assertEqual(found[-1], "finished")

    def test_killed_ps_goes_on_from_the_newest_checkpoint(self):
        for mode, task in [("async", "ps/0"), ("async", "ps/1"), ("sync", "ps/0"), ("ssp", "ps/1")]:
            with self.subTest(f"{mode}, {task}"):
                process, story, status = self.start_job(mode)
                self.kill(status, task)
                result = self.assert_restarted(self.finish(process), status, task)
                self.assertEqual(result["recoveries"], 1)
                # Each record counts once in each epoch, and steps that were lost don't count. If a worker joined late,
                # the job needs more steps.
                self.assertGreaterEqual(result["global_step"], EPOCHS * 6000 / (100 if mode == "sync" else 50))
                self.assertEqual(result["examples"], EPOCHS * 6000)
                events = self.events_of(story)
                self.assert_in_order(events, "running", "checkpoint", "task_lost", "paused", "rolled_back", "running")
                rollback = next(event for event in events if event["kind"] == "rolled_back")
                self.assertRegex(rollback["text"], r"goes on at step [1-9]\d* \(/.*\), \d+ steps are lost; "
                                                   r"the rollback took [\d.]+ (ms|s); cause: ")

    def test_killed_ps_of_a_job_without_checkpoints_begins_again(self):
        process, story, status = self.start_job(checkpoints=False)
        self.kill(status, "ps/1")
        result = self.assert_restarted(self.finish(process), status, "ps/1")
        self.assertEqual((result["recoveries"], result["global_step"]), (1, EPOCHS * 6000 / 50))
        rollback = next(event for event in self.events_of(story) if event["kind"] == "rolled_back")
        self.assertIn("goes on at step 0 (initial values)", rollback["text"])

    def test_killed_worker_joins_again_while_the_others_go_on(self):
        for mode in ["async", "sync", "ssp"]:
            with self.subTest(mode):
                process, story, status = self.start_job(mode)
                self.kill(status, "worker/1")
                result = self.assert_restarted(self.finish(process), status, "worker/1")
                self.assertEqual(result["recoveries"], 0)
                self.assertEqual(result["examples"], EPOCHS * 6000)
                events = self.events_of(story)
                self.assert_in_order(events, "worker_lost", "task_joined", "worker_joined")
                lost = next(i for i, event in enumerate(events) if event["kind"] == "worker_lost")
                self.assertEqual([event["task"] for event in events[lost:] if event["kind"] == "task_joined"],
                                 ["worker/1"], "its successor says hello once")

    def test_worker_that_every_step_needs_is_waited_for(self):
        process, story, status = self.start_job("sync", job='shards = 2\non_worker_loss = "wait"')
        self.kill(status, "worker/1")
        result = self.assert_restarted(self.finish(process), status, "worker/1")
        self.assert_in_order(self.events_of(story), "worker_lost", "paused", "worker_joined", "running")
        undisturbed = self.assert_finished(self.up(self.job(job='shards = 2', train=f'mode = "sync"\nepochs = {EPOCHS}'),
                                                   ps=2, workers=2))
        for key in ("global_step", "examples"):
            self.assertEqual(result[key], undisturbed[key])
        self.assertEqual(result["evaluation"]["parameters_hash"], undisturbed["evaluation"]["parameters_hash"])

    def test_killed_chief_takes_the_job_up_again(self):
        for mode in ["async", "sync", "ssp"]:
            with self.subTest(mode):
                process, story, status = self.start_job(mode)
                self.kill(status, "chief/0")
                outcome = self.finish(process)
                result = self.assert_restarted(outcome, status, "chief/0")
                self.assertEqual(result["recoveries"], 0)
                self.assertEqual(result["examples"], EPOCHS * 6000)
                events = self.events_of(story)
                self.assert_in_order(events, "running", "checkpoint", "taken_up", "reclaimed")
                self.assertEqual(len(events), len({json.dumps(event) for event in events}), "each event is printed once")

    def chief_after(self, status):
        """Waits until another chief answers and the job trains beyond the step of `status`. Returns the new status."""
        def came():
            now = self.status()
            is_other = now and self.pid_of(now, "chief/0") != self.pid_of(status, "chief/0")
            return now if is_other and now["state"] == "running" and now["global_step"] > status["global_step"] else None
        return self.until("another chief", came)

    def stop_job(self, process):
        self.assertEqual(self.run_program("disttrain", "stop").code, 0)
        outcome = self.finish(process)
        self.assertEqual(outcome.json["state"], "stopped", str(outcome))
        return outcome

    def test_chief_that_says_nothing_is_killed_and_started_again(self):
        process, story, status = self.start_job(train=LONG)
        os.kill(self.pid_of(status, "chief/0"), signal.SIGSTOP)
        self.until("its end", lambda: not alive(self.pid_of(status, "chief/0")))
        self.chief_after(status)
        outcome = self.stop_job(process)
        self.assertEqual(outcome.json["recoveries"], 0)
        self.assertRegex(outcome.err, r"chief/0 \(pid \d+\) hasn't answered for [\d.]+ s: killing it")
        self.assertIn("taken_up", [event["kind"] for event in self.events_of(story)])

    def test_chief_whose_disk_is_full_goes_on_when_it_has_room(self):
        disk = self.folder / "disk"
        disk.mkdir()
        ports = free_ports(3)
        cluster = self.folder / "cluster.toml"
        cluster.write_text(CLUSTER.format(name="test", port=ports[0], ps=ports[1], worker=ports[2], folder=disk))
        script = 'mount -t tmpfs -o size=200k tmpfs "$0" && exec "$@"'
        process = self.start_command("unshare", "--mount", "--map-root-user", "sh", "-c", script, disk, BIN / "disttrain", "up",
                                     cluster, "--job", self.job(train=LONG), "--json",
                                     "--set", f"checkpoint.directory={self.folder}", "--set", "checkpoint.every_steps=500")
        self.until("a cluster", lambda: process.poll() is not None or self.status("--cluster", cluster))
        if process.poll() is not None:
            self.skipTest("this process can't mount file systems in its own namespace: " + process.stderr.read())
        status = self.until_steps(20)
        # The file system is mounted only in the process's namespace, which this path leads to.
        fill = Path(f"/proc/{process.pid}/root{disk}/fill")
        with self.assertRaises(OSError), open(fill, "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 1000)
        self.until("the chief's end", lambda: not alive(self.pid_of(status, "chief/0")))
        fill.unlink()
        self.chief_after(status)
        outcome = self.stop_job(process)
        self.assertEqual(outcome.json["recoveries"], 0)
        self.assertRegex(outcome.err, r"ended with exit code 69 \(can't write .*/journal: No space left on device: free "
                                      r"space on that disk; .*\); restarting it")

    def test_ps_killed_twice_costs_two_recoveries(self):
        process, story, status = self.start_job()
        self.kill(status, "ps/0")

        def recovered():
            now = self.status()
            return now if now and now["state"] == "running" and now["recoveries"] == 1 else None
        again = self.until("the job to go on", recovered)
        self.kill(again, "ps/0")
        result = self.assert_restarted(self.finish(process), again, "ps/0")
        self.assertEqual(result["recoveries"], 2)

    def test_bench_restarts_daemons_too(self):
        process = self.start("disttrain", "bench", self.job(train=f"epochs = {EPOCHS}"), "--json")
        status = self.until_steps(20)
        self.kill(status, "ps/0")
        self.assert_restarted(self.finish(process), status, "ps/0")

    def test_daemon_that_left_by_itself_stays_down(self):
        process, story, status = self.start_job()
        os.kill(self.pid_of(status, "worker/1"), signal.SIGTERM)
        outcome = self.finish(process)
        self.assert_finished(outcome)
        self.assertIn("it stays down: it ended by itself", outcome.err)


class KilledUpTest(SystemTest):
    """`up` with a cluster file: the chief's journal outlives `up`."""

    def setUp(self):
        super().setUp()
        chief, ps, worker = free_ports(3)
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text(CLUSTER.format(name="test", port=chief, ps=ps, worker=worker, folder=self.folder))
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()
        self.training_job = self.job(train=f"epochs = {EPOCHS}")

    def start(self, *command, **others):
        if command[1] == "up":
            command = (*command, "--set", f"checkpoint.directory={self.checkpoints}",
                       "--set", "checkpoint.every_steps=500")
        return super().start(*command, **others)

    def up_of(self, job, *arguments):
        return self.start("disttrain", "up", self.cluster, "--job", job, "--json", *arguments)

    def kill_up(self):
        """Starts `up` and kills it when its job has taken a checkpoint."""
        process = self.up_of(self.training_job)
        self.until("a checkpoint", lambda: (self.status() or {}).get("checkpoint"))
        process.kill()
        self.until("its daemons to end", lambda: not self.processes_of_this_test())

    def test_same_command_goes_on_with_the_job(self):
        self.kill_up()
        outcome = self.finish(self.up_of(self.training_job))
        result = self.assert_finished(outcome)
        self.assertEqual((result["id"], result["recoveries"]), (1, 1))
        self.assertEqual(result["examples"], EPOCHS * 6000)
        self.assertIn("job 1 (quick) exists already: following it", outcome.err)

    def test_another_job_of_that_name_is_refused_before_anything_trains(self):
        self.kill_up()
        logs = set(self.folder.glob("disttrain-*/worker-*.log"))
        outcome = self.finish(self.up_of(self.training_job, "--set", "train.epochs=3"))
        self.assert_refused(outcome, 78, f"that job has `epochs = {EPOCHS}`, this file has `epochs = 3`",
                            "disttrain kill quick", f"{self.folder}/chief/journal")
        self.assertLessEqual(set(self.folder.glob("disttrain-*/worker-*.log")), logs, "no task may be started")
        self.assert_finished(self.finish(self.up_of(self.training_job)))

    def test_without_its_journal_the_name_is_free(self):
        self.kill_up()
        for name in ["journal", "journal.mark"]:  # without journal.mark, the chief takes the folder for a new one
            (self.folder / "chief" / name).unlink()
        result = self.assert_finished(self.finish(self.up_of(self.training_job, "--set", "train.epochs=200")))
        self.assertEqual((result["id"], result["recoveries"]), (1, 0))


class CheckpointSaveTest(SystemTest):
    def tearDown(self):
        try:
            self.end(*self.processes)
        finally:
            super().tearDown()

    def end(self, *processes):
        """Kills `up` processes, and waits until their daemons have died with them."""
        for process in processes:
            process.kill()
        self.until("all daemons to end", lambda: not self.processes_of_this_test())

    def start_job(self, train=LONG):
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()
        process = self.start_up(self.job(train=train), "--set", f"checkpoint.directory={self.checkpoints}")
        self.until_steps(20)
        return process

    def test_saved_checkpoint_is_whole_and_the_job_goes_on(self):
        self.start_job()
        outcome = self.run_program("disttrain", "checkpoint", "save", "--json")
        self.assertEqual(outcome.code, 0, str(outcome))
        saved = outcome.json
        self.assertGreaterEqual(saved["step"], 20)
        self.assertEqual(self.run_program("disttrain", "checkpoint", "verify", saved["path"]).code, 0)
        self.assertEqual(self.status()["checkpoint"], saved["path"])
        self.until_steps(saved["step"] + 1)
        second = self.run_program("disttrain", "checkpoint", "save", "quick")
        self.assertEqual(second.code, 0, str(second))
        self.assertRegex(second.out, r"^/.* \(step [\d,]+\)\n$")

    def test_saved_checkpoint_is_what_the_next_run_begins_with(self):
        process = self.start_job()
        saved = self.run_program("disttrain", "checkpoint", "save", "--json").json
        self.end(process)
        self.start_up(self.job(train=LONG), "--set", f"checkpoint.directory={self.checkpoints}")
        self.until_steps(saved["step"] + 1)
        events = self.run_program("disttrain", "events", "--json").json
        restored = next(event for event in events if event["kind"] == "restored")
        self.assertIn(f"step {saved['step']} of the checkpoint {saved['path']}", restored["text"])

    def test_job_without_a_directory_has_nowhere_to_save(self):
        self.start_up(self.job(train=LONG))
        self.until_steps(1)
        outcome = self.run_program("disttrain", "checkpoint", "save")
        self.assertEqual(outcome.code, 78, str(outcome))
        self.assertIn("checkpoint.directory", outcome.err)

    def test_unknown_job_is_a_usage_error(self):
        self.start_up(self.job(train=LONG))
        self.until_steps(1)
        outcome = self.run_program("disttrain", "checkpoint", "save", "nothing")
        self.assertEqual(outcome.code, 64, str(outcome))
        self.assertIn("nothing", outcome.err)


if __name__ == "__main__":
    unittest.main()
