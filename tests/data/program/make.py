#!/usr/bin/env python3
"""Makes packages.tar.xz, the step programs for the tests of C++, and PyTorch's own results for them.

Run it in the environment that `tools/setup` installs: make.py. It takes some minutes. Run it again when the
version of PyTorch changes, or the format of packages.
"""

import json
import pathlib
import sys
import tarfile
import tempfile
import zipfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parents[2] / "python"))

import torch  # noqa: E402
from torch import nn  # noqa: E402

import disttrain  # noqa: E402
from disttrain import metrics  # noqa: E402
from disttrain.exporting import stages  # noqa: E402

LEARNING_RATE = 0.1
BATCHES = [8, 5, 2]  # the sizes of the steps' batches
CPU = "x86-64-v3"


class Head(nn.Module):
    """As nn.Linear(8, 3), but the backward pass computes the weight's gradient before it reads the weight."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 3) / 3)
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, inputs):
        return inputs @ self.weight + self.bias


class BatchNormNet(nn.Module):
    """Has a frozen layer, batch norm, and two layers that share a weight."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.middle = nn.Linear(8, 8)
        self.again = nn.Linear(8, 8)
        self.again.weight = self.middle.weight
        self.head = Head()
        for parameter in self.body.parameters():
            parameter.requires_grad_(False)

    def forward(self, inputs):
        hidden = torch.tanh(self.norm(self.body(inputs)))
        return self.head(torch.relu(self.again(torch.relu(self.middle(hidden)))))


class DropoutNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.last = nn.Linear(16, 3)
        self.dropout = nn.Dropout(0.5)

    def forward(self, inputs):
        return self.last(self.dropout(torch.relu(self.first(inputs))))


class LinearNet64(nn.Module):
    """A linear model in float64, whose results are known in closed form. It has a frozen variable, and a state that
    follows the inputs. Only the bias is float32."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1, -2], dtype=torch.float64) / 7)
        self.bias = nn.Parameter(torch.zeros(1))
        self.scale = nn.Parameter(torch.tensor(1 / 3, dtype=torch.float64), requires_grad=False)
        self.register_buffer("seen", torch.full((2,), 0.1, dtype=torch.float64))

    def forward(self, inputs):
        if self.training:
            self.seen.copy_(0.9 * self.seen + 0.1 * inputs.mean(0))
        return self.scale * (inputs @ self.weight) + self.bias.double()


def batch_of(examples):
    return torch.randn(examples, 6), torch.randint(0, 3, (examples,))


def numbers_of(tensor):
    return tensor.detach().to(torch.float64).reshape(-1).tolist()


def expected_of(model):
    """What plain PyTorch computes: some steps of SGD, an evaluation and a prediction."""
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=LEARNING_RATE)
    model.train()
    steps = []
    for examples in BATCHES:
        inputs, labels = batch_of(examples)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        gradients = {name: numbers_of(p.grad) for name, p in model.named_parameters() if p.requires_grad}
        optimizer.step()
        steps.append(
            {
                "inputs": numbers_of(inputs),
                "labels": labels.tolist(),
                "loss_sum": float(loss.detach()) * examples,
                "correct": int((outputs.argmax(1) == labels).sum()),
                "gradients": gradients,
                "state": {name: numbers_of(buffer) for name, buffer in model.named_buffers()},
            }
        )
    model.eval()
    inputs, labels = batch_of(7)
    with torch.no_grad():
        outputs = model(inputs)
    return {
        "learning_rate": LEARNING_RATE,
        "steps": steps,
        "end": {name: numbers_of(value) for name, value in model.state_dict().items()},
        "evaluation": {
            "inputs": numbers_of(inputs),
            "labels": labels.tolist(),
            "loss_sum": float(criterion(outputs, labels)) * 7,
            "correct": int((outputs.argmax(1) == labels).sum()),
            "outputs": numbers_of(outputs),
        },
    }


def export(model, path, cpu):
    disttrain.export(
        model,
        nn.CrossEntropyLoss(),
        batch_of(4),
        path,
        metrics={"accuracy": metrics.Accuracy(), "perplexity": metrics.Perplexity()},
        cpu=cpu,
    )


def export_in_stages(model, path):
    """Exports a model that is too small for stages in stages."""
    least, stages.LEAST_BYTES = stages.LEAST_BYTES, 1
    export(model, path, CPU)
    stages.LEAST_BYTES = least


def main():
    torch.manual_seed(7)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, model in (("batch_norm", BatchNormNet()), ("dropout", DropoutNet())):
            for ending, cpu in ((".pt2", CPU), (".pt", None)):
                export(model, folder / (name + ending), cpu)
            if name == "batch_norm":
                export_in_stages(model, folder / "batch_norm_stages.pt2")
                (folder / "expected.json").write_text(json.dumps(expected_of(model)))
        doubles = (torch.ones(4, 2, dtype=torch.float64), torch.ones(4, dtype=torch.float64))
        for ending, cpu in ((".pt2", CPU), (".pt", None)):
            measured = {"error": metrics.MSE()}
            disttrain.export(
                LinearNet64(), nn.MSELoss(), doubles, folder / ("float64" + ending), metrics=measured, cpu=cpu
            )
        for file in folder.glob("*.pt"):
            remove_paths(file)
        with tarfile.open(here / "packages.tar.xz", "w:xz", preset=9) as archive:
            for file in sorted(folder.iterdir()):
                archive.add(file, file.name, filter=anonymous)


def remove_paths(file):
    """Removes the members that name the Python files of this machine; TorchScript loads a package without them."""
    with zipfile.ZipFile(file) as package:
        members = {entry: package.read(entry) for entry in package.infolist() if not entry.filename.endswith(".debug_pkl")}
    with zipfile.ZipFile(file, "w") as package:
        for entry, content in members.items():
            package.writestr(zipfile.ZipInfo(entry.filename), content, compress_type=entry.compress_type)


def anonymous(member):
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()
