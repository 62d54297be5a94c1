"""No number on a cluster's disks opens a channel."""
import struct
import unittest

import wire
from attack import AttackTest


class SecretsTest(AttackTest):
    CHECKPOINTS = True
    CODE_NO_PERMISSION = 7

    def answer_to(self, status, token):
        with wire.Peer(self.addresses["ps/0"]) as peer:
            kind, words, _ = peer.say_hello(wire.channel_hello(status["id"], status["generation"], 0, 1, 99, token))
            return None if kind != wire.REFUSED else wire.Refusal(words)

    def numbers_on_disk(self):
        numbers = {0}
        for path in sorted(self.folder.rglob("*")):
            if not path.is_file() or path.suffix == ".safetensors" or path.stat().st_size > 100_000:
                continue
            content = path.read_bytes()
            if path.parent.name == "chief":
                numbers.update(struct.unpack_from("<Q", content, at)[0] for at in range(len(content) - 7))
            elif content.isdigit() and len(content) < 21:
                numbers.add(int(content))
        return numbers

    def assert_no_number_opens_a_channel(self):
        status = self.now()
        numbers = self.numbers_on_disk()
        self.assertGreater(len(numbers), 100)
        for token in sorted(numbers):
            refusal = self.answer_to(status, token)
            self.assertIsNotNone(refusal, f"{token} opens a channel")
            self.assertEqual((refusal.code, "token is wrong" in refusal.reason), (self.CODE_NO_PERMISSION, True),
                             refusal.reason)

    def test_no_number_on_a_disk_is_the_secret_of_the_channels(self):
        self.train()
        self.until("a checkpoint", lambda: self.now()["checkpoint"])
        with self.unharmed():
            self.assert_no_number_opens_a_channel()

    def test_a_chief_that_was_restarted_knows_the_secret_all_the_same(self):
        self.train()
        self.until("a checkpoint", lambda: self.now()["checkpoint"])
        self.daemons["chief/0"].kill()
        self.daemons["chief/0"].wait()
        self.start_daemon("chief/0")
        self.until_chief_answers(self.cluster)
        before = self.until("the job to go on", lambda: self.now()["state"] == "running" and self.now())
        self.daemons["worker/1"].kill()
        self.daemons["worker/1"].wait()
        self.start_daemon("worker/1")
        self.until("worker/1 to train again", lambda: any(
            task["task"] == "worker/1" and task["state"] == "running" and task["step"] > 0
            and task["pid"] == self.daemons["worker/1"].pid for task in self.now()["tasks"]))
        after = self.now()
        self.assertEqual((after["generation"], after["recoveries"]), (before["generation"], 0))
        self.assert_no_number_opens_a_channel()


if __name__ == "__main__":
    unittest.main()
