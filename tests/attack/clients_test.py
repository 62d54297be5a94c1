"""Clients that keep their connections, never read or never end, and peers that connect and send nothing."""
import contextlib
import resource
import threading
import unittest

import wire
from attack import AttackTest


class ClientsTest(AttackTest):
    def setUp(self):
        super().setUp()
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))

    def client(self):
        peer = wire.Peer(self.chief)
        self.addCleanup(peer.socket.close)
        answer = peer.say_hello(wire.client_hello())
        self.assertIsNotNone(answer)
        return peer, answer[0]

    def test_idle_clients_lock_nobody_out(self):
        self.train()
        with self.unharmed():
            for _ in range(600):
                self.assertEqual(self.client()[1], wire.WELCOME)
            for _ in range(5):
                self.now()

    def test_clients_that_stay_lock_nobody_out(self):
        """600 clients wait for the job's end or follow its log, which may take for ever."""
        self.train()
        with self.unharmed():
            for request in wire.status_request(wait_for_end=3600), wire.logs_request(follow=True):
                for _ in range(300):
                    peer, welcome = self.client()
                    self.assertEqual(welcome, wire.WELCOME)
                    peer.say(request)
                for _ in range(5):
                    self.now()

    def test_client_that_waits_often_takes_one_place(self):
        self.train()
        with self.unharmed():
            greedy, _ = self.client()
            for _ in range(1100):
                self.assertTrue(greedy.say(wire.status_request(wait_for_end=3600)))
            for _ in range(1099):
                self.assertIn(b'"state"', greedy.receive()[1])
            other, _ = self.client()
            other.say(wire.status_request(wait_for_end=1))
            self.assertIn(b'"state"', other.receive()[1])

    def test_watchers_that_come_back_lock_nobody_out(self):
        """300 clients like `status -w`, more than there are seats: a client that loses its seat takes another one's."""
        self.train()
        with self.unharmed():
            ends = threading.Event()
            threads = [threading.Thread(target=self.watch, args=(ends,)) for _ in range(300)]
            for thread in threads:
                thread.start()
            try:
                for _ in range(20):
                    self.now()
            finally:
                ends.set()
                for thread in threads:
                    thread.join()

    def watch(self, ends):
        while not ends.is_set():
            with contextlib.suppress(OSError), wire.Peer(self.chief) as peer:
                peer.say_hello(wire.client_hello())
                while not ends.is_set() and peer.say(wire.status_request(wait_for_end=1)) and peer.receive():
                    pass

    def test_a_client_that_never_reads_is_dropped(self):
        self.train()
        with self.unharmed():
            peers = [self.client()[0] for _ in range(8)]
            for peer in peers:
                peer.socket.setsockopt(wire.socket.SOL_SOCKET, wire.socket.SO_RCVBUF, 4096)
                peer.socket.settimeout(1)
                requests = wire.frame(wire.CONTROL, wire.status_request(everything=True)) * 100
                for _ in range(200):
                    if not peer.send(requests):
                        break
            self.now()
            for peer in peers:
                self.assertTrue(peer.is_closed())

    def test_silent_peers_keep_nobody_out(self):
        """More than twice as many peers as the listener has seats for."""
        self.train()
        with self.unharmed():
            held = [wire.Peer(self.chief) for _ in range(2200)]
            for peer in held:
                self.addCleanup(peer.socket.close)
            half = wire.frame(wire.HELLO, wire.client_hello())[:40]
            for peer in held[::2]:
                peer.send(half)
            for _ in range(5):
                self.now()

    def test_clients_that_follow_and_go_leave_nothing_behind(self):
        self.train()
        with self.unharmed(growth=64 << 20):
            for _ in range(500):
                with wire.Peer(self.chief) as peer:
                    peer.say_hello(wire.client_hello())
                    peer.say(wire.logs_request(follow=True))


if __name__ == "__main__":
    unittest.main()
