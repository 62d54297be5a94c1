"""A worker for tests of the Python package: it starts a script as a trainer, and speaks the worker's side of
engine/trainer/trainer_protocol.h. It needs no package but Python's own."""

import array
import json
import math
import mmap
import os
import pathlib
import socket
import struct
import subprocess
import tempfile

from pythons import find_python, require_python  # noqa: F401; tests import them from here, too

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The keys that the messages of a protocol have: number of the protocol -> sender -> type -> keys.
PROTOCOL_KEYS = json.loads((ROOT / "tests/engine/trainer/protocol_keys.json").read_text())
PACKAGE = ROOT / "python"


def run_code(python, code):
    """Runs code that imports the package, without a worker. Returns the process with what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("DISTTRAIN_TRAINER", None)
    return subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True, timeout=300)


class FakeWorker:
    """Use it in a `with` block."""

    def __init__(self, python, script, columns=(), batch_size=4):
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(60)
        self._folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self._folder.name) / "train.py"
        path.write_text(script)
        self._blocks = {}
        self._numbers = 0
        self._keys = None
        environment = {
            **os.environ,
            "DISTTRAIN_TRAINER": str(theirs.fileno()),
            "PYTHONPATH": str(PACKAGE),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._process = subprocess.Popen(
            [python, str(path)],
            env=environment,
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        theirs.close()
        self.hello = self.receive()
        self.send({"type": "welcome", "protocol": 1, "batch_size": batch_size, "seed": 5, "columns": list(columns)})

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.kill()
        self._process.communicate()
        self._socket.close()
        self._folder.cleanup()

    # ---- messages ----

    def send(self, message, files=()):
        text = json.dumps(message).encode()
        data = struct.pack("<II", len(text), 0) + text
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        self._socket.sendmsg([data], rights)

    def receive(self):
        """The next message; its payload, as floats, is in the key "payload". None: the script has closed the socket."""
        header = self._exactly(8)
        if header is None:
            return None
        text, payload = struct.unpack("<II", header)
        message = json.loads(self._exactly(text))
        if message["type"] == "hello":
            self._keys = PROTOCOL_KEYS[str(message["protocol"])]["trainer"]
        keys = sorted(message.keys() - {"type"})
        assert keys == self._keys[message["type"]], (
            f"the keys of {message} have changed: change the number of the protocol, too (trainer_protocol.h)"
        )
        if payload:
            message["payload"] = list(array.array("f", self._exactly(payload)))
        return message

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                return None
            data += part
        return data

    # ---- the worker's part ----

    def open(self):
        """Takes the description, and lays the variables out in reverse order, float64 first, as a layout does."""
        self.model = self.receive()
        assert self.model is not None, self.finish()
        variables = self.model["variables"]
        self.codes = ["d" if dtype == "float64" else "f" for *_, dtype in variables]
        self.sizes = [math.prod(shape) * (2 if c == "d" else 1) for (_, shape, *_), c in zip(variables, self.codes)]
        self.begins = [0] * len(variables)
        end = 0
        for i in sorted(reversed(range(len(variables))), key=lambda i: self.codes[i] == "f"):
            self.begins[i], end = end, end + self.sizes[i]
        self.words = sum(self.sizes)
        self.send({"type": "open", "begins": self.begins, "words": self.words})

    def initial(self):
        """The initial values: a dict of lists."""
        block = self.new_block(4 * self.words)
        self.send({"type": "values", "into": [block.number, 0], **self._fresh([block])}, self._files([block]))
        assert self.receive() == {"type": "values"}
        return self.values(block)

    def new_block(self, size):
        self._numbers += 1
        return Block(self._numbers, size)

    def _fresh(self, blocks):
        self._sent = [block for block in blocks if not block.is_sent]
        return {"blocks": [[block.number, block.size] for block in self._sent]} if self._sent else {}

    def _files(self, _):
        for block in self._sent:
            block.is_sent = True
        return [block.file for block in self._sent]

    def values(self, block):
        flat = block.content()
        return {
            name: array.array(code, flat[4 * begin : 4 * (begin + size)]).tolist()
            for (name, *_), code, begin, size in zip(self.model["variables"], self.codes, self.begins, self.sizes)
        }

    def fill(self, block, values):
        """`values`: name of a variable -> list."""
        for (name, *_), code, begin in zip(self.model["variables"], self.codes, self.begins):
            block.put(4 * begin, array.array(code, values[name]).tobytes())

    def start(self, parameters, gradients, records=None, columns=(), examples=None, program="step", step=1, drop=(), spare=None):
        """`records`: of the script's own data set. `columns`: (bytes) or (bytes, row ends) of each column."""
        if records is not None:
            columns = [(array.array("q", records).tobytes(),)]
            examples = len(records)
        blocks, parts = [parameters, gradients] + ([spare] if spare else []), []
        for column in columns:
            part = []
            for data in column:
                block = self.new_block(max(len(data), 1))
                block.put(0, data)
                blocks.append(block)
                part += [block.number, 0, len(data)]
            parts.append(part)
        message = {
            "type": "start",
            "number": self._numbers,
            "program": program,
            "step": step,
            "seed": 7,
            "rank": 1,
            "size": 3,
            "examples": examples,
            "parameters": [parameters.number, 0],
            "gradients": [gradients.number, 0],
            "columns": parts,
            **self._fresh(blocks),
        }
        if spare:
            message["spare"] = [spare.number, 0]
        if drop:
            message["drop"] = [block.number for block in drop]
        self.send(message, self._files(blocks))

    def end(self):
        self.send({"type": "end"})

    def finish(self):
        """Waits for the script's end. Returns its exit code and what it printed."""
        output, _ = self._process.communicate(timeout=60)
        return self._process.returncode, output


class Block:
    """A block of shared memory."""

    def __init__(self, number, size):
        self.number = number
        self.size = size
        self.is_sent = False
        self.file = os.memfd_create("test")
        os.ftruncate(self.file, size)
        self._map = mmap.mmap(self.file, size)

    def put(self, offset, data):
        self._map[offset : offset + len(data)] = data

    def content(self):
        return self._map[:]

    def __del__(self):
        os.close(self.file)
