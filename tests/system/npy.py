"""Writes NumPy's files without NumPy (numpy.lib.format, version 1.0)."""
import struct

CODES = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|u1": "B"}


def write_npy(path, dtype, shape, values):
    """`values` are the elements in order. `dtype` is one of CODES."""
    values = list(values)
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    header += b" " * ((-len(header) - 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header +
                     struct.pack(f"<{len(values)}{CODES[dtype]}", *values))
