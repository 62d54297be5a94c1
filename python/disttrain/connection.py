"""The trainer's end of the socket to its worker, and the shared memory that the worker sends through it.

engine/trainer/message_socket.h describes the frames, and engine/trainer/trainer_protocol.h the messages.
"""

import array
import collections
import errno
import json
import math
import mmap
import os
import socket
import struct

import numpy as np

from disttrain.errors import DisttrainError

PROTOCOL = 1  # kTrainerProtocol in engine/trainer/trainer_protocol.h
SOCKET_VARIABLE = "DISTTRAIN_TRAINER"
_HEADER = struct.Struct("<II")
_MAX_DESCRIPTORS = 16
_ANCILLARY_BYTES = socket.CMSG_SPACE(_MAX_DESCRIPTORS * 4)


class Connection:
    """Belongs to the thread that made it, and to its process (own_process.py)."""

    def __init__(self, descriptor, own_process):
        self._descriptor = descriptor
        self._socket = socket.socket(fileno=descriptor)
        # A program that the script starts must not hold the socket open.
        os.set_inheritable(descriptor, False)
        self._own_process = own_process
        self._received = bytearray()
        self._descriptors = collections.deque()
        self._blocks = {}  # number -> numpy array of bytes

    def send(self, message, payload=b""):
        """`payload` may be any object with the buffer protocol."""
        self._own_process.require("a function that sends to the worker")
        text = json.dumps(message).encode()
        payload = memoryview(payload).cast("B")
        data = b"".join((_HEADER.pack(len(text), len(payload)), text))
        try:
            self._socket.sendall(data)
            if len(payload) > 0:
                self._socket.sendall(payload)
        except OSError as error:
            raise self._error_of(error) from None

    def receive(self):
        """Waits for the next message. Its new blocks of shared memory can be used from then on."""
        self._own_process.require("a function that waits for the worker")
        while True:
            message = self._take()
            if message is not None:
                break
            self._read()
        for number in message.get("drop", ()):
            self._blocks.pop(number, None)
        for number, size in message.get("blocks", ()):
            descriptor = self._descriptors.popleft()
            try:
                self._blocks[number] = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
            finally:
                os.close(descriptor)
        return message

    def words(self, place, words):
        """A view of shared memory as a flat array of words of 4 bytes, which have the type of most of them."""
        block, offset = place
        return self._blocks[block][offset : offset + 4 * words].view(np.float32)

    def bytes_at(self, block, offset, size):
        """A view of shared memory."""
        return self._blocks[block][offset : offset + size]

    def _read(self):
        try:
            data, ancillary, _, _ = self._socket.recvmsg(65536, _ANCILLARY_BYTES)
        except OSError as error:
            raise self._error_of(error) from None
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                self._descriptors.extend(numbers)
        if not data:
            raise ConnectionError("the worker has gone: it closed the socket")
        self._received += data

    def _error_of(self, error):
        # The descriptor is closed, or its number belongs to a file by now.
        if error.errno in (errno.EBADF, errno.ENOTSOCK):
            return DisttrainError(
                f"the script has closed descriptor {self._descriptor}, its socket to the worker; expected that a script closes "
                "only what it has opened itself, and not all descriptors, as os.closerange() does"
            )
        return ConnectionError(f"the worker has gone: {error.strerror or error}")

    def _take(self):
        if len(self._received) < _HEADER.size:
            return None
        text, payload = _HEADER.unpack_from(self._received)
        end = _HEADER.size + text + payload
        if len(self._received) < end:
            return None
        message = json.loads(self._received[_HEADER.size : _HEADER.size + text])
        del self._received[:end]
        return message


def number(value):
    """A float as the protocol writes it: JSON has no infinite numbers."""
    value = float(value)
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
