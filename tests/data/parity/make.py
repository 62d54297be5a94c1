#!/usr/bin/env python3
"""Trains small models in plain PyTorch, and writes what tests/system/parity_test.py needs to train them on a cluster.

    make.py FOLDER      (this folder, to make the numbers anew)

Run it in the environment that `tools/setup` installs, with the wheel safetensors beside it. It writes:

    inputs.npy, labels.npy     the records
    mlp.safetensors            initial values of the builtin model mlp, by safetensors.torch.save_file
    tuned.safetensors          other values than the package's own for the model of tests/data/program/batch_norm.pt
    expected.json              for each case the keys of job.toml, and the values after the last step

Each case is a loop as PyTorch's users write it. Only lamb and ftrl aren't in PyTorch; their formulas are below.

PyTorch and the cluster agree within 1e-5 for each parameter and statistic after up to 12 steps. The numbers are in the
tree, so CI compares them without PyTorch for Python. With train.accumulate each part of a step moves batch norm's
statistics, as each batch does in PyTorch's loop. PyTorch's AveragedModel begins as the parameters after the first step,
ours as the initial parameters, as timm's ModelEma does. So this script updates PyTorch's average once before the first
step.
"""

import copy
import importlib.util
import io
import json
import pathlib
import sys
import tarfile
import zipfile

import numpy as np
import safetensors.torch
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

RECORDS = 96
EPOCHS = 2
PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "program"


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, as NVIDIA's FusedLAMB and timm compute it with bias correction: the weight decay is
    in the direction, and the trust ratio is |p| / |direction|, or 1 if one of them is 0. Unlike those two, it doesn't
    clip the gradient first."""

    def __init__(self, parameters, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(parameters, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = beta1 * state.get("m", torch.zeros_like(p)) + (1 - beta1) * p.grad
                v = state["v"] = beta2 * state.get("v", torch.zeros_like(p)) + (1 - beta2) * p.grad**2
                update = (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + group["eps"])
                update = update + group["weight_decay"] * p
                trust = p.norm() / update.norm() if p.norm() > 0 and update.norm() > 0 else 1.0
                p -= group["lr"] * trust * update


class Ftrl(torch.optim.Optimizer):
    """McMahan et al. 2013, algorithm 1, with TensorFlow's defaults: beta = 0, n begins at 0.1, and the L2 term is
    2 * l2."""

    def __init__(self, parameters, lr, l1=0.0, l2=0.0):
        super().__init__(parameters, dict(lr=lr, l1=l1, l2=l2))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                n = state.get("n", torch.full_like(p, 0.1))
                state["n"] = n + p.grad**2
                sigma = (state["n"].sqrt() - n.sqrt()) / group["lr"]
                z = state["z"] = state.get("z", torch.zeros_like(p)) + p.grad - sigma * p
                weight = -(z - z.sign() * group["l1"]) / (state["n"].sqrt() / group["lr"] + 2 * group["l2"])
                p.copy_(torch.where(z.abs() <= group["l1"], 0.0, weight))


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def values_of_mlp(model):
    """With the names and shapes of the builtin model: a weight is [inputs, outputs]."""
    return {f"layer{i}/{name}": value.detach().t().contiguous()
            for i, layer in enumerate((model[0], model[2])) for name, value in layer.named_parameters()}


def batch_norm_net():
    """The module of tests/data/program/batch_norm.pt, with the values in that package."""
    specification = importlib.util.spec_from_file_location("programs", PROGRAMS / "make.py")
    programs = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(programs)
    with tarfile.open(PROGRAMS / "packages.tar.xz") as packages:
        package = zipfile.ZipFile(io.BytesIO(packages.extractfile("batch_norm.pt").read()))
    file = next(name for name in package.namelist() if name.endswith("disttrain.safetensors"))
    model = programs.BatchNormNet()
    missing, unexpected = model.load_state_dict(safetensors.torch.load(package.read(file)), strict=False)
    assert missing == ["again.weight"] and not unexpected, (missing, unexpected)  # it is middle.weight
    return model


def values_of_batch_norm(model):
    return {name: value for name, value in model.state_dict().items() if name != "again.weight"}


def train(model, make_optimizer, inputs, labels, workers=1, batch=16, accumulate=1, clip=0.0, state="mean",
          average=None, schedule=None):
    """Trains as `workers` processes would with DistributedDataParallel. A step takes the next `workers * accumulate *
    batch` records."""
    optimizer = make_optimizer([p for p in model.parameters() if p.requires_grad])
    scheduler = SCHEDULES[schedule][1](optimizer) if schedule else None
    criterion = nn.CrossEntropyLoss()
    model.train()
    ours = batch * accumulate
    for _ in range(EPOCHS):
        for begin in range(0, RECORDS, workers * ours):
            replicas = [copy.deepcopy(model) for _ in range(workers)]
            for rank, replica in enumerate(replicas):
                for part in range(accumulate):
                    at = begin + rank * ours + part * batch
                    (criterion(replica(inputs[at:at + batch]), labels[at:at + batch]) / accumulate).backward()
            for mine, *theirs in zip(model.parameters(), *(replica.parameters() for replica in replicas)):
                if mine.requires_grad:
                    mine.grad = torch.stack([other.grad for other in theirs]).mean(0)
            for mine, *theirs in zip(model.buffers(), *(replica.buffers() for replica in replicas)):
                mine.copy_(theirs[0] if state == "lowest_rank" else torch.stack(theirs).double().mean(0))
            if clip > 0.0:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            if average is not None:
                average.update_parameters(model)
    return model


def evaluation_of(model, inputs, labels):
    model.eval()
    with torch.no_grad():
        return float(nn.CrossEntropyLoss()(model(inputs), labels))


def optimizer(text, make):
    """A rule as [train] names it, and PyTorch's optimizer of it."""
    return {"optimizer": text}, make


