"""Writes whole packages, and reads them as PyTorch and disttrain do."""

import json
import os
import pathlib
import tempfile
import unittest
import zipfile

import in_torch

in_torch.run(__file__)

import torch  # noqa: E402
import torch._inductor.package  # noqa: E402
from torch import nn  # noqa: E402

import disttrain  # noqa: E402
from disttrain import metrics  # noqa: E402


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 6).requires_grad_(False)
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 3)

    def forward(self, inputs):
        return self.head(torch.relu(self.norm(self.body(inputs))))


def tensors_of(content):
    """The tensors of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__")
    types = {"F32": torch.float32, "I64": torch.int64}
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(content[begin:end]), dtype=types[entry["dtype"]]).reshape(entry["shape"])
    return tensors


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        os.environ["XDG_CACHE_HOME"] = str(cls.folder / "cache")
        torch.manual_seed(3)
        cls.model = Net()
        cls.inputs, cls.labels = torch.randn(6, 5), torch.randint(0, 3, (6,))
        cls.before = {name: value.clone() for name, value in cls.model.state_dict().items()}
        state = torch.get_rng_state()
        cls.first_lines = cls.export("step.pt2")
        cls.random_state_is_kept = bool(torch.equal(state, torch.get_rng_state()))

    @classmethod
    def export(cls, name):
        lines = []
        disttrain.export(
            cls.model,
            nn.CrossEntropyLoss(),
            (cls.inputs, cls.labels),
            cls.folder / name,
            metrics={"accuracy": metrics.Accuracy()},
            cpu="x86-64-v3" if name.endswith("2") else None,
            say=lines.append,
        )
        return lines

    def sidecar(self, name):
        with zipfile.ZipFile(self.folder / name) as package:
            for member in ("disttrain.json", "disttrain.safetensors"):
                (path,) = [entry for entry in package.namelist() if entry.endswith("/" + member)]
                self.assertEqual(package.getinfo(path).compress_type, zipfile.ZIP_STORED)
                yield package.read(path)

    def test_SidecarDescribesTheModel(self):
        for name, kind in (("step.pt2", "pt2"), ("step.pt", "torchscript")):
            if kind == "torchscript":
                self.export(name)
            text, _ = self.sidecar(name)
            described = json.loads(text)
            self.assertEqual(described["kind"], kind)
            self.assertEqual(described["library_version"], "2.11.0")
            self.assertEqual(described["cpu"], "x86-64-v3" if kind == "pt2" else "")
            self.assertIsNone(described["batch"])
            self.assertEqual(described["columns"], [
                {"name": "inputs", "dtype": "float32", "shape": [5], "limit": 0},
                {"name": "labels", "dtype": "int64", "shape": [], "limit": 3, "ignored": -100},
            ])
            self.assertEqual(described["metrics"], [{"name": "accuracy", "kind": "accuracy"}])
            self.assertEqual(described["programs"]["predict"], {"columns": ["inputs"]})
            kinds = {variable["name"]: variable["kind"] for variable in described["variables"]}
            self.assertEqual(kinds["body.weight"], "frozen")
            self.assertEqual(kinds["norm.num_batches_tracked"], "state")

    def test_ValuesAreTheModelsStateDict(self):
        _, values = self.sidecar("step.pt2")
        tensors = tensors_of(values)
        other = Net()
        other.load_state_dict(tensors)
        for name, value in other.state_dict().items():
            self.assertTrue(torch.equal(value, self.before[name]), name)

    def test_ExportLeavesTheModelAsItWas(self):
        for name, value in self.model.state_dict().items():
            self.assertTrue(torch.equal(value, self.before[name]), name)
        self.assertTrue(self.random_state_is_kept)

    def test_PyTorchLoadsTheCompiledPrograms(self):
        _, values = self.sidecar("step.pt2")
        variables = list(tensors_of(values).values())
        predict = torch._inductor.package.load_package(str(self.folder / "step.pt2"), "predict")
        (found,) = predict(*variables, self.inputs[:4])
        with torch.no_grad():
            expected = self.model.eval()(self.inputs[:4])
        self.model.train()
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)

    def test_SecondExportTakesTheCompiledProgramsFromTheCache(self):
        self.assertTrue(any("compiling" in line for line in self.first_lines))
        lines = self.export("again.pt2")
        self.assertEqual([line for line in lines if "compiling" in line], [])
        self.assertEqual(sum("compiled before" in line for line in lines), 3)
        first, second = (zipfile.ZipFile(self.folder / name) for name in ("step.pt2", "again.pt2"))
        with first, second:
            self.assertEqual(first.read("step/data/aotinductor/step/step.wrapper.so"),
                             second.read("again/data/aotinductor/step/step.wrapper.so"))

    def test_StepOfALargeModelIsCompiledInStages(self):
        torch.manual_seed(4)
        model = nn.Sequential(nn.Linear(5, 800), nn.Dropout(0.5), nn.Linear(800, 800), nn.Linear(800, 800), nn.Linear(800, 3))
        disttrain.export(model, nn.CrossEntropyLoss(), (self.inputs, self.labels), self.folder / "large.pt2",
                         cpu="x86-64-v3", say=None)
        text, values = self.sidecar("large.pt2")
        described = json.loads(text)
        self.assertEqual(described["format"], 3)
        stages = described["programs"]["step"]["stages"]
        # Two of 2.6 MB, and one for the small gradients behind them.
        self.assertEqual(len(stages), 3)
        first_result = len(described["variables"]) + 2
        weights = {variable["name"]: first_result + 2 + index for index, variable in enumerate(described["variables"])}
        self.assertIn(weights["3.weight"], stages[0]["gives"])
        self.assertIn(weights["2.weight"], stages[1]["gives"])
        # PyTorch runs the stages, too.
        values = dict(enumerate([*tensors_of(values).values(), self.inputs[:4], self.labels[:4]]))
        for index, stage in enumerate(stages):
            library = torch._inductor.package.load_package(str(self.folder / "large.pt2"), f"step_{index}")
            values.update(zip(stage["gives"], library.loader.run([values[number] for number in stage["takes"]])))
        self.assertEqual(values[first_result].dtype, torch.float64)
        self.assertEqual(values[weights["2.weight"]].shape, (800, 800))

    def test_FixedBatchIsInTheSidecar(self):
        disttrain.export(self.model, nn.CrossEntropyLoss(), (self.inputs, self.labels), self.folder / "fixed.pt",
                         dynamic_batch=False, say=None)
        text, _ = self.sidecar("fixed.pt")
        self.assertEqual(json.loads(text)["batch"], 6)


if __name__ == "__main__":
    unittest.main()
