#!/usr/bin/env python3
"""Reads and writes safetensors by their description alone, without the library and without any code of ours:

    plain_safetensors.py write FILE SPEC.json     {"metadata": {}, "tensors": {NAME: {"dtype", "shape", "values"}}}
    plain_safetensors.py read FILE                prints the same object
"""

import json
import math
import struct
import sys

FORMATS = {"F64": "d", "F32": "f", "F16": "e", "BF16": "H", "I64": "q"}


def number_of(dtype, value):
    if dtype != "BF16":
        return value
    # Cuts the lower bits off, so the value must be one that BF16 can hold.
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def value_of(dtype, number):
    if dtype != "BF16":
        return number
    return struct.unpack("<f", struct.pack("<I", number << 16))[0]


def write(path, spec):
    header, data = {}, b""
    if spec.get("metadata"):
        header["__metadata__"] = spec["metadata"]
    for name, tensor in spec["tensors"].items():
        values = [number_of(tensor["dtype"], value) for value in tensor["values"]]
        assert len(values) == math.prod(tensor["shape"]), name
        packed = struct.pack(f"<{len(values)}{FORMATS[tensor['dtype']]}", *values)
        header[name] = {"dtype": tensor["dtype"], "shape": tensor["shape"],
                        "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    result = {"metadata": header.pop("__metadata__", {}), "tensors": {}}
    end = 0
    for name, entry in header.items():
        begin, expected = entry["data_offsets"][0], end
        end = entry["data_offsets"][1]
        assert begin == expected, f"{name} begins at {begin}, the one before it ended at {expected}"
        count = math.prod(entry["shape"])
        numbers = struct.unpack(f"<{count}{FORMATS[entry['dtype']]}", data[begin:end])
        result["tensors"][name] = {"dtype": entry["dtype"], "shape": entry["shape"],
                                   "values": [value_of(entry["dtype"], number) for number in numbers]}
    assert end == len(data), f"the tensors end at {end}, the data at {len(data)}"
    return result


if __name__ == "__main__":
    if sys.argv[1] == "write":
        with open(sys.argv[3]) as spec_file:
            write(sys.argv[2], json.load(spec_file))
    else:
        print(json.dumps(read(sys.argv[2])))
