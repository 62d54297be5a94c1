"""Data sets that are damaged, of another format, changed while they are read, or of very many files: each bad one ends
its job with one clear error, and the cluster trains the next job. The unit tests tests/input/bad_files_test.cc
and many_files_test.cc have many more cases of single files."""
import gzip
import os
import struct
import unittest
import zlib
from pathlib import Path

from harness import ROOT
from lasting_cluster import LastingClusterTest
from npy import write_npy

DATA = ROOT / "tests" / "data"
ROWS = 1_000_000
FILES = 100_000
WORKER_MIB = 1024  # more than a worker needs for these jobs, and much less than it would need for all of the data

JOB = """
[job]
name = "{name}"
min_workers = 2
max_restarts = 0
[model]
builtin = "mlp"
layers = [{inputs}, 4, 2]
[data]
path = "data"
format = "{format}"
files = "{files}"
{data}
[train]
batch_size = 50
{train}
"""
NUMBERS = '[data.columns]\na = { kind = "numeric" }\nk = { kind = "label" }'
LIBSVM = '[data.columns]\nfeatures = { kind = "numeric" }\nlabel = { kind = "label" }'
IMAGE = '[data.columns]\nimage = { kind = "image", shape = [1, 1, 1] }\nclass = { kind = "label" }'
TAR = '[data.columns]\nimage = { kind = "image", from = "jpg", shape = [1, 1, 1] }\ncls = { kind = "label" }'
STREAMED = 'memory = "4KiB"\n'
BINARY = bytes(range(256)) * 20


