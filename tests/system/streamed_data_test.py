"""Data sets that workers read from their files for each batch: tfrecord, jsonl and libsvm, larger than data.memory."""
import gzip
import json
import os
import random
import signal
import sys
import unittest

from harness import ROOT, SystemTest

sys.path.insert(0, str(ROOT / "tests" / "data" / "tfrecord"))
import tfrecord  # noqa: E402

RECORDS = 3000
JOB = """
[job]
name = "streamed"
[model]
builtin = "mlp"
layers = [4, 8, 2]
[data]
format = "{format}"
path = "data"
files = "train-*"
memory = "64KiB"
{data}
[data.columns]
{columns}
[train]
batch_size = 20
epochs = {epochs}
optimizer = {{ rule = "adam", learning_rate = 0.01 }}
[evaluate]
files = "test-*"
[checkpoint]
directory = "checkpoints"
"""
COLUMNS = {
    "tfrecord": 'x = { kind = "numeric", shape = [4] }\nside = { kind = "label" }',
    "jsonl": 'x = { kind = "numeric", from = "point.x", shape = [4] }\nside = { kind = "label" }',
    "libsvm": 'features = { kind = "numeric", shape = [4] }\nlabel = { kind = "label" }',
}


def points(count, seed):
    """Points of four numbers, and on which side of a plane each of them is."""
    rng = random.Random(seed)
    for _ in range(count):
        x = [rng.uniform(-1, 1) for _ in range(4)]
        yield x, int(x[0] + 2 * x[1] - x[2] > 0)


def write(path, data_format, records):
    if data_format == "tfrecord":
        content = b"".join(tfrecord.record(tfrecord.example({"x": x, "side": [side]})) for x, side in records)
    elif data_format == "jsonl":
        content = "".join(json.dumps({"point": {"x": x}, "side": side}) + "\n" for x, side in records).encode()
    else:
        lines = (f"{side} " + " ".join(f"{i + 1}:{v}" for i, v in enumerate(x)) + "\n" for x, side in records)
        content = "".join(lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


class StreamedDataTest(SystemTest):
    def make(self, data_format, epochs=5, data="", suffix="", files=3):
        folder = self.folder / "data"
        folder.mkdir(exist_ok=True)
        (self.folder / "checkpoints").mkdir(exist_ok=True)
        records = list(points(RECORDS, 1))
        for part in range(files):
            write(folder / f"train-{part}{suffix}", data_format, records[part::files])
        write(folder / f"test-0{suffix}", data_format, points(500, 2))
        job = self.folder / "streamed.toml"
        job.write_text(JOB.format(format=data_format, columns=COLUMNS[data_format], epochs=epochs, data=data))
        return job

    def assert_learned(self, outcome):
        result = self.assert_finished(outcome)
        self.assertEqual(result["evaluation"]["examples"], 500)
        self.assertGreater(result["evaluation"]["accuracy"], 0.95)
        return result

    def assert_each_record_once(self, epochs):
        outcome = self.run_program("disttrain", "checkpoint", "inspect", "checkpoints/streamed")
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertIn(f"{RECORDS * epochs:,} examples in {epochs} whole epochs", outcome.out)

    def test_each_format_trains_and_is_indexed_once(self):
        for data_format in COLUMNS:
            with self.subTest(data_format):
                job = self.make(data_format)
                small = ["--set", "data.memory=4KiB"]
                self.assert_learned(self.up(job, *small, "--set", f"job.name={data_format}"))
                indexes = sorted(path.name for path in (self.folder / "data").glob(".disttrain-*"))
                self.assertEqual(len(indexes), 2, indexes)
                self.assert_learned(self.up(job, *small, "--set", f"job.name={data_format}-2"))
                self.assertEqual(sorted(path.name for path in (self.folder / "data").glob(".disttrain-*")), indexes)
                for path in (self.folder / "data").iterdir():
                    path.unlink()

    def test_compressed_files_train_by_blocks(self):
        job = self.make("jsonl", data='shuffle = "blocks"\nshuffle_window = 2', suffix=".gz", files=12)
        self.assert_learned(self.up(job))
        self.assert_each_record_once(5)

    def test_killed_worker_costs_no_record(self):
        job = self.make("tfrecord", epochs=60)
        process = self.start_up(job)
        self.until_steps(200)
        os.kill(self.pid_of(self.status(), "worker/0"), signal.SIGKILL)
        self.assert_learned(self.finish(process))
        self.assert_each_record_once(60)

    def test_damaged_record_fails_the_job_with_file_and_record(self):
        job = self.make("tfrecord")
        path = self.folder / "data" / "train-1"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        self.assert_refused(self.up(job), 65, "train-1", "record ", "checksum")

    def test_file_that_changes_fails_the_job_with_its_name(self):
        job = self.make("jsonl", epochs=1000)
        process = self.start_up(job, "--set", "job.max_restarts=0")
        self.until_steps(50)
        with open(self.folder / "data" / "train-2", "a", encoding="utf-8") as file:
            file.write("\n")
        outcome = self.finish(process)
        self.assertEqual(outcome.code, 1, str(outcome))
        self.assertIn("train-2: was changed while the job uses it", outcome.err)


if __name__ == "__main__":
    unittest.main()
