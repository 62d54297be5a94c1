"""Daemons whose stderr is systemd's journal: entries with fields, and the entry of a crash.

The test stands in for journald: it runs in a mount namespace of its own with an empty /run, and reads from
/run/systemd/journal/socket.
"""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from harness import BIN, ROOT, SystemTest
from ports import free_address

JOURNAL = Path("/run/systemd/journal/socket")
PROGRAMS = {"chief": "chiefd", "ps": "psd", "worker": "workerd"}
OF_ITS_OWN = ["unshare", "--user", "--map-root-user", "--mount"]


def parse(entry):
    """The fields of one datagram; the format is in systemd.io/JOURNAL_NATIVE_PROTOCOL."""
    fields = {}
    while entry:
        line, entry = entry.split(b"\n", 1)
        name, equals, value = line.partition(b"=")
        if not equals:
            (length,) = struct.unpack("<Q", entry[:8])
            value, end, entry = entry[8:8 + length], entry[8 + length:9 + length], entry[9 + length:]
            assert end == b"\n", end
        fields[name.decode()] = value.decode()
    return fields


def documented_id(kind):
    return re.search(rf"\| `{kind}` \| `([0-9a-f]{{32}})` \|", (ROOT / "docs/logs.md").read_text()).group(1)


def setUpModule():
    """Runs this file again in a mount namespace of its own."""
    if "DISTTRAIN_TEST_NAMESPACE" in os.environ:
        return
    probe = subprocess.run([*OF_ITS_OWN, "mount", "-t", "tmpfs", "none", "/run"], capture_output=True, text=True)
    if probe.returncode != 0:
        raise unittest.SkipTest(f"this process can't mount file systems in its own namespace: {probe.stderr.strip()}")
    os.environ["DISTTRAIN_TEST_NAMESPACE"] = "1"
    sys.stdout.flush()
    os.execvp(OF_ITS_OWN[0], [*OF_ITS_OWN, *sys.orig_argv])


