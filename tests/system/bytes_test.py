"""Columns of bytes: a trainer and an exported program that get them, and the builtin transformer on texts without a
tokenizer."""
import json
import os
import random
import subprocess
import sys
import unittest

from harness import ROOT, SystemTest
from tokens_test import sentences

sys.path.insert(0, str(ROOT / "tests/python"))
from fake_worker import PACKAGE, require_python  # noqa: E402

RECORDS = 600
JOB = """
[job]
name = "bytes"
[model]
{model}
[data]
format = "jsonl"
path = "data"
files = "train-*.jsonl"
[data.columns]
{columns}
[train]
batch_size = 20
epochs = {epochs}
optimizer = {{ rule = "adam", learning_rate = 0.003 }}
[evaluate]
files = "test.jsonl"
{evaluate}
[checkpoint]
directory = "checkpoints"
"""
TRANSFORMER = """builtin = "transformer"
transformer = { blocks = 1, heads = 2, width = 32, context = 32 }"""
# Each text of the files comes back as the bytes of its UTF-8, once in each epoch. texts.json has them by their numbers.
STRINGS = """
import json
import disttrain
import numpy as np

texts = {number: text.encode() for number, text in json.load(open("texts.json"))}
job = disttrain.init(metrics=[])
job.wrap({"w": np.zeros(1, np.float32)})

@job.on_evaluate
def evaluate(batch):
    assert batch.text == [texts[int(number)] for number in batch.number[:, 0]], batch.text
    return {"loss": float(len(batch.text))}

@job.on_predict
def predict(batch):
    return np.array([[len(text)] for text in batch.text], np.float32)

for batch in job.batches():
    assert isinstance(batch.text, list) and len(batch.text) == len(batch.labels), batch.text
    for text, number in zip(batch["text"], batch.number[:, 0]):
        assert type(text) is bytes and text == texts[int(number)], (text, number)
    with open("seen", "a") as file:
        file.writelines(f"{int(number)}\\n" for number in batch.number[:, 0])
    job.push_pull({"w": np.zeros(1, np.float32)}, loss=1.0)
"""
ARRAYS = """
import json
import disttrain
import numpy as np

texts = {number: text.encode() for number, text in json.load(open("texts.json"))}
job = disttrain.init(metrics=[])
job.wrap({"w": np.zeros(1, np.float32)})
for batch in job.batches():
    assert batch.text.dtype == np.uint8 and batch.text.shape == (len(batch.labels), 24), batch.text
    for text, length, number in zip(batch.text, batch.text_length, batch.number[:, 0]):
        expected = texts[int(number)][:24]
        assert length == len(expected) and text.tobytes() == expected.ljust(24, b"\\0"), (text, number)
    job.push_pull({"w": np.zeros(1, np.float32)}, loss=1.0)
"""
EXPORT = """
import torch
import disttrain

class Characters(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(256, 8)
        self.out = torch.nn.Linear(8, 2)

    def forward(self, text):
        return self.out(self.embedding(text.long()).mean(1))

torch.manual_seed(1)
text, kind = torch.zeros(4, 24, dtype=torch.uint8), torch.zeros(4, dtype=torch.int64)
disttrain.export(Characters(), torch.nn.CrossEntropyLoss(), {"text": text, "kind": kind}, "step.pt",
                 inputs=["text"], labels="kind", metrics={"accuracy": disttrain.metrics.Accuracy()})
"""


class BytesTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.environment |= {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        (self.folder / "checkpoints").mkdir()
        (self.folder / "data").mkdir()

    def write_jsonl(self, texts):
        """Texts, their numbers, and whether they have a digit. The test set has the last ones."""
        lines = [json.dumps({"text": text, "number": number, "kind": int(any(c.isdigit() for c in text))}) + "\n"
                 for number, text in enumerate(texts)]
        for part in range(3):
            (self.folder / "data" / f"train-{part}.jsonl").write_text("".join(lines[part:RECORDS:3]))
        (self.folder / "data" / "test.jsonl").write_text("".join(lines[RECORDS:]))
        (self.folder / "texts.json").write_text(json.dumps(list(enumerate(texts))))

    def write_mixed_texts(self):
        """Texts of different lengths, also an empty one, and characters of 1 to 4 bytes."""
        rng = random.Random(1)
        self.write_jsonl(["".join(rng.choice("ab\0 \"\u00e9\u20ac\U0001f600") for _ in range(i % 40)) + str(i % 2) * (i % 3)
                          for i in range(RECORDS + 50)])

