"""Daemons as systemd runs them: what they report, how they reload, how they leave. The test stands in for systemd."""
import re
import signal
import socket
import unittest
import urllib.request
from pathlib import Path

from harness import SystemTest, alive
from ports import free_address

LONG = "epochs = 1000000"
PROGRAMS = {"chief": "chiefd", "ps": "psd", "worker": "workerd"}


class Ear:
    """The NOTIFY_SOCKET of one daemon, and all its messages, in order."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.heard = []

    def listen(self):
        """Reads the messages that have arrived."""
        self.socket.setblocking(False)
        try:
            while True:
                self.heard.append(self.socket.recv(65536).decode())
        except BlockingIOError:
            return self.heard

    def is_silent_for(self, seconds):
        self.listen()
        self.socket.settimeout(seconds)
        try:
            self.heard.append(self.socket.recv(65536).decode())
            return False
        except TimeoutError:
            return True

    def lines(self):
        return [line for message in self.listen() for line in message.splitlines()]

    def statuses(self):
        return [line[len("STATUS="):] for line in self.lines() if line.startswith("STATUS=")]


class ServiceTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.addresses = {}
        self.guards = []
        self.daemons = {}
        self.ears = {}
        self.metrics = "127.0.0.1:0"
        self.cluster = self.folder / "cluster.toml"
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()
        for task in ["chief/0", "ps/0", "ps/1", "worker/0", "worker/1"]:
            self.addresses[task] = free_address()
        self.write_cluster()

    def write_cluster(self, more=""):
        tables = [f'[[{task.split("/")[0]}]]\naddress = "{address}"\n' + ("shards = 1\n" if "ps" in task else "")
                  for task, address in self.addresses.items() if task != "chief/0"]
        self.cluster.write_text(f'[chief]\naddress = "{self.addresses["chief/0"]}"\n'
                                f'state_directory = "{self.folder / "chief"}"\n[metrics]\nlisten = "{self.metrics}"\n'
                                + "".join(tables) + more)

    def arguments(self, task):
        role, index = task.split("/")
        return [PROGRAMS[role], "--cluster", self.cluster] + ([] if role == "chief" else ["--index", index])

    def start_daemon(self, task, watchdog="30s"):
        name = f"{task.replace('/', '-')}-{len(self.processes)}"
        self.ears[task] = Ear(self.folder / name)
        self.addCleanup(self.ears[task].socket.close)
        watchdog_usec = int(float(watchdog[:-1]) * 1e6)
        self.daemons[task] = self.start(*self.arguments(task), environment={
            "NOTIFY_SOCKET": str(self.folder / name), "WATCHDOG_USEC": str(watchdog_usec)})

    def start_all(self):
        for task in self.addresses:
            self.start_daemon(task)
        for task in self.addresses:
            self.until_line(task, "READY=1")

    def until_line(self, task, pattern):
        """Waits for a line of the daemon's log that matches, and returns it."""
        def found():
            return next((line for line in self.ears[task].lines() if re.search(pattern, line)), None)
        return self.until(f"{task} to say {pattern}", found)

    def until_logged(self, pattern):
        def found():
            outcome = self.run_program("disttrain", "logs", "--cluster", self.cluster)
            return re.search(pattern, outcome.out)
        return self.until(f"the log to have {pattern}", found)

    def end(self, task):
        """Sends SIGTERM. Returns the exit code."""
        self.daemons[task].terminate()
        return self.finish(self.daemons[task]).code

    def submit(self, train=LONG, checkpoints=False):
        settings = ["--set", f"checkpoint.directory={self.checkpoints}"] if checkpoints else []
        return self.start("disttrain", "submit", self.job(job="shards = 2", train=train), "--json", "--cluster",
                          self.cluster, *settings)

    def events(self):
        return self.run_program("disttrain", "events", "--all", "--json", "--cluster", self.cluster).json

    def kinds(self):
        return [event["kind"] for event in self.events()]

    def text_of(self, kind):
        return [event["text"] for event in self.events() if event["kind"] == kind]

    def status_of_cluster(self):
        return self.status("--cluster", self.cluster)

    def stop_job(self, process):
        self.assertEqual(self.run_program("disttrain", "stop", "--cluster", self.cluster).code, 0)
        self.finish(process)

    # Messages to systemd.

    def test_ps_without_a_chief_is_ready_and_says_for_whom_it_waits(self):
        self.start_daemon("ps/0")
        self.until_line("ps/0", "^READY=1")
        self.assertIn(f"waits for the chief at {self.addresses['chief/0']}", self.ears["ps/0"].statuses())
        self.start_daemon("chief/0")
        self.until_line("chief/0", "^READY=1")
        self.until_line("ps/0", f"STATUS=no job; the chief is at {self.addresses['chief/0']}")

    def test_chief_is_ready_when_it_can_be_reached(self):
        self.start_daemon("chief/0")
        self.until_line("chief/0", "^READY=1")
        self.assertEqual(self.run_program("disttrain", "status", "--json", "--cluster", self.cluster).code, 0)

    def test_status_follows_the_job(self):
        self.start_all()
        process = self.submit()
        self.until_line("worker/0", r"STATUS=job quick, step [1-9]")
        self.until_line("ps/0", r"STATUS=job quick, step [1-9]")
        self.until_line("chief/0", r"STATUS=job quick is running, step [1-9]\d*.*; 4 of 4 tasks are up")
        self.daemons["ps/1"].kill()
        self.daemons["ps/1"].wait()
        self.until_line("worker/0", r"STATUS=job quick, step \d+, pauses: .*ps/1")
        self.until_line("chief/0", r"STATUS=job quick is paused, step \d+.*waiting for ps/1; 3 of 4 tasks")
        self.start_daemon("ps/1")
        self.until_steps(1, "--cluster", self.cluster)
        self.stop_job(process)
        self.until_line("worker/0", "STATUS=no job")

    def test_watchdog_hears_nothing_of_a_process_that_stands_still(self):
        for task in ["chief/0", "ps/0", "worker/0"]:
            with self.subTest(task):
                self.start_daemon(task, watchdog="0.4s")
                self.until_line(task, "^WATCHDOG=1")
                self.daemons[task].send_signal(signal.SIGSTOP)
                self.until("it to stand still",
                           lambda: "T (stopped)" in Path(f"/proc/{self.daemons[task].pid}/status").read_text())
                self.assertTrue(self.ears[task].is_silent_for(1.0))
                said = len(self.ears[task].heard)
                self.daemons[task].send_signal(signal.SIGCONT)
                self.until("it to be heard again", lambda: "WATCHDOG=1" in self.ears[task].listen()[said:])

    def test_port_in_use_is_said_and_tried_again_before_the_process_ends(self):
        host, port = self.addresses["ps/0"].split(":")
        with socket.create_server((host, int(port))):
            self.start_daemon("ps/0")
            self.until_line("ps/0", f"STATUS=.*{port}.*in use.*tries again in .* of 5")
            self.assertEqual(self.finish(self.daemons["ps/0"]).code, 69)
        self.assertNotIn("READY=1", self.ears["ps/0"].lines())

    def test_metrics_port_in_use_is_tried_again_as_well(self):
        self.metrics = "127.0.0.1"
        self.write_cluster()
        port = int(self.addresses["ps/0"].split(":")[1]) + 1000
        with socket.create_server(("127.0.0.1", port)):
            self.start_daemon("ps/0")
            self.until_line("ps/0", f"STATUS=.*{port}.*in use.*tries again in .* of 5")
        self.until_line("ps/0", "^READY=1")

    def test_broken_file_ends_with_78_and_its_sentence_is_the_status(self):
        self.write_cluster("[transport]\ncredits = 0\n")
        for task in ["chief/0", "ps/0", "worker/0"]:
            self.start_daemon(task)
            outcome = self.finish(self.daemons[task])
            self.assertEqual(outcome.code, 78, str(outcome))
            self.assertIn("transport.credits is 0; expected", self.ears[task].statuses()[-1])

    # Reload.

    def reload(self, task):
        """Sends SIGHUP, and waits for the daemon's message that the reload is done."""
        before = len(self.ears[task].listen())
        self.daemons[task].send_signal(signal.SIGHUP)

        def pair():
            news = self.ears[task].listen()[before:]
            first = next((i for i, message in enumerate(news) if message.startswith("RELOADING=1")), None)
            if first is None or not any(message.startswith("READY=1") for message in news[first:]):
                return None
            return news[first]
        self.assertRegex(self.until("RELOADING=1 and READY=1", pair), r"^RELOADING=1\nMONOTONIC_USEC=\d+$")

    def test_reload_takes_what_may_change_and_names_what_may_not(self):
        self.start_all()
        self.write_cluster('[heartbeat]\ntimeout = "2s"\n[log]\nlevel = "debug"\nrate = 50\n[transport]\ncredits = 8\n')
        for task in ["chief/0", "ps/0", "worker/0"]:
            self.reload(task)
            self.until_logged(f"{task} re-read the cluster file: applied these changes: "
                              'heartbeat.timeout is "2s" now, was "1s"; log.level is "debug" now, was "info"; '
                              "log.rate is 50 now, was 100\n")
            self.until_logged(f"{task} these changes need a restart of this daemon: "
                              "transport.credits is 8 now, was 4\n")
        # The tasks get the timeout from the chief, so no task counts as silent when the timeout changes.
        process = self.submit()
        self.until_steps(100, "--cluster", self.cluster)
        self.assertNotIn("task_silent", self.kinds())
        self.stop_job(process)

    def configuration(self, address):
        """The daemon's metrics: (hash of its configuration, when the daemon applied it)."""
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
            page = answer.read().decode()
        return (re.search(r'^disttrain_config_info\{.*hash="(\w+)"', page, re.M).group(1),
                float(re.search(r"^disttrain_config_last_reload_success_\S+ (\S+)$", page, re.M).group(1)))

    def test_metrics_tell_a_reload_unless_the_file_is_broken(self):
        self.start_all()
        pages = {task["task"]: task["metrics"] for task in self.status_of_cluster()["tasks"]}
        before = {task: self.configuration(page) for task, page in pages.items()}
        self.assertEqual(len({digest for digest, _ in before.values()}), 1, before)
        self.write_cluster('[log]\nlevel = "debug"\n')
        for task in pages:
            self.reload(task)
        after = {task: self.configuration(page) for task, page in pages.items()}
        self.assertEqual(len({digest for digest, _ in after.values()}), 1, after)
        for task in pages:
            self.assertNotEqual(after[task][0], before[task][0], task)
            self.assertGreater(after[task][1], before[task][1], task)
        self.write_cluster('[log]\nlevel = "loud"\n')
        for task, page in pages.items():
            self.reload(task)
            self.assertEqual(self.configuration(page), after[task], task)

    def test_broken_file_changes_nothing_and_the_log_has_the_words_of_check(self):
        self.start_all()
        self.write_cluster('[log]\nlevel = "debug"\nrate = "lots"\n')
        words = self.run_program(*self.arguments("ps/0"), "--check")
        self.assertEqual(words.code, 78)
        error = words.err.split(": ", 1)[1].strip().replace("\n", "\n    ")  # the log indents later lines
        for task in ["chief/0", "ps/0", "worker/0"]:
            self.reload(task)
        self.write_cluster()  # the file must be valid now, because the command line reads it, too
        for task in ["chief/0", "ps/0", "worker/0"]:
            self.until_logged(f"{task} re-read the cluster file, but ignored it because of errors: {re.escape(error)}")
        self.reload("ps/0")
        self.until_logged("ps/0 re-read the cluster file: the settings that can change at run time haven't changed")

    # The daemons' end.

    def test_worker_leaves_and_its_records_go_to_the_others(self):
        self.start_all()
        process = self.submit("epochs = 100")
        self.until_steps(50, "--cluster", self.cluster)
        self.assertEqual(self.end("worker/1"), 0)
        self.assertIn("STOPPING=1", self.ears["worker/1"].lines())
        outcome = self.finish(process)
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertEqual(outcome.json["examples"], 100 * 6000)
        kinds = self.kinds()
        self.assertIn("worker_left", kinds)
        self.assertNotIn("worker_lost", kinds)
        self.assertNotIn("rolled_back", kinds)

    def test_ps_leaves_after_a_checkpoint_and_no_step_is_lost(self):
        self.start_all()
        for mode in ["async", "sync"]:
            with self.subTest(mode):
                process = self.submit(f'mode = "{mode}"\n{LONG}', checkpoints=True)
                self.until_steps(50, "--cluster", self.cluster)
                self.assertEqual(self.end("ps/1"), 0)
                self.assertTrue(any("told to end, waits for the chief" in status
                                    for status in self.ears["ps/1"].statuses()), self.ears["ps/1"].heard)
                self.assertTrue(any("EXTEND_TIMEOUT_USEC" in line for line in self.ears["ps/1"].lines()))
                saved = int(re.search(r"checkpoint of step (\d+)", self.text_of("checkpoint")[-1]).group(1))
                self.start_daemon("ps/1")
                self.until_steps(saved + 50, "--cluster", self.cluster)
                self.assertIn(f"goes on at step {saved} ", self.text_of("rolled_back")[-1])
                self.assertIn(", 0 steps are lost;", self.text_of("rolled_back")[-1])
                self.assertNotIn("loss_counted", self.kinds())
                self.stop_job(process)

    def test_host_that_is_stopped_as_a_whole_goes_on_where_it_was(self):
        self.start_all()
        process = self.submit(checkpoints=True)
        self.until_steps(50, "--cluster", self.cluster)
        reached = self.status_of_cluster()["global_step"]
        for task in reversed(self.addresses):  # systemd stops the units in this order: workers, ps, chief
            self.assertEqual(self.end(task), 0, task)
        process.kill()
        for task in self.addresses:
            self.start_daemon(task)
        self.until_chief_answers(self.cluster)
        self.until_steps(reached, "--cluster", self.cluster)
        saved = int(re.search(r"checkpoint of step (\d+)", self.text_of("checkpoint")[-1]).group(1))
        self.assertGreaterEqual(saved, reached)
        self.assertIn(f"goes on at step {saved} ", self.text_of("rolled_back")[-1])

    def test_second_signal_ends_at_once(self):
        self.start_all()
        self.daemons["chief/0"].send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemons["chief/0"].send_signal, signal.SIGCONT)
        for task in ["ps/0", "worker/0"]:
            with self.subTest(task):
                self.daemons[task].terminate()
                self.until_line(task, "STATUS=.*told to end, waits for the chief")
                self.assertTrue(alive(self.daemons[task].pid))
                self.assertEqual(self.end(task), 0)

    def test_task_without_a_chief_ends_at_once(self):
        for task in ["ps/0", "worker/0"]:
            self.start_daemon(task)
            self.until_line(task, "READY=1")
            self.assertEqual(self.end(task), 0)


if __name__ == "__main__":
    unittest.main()
