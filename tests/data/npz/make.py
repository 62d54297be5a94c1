#!/usr/bin/env python3
"""Writes stored.npz and deflated.npz beside itself with NumPy."""

import pathlib

import numpy

FOLDER = pathlib.Path(__file__).resolve().parent


def main():
    arrays = {"x": numpy.arange(12, dtype=numpy.float32).reshape(4, 3), "y": numpy.array([3, 1, 2, 0], numpy.int64)}
    numpy.savez(FOLDER / "stored.npz", **arrays)
    numpy.savez_compressed(FOLDER / "deflated.npz", **arrays)


if __name__ == "__main__":
    main()