    def write_job(self, model, text, others="", epochs=2, evaluate=""):
        path = self.folder / "bytes.toml"
        columns = f'text = {{ kind = "bytes", {text} }}\n{others}'
        path.write_text(JOB.format(model=model, columns=columns, epochs=epochs, evaluate=evaluate))
        return path

    def trainer(self, script):
        python = require_python("numpy")
        (self.folder / "train.py").write_text(script)
        return f'trainer = ["{python}", "train.py"]'

    OTHERS = 'number = { kind = "numeric", shape = [1] }\nkind = { kind = "label" }'

    def test_trainer_gets_the_bytes_of_each_text(self):
        self.write_mixed_texts()
        job = self.write_job(self.trainer(STRINGS), "limit = 200", self.OTHERS)
        for name, *settings in (("bytes",), ("streamed", "data.memory=4KiB"),
                                ("blocks", "data.memory=200KiB", "data.shuffle=blocks", "data.bucket_by=text")):
            with self.subTest(name):
                options = [word for setting in (f"job.name={name}", *settings) for word in ("--set", setting)]
                self.assert_finished(self.up(job, *options, workers=1))
                seen = (self.folder / "seen").read_text().split()
                self.assertEqual(sorted(map(int, seen)), sorted([*range(RECORDS)] * 2))
                (self.folder / "seen").unlink()
        outcome = self.run_program("disttrain", "predict", "checkpoints/bytes", "outputs.npy")
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertIn("50 records, 1 output each", outcome.out)

    def test_trainer_gets_arrays_of_one_length(self):
        self.write_mixed_texts()
        text = "length = 24, with_length = true"
        job = self.write_job(self.trainer(ARRAYS), text, self.OTHERS)
        self.assert_finished(self.up(job, "--set", "evaluate.files="))

    def test_transformer_learns_characters_without_a_tokenizer(self):
        self.write_jsonl([*sentences(RECORDS + 50, 3)])
        job = self.write_job(TRANSFORMER, "length = 33", epochs=20)
        plan = self.run_program("disttrain", "plan", job)
        self.assertEqual(plan.code, 0, str(plan))
        outcome = self.run_program("disttrain", "up", "--job", job, "--ps", 1, "--workers", 1, "--evaluators", 1, "--json",
                                   "--set", "data.bucket_by=text")
        evaluation = self.assert_finished(outcome)["evaluation"]
        self.assertLess(evaluation["loss"], 2.0)  # it begins at ln 256 = 5.5
        for path in (self.folder / "data").glob("train-*"):
            path.unlink()
        outcome = self.run_program("disttrain", "predict", "checkpoints/bytes", "outputs.npy")
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertIn(f"50 records, {32 * 256} outputs each", outcome.out)

    def test_program_takes_bytes_of_one_length(self):
        python = require_python("torch")
        self.write_mixed_texts()
        subprocess.run([python, "-c", EXPORT], cwd=self.folder, env=self.environment | dict(os.environ) | {
            "PYTHONPATH": str(PACKAGE)}, check=True, capture_output=True)
        kind = 'kind = { kind = "label" }'
        # The digits are at the end.
        job = self.write_job('program = "step.pt"', 'length = 24, truncate = "left"', kind, epochs=10)
        result = self.assert_finished(self.up(job, "--set", "train.optimizer.learning_rate=0.05"))
        self.assertGreater(result["evaluation"]["accuracy"], 0.95)
        job = self.write_job('program = "step.pt"', "limit = 200", kind)
        self.assert_refused(self.up(job, "--set", "job.name=strings"), 78,
                            "has bytes of any length, but the model's column \"text\" takes 24 values of each record: "
                            "set data.columns.text.length instead of limit")

    def test_errors_name_file_record_and_column(self):
        self.write_mixed_texts()
        with open(self.folder / "data" / "train-1.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"text": "x" * 201, "number": 0, "kind": 0}) + "\n")
        job = self.write_job(self.trainer(STRINGS), "limit = 200", self.OTHERS)
        # Records that don't fit into memory are read only when the job trains.
        for memory, code in (("4KiB", 1), ("1GiB", 65)):
            with self.subTest(memory):
                self.assert_refused(self.up(job, "--set", f"data.memory={memory}"), code, "train-1.jsonl", "record 200",
                                    "201 bytes in column 'text', expected at most 200", "data.columns.text.limit")


if __name__ == "__main__":
    unittest.main()
