"""Traces of real jobs (train.profile_steps), checked by tools/check-trace."""
import importlib.machinery
import importlib.util
import fcntl
import os
import re
import signal
import subprocess
import time
import unittest
import urllib.request

from harness import BIN, ROOT, SystemTest
from ports import free_address

FIRST, LAST = 11, 30
AN_HOUR = 3600
# Runs a program whose monotonic clock is an hour ahead.
AN_HOUR_AHEAD = ["unshare", "--user", "--map-root-user", "--time", "--monotonic", str(AN_HOUR), "--fork",
                 "--kill-child"]


def time_namespaces_work():
    try:
        return subprocess.run([*AN_HOUR_AHEAD, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def load_check():
    loader = importlib.machinery.SourceFileLoader("check_trace", str(ROOT / "tools/check-trace"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_trace", loader))
    loader.exec_module(module)
    return module


check_trace = load_check()


class TraceTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()

    def settings(self, *more, first=FIRST, last=LAST):
        sets = [f'checkpoint.directory="{self.checkpoints}"', f"train.profile_steps=[{first}, {last}]", *more]
        return [argument for one in sets for argument in ("--set", one)]

    def files(self):
        return sorted(self.checkpoints.glob("quick/events/*.json*"))

    def check(self, path):
        trace = check_trace.read(path)
        self.assertEqual(trace.problems, [])
        return trace

    def rows(self, trace, task):
        return {name for (pid, _), name in trace.rows.items() if trace.processes[pid] == task}

    def spans_of(self, trace, task, name):
        return [event for event in trace.events if event["ph"] == "X" and trace.processes[event["pid"]] == task
                and event["name"].startswith(name)]

    def profile(self, mode, last=LAST):
        # Two shards, so that the pacer and another shard take part.
        train = f'mode = "{mode}"\nsteps = {2 * last}'
        result = self.assert_finished(self.up(self.job(job="shards = 2", train=train), *self.settings(last=last), ps=2))
        self.assertEqual([str(path) for path in self.files()], [result["trace"]])
        trace = self.check(result["trace"])
        self.assertEqual(trace.facts["missing"], [])
        self.assertEqual(trace.facts["dropped"], {})
        self.assertEqual(trace.facts["profile_steps"], [FIRST, last])
        self.assertEqual(trace.facts["mode"], mode)
        self.assertEqual(set(trace.processes.values()), {"chief/0", "ps/0", "ps/1", "worker/0", "worker/1"})
        # All tasks are on this host, so they read the same clock.
        for clock in trace.facts["clocks"]:
            self.assertEqual(clock["offset_us"], 0, trace.facts["clocks"])
            self.assertLess(clock["uncertainty_us"], 1e5, trace.facts["clocks"])
        for worker in ("worker/0", "worker/1"):
            self.assertLessEqual({"step", "push to shard 0", "parameters of shard 0"}, self.rows(trace, worker))
            for name in ("compute", "part", "send bucket", "parameters of bucket"):
                self.assertTrue(self.spans_of(trace, worker, name), f"{worker} has no span {name}")
        for ps in ("ps/0", "ps/1"):
            for name in ("receive bucket", "frame of worker/", "answer worker/",
                         "sum and apply bucket" if mode == "sync" else "apply bucket"):
                self.assertTrue(self.spans_of(trace, ps, name), f"{ps} has no span {name}")
        return trace

    def test_async(self):
        # So many steps that on a busy machine each worker makes some of them.
        trace = self.profile("async", last=500)
        # Only frames at the edges of the steps lack an arrow.
        self.assertGreaterEqual(len(trace.flows), trace.facts["frames"] / 2, trace.summary())

    def test_sync(self):
        trace = self.profile("sync")
        self.assertEqual(len(trace.flows), trace.facts["frames"], trace.summary())
        steps = {event["args"]["step"] for event in self.spans_of(trace, "ps/0", "sum and apply")}
        self.assertEqual(steps, set(range(FIRST, LAST + 1)))
        computed = {event["args"]["step"] for event in self.spans_of(trace, "worker/1", "compute")}
        self.assertEqual(computed, set(range(FIRST, LAST + 1)))
        self.assertTrue(self.spans_of(trace, "ps/0", "staged") or self.spans_of(trace, "ps/1", "staged"))
        done = {event["name"] for event in trace.events if event["ph"] == "i"}
        self.assertLessEqual({f"step {step} done" for step in range(FIRST, LAST + 1)}, done)

    def test_job_that_ends_within_the_steps_writes_what_it_has(self):
        train = 'mode = "sync"\nsteps = 20'
        outcome = self.run_program("disttrain", "up", "--job", self.job(train=train), "--ps", 1, "--workers", 2,
                                   *self.settings(first=15, last=500))
        self.assertEqual(outcome.code, 0, str(outcome))
        [path] = self.files()
        self.assertIn(f"trace {path}", outcome.out + outcome.err)
        trace = self.check(path)
        steps = {event["args"]["step"] for event in self.spans_of(trace, "ps/0", "sum and apply")}
        self.assertEqual(steps, set(range(15, 21)))
        self.assertEqual(trace.facts["missing"], [])

    def start_daemons(self, *wrapper):
        """Starts a chief, a ps and two workers that nobody restarts. `wrapper` is a command that runs worker/1. Returns
        the cluster file and the process of worker/1."""
        cluster = self.folder / "cluster.toml"
        cluster.write_text(f'[chief]\naddress = "{free_address()}"\nstate_directory = "{self.folder / "chief"}"\n'
                           f'[metrics]\nlisten = ""\n[[ps]]\naddress = "{free_address()}"\n'
                           + "".join(f'[[worker]]\naddress = "{free_address()}"\n' for _ in range(2)))
        self.start("chiefd", "--cluster", cluster)
        self.start("psd", "--cluster", cluster, "--index", 0)
        self.start("workerd", "--cluster", cluster, "--index", 0)
        worker = self.start_command(*wrapper, BIN / "workerd", "--cluster", cluster, "--index", 1)
        self.until_chief_answers(cluster)

        def states():
            return {task["state"] for task in self.status("--cluster", cluster)["tasks"]}
        self.until("all tasks", lambda: states() == {"ready"})
        return cluster, worker

    def test_killed_worker_is_missing(self):
        cluster, worker = self.start_daemons()
        # The steps are long, so the worker dies in one of the profiled steps.
        train = "accumulate = 120\nsteps = 450"
        process = self.start("disttrain", "submit", self.job(train=train), "--json", "--cluster", cluster,
                             *self.settings(first=1, last=400))
        self.until_steps(1, "--cluster", cluster)
        worker.kill()
        result = self.assert_finished(self.finish(process))
        trace = self.check(result["trace"])
        self.assertEqual(trace.facts["missing"], ["worker/1"])
        self.assertNotIn("worker/1", trace.processes.values())
        events = self.run_program("disttrain", "events", "--json", "--cluster", cluster)
        self.assertIn("it lacks events of worker/1", events.out)

    @unittest.skipUnless(time_namespaces_work(), "unshare can't make a time namespace here")
    def test_task_with_another_clock_is_on_the_same_axis(self):
        cluster, worker = self.start_daemons(*AN_HOUR_AHEAD)
        job = self.job(job="min_workers = 2", train='mode = "sync"\nsteps = 60')
        result = self.assert_finished(self.run_program("disttrain", "submit", job, "--json", "--cluster", cluster,
                                                       *self.settings()))
        os.kill(self.pid_of(result, "worker/1"), signal.SIGTERM)
        self.finish(worker)
        trace = self.check(result["trace"])
        clocks = {clock["task"]: clock for clock in trace.facts["clocks"]}
        self.assertLessEqual(abs(clocks["worker/1"]["offset_us"] + AN_HOUR * 1e6), clocks["worker/1"]["uncertainty_us"])
        self.assertEqual(clocks["worker/0"]["offset_us"], 0)
        self.assertEqual(len(trace.flows), trace.facts["frames"])

    def test_job_without_a_folder_is_refused(self):
        outcome = self.up(self.job(), "--set", f"train.profile_steps=[{FIRST}, {LAST}]")
        self.assert_refused(outcome, 78, "train.profile_steps", "set checkpoint.directory")

    def test_job_that_ends_before_the_steps_says_that_there_is_no_trace(self):
        cluster, _ = self.start_daemons()
        outcome = self.run_program("disttrain", "submit", self.job(), "--json", "--cluster", cluster,
                                   *self.settings(first=5000, last=5010))
        result = self.assert_finished(outcome)
        self.assertIsNone(result["trace"])
        self.assertEqual(self.files(), [])
        self.until("the event", lambda: "has written no trace of steps 5000 to 5010" in
                   self.run_program("disttrain", "events", "--cluster", cluster).out)

    def hold_files(self, folder, seconds=120):
        """Makes the open() of each file that the chief may write a trace to block, as on a file system that hangs: this
        process takes a lease of these files. Returns a function that tells whether the chief is blocked, and one that
        releases the files."""
        blocked = []
        before = signal.signal(signal.SIGIO, lambda *_: blocked.append(True))
        self.addCleanup(signal.signal, signal.SIGIO, before)
        files = []

        def release():
            while files:
                os.close(files.pop())
        self.addCleanup(release)
        folder.mkdir(parents=True)
        begin = int(time.time())
        for second in range(begin, begin + seconds):
            path = folder / f"trace-{second}-steps-{FIRST}-{LAST}.json.tmp"
            path.touch()
            files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            try:
                fcntl.fcntl(files[-1], fcntl.F_SETLEASE, fcntl.F_RDLCK)
            except OSError as error:
                self.skipTest(f"no lease of a file in {folder}: {error}")
        return lambda: bool(blocked), release

    def test_slow_file_system_delays_the_result_and_loses_no_trace(self):
        is_blocked, release = self.hold_files(self.checkpoints / "quick/events")
        process = self.start_up(self.job(train="steps = 60"), *self.settings())
        self.until("the chief to begin the file", is_blocked)

        def pending():
            status = self.status()
            return status if status and status["state"] == "finished" and status["trace_pending"] else None
        chief = self.until("the end of the job", pending)["tasks"][0]["metrics"]

        def requests():
            with urllib.request.urlopen(f"http://{chief}/metrics", timeout=20) as page:
                counts = re.findall(r'^disttrain_rpc_requests_total{.*op="status_request".*} (\d+)$',
                                    page.read().decode(), re.MULTILINE)
            self.assertTrue(counts, "the metric of requests")
            return sum(map(int, counts))
        before = requests()
        # `up` has got this status, and waits for the trace.
        self.until("`up` to ask again", lambda: requests() >= before + 2)
        release()
        result = self.assert_finished(self.finish(process))
        self.assertFalse(result["trace_pending"])
        self.check(result["trace"])

    def test_folder_that_cannot_be_written_stops_nothing(self):
        (self.checkpoints / "quick").mkdir()
        (self.checkpoints / "quick/events").symlink_to("/proc")  # a folder without room for files
        result = self.assert_finished(self.up(self.job(train="steps = 60"), *self.settings()))
        self.assertIsNone(result["trace"])

    def test_file_at_the_folders_name_is_set_aside(self):
        (self.checkpoints / "quick").mkdir()
        (self.checkpoints / "quick/events").write_text("in the way")
        result = self.assert_finished(self.up(self.job(train="steps = 60"), *self.settings()))
        self.check(result["trace"])
        self.assertEqual((self.checkpoints / "quick/.stray-events").read_text(), "in the way")

    def test_checkpoint_within_the_steps_is_shown(self):
        # The steps are long, so the chief hears of them while the job trains.
        train = 'mode = "sync"\naccumulate = 40\nsteps = 400'
        settings = self.settings("checkpoint.every_steps=20", first=1, last=400)
        result = self.assert_finished(self.up(self.job(train=train), *settings))
        trace = self.check(result["trace"])
        self.assertTrue(self.spans_of(trace, "ps/0", "checkpoint copy"))
        self.assertTrue(self.spans_of(trace, "chief/0", "checkpoint"))
        self.assertTrue(self.spans_of(trace, "worker/0", "part 39"))


if __name__ == "__main__":
    unittest.main()
