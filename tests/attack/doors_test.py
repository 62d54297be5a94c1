"""Meaningless bytes at every port of every daemon: the daemon answers or closes the connection, and training goes
on."""
import random
import socket
import unittest

import wire
from attack import AttackTest

SEED = 20


class DoorsTest(AttackTest):
    UNLISTED = True

    def stories(self):
        """Yields (name, bytes): first bytes that a stranger may send."""
        randomness = random.Random(SEED)
        hello = wire.client_hello()
        head = wire.frame(wire.HELLO, hello)
        yield "nothing", b""
        yield "a question of another protocol", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(100)
        yield "TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + randomness.randbytes(500)
        yield "random bytes", randomness.randbytes(5000)
        yield "half a header", head[:30]
        yield "half a hello", head[:80]
        yield "a wrong checksum", head[:60] + b"\0\0\0\0" + head[64:]
        yield "a control part of 4 GiB", wire.frame(wire.HELLO, hello, control_bytes=0xFFFFFFFF)
        yield "a payload of 2^63 bytes", wire.frame(wire.HELLO, hello, payload_bytes=1 << 63)
        yield "a payload of 1 MiB of no known type", wire.frame(99, hello, payload_bytes=1 << 20) + bytes(100)
        yield "a blob of 64 MiB first", wire.frame(wire.BLOB, b"", payload_bytes=64 << 20) + bytes(100)
        yield "a hello with a payload", wire.frame(wire.HELLO, hello, b"x" * 1000)
        yield "a push first", wire.frame(wire.PUSH, bytes(64), b"x" * 1000)
        yield "a hello of random words", wire.frame(wire.HELLO, randomness.randbytes(800))
        yield "an empty hello", wire.frame(wire.HELLO, b"")
        yield "a hello without a sender", wire.frame(wire.HELLO, wire.hello(None, 9))
        yield "a hello of a list without end", wire.frame(wire.HELLO, bytes.fromhex(
            "00000000ff1f0000") + (1 | 7 << 32 | 0x1FFFFFFF << 35).to_bytes(8, "little") + bytes(8 * 100))
        yield "a checksum of an unknown kind", wire.frame(wire.HELLO, hello, checksum_kind=200)

    def test_strangers_who_make_no_sense_are_closed_at_every_door(self):
        self.train()
        with self.unharmed(growth=64 << 20):
            for task, address in self.addresses.items():
                for name, story in self.stories():
                    with self.subTest(f"{task}: {name}"), wire.Peer(address) as peer:
                        peer.send(story)
                        self.assertTrue(peer.is_closed(), name)

    def test_a_hello_byte_by_byte_has_no_more_time_than_a_quick_one(self):
        self.train()
        with self.unharmed():
            for address in self.addresses.values():
                with wire.Peer(address) as peer:
                    peer.socket.settimeout(0.2)
                    frame = wire.frame(wire.HELLO, wire.client_hello())

                    def dripped():
                        for at in range(len(frame) - 1):
                            if not peer.send(frame[at:at + 1]):
                                return True
                            try:
                                if peer.socket.recv(1) == b"":
                                    return True
                            except socket.timeout:
                                continue
                            except OSError:
                                return True
                        return False
                    self.assertTrue(dripped(), address)

    def test_another_version_is_answered_with_a_sentence_that_names_both(self):
        self.train()
        with self.unharmed():
            for task, address in self.addresses.items():
                for frame in [wire.frame(wire.HELLO, wire.client_hello(), version=9),
                              wire.frame(wire.HELLO, b"what a later version says", version=9, payload_bytes=12345),
                              wire.frame(wire.HELLO, wire.client_hello(), version=9)[:16]]:
                    with self.subTest(task), wire.Peer(address) as peer:
                        peer.send(frame)
                        kind, words, _ = peer.receive()
                        self.assertEqual(kind, wire.REFUSED)
                        refusal = wire.Refusal(words)
                        self.assertEqual(refusal.code, 8, refusal.reason)
                        self.assertIn("protocol version 9", refusal.reason)
                        self.assertIn("speaks 1", refusal.reason)
                        self.assertTrue(peer.is_closed())

    def test_hellos_at_the_wrong_door_are_answered(self):
        self.train()
        with self.unharmed():
            hellos = {
                "another cluster": wire.client_hello(cluster="other"),
                "a later protocol": wire.hello(wire.Struct(b"", [wire.Text("u")]), 1, oldest=5, newest=9),
                "a channel": wire.channel_hello(1, 1, 0, 0, 5, 0),
                "a channel of a shard that can't be": wire.channel_hello(1, 1, 0xFFFFFFFF, 0, 5, 0),
                "a task of a place that can't be": wire.task_hello(wire.PS, 0xFFFFFFFF, 5),
                "a task of no role": wire.hello(wire.Struct(bytes(48), [wire.member(7, 0, 5)] + [None] * 4), 0),
                "a second chief": wire.task_hello(0, 0, 5),
            }
            for task, address in self.addresses.items():
                for name, words in hellos.items():
                    with self.subTest(f"{task}: {name}"), wire.Peer(address) as peer:
                        kind, answer, _ = peer.say_hello(words)
                        self.assertEqual(kind, wire.REFUSED, name)
                        self.assertNotEqual(wire.Refusal(answer).reason, "")

    def test_what_comes_after_a_hello_may_be_anything(self):
        randomness = random.Random(SEED)
        self.train()
        frames = {
            "the same hello again": wire.frame(wire.HELLO, wire.client_hello()),
            "a push": wire.frame(wire.PUSH, bytes(64), b"x" * 1000),
            "an unknown type with a payload": wire.frame(99, b"", bytes(1 << 20)),
            "random words": wire.frame(wire.CONTROL, randomness.randbytes(800)),
            "a blob over a client's bound": wire.frame(wire.BLOB, payload_bytes=32 << 20),
            "a payload over its bound": wire.frame(wire.CONTROL, payload_bytes=1 << 40),
            "garbage": randomness.randbytes(1000),
        }
        with self.unharmed(growth=64 << 20):
            for name, frame in frames.items():
                for hello in [wire.client_hello(), wire.task_hello(wire.WORKER, 40, 5)]:
                    with self.subTest(name), wire.Peer(self.chief) as peer:
                        peer.say_hello(hello)
                        peer.send(frame)
                        peer.say(wire.status_request())
                        peer.is_closed(patience=1)
            with wire.Peer(self.chief) as peer:
                peer.say_hello(wire.client_hello())
                peer.send(frames["an unknown type with a payload"])
                peer.say(wire.status_request())
                self.assertIsNotNone(peer.receive(), "the daemon must drop only the frame of an unknown type")

    def test_http_ports_close_what_makes_no_sense(self):
        self.train()
        metrics = [task["metrics"] for task in self.now()["tasks"] if task["metrics"]]
        self.assertEqual(len(metrics), len(self.addresses))
        randomness = random.Random(SEED)
        stories = {
            "random bytes": randomness.randbytes(5000),
            "a line without end": b"GET /" + b"a" * (4 << 20),
            "headers without end": b"GET / HTTP/1.1\r\n" + b"X-Header: yes\r\n" * 200_000,
            "a body of 2^63 bytes": b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n",
            "a chunked body without end": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                                          + b"FFFFFFFFFFFFFFFF\r\n",
            "another version": b"GET / HTTP/9.9\r\n\r\n",
            "a path out of the tree": b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
            "escapes": b"GET /\x1b[2J\n2026-01-01 HTTP/1.1\r\n\r\n",
            "a disttrain frame": wire.frame(wire.HELLO, wire.client_hello()),
        }
        with self.unharmed(growth=64 << 20):
            for address in metrics:
                for name, story in stories.items():
                    with self.subTest(f"{address}: {name}"), wire.Peer(address) as peer:
                        peer.send(story)
                        peer.socket.settimeout(30)
                        try:
                            answer = peer.socket.recv(1 << 16)
                        except OSError:
                            answer = b""
                        self.assertNotIn(b"root:", answer)
                        self.assertNotIn(b" 200 ", answer.split(b"\r\n")[0])
                # 50 silent connections may delay a scrape, but only until the daemon drops them.
                held = [wire.Peer(address) for _ in range(50)]
                for peer in held:
                    self.addCleanup(peer.socket.close)
                self.until("a scrape", lambda: self.scrape(address))

    def scrape(self, address):
        try:
            with wire.Peer(address, patience=5) as peer:
                peer.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                return b"200 OK" in peer.socket.recv(1 << 16)
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()
