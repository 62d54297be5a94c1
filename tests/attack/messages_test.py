"""Small messages that would cost their receiver much: pointers that share a target, huge numbers, texts of 64 MiB.

The attacker is an unlisted worker, or the worker that the chief asks to describe the job.
"""
import json
import re
import unittest

import wire
from attack import PATIENCE, AttackTest


class MessagesTest(AttackTest):
    UNLISTED = True

    def worker(self, index=9):
        """An attacker that the chief has admitted as an unlisted worker."""
        peer = wire.Peer(self.chief)
        self.addCleanup(peer.socket.close)
        answer = peer.say_hello(wire.task_hello(wire.WORKER, index, 77 + index))
        self.assertEqual(answer[0], wire.WELCOME)
        return peer

    def test_messages_over_their_bounds_close_the_senders_connection_and_nothing_else(self):
        status = self.train()
        job, generation = status["id"], status["generation"]
        shared_text, shape = wire.Text(b"v" * 4000), wire.Words([1])
        huge_text = wire.Text(b"v" * (22 << 20))
        immense = [1 << 42]
        attacks = {
            "a TaskFailed of 60 MiB": wire.task_failed(job, generation, b"x" * (60 << 20)),
            "a TaskFailed of 5 KB": wire.task_failed(job, generation, b"x" * 5000),
            "names that share 22 MiB": wire.job_described(
                job, wire.model([wire.variable(huge_text, shape) for _ in range(3)])),
            "names that share 4 KB": wire.job_described(
                job, wire.model([wire.variable(shared_text, shape) for _ in range(65000)])),
            "2^42 elements": wire.job_described(
                job, wire.model([wire.variable(wire.Text("v"), wire.Words(immense))])),
            "2^32 shards": wire.control(2, wire.Struct(bytes(48), [
                wire.Text(""), wire.Struct(b"\xff\xff\xff\xff" + bytes(4), [wire.model([wire.variable(
                    wire.Text("v"), shape)]), wire.Words([0]), None]), None, None, None, None, None])),
            "lines that share a text": wire.control(24, wire.Struct(bytes(8), [wire.Composite(
                [wire.Struct(bytes(16), [shared_text]) for _ in range(60000)])])),
            "a line of 5 KB": wire.log_lines([b"x" * 5000]),
        }
        with self.unharmed():
            for what, words in attacks.items():
                with self.subTest(what):
                    peer = self.worker()
                    peer.say(words)
                    self.assertTrue(peer.is_closed(), what)

    def test_a_kind_of_message_that_nobody_knows_is_dropped_alone(self):
        self.train()
        with self.unharmed():
            peer = self.worker()
            peer.say(wire.control(999, wire.Struct(bytes(8))))
            peer.say(wire.heartbeat())
            while True:
                came = peer.receive()
                self.assertIsNotNone(came, "the chief must keep the connection open")
                if came[1][8:10] == (23).to_bytes(2, "little"):  # HeartbeatAnswer
                    break

    def test_a_landing_is_paid_for_by_the_bytes_that_come(self):
        """Sixteen workers announce 64 MiB each, and send 64 KB of it."""
        self.train()
        with self.unharmed(growth=64 << 20):
            peers = [self.worker(100 + index) for index in range(16)]
            for peer in peers:
                peer.send(wire.frame(wire.BLOB, payload_bytes=64 << 20) + bytes(1 << 16))
            self.now()

    def test_what_a_peer_says_commands_no_terminal_and_forges_no_line(self):
        status = self.train()
        evil = "\x1b]0;owned\x07\x9b31m\r\n2026-01-01 00:00:00.000 error chief/0 forged by a peer"
        with self.unharmed():
            peer = wire.Peer(self.chief)
            peer.say_hello(wire.task_hello(wire.WORKER, 9, 5, host=evil))
            self.assertTrue(peer.is_closed(), "the chief must refuse a host name that isn't printable")
            peer = self.worker(10)
            peer.say(wire.log_lines([evil]))
            # An accusation: a worker says that it can't reach a ps. The chief logs the text.
            peer.say(wire.control(21, wire.Struct(
                status["id"].to_bytes(4, "little") + (1).to_bytes(2, "little") + bytes(2)
                + status["generation"].to_bytes(8, "little") + bytes(8), [wire.Text(evil)])))
            with wire.Peer(self.chief) as client:
                client.say_hello(wire.client_hello(user=evil))
                client.say(wire.stop_request(evil))
                client.is_closed(patience=1)
            lines = self.until("the line to arrive", lambda: self.forged_lines())
            for text in [lines, self.logs["chief/0"].text, json.dumps(self.events(), ensure_ascii=False),
                         self.run_program("disttrain", "status", "--cluster", self.cluster).out,
                         self.run_program("disttrain", "events", "--all", "--cluster", self.cluster).out]:
                self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text.replace("\t", " ")), text)
                self.assertIsNone(re.search(r"^2026-01-01 00:00:00.000 error", text, re.MULTILINE), text)

    def forged_lines(self):
        out = self.run_program("disttrain", "logs", "--cluster", self.cluster).out
        return out if "forged by a peer" in out else None


