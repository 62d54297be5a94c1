#!/usr/bin/env python3
"""Writes samples.tar beside itself with Python's tarfile: a folder and three samples, one with a very long name."""

import io
import pathlib
import tarfile

FOLDER = pathlib.Path(__file__).resolve().parent
LONG = "n/" + "long" * 60


def add(tar, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def main():
    for name, form in (("samples.tar", tarfile.PAX_FORMAT), ("samples-gnu.tar", tarfile.GNU_FORMAT)):
        with tarfile.open(FOLDER / name, "w", format=form) as tar:
            folder = tarfile.TarInfo("n")
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
            add(tar, "n/0.jpg", b"\xff\xd8 first")
            add(tar, "n/0.cls", b"7\n")
            add(tar, "n/readme", b"no sample")
            add(tar, "n/0.seg.PNG", b"mask")
            add(tar, LONG + ".png", b"second" * 300)
            add(tar, LONG + ".cls", b"-3")
            add(tar, "n/2.x/\u00e9.jpg", b"")
            add(tar, "n/2.x/\u00e9.txt", b"words")


if __name__ == "__main__":
    main()
