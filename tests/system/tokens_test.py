"""Texts as tokens: the builtin transformer on jsonl and on whole texts, and a trainer that gets the tokens."""
import json
import os
import random
import signal
import sys
import unittest

from harness import ROOT, SystemTest

sys.path.insert(0, str(ROOT / "tests/python"))
from fake_worker import PACKAGE, require_python  # noqa: E402

TOKENIZER = ROOT / "tests/data/tokens/gpt2.json"  # 500 tokens
WORDS = ["quick", "brown", "fox", "lazy", "dog", "memory", "network", "records", "batch", "loss"]
JOB = """
[job]
name = "tokens"
[model]
{model}
[data]
path = "data"
{data}
[train]
batch_size = 20
epochs = {epochs}
optimizer = {{ rule = "adam", learning_rate = 0.003 }}
[checkpoint]
directory = "checkpoints"
"""
TRANSFORMER = """builtin = "transformer"
transformer = { blocks = 1, heads = 2, width = 32, context = 16 }"""
COLUMNS = """format = "jsonl"
files = "train-*.jsonl"
columns = { text = { kind = "tokens", tokenizer = "tokenizer.json", length = 17, with_length = true } }"""
# The worker must give the trainer what the tokenizers' Python package gave: tests/data/tokens has the ids of a text.
TRAINER = """
import disttrain
import numpy as np

job = disttrain.init()
job.wrap({"w": np.zeros(1, np.float32)})
for batch in job.batches():
    assert batch.text.dtype == np.int32 and batch.text.shape == (len(batch.text), 17), batch.text
    assert batch.text_length.dtype == np.int32, batch.text_length
    mask = np.arange(17) < batch.text_length[:, None]
    assert (batch.text[~mask] == 0).all() and (batch.text[mask] > 0).all(), batch.text
    job.push_pull({"w": np.zeros(1, np.float32)}, loss=1.0)
"""

BUCKETS_TRAINER = """
import disttrain
import numpy as np

job = disttrain.init(metrics=[])
job.wrap({"w": np.zeros(1, np.float32)})
widths = []
tokens = padding = 0
for batch in job.batches():
    lengths = batch.text_length
    width = batch.text.shape[1]
    assert batch.text.dtype == np.int32 and width == lengths.max(), (batch.text.shape, lengths)
    mask = np.arange(width) < lengths[:, None]
    assert (batch.text[~mask] == 7).all(), batch.text
    widths.append(width)
    tokens += mask.sum()
    padding += (~mask).sum()
    job.push_pull({"w": np.zeros(1, np.float32)}, loss=1.0)
assert len(set(widths)) > 3, widths
assert padding * 10 < tokens, (padding, tokens)
"""


def sentences(count, seed):
    """Sentences in which each word says which one follows."""
    rng = random.Random(seed)
    for _ in range(count):
        at = rng.randrange(len(WORDS))
        yield " ".join(WORDS[(at + i) % len(WORDS)] for i in range(rng.randrange(3, 12)))


class TokensTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.environment |= {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        (self.folder / "checkpoints").mkdir()
        (self.folder / "data").mkdir()
        (self.folder / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())

    def write_jsonl(self):
        for part in range(3):
            lines = [json.dumps({"text": text}) + "\n" for text in sentences(300, part)]
            (self.folder / "data" / f"train-{part}.jsonl").write_text("".join(lines))
        (self.folder / "data" / "test.jsonl").write_text(
            "".join(json.dumps({"text": text}) + "\n" for text in sentences(200, 9)))

    def write_job(self, model, data, epochs=15, evaluate=""):
        path = self.folder / "tokens.toml"
        path.write_text(JOB.format(model=model, data=data, epochs=epochs) + evaluate)
        return path