RULES = {
    "sgd": optimizer('{ rule = "sgd", learning_rate = 0.2, weight_decay = 0.01 }',
                     lambda p: torch.optim.SGD(p, 0.2, weight_decay=0.01)),
    "momentum": optimizer('{ rule = "momentum", learning_rate = 0.1, momentum = 0.9, weight_decay = 0.01 }',
                          lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01)),
    "nesterov": optimizer('{ rule = "nesterov", learning_rate = 0.1, momentum = 0.9 }',
                          lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True)),
    "adagrad": optimizer('{ rule = "adagrad", learning_rate = 0.1 }', lambda p: torch.optim.Adagrad(p, 0.1)),
    "rmsprop": optimizer('{ rule = "rmsprop", learning_rate = 0.01, rho = 0.99, momentum = 0.5 }',
                         lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5)),
    "adam": optimizer('{ rule = "adam", learning_rate = 0.02, weight_decay = 0.01 }',
                      lambda p: torch.optim.Adam(p, 0.02, weight_decay=0.01)),
    "adamw": optimizer('{ rule = "adamw", learning_rate = 0.02, weight_decay = 0.01 }',
                       lambda p: torch.optim.AdamW(p, 0.02)),
    "lamb": optimizer('{ rule = "lamb", learning_rate = 0.02, weight_decay = 0.01 }',
                      lambda p: Lamb(p, 0.02, weight_decay=0.01)),
    "ftrl": optimizer('{ rule = "ftrl", learning_rate = 0.2, l1 = 0.01, l2 = 0.01 }',
                      lambda p: Ftrl(p, 0.2, l1=0.01, l2=0.01)),
}


SCHEDULES = {
    "step": ('{ kind = "step", every_steps = 4, factor = 0.5 }',
             lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.5)),
    "polynomial": ('{ kind = "polynomial", decay_steps = 10, power = 2.0 }',
                   lambda optimizer: torch.optim.lr_scheduler.PolynomialLR(optimizer, 10, power=2.0)),
    "cosine": ('{ kind = "cosine", decay_steps = 12 }',
               lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)),
}


