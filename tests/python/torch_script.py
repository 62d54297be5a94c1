"""A script with a torch module, and a fixture that starts it as a trainer. It needs a Python with PyTorch."""

import unittest

from fake_worker import FakeWorker, require_python

PYTHON = require_python("torch")

SCRIPT = """
import disttrain, torch
torch.manual_seed(3)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(1, 2, bias=False)
        self.norm = torch.nn.BatchNorm1d(2, momentum=0.5)
        self.wide = torch.nn.Linear(2, 2, bias=False).double()
        self.tied = torch.nn.Linear(2, 2, bias=False).double()
        self.tied.weight = self.wide.weight
        self.frozen = torch.nn.Parameter(torch.ones(1), requires_grad=False)
        self.unused = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("mask", torch.ones(2, dtype=torch.bool))
        self.register_buffer("constant", torch.ones(2), persistent=False)
    def forward(self, x):
        self.constant += 1
        return self.tied(self.wide(self.norm(self.first(x)).double()))
model = Net()
data = [torch.tensor([float(i)]) for i in range(10)]
job = disttrain.init({init})
opt = job.wrap(model)
@job.on_evaluate
def evaluate(batch):
    assert not model.training and not torch.is_grad_enabled()
    return {{"loss": model(batch.x).sum(), "accuracy": 1.0}}
job.on_predict(lambda batch: model(batch.x))
for batch in job.batches(data):
    opt.zero_grad()
    loss = model(batch.x).square().sum() / 100
    loss.backward()
    print(repr([p.flatten().tolist() for p in model.parameters()]))
    print(repr([p.grad.flatten().tolist() if p.grad is not None else None for p in model.parameters()]))
    print(repr([b.flatten().tolist() for b in model.buffers()]), torch.rand(1).item())
    {step}(loss=loss, accuracy=torch.tensor(0.5))
"""
VALUES = {
    "first.weight": [1, -1],
    "norm.weight": [1, 2],
    "norm.bias": [0.5, 0.25],
    "wide.weight": [1, 2, 3, 4],
    "unused": [9, 9],
    "norm.running_mean": [1, 1],
    "norm.running_var": [2, 2],
    "norm.num_batches_tracked": [40],
}
# Prints the layers' modes and statistics, and takes a case's code between wrap() and batches(), and in the loop.
FROZEN_LAYER = """
import disttrain, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(1)
        self.head = torch.nn.Linear(1, 1)
    def forward(self, x):
        return self.head(self.norm(x))
model = Net()
for parameter in model.norm.parameters():
    parameter.requires_grad = False
model.norm.eval()
job = disttrain.init(metrics=[])
job.wrap(model)
@job.on_evaluate
def evaluate(batch):
    return {{"loss": model(batch.x).sum()}}
{before}
for batch in job.batches({data}):
    {show}
    model(batch.x).sum().backward()
    job.step(loss=0)
"""


class TorchScriptTest(unittest.TestCase):
    def start(self, init="metrics=['accuracy']", step="job.step", script=SCRIPT):
        worker = FakeWorker(PYTHON, script.format(init=init, step=step))
        self.addCleanup(worker.__exit__)
        worker.open()
        worker.pair = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
        return worker
