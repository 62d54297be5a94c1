"""Job files that are hard to parse. The chief refuses them, and the running job loses no step."""
import unittest
from concurrent.futures import ThreadPoolExecutor

import wire
from attack import AttackTest


class SubmitsTest(AttackTest):
    def submit(self, toml):
        """Submits the text. Returns the refusal, or None if the chief closed the connection."""
        with wire.Peer(self.chief) as peer:
            peer.say_hello(wire.client_hello())
            peer.say(wire.submit(toml))
            came = peer.receive()
            if came is None:
                return None
            self.assertEqual(came[1][8:10], (32).to_bytes(2, "little"), "the chief must answer with a refusal")
            at, data = wire.follow(came[1], 0)
            return wire.Refusal(came[1], at + data)

    def test_files_that_are_hard_to_read_are_refused(self):
        self.train()
        files = {
            "a key 60,000 deep": ".".join(["a"] * 60_000) + " = 1",
            "a table 60,000 deep": "[" + ".".join(["a"] * 60_000) + "]",
            "an array 100,000 deep": "a = " + "[" * 100_000 + "]" * 100_000,
            "inline tables 50,000 deep": "a = " + "{a=" * 50_000 + "1" + "}" * 50_000,
            "12,000 unknown keys": "".join(f"k{i} = 1\n" for i in range(12_000)),
            "12,000 unknown keys of a section": "[train]\n" + "".join(f"stepz{i} = 1\n" for i in range(12_000)),
            "20,000 layers": "[model]\nbuiltin = \"mlp\"\nlayers = [" + "1, " * 20_000 + "1]",
            "bytes that aren't UTF-8": b"\xff\xfe" * 1000,
            "zero bytes": b"\0" * 1000,
            "nothing": "",
        }
        with self.unharmed():
            for name, toml in files.items():
                with self.subTest(name):
                    refusal = self.submit(toml)
                    self.assertIsNotNone(refusal, name)
                    self.assertNotEqual(refusal.reason, "")

    def test_a_file_over_its_bound_closes_the_connection(self):
        self.train()
        with self.unharmed():
            self.assertIsNone(self.submit(b"#" * (1 << 20)))

    def test_many_at_once_are_read_beside_the_loop(self):
        self.train()
        hard = "[train]\n" + "".join(f"stepz{i} = 1\n" for i in range(10_000))
        count = 200
        # The chief drops a client that reads nothing of its answer within 10 s. So each client has a thread that reads
        # the answer at once.
        with self.unharmed(), ThreadPoolExecutor(count) as readers:
            answers = []
            for peer in [wire.Peer(self.chief) for _ in range(count)]:
                self.addCleanup(peer.socket.close)
                peer.say_hello(wire.client_hello())
                peer.say(wire.submit(hard))
                answers.append(readers.submit(peer.receive))
            self.now()
            answers = [answer.result() for answer in answers]
            self.assertNotIn(None, answers)


if __name__ == "__main__":
    unittest.main()
