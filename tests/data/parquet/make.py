#!/usr/bin/env python3
"""Writes Parquet files beside itself with pyarrow: table.parquet, in two row groups, and table.zstd.parquet."""

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


if __name__ == "__main__":
    main()