def png():
    """A picture of one pixel."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b""))


def csv(rows):
    return b"a,k\n" + b"1.5,0\n-1.5,1\n" * (rows // 2)


# For each case: the format, the further lines of [data] and [data.columns], the content of the only file, and words of
# the error.
SINGLE_FILES = [
    ("csv", NUMBERS, csv(ROWS) + b"1.5,0\nmany,1\n", ["file:1000003: 'many' in column 'a', expected a finite number"]),
    ("csv", STREAMED + NUMBERS, csv(1000) + b"many,1\n", ["file", "record 1000", "'many' in column 'a'"]),
    ("csv", NUMBERS, csv(1000) + b"1.5", ["file:1002: 1 fields, expected 2 as on line 1"]),
    ("csv", "", BINARY, ["file:1: only one field", "is data.format right?"]),
    ("csv", NUMBERS, csv(0), ["file: has no records"]),
    ("jsonl", NUMBERS, BINARY, ["file", "record 0"]),
    ("jsonl", NUMBERS, csv(10), ["file", "record 0"]),
    ("jsonl", NUMBERS, b'{"a": 1, "k": 0}\n' * ROWS + b'{"a": "many", "k": 1}\n',
     ["file", f"record {ROWS}", "the string 'many' in column 'a', expected a finite number"]),
    ("libsvm", LIBSVM, csv(10), ["file", "record 0: 'a,k' in column 'label', expected one value", "is data.format right?"]),
    ("tfrecord", NUMBERS, BINARY, ["file", "record 0"]),
    ("parquet", NUMBERS, BINARY, ["file", "can't be read as a Parquet file"]),
    ("parquet", NUMBERS, (DATA / "parquet" / "table.parquet").read_bytes()[:-100], ["file", "can't be read as a Parquet file"]),
    ("webdataset", TAR, (DATA / "webdataset" / "samples.tar").read_bytes()[:3000], ["file", "the tar file is damaged or truncated"]),
    ("webdataset", TAR, gzip.compress(BINARY), ["file", "the tar file is damaged or truncated"]),
    ("images", IMAGE, BINARY, ["file", "column 'image'", "begin neither as JPEG nor as PNG"]),
    ("images", IMAGE, b"", ["file: has no records"]),
    ("npz", "", (DATA / "npz" / "stored.npz").read_bytes()[:-20], ["file: the npz file is damaged or truncated"]),
    ("npy", 'labels = "file"\n', csv(10), ["file: doesn't begin with npy's"]),
    ("idx", 'labels = "file"\n', csv(10), ["file: begins with the bytes 61 2c 6b 0a"]),
    ("text", "window = 100\n", b"short", ["is shorter than a record of 100 bytes"]),
]


class BadDataTest(LastingClusterTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        self.data.mkdir()

    def data_job(self, data_format, data, name="bad", files="file", train="epochs = 1", inputs=1):
        path = self.folder / f"{name}.toml"
        path.write_text(JOB.format(name=name, format=data_format, data=data, files=files, train=train, inputs=inputs))
        return path

    def memory_of_workers(self):
        """The most memory that each worker has used, in MiB."""
        texts = [Path(f"/proc/{self.daemons[f'worker/{i}'].pid}/status").read_text() for i in range(2)]
        return [int(text.split("VmHWM:")[1].split()[0]) >> 10 for text in texts]

    def assert_fails_in_one_error(self, outcome, *words):
        error = self.assert_fails(outcome, *words)
        self.assertNotIn("\x1b", error)
        self.assertLess(len(error), 4000, error)
        return error

    def test_single_files(self):
        for data_format, data, content, words in SINGLE_FILES:
            with self.subTest(format=data_format, data=data, words=words):
                (self.data / "file").write_bytes(content)
                self.assert_fails_in_one_error(self.submit(self.data_job(data_format, data)), *words)

    def test_no_file_matches(self):
        job = self.data_job("csv", NUMBERS, files="no-*.csv")
        self.assert_fails_in_one_error(self.submit(job), f'data folder "{self.data}" has no file that matches data.files = "no-*.csv"')

    def test_many_bad_files_give_one_error(self):
        for i in range(3000):
            (self.data / f"part-{i:04}.csv").write_bytes(b"a,k\nmany,1\n")
        error = self.assert_fails_in_one_error(self.submit(self.data_job("csv", NUMBERS, files="part-*")),
                                               "part-0000.csv:2: 'many' in column 'a'", "more files can't be read")
        self.assertNotIn("part-0001.csv", error)

    def test_category_that_was_never_seen_trains(self):
        (self.data / "train.csv").write_text("c,k\n" + "red,0\ngreen,1\n" * 200)
        (self.data / "test.csv").write_text("c,k\nblue,0\n")
        job = self.data_job("csv", '[data.columns]\nc = { kind = "category" }\nk = { kind = "label" }', name="next", files="train.csv")
        text = job.read_text().replace('builtin = "mlp"\nlayers = [1, 4, 2]',
                                       'builtin = "wide_deep"\nwide_deep = { numeric = 0, hidden = [4] }\nloss = "sigmoid_cross_entropy"')
        job.write_text(text + '[evaluate]\nfiles = "test.csv"\n')
        self.assert_finished(self.submit(job))
        self.assert_unharmed()

    def test_file_that_is_truncated_while_it_is_read(self):
        path = self.data / "file"
        path.write_bytes(csv(5000))
        process = self.start("disttrain", "submit", "--cluster", self.cluster, "--json",
                             self.data_job("csv", STREAMED + NUMBERS, train="epochs = 1000000"))
        self.until_steps(20, "--cluster", self.cluster)
        os.truncate(path, 1000)
        self.assert_fails_in_one_error(self.finish(process), "file: was changed while the job uses it: it has 1000 bytes")

    def test_hundred_thousand_images(self):
        """Two folders, and hard links, which are faster to make than files."""
        for label in "ab":
            (self.data / label).mkdir()
            for i in range(FILES // 2):
                path = self.data / label / f"{i}.png"
                if i % 25_000 == 0:
                    path.write_bytes(png())
                    first = path
                else:
                    os.link(first, path)
        job = self.data_job("images", IMAGE, name="next", files="*/*.png", train="steps = 200")
        self.assert_finished(self.submit(job))
        self.assertLess(max(self.memory_of_workers()), WORKER_MIB)
        (self.data / "b" / "24999.png").unlink()
        (self.data / "b" / "24999.png").write_bytes(b"")
        self.assert_fails_in_one_error(self.submit(self.data_job("images", IMAGE, files="*/*.png")),
                                       "b/24999.png: has no records, expected at least one")

    def test_labels_that_the_model_lacks(self):
        write_npy(self.data / "file", "<f4", (10, 1), range(10))
        write_npy(self.data / "labels", "<i8", (10,), [0] * 9 + [2])
        self.assert_fails_in_one_error(self.submit(self.data_job("npy", 'labels = "labels"')), "labels", "2")


if __name__ == "__main__":
    unittest.main()
