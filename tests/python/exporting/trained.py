"""For the tests of all kinds of modules (kinds.py): packages, and what PyTorch computes.

Import this module after in_torch.run().
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import zipfile

import in_torch

import numpy as np
import torch
from torch import nn

import disttrain
from kinds import KINDS

BUILD = pathlib.Path(os.environ.get("BUILD", in_torch.ROOT / "build" / "release"))
STEPS, RATE, RECORDS = 5, 0.1, 6
TOLERANCE = 2e-5
# Which share of the kinds this process tests: "0/2" are those with even numbers.
PART, PARTS = map(int, os.environ.get("PART", "0/1").split("/"))
ONLY = os.environ.get("KIND")


class Joined(nn.Module):
    """The models of several kinds, side by side."""

    def __init__(self, kinds):
        super().__init__()
        self.models = nn.ModuleDict({kind.name: kind.model() for kind in kinds})
        self.takes = [(kind.name, [name for name in kind.columns(2) if name != "labels"]) for kind in kinds]

    def forward(self, *columns):
        columns, outputs = list(columns), {}
        for name, names in self.takes:
            outputs[name] = self.models[name](*(columns.pop(0) for _ in names))
        return outputs


class JoinedLoss(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.losses = {kind.name: kind.loss for kind in kinds}

    def forward(self, outputs, labels):
        return sum(loss(outputs[name], labels[f"{name}.labels"]).mean() for name, loss in self.losses.items())


def picked(output):
    """The tensor that disttrain predicts."""
    if isinstance(output, dict):
        return output["logits"]
    return output[0] if isinstance(output, tuple) else output


def rows(output):
    return picked(output).flatten(1).float()


def all_columns(kinds, size):
    return {f"{kind.name}.{name}": value for kind in kinds for name, value in kind.columns(size).items()}


class Package:
    """One or several kinds in one package, with their batches in a folder."""

    def __init__(self, kinds, ending, folder):
        torch.manual_seed(5)
        self.kinds = kinds
        self.model, self.loss = Joined(kinds), JoinedLoss(kinds)
        self.folder = folder / kinds[0].name
        self.folder.mkdir()
        self.path = self.folder / ("step" + ending)
        example = all_columns(kinds, RECORDS - 2)
        labels = [name for name in example if name.endswith(".labels")]
        disttrain.export(
            self.model, self.loss, example, self.path, inputs=[name for name in example if name not in labels], labels=labels,
            outputs=lambda outputs: torch.cat([rows(each) for each in outputs.values()], 1),
            limits={f"{kind.name}.{name}": limit for kind in kinds for name, limit in kind.limits.items()},
            say=None,
        )
        self.batches = {f"step{step}": all_columns(kinds, RECORDS) for step in range(STEPS)}
        self.batches["evaluate"] = all_columns(kinds, RECORDS - 1)
        for batch, columns in self.batches.items():
            for name, column in columns.items():
                (self.folder / f"{batch}-{name}").write_bytes(column.contiguous().numpy().tobytes())

    def read(self, name, dtype):
        return np.fromfile(self.folder / name, dtype)

    def compute(self, batch):
        labels = {name: column.clone() for name, column in self.batches[batch].items() if name.endswith(".labels")}
        outputs = self.model(*(column.clone() for name, column in self.batches[batch].items() if name not in labels))
        return outputs, self.loss(outputs, labels)

    def train(self):
        """Trains in PyTorch, with the seeds of the worker. Returns the losses' sums."""
        optimizer = torch.optim.SGD([each for each in self.model.parameters() if each.requires_grad], lr=RATE)
        training = {module: module.training for module in self.model.modules()}
        losses = []
        for step, seed in enumerate(self.read("seeds", np.uint64)):
            torch.manual_seed(int(seed))
            optimizer.zero_grad()
            _, loss = self.compute(f"step{step}")
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()) * RECORDS)
        self.model.eval()
        with torch.no_grad():
            self.outputs, loss = self.compute("evaluate")
        for module, was in training.items():
            module.training = was
        return losses + [float(loss) * (RECORDS - 1)]

    def found(self):
        """The worker's variables by name."""
        with zipfile.ZipFile(self.path) as package:
            (sidecar,) = [name for name in package.namelist() if name.endswith("/disttrain.json")]
            variables = json.loads(package.read(sidecar))["variables"]
        content, values = (self.folder / "parameters").read_bytes(), {}
        for variable in variables:
            if variable["kind"] != "frozen":
                dtype = np.float64 if variable["dtype"] == "float64" else np.float32
                value = np.frombuffer(content, dtype, int(np.prod(variable["shape"])))
                values[variable["name"]] = torch.from_numpy(value.copy()).reshape(variable["shape"])
                content = content[value.nbytes :]
        assert not content
        return values


class TrainedTest(unittest.TestCase):
    """Exports kinds, trains them by the program train_packages, and compares."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        kept = os.environ.get("XDG_CACHE_HOME")
        self.addCleanup(lambda: os.environ.pop("XDG_CACHE_HOME") if kept is None else os.environ.update(XDG_CACHE_HOME=kept))
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")

    def kinds(self, ending, is_random=None):
        chosen = [kind for kind in KINDS if ending in kind.formats and is_random in (None, kind.is_random)][PART::PARTS]
        return [kind for kind in chosen if ONLY in (None, kind.name)]

    def run_all(self, packages):
        command = [BUILD / "tests" / "train_packages", str(RATE), str(STEPS)]
        for package in packages:
            command += [package.path, package.folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def assert_equal(self, found, expected, what):
        self.assertEqual(found.shape, expected.shape, what)
        worst = float(((found - expected).abs() / (1 + expected.abs())).max())
        self.assertLessEqual(worst, TOLERANCE, f"{what}: {found} instead of {expected}")

    def compare(self, package, draws_alike):
        """draws_alike: the package draws the same random numbers as PyTorch with the same seed."""
        found = package.found()
        if draws_alike:
            losses = package.train()
            self.assert_equal(torch.from_numpy(package.read("losses", np.float64)), torch.tensor(losses, dtype=torch.float64), "losses")
            ours = {**dict(package.model.named_parameters()), **dict(package.model.named_buffers())}
            for name, value in found.items():
                with self.subTest(name):
                    self.assert_equal(value, ours[name].detach().to(value.dtype), name)
        else:
            self.assertTrue(np.isfinite(package.read("losses", np.float64)).all())
            changed = [name for name, value in package.model.named_parameters() if not torch.equal(found[name], value.detach())]
            self.assertEqual(changed, [name for name, _ in package.model.named_parameters()], "all are trained")
            package.model.load_state_dict(found, strict=False)
            package.model.eval()
            with torch.no_grad():
                package.outputs, loss = package.compute("evaluate")
            expected = torch.tensor(float(loss) * (RECORDS - 1))
            self.assert_equal(torch.tensor(package.read("losses", np.float64)[-1]).float(), expected, "evaluation")
        outputs = torch.from_numpy(package.read("outputs", np.float32)).reshape(RECORDS - 1, -1)
        begin = 0
        for name, output in package.outputs.items():
            expected = rows(output)
            with self.subTest(name):
                self.assert_equal(outputs[:, begin : begin + expected.shape[1]], expected, f"{name}: outputs")
            begin += expected.shape[1]
