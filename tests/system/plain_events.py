"""Reads TensorBoard event files as their format describes, without libraries and without disttrain's code."""
import struct
from pathlib import Path

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """Yields the records of a file, without a torn record at its end."""
    while len(data) >= 12:
        head, (length,), (check,) = data[:8], struct.unpack("<Q", data[:8]), struct.unpack("<I", data[8:12])
        assert masked_crc32c(head) == check, "the checksum of a length is wrong"
        if len(data) < 16 + length:
            return
        record, (check,) = data[12:12 + length], struct.unpack("<I", data[12 + length:16 + length])
        assert masked_crc32c(record) == check, "the checksum of a record is wrong"
        yield record
        data = data[16 + length:]


def fields(message):
    """Yields (number, value) for each field of a protocol buffer; a value is an int or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(kind)
        if size is None:
            assert kind == 2, kind
            size = varint()
        yield number, message[at:at + size]
        at += size


def events(folder):
    """All events of a run: {"step", "wall", "version" | "restart" | "scalars": {tag: value}}."""
    found = []
    for path in sorted(Path(folder).glob("*tfevents*")):
        for record in records(path.read_bytes()):
            event = {"step": 0, "file": path.name}
            for number, value in fields(record):
                if number == 1:
                    (event["wall"],) = struct.unpack("<d", value)
                elif number == 2:
                    event["step"] = value
                elif number == 3:
                    event["version"] = value.decode()
                elif number == 5:
                    values = [dict(fields(v)) for n, v in fields(value) if n == 1]
                    event["scalars"] = {v[1].decode(): struct.unpack("<f", v[2])[0] for v in values}
                elif number == 7:
                    event["restart"] = dict(fields(value)) == {1: 1}
            found.append(event)
    return found


def scalars(folder):
    """{tag: [(step, value)]} as TensorBoard shows them. A restart hides earlier records of its step and of later steps:
    1. Records for steps 1 to 10, then a restart at step 8.
    2. Records for steps 8 and 9. The curve has steps 1 to 7 of the first records, then 8 and 9 of the second.
    """
    curves = {}
    for event in events(folder):
        if event.get("restart"):
            for tag in curves:
                curves[tag] = [point for point in curves[tag] if point[0] < event["step"]]
        for tag, value in event.get("scalars", {}).items():
            curves.setdefault(tag, []).append((event["step"], value))
    return curves