    def test_killed_worker_costs_no_record_of_the_buckets(self):
        self.write_jsonl()
        buckets = COLUMNS + '\nbucket_by = "text"\nbucket_window = 4'
        for number, memory in enumerate(("16KiB", "1GiB")):
            with self.subTest(memory):
                job = self.write_job(TRANSFORMER, buckets, epochs=40)
                process = self.start_up(job, "--set", f"job.name=killed-{number}", "--set", f"data.memory={memory}")
                self.until_steps(100)
                os.kill(self.pid_of(self.status(), "worker/0"), signal.SIGKILL)
                self.assert_finished(self.finish(process))
                outcome = self.run_program("disttrain", "checkpoint", "inspect", f"checkpoints/killed-{number}")
                self.assertEqual(outcome.code, 0, str(outcome))
                self.assertIn(f"{900 * 40:,} examples in 40 whole epochs", outcome.out)

    def assert_learned(self, outcome):
        """The model begins with a loss of about ln 500 = 6.2."""
        result = self.assert_finished(outcome)
        self.assertLess(result["evaluation"]["loss"], 2.5)

    def test_transformer_learns_from_jsonl(self):
        self.write_jsonl()
        job = self.write_job(TRANSFORMER, COLUMNS, evaluate='[evaluate]\nfiles = "test.jsonl"\n')
        self.assert_learned(self.up(job))
        self.assert_learned(self.up(job, "--set", "job.name=streamed", "--set", "data.memory=16KiB"))
        self.assertEqual(len(list((self.folder / "data").glob(".disttrain-*"))), 1, "the test set fits into memory")
        for path in (self.folder / "data").glob("train-*"):
            path.unlink()
        self.assert_predicts()

    def assert_predicts(self):
        """A checkpoint and the tokenizer are enough."""
        outcome = self.run_program("disttrain", "predict", "checkpoints/tokens", "outputs.npy")
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertIn(f"200 records, {16 * 500} outputs each", outcome.out)
        with open(self.folder / "tokenizer.json", "a", encoding="utf-8") as file:
            file.write("\n")
        outcome = self.run_program("disttrain", "predict", "checkpoints/tokens", "outputs.npy")
        self.assert_refused(outcome, 78, "tokenizer.json: isn't the tokenizer with which the checkpoint was trained")

    def test_transformer_learns_from_whole_texts(self):
        for name, seed in (("train", 1), ("test", 2)):
            (self.folder / "data" / f"{name}.txt").write_text("\n".join(sentences(1000, seed)))
        data = 'format = "text"\nfiles = "train.txt"\ntokenizer = "tokenizer.json"\nwindow = 17'
        job = self.write_job(TRANSFORMER, data, evaluate='[evaluate]\nfiles = "test.txt"\n')
        self.assert_learned(self.up(job))
        self.assert_refused(self.up(job, "--set", "job.name=small", "--set", "data.memory=4KiB"), 78, "train.txt",
                            "raise data.memory")

    def test_trainer_gets_padded_tokens_and_their_lengths(self):
        python = require_python("numpy")
        self.write_jsonl()
        (self.folder / "train.py").write_text(TRAINER)
        self.assert_finished(self.up(self.write_job(f'trainer = ["{python}", "train.py"]', COLUMNS, epochs=1)))

    def test_trainer_gets_batches_of_records_of_about_the_same_length(self):
        python = require_python("numpy")
        self.write_jsonl()
        (self.folder / "train.py").write_text(BUCKETS_TRAINER)
        columns = COLUMNS.replace("length = 17", 'length = 17, pad = 7, pad_to = "longest"') + '\nbucket_by = "text"'
        self.assert_finished(self.up(self.write_job(f'trainer = ["{python}", "train.py"]', columns, epochs=2)))

    def test_errors_name_file_record_and_column(self):
        self.write_jsonl()
        with open(self.folder / "data" / "train-1.jsonl", "a", encoding="utf-8") as file:
            file.write('{"words": "none"}\n')
        job = self.write_job(TRANSFORMER, COLUMNS)
        self.assert_refused(self.up(job), 65, "train-1.jsonl", "record 300", "no value in column 'text'")
        tokenizer = json.loads(TOKENIZER.read_text())
        tokenizer["normalizer"] = {"type": "Nmt"}
        (self.folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        self.assert_refused(self.up(job), 65, "tokenizer.json", 'normalizer "Nmt" isn\'t supported')


if __name__ == "__main__":
    unittest.main()
