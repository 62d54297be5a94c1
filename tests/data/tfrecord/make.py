#!/usr/bin/env python3
"""Writes examples.tfrecord beside itself: three tf.Example records."""

import pathlib

from tfrecord import example, record

RECORDS = [
    {"age": [39], "pixels": [0.5, -1.25], "job": [b"clerk"]},
    {"job": [b"cook", b""], "unused": [7], "age": [-3]},
    {"pixels": [2.0], "age": [1 << 62], "job": [b"\xff\x00"]},
]
out = pathlib.Path(__file__).with_name("examples.tfrecord")
out.write_bytes(b"".join(record(example(r)) for r in RECORDS))