def cases():
    """Yields (name, model, rule, arguments of train())."""
    for name in RULES:
        yield name, "mlp", name, dict(workers=2, batch=8)
    for name in SCHEDULES:
        yield name, "mlp", "momentum", dict(batch=16, schedule=name)
    yield "batch_32", "mlp", "adam", dict(batch=32)
    yield "accumulate", "mlp", "adam", dict(batch=8, accumulate=4)
    yield "clip", "mlp", "adamw", dict(workers=2, batch=8, clip=0.3)
    yield "average", "mlp", "adamw", dict(batch=16, average=0.9)
    yield "batch_norm", "batch_norm.pt", "momentum", dict(batch=16)
    yield "batch_norm_mean", "batch_norm.pt", "momentum", dict(workers=2, batch=8)
    yield "batch_norm_lowest_rank", "batch_norm.pt", "momentum", dict(workers=2, batch=8, state="lowest_rank")
    yield "batch_norm_accumulate", "batch_norm.pt", "momentum", dict(workers=2, batch=8, accumulate=3)
    yield "batch_norm_clip", "batch_norm.pt", "adamw", dict(workers=2, batch=8, clip=0.3)
    # With one worker, async is the plain loop. There the worker clips, and not the ps.
    yield "batch_norm_clip_async", "batch_norm.pt", "adamw", dict(batch=16, clip=0.3, mode="async")
    yield "batch_norm_average", "batch_norm.pt", "lamb", dict(workers=2, batch=8, average=0.9)
    yield "fine_tuned", "batch_norm.pt", "adamw", dict(batch=16)


def run(model, rule, arguments, records):
    """Trains, and returns what expected.json says of the case."""
    text, make = RULES[rule]
    arguments = dict(arguments)
    mode = {"mode": arguments.pop("mode")} if "mode" in arguments else {}
    decay = arguments.pop("average", None)
    average = None
    if decay is not None:
        # PyTorch's average begins as the parameters after its first update, ours as the initial parameters.
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
        average.update_parameters(model)
    train(model, make, *records, **arguments, average=average)
    end = model if average is None else average.module
    if "schedule" in arguments:
        arguments["schedule"] = SCHEDULES[arguments["schedule"]][0]
    values = values_of_mlp if isinstance(model, nn.Sequential) else values_of_batch_norm
    return {**text, **mode, **arguments, **({"average": decay} if average else {}), "loss": evaluation_of(end, *records),
            "values": {name: [float(f"{x:.8g}") for x in value.detach().double().reshape(-1).tolist()]
                       for name, value in values(end).items()}}


def main(folder):
    torch.manual_seed(11)
    inputs = torch.randn(RECORDS, 6)
    labels = (inputs[:, :3] + 0.5 * torch.randn(RECORDS, 3)).argmax(1)
    np.save(folder / "inputs.npy", inputs.numpy())
    np.save(folder / "labels.npy", labels.numpy())
    first_mlp, first_net = mlp(), batch_norm_net()
    safetensors.torch.save_file(values_of_mlp(first_mlp), folder / "mlp.safetensors")
    tuned = copy.deepcopy(first_net)
    with torch.no_grad():
        for value in (*(p for p in tuned.parameters() if p.requires_grad), tuned.norm.running_mean):
            value += 0.1 * torch.randn_like(value)
        tuned.norm.running_var *= 1.5
    # State travels as float32, so the counter num_batches_tracked is saved as such.
    safetensors.torch.save_file({name: value.float() for name, value in values_of_batch_norm(tuned).items()},
                                folder / "tuned.safetensors")
    expected = {}
    for name, kind, rule, arguments in cases():
        first = first_mlp if kind == "mlp" else tuned if name == "fine_tuned" else first_net
        expected[name] = {"model": kind, **run(copy.deepcopy(first), rule, arguments, (inputs, labels))}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in expected.items())
    (folder / "expected.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
