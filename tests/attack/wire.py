"""Frames and Cap'n Proto messages made by hand, right or wrong, as an attacker may send them.

This file shares no code with the programs, so it can write what they refuse to write. A message is a tree of Struct,
Composite, Text and Words. An object that occurs twice is written once, with two pointers to it:
1. shared = Text(4000 bytes).
2. Struct(pointers=[shared, shared]) takes 4,000 bytes on the wire, and 8,000 bytes in a reader that copies it.
"""
import os
import socket
import struct
import time

# How many seconds a test waits. After that the wait fails, so that a broken daemon fails the test instead of hanging
# it. With a sanitizer, a test waits longer.
PATIENCE = 60.0 * float(os.environ.get("DISTTRAIN_PATIENCE", "1"))
MAGIC = 0x4E525444
HELLO, WELCOME, REFUSED, CONTROL, BLOB, PUSH, PULL, PARAMETERS = 1, 2, 3, 16, 17, 32, 33, 34
PS, WORKER = 1, 2

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def frame(kind, control=b"", payload=b"", version=1, job=0, generation=0, sequence=0, control_bytes=None,
          payload_bytes=None, checksum_kind=0):
    """A frame with a right checksum. Without control_bytes and payload_bytes its lengths are right too."""
    head = struct.pack("<IHHIIQQQIB15x", MAGIC, version, kind, job,
                       len(control) if control_bytes is None else control_bytes, generation, sequence,
                       len(payload) if payload_bytes is None else payload_bytes, 0, checksum_kind)
    return head + struct.pack("<I", crc32c(head + control)) + control + payload


# ---- Cap'n Proto

class Struct:
    def __init__(self, data=b"", pointers=()):
        assert len(data) % 8 == 0
        self.data, self.pointers = data, list(pointers)


class Composite:
    """A list of structs of one shape."""

    def __init__(self, structs):
        self.structs = structs


class Text:
    def __init__(self, text):
        self.bytes = text.encode() if isinstance(text, str) else bytes(text)


class Words:
    """A list of 64-bit numbers."""

    def __init__(self, numbers):
        self.numbers = numbers


