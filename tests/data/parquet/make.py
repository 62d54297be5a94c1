#!/usr/bin/env python3
"""Writes Parquet files beside itself with pyarrow: table.parquet, in two row groups, table.zstd.parquet, and
types.parquet, whose columns have the names of their types."""

import pathlib

import pyarrow
import pyarrow.parquet

FOLDER = pathlib.Path(__file__).resolve().parent


def main():
    table = pyarrow.table({
        "age": pyarrow.array([39, -3, None, 7, 2**40], pyarrow.int64()),
        "small": pyarrow.array([1, 2, 3, 4, 255], pyarrow.uint8()),
        "weight": pyarrow.array([0.5, None, 2.25, -1.0, 1e-300], pyarrow.float64()),
        "is_new": pyarrow.array([True, False, True, True, False]),
        "job": pyarrow.array(["clerk", "", None, "cook", "clerk"]),
        "kind": pyarrow.array(["a", "b", "a", None, "a"]).dictionary_encode(),
        "pixels": pyarrow.array([[1, 2], [], None, [3, None], [4]], pyarrow.list_(pyarrow.float32())),
        "words": pyarrow.array([["x"], ["y", "z"], [], [], ["x"]]),
        "point": pyarrow.array([[1, 2]] * 5, pyarrow.list_(pyarrow.int32(), 2)),
        "day": pyarrow.array([0, 1, 2, 3, 4], pyarrow.date32()),
        "price": pyarrow.array(["1.5"] * 5).cast(pyarrow.decimal128(5, 2)),
        "infinite": pyarrow.array([1.0, 2.0, 3.0, float("inf"), 5.0]),
        "large": pyarrow.array([1, 2, 3, 4, 2**63], pyarrow.uint64()),
    })
    pyarrow.parquet.write_table(table, FOLDER / "table.parquet", row_group_size=3)
    pyarrow.parquet.write_table(table, FOLDER / "table.zstd.parquet", row_group_size=3, compression="zstd")
    pyarrow.parquet.write_table(pyarrow.table(columns_of_types()), FOLDER / "types.parquet")


def columns_of_types():
    """Two records of each type."""
    columns = {str(kind): pyarrow.array([1, 2], kind) for kind in (
        pyarrow.int8(), pyarrow.int16(), pyarrow.int32(), pyarrow.int64(), pyarrow.uint8(), pyarrow.uint16(),
        pyarrow.uint32(), pyarrow.uint64(), pyarrow.float16(), pyarrow.float32(), pyarrow.float64(), pyarrow.date32(),
        pyarrow.time32("ms"), pyarrow.time64("us"), pyarrow.timestamp("ms"), pyarrow.timestamp("us"),
        pyarrow.timestamp("ns"), pyarrow.timestamp("us", "UTC"), pyarrow.duration("s"))}
    columns["bool"] = pyarrow.array([True, False])
    for kind in (pyarrow.decimal32(5, 2), pyarrow.decimal64(5, 2), pyarrow.decimal128(5, 2), pyarrow.decimal256(5, 2)):
        columns[str(kind)] = pyarrow.array(["1.5", "2.5"]).cast(pyarrow.decimal128(5, 2)).cast(kind)
    long = "a text of more than 12 bytes isn't in the view itself"
    for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):
        columns[str(kind)] = pyarrow.array(["1", long], kind)
    for kind in (pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view()):
        columns[str(kind)] = pyarrow.array([b"1", long.encode()], kind)
    columns["fixed_size_binary"] = pyarrow.array([b"1", b"2"], pyarrow.binary(1))
    columns["dictionary"] = pyarrow.array(["1", "2"]).dictionary_encode()
    columns["list"] = pyarrow.array([[1], [2, 3]], pyarrow.list_(pyarrow.int16()))
    columns["large_list"] = pyarrow.array([[1], [2, 3]], pyarrow.large_list(pyarrow.int16()))
    columns["fixed_size_list"] = pyarrow.array([[1, 2], [3, 4]], pyarrow.list_(pyarrow.int16(), 2))
    columns["list_view"] = pyarrow.array([[1], [2, 3]], pyarrow.list_view(pyarrow.int16()))
    columns["struct"] = pyarrow.array([{"a": 1}, {"a": 2}])
    columns["map"] = pyarrow.array([[("a", 1)], []], pyarrow.map_(pyarrow.string(), pyarrow.int8()))
    columns["list_of_structs"] = pyarrow.array([[{"a": 1}], []])
    columns["null"] = pyarrow.nulls(2)
    columns["uuid"] = pyarrow.array([b"a" * 16, b"b" * 16], pyarrow.uuid())
    return columns


if __name__ == "__main__":
    main()
