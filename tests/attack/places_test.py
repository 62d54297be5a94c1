"""Processes that claim a place that is taken, by mistake or to end the process that has it."""
import signal
import unittest
import wire
from attack import PATIENCE, AttackTest, free_address


class PlaceTest(AttackTest):
    def task(self, name):
        return next(task for task in self.now()["tasks"] if task["task"] == name)

    def state_of(self, name):
        return self.task(name)["state"]


class PlacesTest(PlaceTest):
    CODE_TEMPORARY, CODE_CONFIG = 6, 8

    def claim(self, role, index, incarnation, **hello):
        with wire.Peer(self.chief) as peer:
            kind, words, _ = peer.say_hello(wire.task_hello(role, index, incarnation, **hello))
            return None if kind == wire.WELCOME else wire.Refusal(words)

    def test_a_claim_moves_nobody_who_answers_its_probe(self):
        self.train()
        with self.unharmed():
            for round_number in range(20):
                for role, index in [(wire.PS, 0), (wire.WORKER, 0), (wire.WORKER, 1)]:
                    refusal = self.claim(role, index, 1000 + round_number, shards=4)
                    self.assertIsNotNone(refusal, "the chief must refuse a claim for a place that is taken")
                    self.assertIn("is taken by process", refusal.reason)
            # If a process claims a taken place again and again, the chief refuses it for good.
            refusal = self.until("the claim to be refused for good", lambda: self.insists())
            self.assertIn("give each process its own index", refusal.reason)
        self.assertEqual(self.events("task_lost"), [])

    def insists(self):
        refusal = self.claim(wire.PS, 0, 4711)
        return refusal if refusal.code == self.CODE_CONFIG else None

    def test_a_second_daemon_with_the_same_index_ends_and_the_first_lives(self):
        self.train()
        other = self.folder / "other.toml"
        text = self.cluster.read_text()
        other.write_text(text.replace(self.addresses["worker/0"], free_address()))
        with self.unharmed():
            outcome = self.run_program("workerd", "--cluster", other, "--index", "0")
            self.assertEqual(outcome.code, 78, str(outcome))
            self.assertIn("give each process its own index", outcome.err)

    def test_a_hello_does_not_choose_whom_the_chief_dials(self):
        """A liar takes a vacant place and names its own address; the chief dials the address of the cluster file."""
        self.daemons["worker/1"].kill()
        self.daemons["worker/1"].wait()
        self.until("the chief to see it gone", lambda: self.state_of("worker/1") in ("dead", "left"))
        trap = wire.socket.create_server(("127.0.0.1", 0))
        self.addCleanup(trap.close)
        address = "127.0.0.1:%d" % trap.getsockname()[1]
        peer = wire.Peer(self.chief)
        self.assertEqual(peer.say_hello(wire.task_hello(wire.WORKER, 1, 5, address=address))[0], wire.WELCOME)
        self.assertEqual(self.task("worker/1")["address"], self.addresses["worker/1"])
        peer.socket.close()
        # The impostor has closed its connection. Now the chief probes the address in the cluster file, where nobody
        # listens.
        self.until("the chief to see it gone", lambda: self.state_of("worker/1") in ("dead", "left"))
        trap.setblocking(False)
        with self.assertRaises(BlockingIOError):
            trap.accept()
        # The real worker starts again and gets its place back at once.
        self.start_daemon("worker/1")
        self.until("worker/1 to be back", lambda: self.state_of("worker/1") == "ready")

    def test_a_liar_loses_the_place_to_the_one_that_lives_at_its_address(self):
        self.daemons["worker/1"].kill()
        self.daemons["worker/1"].wait()
        self.until("the chief to see it gone", lambda: self.state_of("worker/1") in ("dead", "left"))
        liar = wire.Peer(self.chief)
        self.addCleanup(liar.socket.close)
        self.assertEqual(liar.say_hello(wire.task_hello(wire.WORKER, 1, 5))[0], wire.WELCOME)
        self.start_daemon("worker/1")
        self.until("the liar to lose its place",
                   lambda: self.task("worker/1")["pid"] == self.daemons["worker/1"].pid)
        self.assertTrue(liar.is_closed())


class SleeperTest(PlaceTest):
    UNLISTED = True

    def test_one_that_slept_while_another_took_its_place_ends_to_be_started_again(self):
        self.train()
        self.start_daemon("worker/2", "--address", free_address())
        first, log = self.daemons["worker/2"], self.logs["worker/2"]
        self.until("the first one to train", lambda: self.is_running(first))
        first.send_signal(signal.SIGSTOP)
        self.start_daemon("worker/2", "--address", free_address())
        second = self.daemons["worker/2"]
        self.until("the second one to train", lambda: self.is_running(second))
        first.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(PATIENCE), 75, log.text)
        log.thread.join()
        self.assertIn("took the place while this process was away", log.text)
        self.assertIsNone(second.poll(), self.logs["worker/2"].text)

    def is_running(self, process):
        return any(task["task"] == "worker/2" and task["pid"] == process.pid and task["state"] == "running"
                   for task in self.now()["tasks"])


if __name__ == "__main__":
    unittest.main()