class Message:
    def __init__(self, root):
        self.words = bytearray(8)
        self.places = {}
        self.point(0, root)

    def bytes(self):
        return struct.pack("<II", 0, len(self.words) // 8) + bytes(self.words)

    def reserve(self, words):
        at = len(self.words) // 8
        self.words.extend(bytes(8 * words))
        return at

    def set(self, at, number):
        struct.pack_into("<Q", self.words, 8 * at, number)

    def point(self, at, target):
        """Writes the pointer at word `at`, and the target unless it is written already."""
        if target is None:
            return
        if id(target) not in self.places:
            self.places[id(target)] = (target, *self.write(target))
        _, place, kind = self.places[id(target)]
        self.set(at, (place - at - 1 & 0x3FFFFFFF) << 2 | kind)

    def fill(self, at, item):
        self.words[8 * at:8 * at + len(item.data)] = item.data
        for number, pointer in enumerate(item.pointers):
            self.point(at + len(item.data) // 8 + number, pointer)

    def write(self, item):
        """Writes the item. Returns the word where it begins, and the upper bits of a pointer to it."""
        if isinstance(item, Struct):
            data, pointers = len(item.data) // 8, len(item.pointers)
            at = self.reserve(data + pointers)
            self.fill(at, item)
            return at, data << 32 | pointers << 48
        if isinstance(item, Text):
            content = item.bytes + b"\0"
            at = self.reserve((len(content) + 7) // 8)
            self.words[8 * at:8 * at + len(content)] = content
            return at, 1 | 2 << 32 | len(content) << 35
        if isinstance(item, Words):
            at = self.reserve(len(item.numbers))
            struct.pack_into(f"<{len(item.numbers)}Q", self.words, 8 * at, *item.numbers)
            return at, 1 | 5 << 32 | len(item.numbers) << 35
        data, pointers = len(item.structs[0].data) // 8, len(item.structs[0].pointers)
        size = data + pointers
        at = self.reserve(1 + size * len(item.structs))
        self.set(at, len(item.structs) << 2 | data << 32 | pointers << 48)
        for number, element in enumerate(item.structs):
            self.fill(at + 1 + size * number, element)
        return at, 1 | 7 << 32 | size * len(item.structs) << 35


def message(root):
    return Message(root).bytes()


# ---- The messages of protocol.capnp that the tests need. The command `capnp compile -ocapnp` prints the offsets of
# their fields.

def member(role, index, incarnation):
    return Struct(struct.pack("<HxxIQ", role, index, incarnation))


def hello(who, kind, cluster="attacked", oldest=1, newest=1):
    return message(Struct(struct.pack("<HHHxxQ", oldest, newest, kind, 0), [Text(cluster), who]))


def task_hello(role, index, incarnation, address="127.0.0.1:9", host="elsewhere", pid=1, shards=1, memory=1 << 30,
               job=0, generation=0, token=0, device="cpu", metrics="", cluster="attacked"):
    data = struct.pack("<IIQIIQQQ", pid, shards, memory, 1, job, 0, generation, token)
    return hello(Struct(data, [member(role, index, incarnation), Text(address), Text(host), Text(device),
                               Text(metrics)]), 0, cluster)


def client_hello(user="mallory", cluster="attacked"):
    return hello(Struct(b"", [Text(user)]), 1, cluster)


def channel_hello(job, generation, shard, index, incarnation, token, cluster="attacked"):
    return hello(Struct(struct.pack("<IIQQ", job, shard, generation, token), [member(WORKER, index, incarnation)]), 2,
                 cluster)


def control(kind, body):
    return message(Struct(struct.pack("<Hxxxxxx", kind), [body]))


def task_failed(job, generation, reason, code=0):
    return control(20, Struct(struct.pack("<IHxxQ", job, code, generation), [Text(reason)]))


def job_described(job, model, records=1000, evaluation_records=100):
    return control(1, Struct(struct.pack("<IxxxxQQ", job, records, evaluation_records), [model]))


def model(variables, inputs=784, classes=10):
    return Struct(struct.pack("<QQ", inputs, classes), [Composite(variables)])


def variable(name, shape):
    """Both may be shared by many."""
    return Struct(struct.pack("<HHxxxxdQQ", 0, 0, 0.0, 1, 1), [name, shape])


def log_lines(texts, level=2):
    return control(24, Struct(bytes(8), [Composite([Struct(struct.pack("<QHBxI", 0, WORKER, level, 0), [Text(text)])
                                                    for text in texts])]))


def submit(toml):
    return control(25, Struct(bytes(16), [Text(toml)]))


def status_request(job="", everything=False, wait_for_end=0):
    """wait_for_end: seconds."""
    return control(27, Struct(struct.pack("<Bxxxxxxxq", everything, wait_for_end * 10**9), [Text(job)]))


def stop_request(job):
    return control(29, Struct(bytes(8), [Text(job)]))


def logs_request(job="", follow=False):
    return control(31, Struct(struct.pack("<BBxxxxxxq", 0, follow, 0), [Text(job), None]))


def save_request(job):
    return control(41, Struct(b"", [Text(job)]))


def heartbeat(job=0, generation=0, steps=0):
    data = struct.pack("<IHxxQqQQd", job, 0, generation, 0, steps, 0, 0.0)
    return control(22, Struct(data, [None, None, None, None]))


# ---- Answers

def read_text(words, at):
    """The text that the pointer at word `at` points to; "" for a null pointer."""
    pointer = struct.unpack_from("<Q", words, 8 * at)[0]
    if pointer == 0:
        return ""
    offset = struct.unpack("<i", struct.pack("<I", pointer & 0xFFFFFFFF))[0] >> 2
    begin = 8 * (at + 1 + offset)
    return words[begin:begin + (pointer >> 35) - 1].decode()


def follow(words, at):
    """For the struct pointer at word `at`: (word where the struct begins, number of its data words)."""
    pointer = struct.unpack_from("<Q", words, 8 * at)[0]
    offset = struct.unpack("<i", struct.pack("<I", pointer & 0xFFFFFFFF))[0] >> 2
    return at + 1 + offset, pointer >> 32 & 0xFFFF


class Refusal:
    def __init__(self, words, root=0):
        at, data = follow(words, root)
        self.code = struct.unpack_from("<H", words, 8 * at)[0]
        self.reason = read_text(words, at + data)


class Peer:
    """One connection to a daemon."""

    def __init__(self, address, patience=PATIENCE):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=patience)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Sends the bytes. False: the daemon closed the connection before it took all."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def read(self, count):
        data = bytearray()
        while len(data) < count:
            piece = self.socket.recv(min(count - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data.extend(piece)
        return bytes(data)

    def receive(self):
        """Receives a frame: (type, message without the segment table, payload); None: the connection was closed."""
        try:
            head = self.read(64)
            kind, control_bytes, payload_bytes = (*struct.unpack_from("<H", head, 6), *struct.unpack_from("<I", head, 12),
                                                  *struct.unpack_from("<Q", head, 32))
            control_part, payload = self.read(control_bytes), self.read(payload_bytes)
            return kind, (payload if kind == BLOB else control_part)[8:], payload
        except (EOFError, OSError):
            return None

    def say_hello(self, words):
        self.send(frame(HELLO, words))
        return self.receive()

    def say(self, words):
        return self.send(frame(CONTROL, words) if len(words) <= 65536 else frame(BLOB, b"", words))

    def is_closed(self, patience=PATIENCE):
        """Returns True if the daemon closes the connection within `patience` seconds. Ignores frames before that."""
        self.socket.settimeout(1)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            try:
                if not self.socket.recv(1 << 16):
                    return True
            except socket.timeout:
                continue
            except OSError:
                return True
        return False
