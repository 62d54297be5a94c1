"""`status` and `top`, with and without a terminal, while daemons train."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from bad_input_test import CLUSTER
from harness import BIN, PATIENCE, SystemTest
from ports import free_ports

BLOCKS = "▁▂▃▄▅▆▇█"
SHOW_CURSOR, HIDE_CURSOR = b"\x1b[?25h", b"\x1b[?25l"


class Terminal:
    """Runs a program on a pseudo terminal of 24 rows and 100 columns."""

    def __init__(self, test, *command):
        self.test, self.said = test, b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        # The program gets its own controlling terminal, so that Ctrl-C reaches only this program.
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=slave, stdout=slave, stderr=slave, cwd=test.folder, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**test.environment, "LC_ALL": "C.UTF-8"})
        os.close(slave)
        test.terminals.append(self)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    def read(self):
        """Reads output. False: the program has ended."""
        if select.select([self.master], [], [], 0.1)[0]:
            try:
                part = os.read(self.master, 65536)
            except OSError:  # no process has the terminal open any more
                return False
            self.said += part
            return bool(part)
        return True

    def frames(self):
        """The complete frames that the program has drawn."""
        return [frame.split("\x1b[J")[0].replace("\x1b[K", "").replace("\r\n", "\n")
                for frame in self.said.decode(errors="replace").split("\x1b[H")[1:] if "\x1b[J" in frame]

    def until_frame(self, what, is_it):
        def found():
            self.read()
            return next((frame for frame in reversed(self.frames()) if is_it(frame)), None)
        return self.test.until(what + f" in {self.said!r}", found)

    def is_stopped(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "T"

    def press(self, key):
        os.write(self.master, key)

    def end(self):
        """Reads all output until the program ends. Returns its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self.read() and time.monotonic() < deadline:
            if self.process.poll() is not None and not select.select([self.master], [], [], 0)[0]:
                break
        return self.process.wait(PATIENCE)


class TopTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.terminals = []
        chief, ps, worker = free_ports(3)
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text(CLUSTER.format(name="mine", port=chief, ps=ps, worker=worker, folder=self.folder))
        self.daemons = [self.start(daemon, "--cluster", self.cluster) for daemon in ("chiefd", "psd", "workerd")]
        self.until_chief_answers(self.cluster)

    def tearDown(self):
        for terminal in self.terminals:
            terminal.close()
        super().tearDown()

    def verb(self, *arguments):
        return self.run_program("disttrain", *arguments, "--cluster", self.cluster)

    def submit(self, name="endless"):
        return self.verb("submit", "--detach", self.job(name, train="epochs = 1000000")).out.strip()

    def top(self, *arguments):
        return Terminal(self, BIN / "disttrain", "top", *arguments, "--cluster", self.cluster)

    def until_worker_has_figures(self):
        def figures():
            status = self.status("--cluster", self.cluster)
            tasks = {task["task"]: task for task in status["tasks"]}
            return tasks if tasks["worker/0"]["examples_per_second"] else None
        return self.until("examples per second of the worker", figures)

    def test_status_has_rate_loss_and_lag_of_each_task(self):
        before = {task["task"]: task for task in self.status("--cluster", self.cluster)["tasks"]}
        for task in before.values():
            self.assertEqual((task["examples_per_second"], task["loss"], task["lag"]), (None, None, None))
        self.submit()
        tasks = self.until_worker_has_figures()
        self.assertGreater(tasks["worker/0"]["examples_per_second"], 0)
        self.assertGreater(tasks["worker/0"]["loss"], 0)
        self.assertEqual(tasks["worker/0"]["lag"], 0)
        self.assertEqual(tasks["ps/0"]["lag"], 0)
        self.assertIsNone(tasks["ps/0"]["examples_per_second"])
        self.assertIsNone(tasks["chief/0"]["lag"])
        text = self.verb("status").out
        for column in ("EXAMPLES/S", "LOSS", "LAG"):
            self.assertIn(column, text)

    def test_piped_top_prints_one_frame(self):
        self.submit()
        self.until_worker_has_figures()
        outcome = self.finish(self.start("disttrain", "top", "--cluster", self.cluster,
                                         environment={"LC_ALL": "C.UTF-8"}))
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertNotIn("\x1b", outcome.out)
        self.assertEqual(outcome.out.count("TASK "), 1)
        self.assertIn("cluster mine", outcome.out)
        self.assertIn("endless", outcome.out)
        for task in ("chief/0", "ps/0", "worker/0"):
            self.assertIn(task, outcome.out)
        self.assertTrue(set(BLOCKS) & set(outcome.out), outcome.out)
        plain = self.finish(self.start("disttrain", "top", "--cluster", self.cluster, environment={"LC_ALL": "C"}))
        self.assertTrue(plain.out.isascii(), plain.out)

    def test_terminal_shows_no_job_then_the_job_and_ctrl_c_ends_it(self):
        top = self.top()
        top.until_frame("no job", lambda frame: "no job was submitted yet" in frame)
        number = self.submit()
        frame = top.until_frame("the job's tasks and curves",
                                lambda text: "running  step" in text and "worker/0" in text and set(BLOCKS) & set(text))
        self.assertIn("ps/0", frame)
        lines = frame.split("\n")
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertEqual(self.verb("kill", number).code, 0)
        top.until_frame("the end", lambda text: "stopped" in text)
        self.submit("next")
        top.until_frame("the next job", lambda text: "next, async" in text and "running  step" in text)
        self.assertEqual(top.said.count(SHOW_CURSOR), 0)
        top.press(b"\x03")
        self.assertEqual(top.end(), 130)
        self.assertEqual((top.said.count(HIDE_CURSOR), top.said.count(SHOW_CURSOR)), (1, 1))
        self.assertGreater(top.said.rfind(SHOW_CURSOR), top.said.rfind(b"\x1b[J"))

    def test_chief_that_goes_away_is_said_and_the_next_one_is_shown(self):
        self.submit()
        top = self.top()
        top.until_frame("the job", lambda text: "running  step" in text)
        self.daemons[0].kill()
        self.finish(self.daemons[0])
        frame = top.until_frame("that the chief is away", lambda text: "trying again" in text)
        self.assertIn("worker/0", frame)
        seen = len(top.frames())
        self.daemons[0] = self.start("chiefd", "--cluster", self.cluster)
        top.until_frame("the next chief", lambda _: any("running  step" in text and "trying again" not in text
                                                        for text in top.frames()[seen:]))
        top.process.send_signal(signal.SIGTERM)
        self.assertEqual(top.end(), 143)
        self.assertIn(SHOW_CURSOR, top.said)

    def test_terminal_is_left_as_it_was_while_top_is_stopped_and_when_it_hangs_up(self):
        top = self.top()
        top.until_frame("a frame", bool)
        # Sends the signal that Ctrl-Z sends. The key itself would have no effect, because no shell runs here that could
        # continue the program.
        top.process.send_signal(signal.SIGTSTP)
        self.until("it to be stopped", lambda: top.read() and top.is_stopped())
        self.assertEqual(top.said.count(SHOW_CURSOR), 1)
        top.process.send_signal(signal.SIGCONT)
        shown = len(top.frames())
        self.until("frames again", lambda: top.read() and len(top.frames()) > shown)
        self.assertGreater(top.said.rfind(HIDE_CURSOR), top.said.rfind(SHOW_CURSOR))
        top.process.send_signal(signal.SIGHUP)
        self.assertEqual(top.end(), 129)
        self.assertGreater(top.said.rfind(SHOW_CURSOR), top.said.rfind(HIDE_CURSOR))

    def test_job_that_isnt_there_and_chief_that_isnt_there(self):
        self.assertEqual(self.verb("top", "nobody").code, 64)
        self.daemons[0].send_signal(signal.SIGTERM)
        self.finish(self.daemons[0])
        self.assertEqual(self.verb("top").code, 69)


if __name__ == "__main__":
    unittest.main()