class DescriberTest(AttackTest):
    """The attacker is worker/0, which the chief asks to describe the job."""
    WORKERS = 1

    def start_daemon(self, task):
        if task != "worker/0":
            super().start_daemon(task)

    def describe(self, words_of):
        """Answers the chief's DescribeJob with words_of(job id). Returns the attacker's connection."""
        peer = wire.Peer(self.chief)
        self.addCleanup(peer.socket.close)
        peer.say_hello(wire.task_hello(wire.WORKER, 0, 5))
        while True:
            came = peer.receive()
            self.assertIsNotNone(came, "the chief must send DescribeJob")
            if came[0] in (wire.CONTROL, wire.BLOB) and came[1][8:10] == b"\0\0":  # DescribeJob
                break
        peer.say(words_of(self.now()["id"]))
        return peer

    def test_a_model_that_nobody_could_train_fails_the_job_with_the_reason(self):
        self.start("disttrain", "submit", self.job(), "--json", "--cluster", self.cluster)
        self.until("the job to wait", lambda: self.now()["id"])
        chief = self.daemons["chief/0"]
        # A variable with the largest number of elements that a message allows. The ps has too little memory for it.
        self.describe(lambda job: wire.job_described(job, wire.model([wire.variable(wire.Text("v"), wire.Words([1 << 37]))])))
        status = self.until("the job to fail", lambda: self.now()["state"] == "failed" and self.now())
        self.assertIn("which may use", status["reason"])
        self.assertIsNone(chief.poll(), self.logs["chief/0"].text)

    def test_a_description_that_is_no_message_ends_no_chief(self):
        self.start("disttrain", "submit", self.job(), "--json", "--cluster", self.cluster)
        self.until("the job to wait", lambda: self.now()["id"])
        text, shape = wire.Text(b"v" * (22 << 20)), wire.Words([1])
        peer = self.describe(lambda job: wire.job_described(job, wire.model([wire.variable(text, shape)] * 3)))
        self.assertTrue(peer.is_closed())
        self.assertIsNone(self.daemons["chief/0"].poll(), self.logs["chief/0"].text)
        self.assertIn(self.now()["state"], ["starting", "failed"])

    def test_the_reason_of_a_failure_is_shown_and_not_obeyed(self):
        self.start("disttrain", "submit", self.job(), "--json", "--cluster", self.cluster)
        self.until("the job to wait", lambda: self.now()["id"])
        evil = "\x1b[2J\nstate    finished"
        self.describe(lambda job: wire.task_failed(job, 0, evil, code=2))
        status = self.until("the job to fail", lambda: self.now()["state"] == "failed" and self.now())
        self.assertIn("\\x1b[2J\\nstate    finished", status["reason"])
        shown = self.run_program("disttrain", "status", "--cluster", self.cluster).out
        self.assertNotIn("\x1b[2J", shown)
        self.assertNotIn("\nstate    finished", shown)


if __name__ == "__main__":
    unittest.main()
