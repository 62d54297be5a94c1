"""A model's way through the whole suite: exported, trained by real daemons, and loaded by PyTorch again."""

import json
import os
import pathlib
import sys
import unittest

import in_torch

in_torch.run(__file__)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

import disttrain  # noqa: E402
from disttrain import metrics  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "system"))
from harness import SystemTest  # noqa: E402

JOB = """
[job]
name = "net"
[model]
program = "{program}"
[data]
format = "npy"
path = "{folder}"
files = "train-inputs.npy"
labels = "train-labels.npy"
[train]
mode = "sync"
batch_size = 16
epochs = 1
optimizer = {{ rule = "sgd", learning_rate = 0.1 }}
[checkpoint]
directory = "{folder}/checkpoints"
[evaluate]
files = "test-inputs.npy"
labels = "test-labels.npy"
"""


class Net(nn.Module):
    """Has a frozen layer, a frozen buffer, a buffer that state_dict() lacks, batch norm, tied weights, and a parameter
    and a buffer without dimensions."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16).requires_grad_(False)
        self.norm = nn.BatchNorm1d(16)
        self.middle = nn.Linear(16, 16)
        self.again = nn.Linear(16, 16)
        self.again.weight = self.middle.weight
        self.head = nn.Linear(16, 4)
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.register_buffer("ids", torch.tensor([3, 2**40 + 1]))
        self.register_buffer("shift", torch.tensor(0.25, dtype=torch.float64))
        self.register_buffer("ones", torch.ones(16), persistent=False)

    def forward(self, inputs):
        hidden = self.norm(self.body(inputs)) * self.ones + self.shift.float() + (self.ids[0] - 3)
        return self.head(torch.relu(self.again(torch.relu(self.middle(hidden))))) * self.scale


def records(count, seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, count)
    centres = np.random.default_rng(0).normal(size=(4, 8)) * 0.7
    return (centres[labels] + random.normal(size=(count, 8))).astype(np.float32), labels.astype(np.int64)


class StateDictTest(SystemTest):
    def setUp(self):
        super().setUp()
        (self.folder / "checkpoints").mkdir()
        torch.manual_seed(5)
        self.model = Net()
        for name, count in (("train", 3200), ("test", 400)):
            inputs, labels = records(count, len(name))
            np.save(self.folder / f"{name}-inputs.npy", inputs)
            np.save(self.folder / f"{name}-labels.npy", labels)
        self.inputs, self.labels = (torch.from_numpy(column) for column in records(400, len("test")))

    def export(self, ending):
        path = self.folder / f"net{ending}"
        disttrain.export(self.model, nn.CrossEntropyLoss(), (self.inputs[:6], self.labels[:6]), path,
                         metrics={"accuracy": metrics.Accuracy()}, say=None)
        return path

    def job_of(self, program):
        path = self.folder / "net.toml"
        path.write_text(JOB.format(program=program, folder=self.folder))
        return path

    def exported(self, name="out.safetensors", *arguments):
        out = self.folder / name
        outcome = self.run_program("disttrain", "checkpoint", "export", self.folder / "checkpoints/net", out, *arguments)
        self.assertEqual(outcome.code, 0, str(outcome))
        return read_safetensors(out)

    def accuracy_of(self, state_dict):
        loaded = Net()
        loaded.load_state_dict(state_dict, strict=True)
        loaded.eval()
        with torch.no_grad():
            return (loaded(self.inputs).argmax(1) == self.labels).float().mean().item(), loaded

    def test_TheCheckpointIsTheModelsStateDictWhenItsProgramIsGone(self):
        for ending in (".pt2", ".pt"):
            with self.subTest(ending):
                program = self.export(ending)
                result = self.assert_finished(self.up(self.job_of(program), timeout=240))
                program.unlink()
                found = self.exported(f"out{ending}.safetensors")
                expected = self.model.state_dict()
                self.assertEqual(set(found), set(expected))
                for name, value in expected.items():
                    self.assertEqual((found[name].dtype, found[name].shape), (value.dtype, value.shape), name)
                for name in ("body.weight", "body.bias", "ids", "shift"):
                    self.assertTrue(torch.equal(found[name], expected[name]), f"{name} is frozen")
                self.assertTrue(torch.equal(found["again.weight"], found["middle.weight"]))
                self.assertEqual(found["norm.num_batches_tracked"].item(), result["global_step"])
                accuracy, loaded = self.accuracy_of(found)
                self.assertIs(loaded.again.weight, loaded.middle.weight)
                self.assertAlmostEqual(accuracy, result["evaluation"]["metrics"]["accuracy"], delta=0.001)
                self.assertGreater(accuracy, self.accuracy_of(expected)[0] + 0.1, "the job has trained the model")
                self.check_inspect()
                self.check_warm_start(ending, found)
                self.remove_checkpoints()

    def check_inspect(self):
        outcome = self.run_program("disttrain", "checkpoint", "inspect", self.folder / "checkpoints/net", "--json")
        self.assertEqual(outcome.code, 0, str(outcome))
        entries = {entry["name"]: entry for entry in outcome.json["state_dict"]}
        self.assertEqual(entries["again.weight"]["variable"], "middle.weight")
        self.assertEqual(entries["norm.num_batches_tracked"]["dtype"], "I64")
        kinds = {variable["name"]: variable["kind"] for variable in outcome.json["variables"]}
        self.assertEqual((kinds["body.weight"], kinds["norm.running_mean"], kinds["scale"]),
                         ("frozen", "state", "trainable"))
        halves = self.exported("half.safetensors", "--dtype", "f16", "--force")
        self.assertEqual((halves["body.weight"].dtype, halves["ids"].dtype), (torch.float16, torch.int64))

    def check_warm_start(self, ending, trained):
        """A state_dict that PyTorch's users saved is taken as it is. The step's learning rate changes nothing."""
        theirs = self.folder / "theirs.safetensors"
        write_safetensors(theirs, trained)
        job = self.job_of(self.export(ending))
        settings = [f"checkpoint.init_from={theirs}", "job.name=warm", "train.epochs=0", "train.steps=1",
                    "train.optimizer.learning_rate=1e-30"]
        sets = [argument for setting in settings for argument in ("--set", setting)]
        self.assert_finished(self.up(job, *sets, timeout=240))
        out = self.folder / "warm.safetensors"
        outcome = self.run_program("disttrain", "checkpoint", "export", self.folder / "checkpoints/warm", out, "--force")
        self.assertEqual(outcome.code, 0, str(outcome))
        warm = read_safetensors(out)
        for name in ("middle.weight", "again.weight", "head.bias", "scale"):
            self.assertTrue(torch.equal(warm[name], trained[name]), name)
        self.assertEqual(warm["norm.num_batches_tracked"], trained["norm.num_batches_tracked"] + 1)

    def remove_checkpoints(self):
        for folder in ("net", "warm"):
            os.rename(self.folder / "checkpoints" / folder, self.folder / f"old-{folder}-{os.urandom(4).hex()}")


# The package safetensors isn't in the environment of the tests.
DTYPES = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "I64": torch.int64}


def read_safetensors(path):
    content = pathlib.Path(path).read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__")
    return {
        name: torch.frombuffer(
            bytearray(content[8 + length + entry["data_offsets"][0] : 8 + length + entry["data_offsets"][1]]),
            dtype=DTYPES[entry["dtype"]],
        ).reshape(entry["shape"])
        for name, entry in header.items()
    }


def write_safetensors(path, tensors):
    names = {dtype: name for name, dtype in DTYPES.items()}
    header, parts, at = {}, [], 0
    for name, tensor in tensors.items():
        part = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(part)]}
        parts.append(part)
        at += len(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


if __name__ == "__main__":
    unittest.main()
