"""Workers and ps of one host exchange tensors through shared memory: with the same bits as over TCP, and nothing is left
behind, whatever ends a process."""
import os
import unittest
from pathlib import Path

from wires import EARLY, WireTest


def abstract_names(cluster):
    return [line for line in Path("/proc/net/unix").read_text().splitlines() if f"@disttrain/{cluster}/" in line]


class ShmTest(WireTest):
    CLUSTER = """
[cluster]
name = "{name}"
[chief]
address = "127.0.0.1:{}"
state_directory = "{folder}/chief"
[metrics]
listen = "127.0.0.1:0"
[transport]
kind = "{kind}"
[[ps]]
address = "127.0.0.1:{}"
[[ps]]
address = "127.0.0.1:{}"
[[worker]]
address = "127.0.0.1:{}"
[[worker]]
address = "127.0.0.1:{}"
"""
    LAYERS = "[784, 1000, 10]"
    STEPS = 20

    def hash_over(self, *arguments, **more):
        found = super().hash_over(*arguments, **more)
        self.assertEqual(abstract_names(self.name), [])
        return found

    def test_bits_are_those_over_tcp(self):
        for train in ("steps = 60", "steps = 60\npipeline = 1", 'steps = 60\nclip = { kind = "global_norm", value = 0.5 }'):
            with self.subTest(train=train):
                job = self.write_job("sync", train)
                self.assertEqual(self.hash_over("shm", job), self.hash_over("tcp", job))

    def test_each_mode_trains(self):
        for mode, more in (("async", ""), ("ssp", "staleness = 3"), ("async", "pipeline = 1")):
            with self.subTest(mode=mode):
                self.hash_over("auto", self.write_job(mode, f"epochs = 1\n{more}"))

    def test_steps_that_begin_early_have_the_bits_of_others(self):
        self.check_steps_that_begin_early("shm", "tcp", steps=40)

    def test_kills_leave_nothing(self):
        self.check_kills("sync")

    def test_kills_while_steps_begin_early(self):
        self.check_kills("async", EARLY)

    def check_kills(self, mode, layers=None):
        shared = set(os.listdir("/dev/shm"))
        cluster = self.start_long("shm", mode, layers)
        before = self.status("--cluster", cluster)
        self.kill_one_after_another(cluster, ("worker/0", "ps/1", "worker/1", "ps/0", "chief/0"))
        # The workers tell a new chief with their next heartbeats.
        self.until("the wire", lambda: (self.status("--cluster", cluster) or before)["transport"] == "shm")
        self.kill_all()
        self.until("the sockets to be gone", lambda: not abstract_names(self.name))
        self.assertEqual(set(os.listdir("/dev/shm")) - shared, set())


if __name__ == "__main__":
    unittest.main()
