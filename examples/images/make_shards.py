"""Writes MNIST's digits as webdataset tar files of PNG images: make_shards.py MNIST FOLDER [TRAINING TEST].

MNIST is the folder of the four idx files, plain or as .gz. FOLDER gets train-000.tar, train-001.tar, ... and
test-000.tar, with 1,000 images each. TRAINING and TEST say how many images to take; the default is 5000 and 1000.
"""

import gzip
import io
import struct
import sys
import tarfile
import zlib
from pathlib import Path

IMAGES_PER_SHARD = 1000


def read(path):
    """The content of the file, or of the same file with .gz."""
    return path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())


def read_digits(mnist, part, count):
    """Yields the size, the pixels and the label of the first `count` digits."""
    images, labels = read(mnist / f"{part}-images-idx3-ubyte"), read(mnist / f"{part}-labels-idx1-ubyte")
    _, there, height, width = struct.unpack(">IIII", images[:16])
    size = height * width
    for i in range(min(count, there)):
        yield width, height, images[16 + i * size:16 + (i + 1) * size], labels[8 + i]


def png(width, height, pixels):
    """A gray image as a PNG file. With Pillow: Image.frombytes("L", (width, height), pixels).save(file, "PNG")."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + pixels[y * width:(y + 1) * width] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def add(tar, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def write_shards(folder, name, samples):
    """A sample is two files with the same name: 00000.png, and 00000.cls with the class as text."""
    for shard in range(0, len(samples), IMAGES_PER_SHARD):
        with tarfile.open(folder / f"{name}-{shard // IMAGES_PER_SHARD:03}.tar", "w") as tar:
            for i, (width, height, pixels, label) in enumerate(samples[shard:shard + IMAGES_PER_SHARD], shard):
                add(tar, f"{i:05}.png", png(width, height, pixels))
                add(tar, f"{i:05}.cls", str(label).encode())


mnist, folder = Path(sys.argv[1]), Path(sys.argv[2])
training, test = (int(word) for word in sys.argv[3:5]) if len(sys.argv) > 3 else (5000, 1000)
folder.mkdir(parents=True, exist_ok=True)
write_shards(folder, "train", list(read_digits(mnist, "train", training)))
write_shards(folder, "test", list(read_digits(mnist, "t10k", test)))