class JournalTest(SystemTest):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        JOURNAL.parent.mkdir(parents=True)

    def setUp(self):
        super().setUp()
        self.is_reading = threading.Event()
        self.is_reading.set()
        self.journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.journal.bind(str(JOURNAL))
        self.entries = []
        listener = threading.Thread(target=self.listen)
        self.addCleanup(JOURNAL.unlink)
        self.addCleanup(self.journal.close)
        self.addCleanup(listener.join)
        self.addCleanup(self.is_reading.set)
        self.addCleanup(self.journal.shutdown, socket.SHUT_RD)
        listener.start()
        self.addresses = {}
        for task in ["chief/0", "ps/0", "worker/0"]:
            self.addresses[task] = free_address()
        self.cluster = self.folder / "cluster.toml"
        self.write_cluster()

    def write_cluster(self, more=""):
        tables = [f'[[{task.split("/")[0]}]]\naddress = "{address}"\n' for task, address in self.addresses.items()
                  if task != "chief/0"]
        self.cluster.write_text(f'[chief]\naddress = "{self.addresses["chief/0"]}"\n'
                                f'state_directory = "{self.folder / "chief"}"\n' + "".join(tables) + more)

    def start_daemon(self, task, stream="$(stat -Lc %d:%i /proc/self/fd/2)"):
        """Starts a daemon. $JOURNAL_STREAM names its stderr, as systemd sets it for a unit; `stream` is another
        value."""
        role = task.split("/")[0]
        return self.start_command("sh", "-c", f'JOURNAL_STREAM={stream} exec "$@"', "sh",
                                  BIN / PROGRAMS[role], "--cluster", self.cluster)

    def listen(self):
        """Reads entries as they come: a writer waits when a few entries are unread."""
        while entry := self.journal.recv(1 << 20):
            self.entries.append(parse(entry))
            self.is_reading.wait()

    def until_entry(self, **wanted):
        def found():
            return next((entry for entry in list(self.entries)
                         if all(re.search(pattern, entry.get(name, "")) for name, pattern in wanted.items())), None)
        return self.until(f"an entry with {wanted}", found)

    def test_job_can_be_followed_by_field(self):
        daemons = [self.start_daemon(task) for task in self.addresses]
        self.until_chief_answers(self.cluster)
        self.assert_finished(self.run_program("disttrain", "submit", self.job("by-field"), "--json", "--cluster",
                                              self.cluster))
        finished = self.until_entry(MESSAGE="^job by-field .*finished", DISTTRAIN_TASK="^chief/0$")
        self.assertEqual(finished["MESSAGE_ID"], documented_id("finished"))
        self.assertEqual(finished["DISTTRAIN_EVENT"], "finished")
        self.assertEqual(finished["DISTTRAIN_JOB"], "by-field")
        self.assertEqual(finished["DISTTRAIN_STEP"], "240")
        self.assertEqual(finished["PRIORITY"], "6")
        self.assertEqual(finished["SYSLOG_IDENTIFIER"], "chiefd")
        self.assertEqual(finished["CODE_FILE"], "chiefd/chief.cc")
        for task in ["ps/0", "worker/0"]:
            closed = self.until_entry(MESSAGE="closes|: closed", DISTTRAIN_TASK=task)
            self.assertEqual(closed["DISTTRAIN_JOB"], "by-field")
            self.assertGreater(int(closed["DISTTRAIN_STEP"]), 0)
        for daemon in daemons:
            daemon.terminate()
            self.assertEqual(self.finish(daemon).err, "")

    def test_journal_that_hangs_holds_no_daemon(self):
        self.is_reading.clear()
        for task in self.addresses:
            self.start_daemon(task)
        self.until_chief_answers(self.cluster)
        for number in range(3):
            self.assert_finished(self.run_program("disttrain", "submit", self.job(f"unread-{number}"), "--json", "--cluster",
                                                  self.cluster))

    def test_stderr_that_is_no_journal_gets_text(self):
        daemon = self.start_daemon("chief/0", stream="1:1")
        self.until_chief_answers(self.cluster)
        daemon.terminate()
        self.assertRegex(self.finish(daemon).err, r"info  chief/0 chiefd [0-9.]+: chief/0 of cluster")
        self.assertEqual(self.entries, [])

    def test_format_journal_is_taken_at_its_word(self):
        self.write_cluster('[log]\nformat = "journal"\n')
        self.start_daemon("chief/0", stream="1:1")
        self.until_entry(MESSAGE="^chiefd [0-9.]+: chief/0 of cluster .* configuration [0-9a-f]{16}, ", DISTTRAIN_EVENT="^chief_started$")

    def test_crash_is_one_entry_with_the_stack(self):
        daemon = self.start_daemon("ps/0")
        self.until_entry(DISTTRAIN_TASK="ps/0")
        daemon.send_signal(signal.SIGSEGV)
        outcome = self.finish(daemon)
        self.assertEqual(outcome.code, -signal.SIGSEGV, str(outcome))
        self.assertEqual(outcome.err, "")
        crash = self.until_entry(MESSAGE="^crashed: ")
        self.assertRegex(crash["MESSAGE"], rf"^crashed: SIGSEGV, sent by process {os.getpid()}, taken by the thread "
                                           r"psd; another thread may be at fault\n(?:  .*san\.so.*\n)?  .*psd\(")
        self.assertEqual(crash["MESSAGE_ID"], documented_id("crashed"))
        self.assertEqual(crash["PRIORITY"], "2")
        self.assertEqual(crash["DISTTRAIN_TASK"], "ps/0")
        self.assertEqual(crash["SYSLOG_IDENTIFIER"], "psd")

    def test_error_that_ends_a_daemon_is_an_entry(self):
        self.write_cluster("[transport]\ncredits = 0\n")
        self.assertEqual(self.finish(self.start_daemon("ps/0")).code, 78)
        entry = self.until_entry(MESSAGE="credits is 0")
        self.assertEqual(entry["MESSAGE_ID"], documented_id("ended_with_error"))
        self.assertEqual(entry["PRIORITY"], "3")


if __name__ == "__main__":
    unittest.main()
