#!/usr/bin/env python3
"""Writes examples.tfrecord beside itself: three tf.Example records, encoded by hand, without TensorFlow."""

import pathlib
import struct


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values):
    if isinstance(values[0], bytes):
        return field(1, b"".join(field(1, v) for v in values))
    if isinstance(values[0], float):
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
    return field(3, field(1, b"".join(varint(v) for v in values)))


def example(features):
    entries = (field(1, field(1, name.encode()) + field(2, feature(v))) for name, v in features.items())
    return field(1, b"".join(entries))


RECORDS = [
    {"age": [39], "pixels": [0.5, -1.25], "job": [b"clerk"]},
    {"job": [b"cook", b""], "unused": [7], "age": [-3]},
    {"pixels": [2.0], "age": [1 << 62], "job": [b"\xff\x00"]},
]
out = pathlib.Path(__file__).with_name("examples.tfrecord")
out.write_bytes(b"".join(record(example(r)) for r in RECORDS))
