"""disttrain predict: the outputs of a trained model, from its checkpoint."""
import ast
import gzip
import math
import os
import struct
import unittest

from harness import BIN, DIGITS, SystemTest

CHECKPOINT = '[checkpoint]\ndirectory = "checkpoints"\nat_end = true\n'
LABELS = list(gzip.open(DIGITS / "t10k-labels-idx1-ubyte.gz").read()[8:])


def read_npy(path):
    """Returns the rows of a matrix of float32."""
    content = path.read_bytes()
    assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
    length = struct.unpack("<H", content[8:10])[0]
    assert (10 + length) % 64 == 0
    head = ast.literal_eval(content[10:10 + length].decode().strip())
    assert head["descr"] == "<f4" and not head["fortran_order"]
    rows, columns = head["shape"]
    numbers = struct.unpack(f"<{rows * columns}f", content[10 + length:])
    return [list(numbers[row * columns:(row + 1) * columns]) for row in range(rows)]


def read_csv(path):
    head, *lines = path.read_text().splitlines()
    assert head == ",".join(f"output_{c}" for c in range(head.count(",") + 1)), head
    return [[float(value) for value in line.split(",")] for line in lines]


def accuracy(rows):
    return sum(row.index(max(row)) == label for row, label in zip(rows, LABELS)) / len(LABELS)


class PredictTest(SystemTest):
    def train(self, evaluate=""):
        (self.folder / "checkpoints").mkdir()
        job = self.job(evaluate=evaluate + CHECKPOINT, train="epochs = 4\noptimizer.learning_rate = 0.5")
        result = self.run_program("disttrain", "up", "--job", job, "--json")
        self.assertEqual(result.code, 0, result)
        return result.json["evaluation"]

    def predict(self, out, *options):
        return self.run_program("disttrain", "predict", "checkpoints/quick", out, *options)

    def test_the_outputs_give_the_accuracy_of_the_evaluation(self):
        evaluation = self.train()
        result = self.predict("outputs.npy")
        self.assertEqual(result.code, 0, result)
        self.assertIn(f"{len(LABELS)} records, 10 outputs each, from checkpoints/quick/gen-", result.out)
        rows = read_npy(self.folder / "outputs.npy")
        self.assertEqual(len(rows), len(LABELS))
        self.assertAlmostEqual(accuracy(rows), evaluation["accuracy"], delta=1e-12)
        self.assertGreater(accuracy(rows), 0.5)

        result = self.predict("outputs.csv", "--threads", "1")
        self.assertEqual(result.code, 0, result)
        for row, other in zip(rows, read_csv(self.folder / "outputs.csv"), strict=True):
            self.assertTrue(all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in zip(row, other, strict=True)))
        result = self.predict("outputs.parquet", "--threads", "1")
        self.assertEqual(result.code, 0, result)
        parquet = (self.folder / "outputs.parquet").read_bytes()  # tests/workerd/outputs_file_test.cc reads such a file
        self.assertEqual((parquet[:4], parquet[-4:]), (b"PAR1", b"PAR1"))
        self.assertGreater(len(parquet), 10 * 4 * len(LABELS))
        self.assertEqual(sorted(path.name for path in self.folder.glob(".outputs*")), [])

    def test_it_uses_the_averages_that_the_evaluation_used(self):
        evaluation = self.train("average = 0.99\n")
        result = self.predict("outputs.npy")
        self.assertIn("from the averages of", result.out)
        averages = read_npy(self.folder / "outputs.npy")
        self.assertAlmostEqual(accuracy(averages), evaluation["accuracy"], delta=1e-12)
        self.predict("others.npy", "--set", "evaluate.average=0")
        self.assertNotEqual(averages, read_npy(self.folder / "others.npy"))

    def test_other_data_is_named_by_options(self):
        self.train()
        result = self.predict("outputs.npy", "--data", DIGITS, "--files", "train-images-idx3-ubyte.gz")
        self.assertEqual(result.code, 0, result)
        with gzip.open(DIGITS / "train-labels-idx1-ubyte.gz") as labels:
            self.assertEqual(len(read_npy(self.folder / "outputs.npy")), len(labels.read()) - 8)

    def test_folder_that_may_not_be_written_is_named(self):
        self.train()
        shut = self.folder / "shut"
        shut.mkdir(mode=0o555)
        as_user = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
        outcome = self.finish(self.start_command(*as_user, BIN / "disttrain", "predict", "checkpoints/quick", shut / "outputs.npy"))
        self.assertEqual(outcome.code, 77, outcome)
        self.assertIn(f"make the folder {shut} writable", outcome.err)

    def test_mistakes_are_named(self):
        self.train()
        for out, options, code, words in (
            ("outputs.txt", [], 64, "expected a file NAME.npy, NAME.csv or NAME.parquet"),
            ("no/folder.npy", [], 66, "there is no folder"),
            ("outputs.npy", ["--files", "nothing*"], 66, 'no file that matches --files (evaluate.files) = "nothing*"'),
            ("outputs.npy", ["--data", "/none"], 66, "set --data (evaluate.path) to a folder"),
            ("outputs.npy", ["--threads", "0"], 64, "isn't a number from 1 to"),
            ("outputs.npy", ["--set", "model.layers=[784,31,10]"], 78, "has no variable"),
            ("outputs.npy", ["--set", "model.layer=[784,31,10]"], 78, "model.layer"),
            ("outputs.npy", ["--device", "gpu"], 78, "gpu"),
        ):
            with self.subTest(words):
                result = self.predict(out, *options)
                self.assertEqual(result.code, code, result)
                self.assertIn(words, result.err)
                self.assertFalse((self.folder / out).exists())
        (self.folder / "taken.npy").mkdir()
        result = self.predict("taken.npy")
        self.assertEqual(result.code, 64, result)
        self.assertIn("it is a folder", result.err)
        result = self.run_program("disttrain", "predict", "checkpoints/other", "outputs.npy")
        self.assertEqual(result.code, 66, result)


if __name__ == "__main__":
    unittest.main()
