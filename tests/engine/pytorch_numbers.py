#!/usr/bin/env python3
"""Writes what PyTorch computes for small builtin models: pytorch_numbers.py FOLDER

Needs torch and torchvision. The test autograd_test.cc computes the same with the engine. Parameters and records follow
from formulas, which both programs know. Everything here is computed in float64, by code that has nothing in common with
the engine's: torchvision's resnets, and attention as a plain softmax.

A file has one line per number:
    loss STEP VALUE                  the mean loss of a step; after each step, parameter -= 0.001 * gradient
    evaluation VALUE                 the mean loss after the last step, without batch statistics
    variable NAME SHAPE KIND         in the order of the model
    gradient NAME NORM A B           of the first step: its norm, and its products with two random directions
    state NAME NORM A B              a state variable's value after the last step
"""

import collections
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torchvision

RATE = 0.001


def randoms(stream, size):
    """Numbers from -1 to 1: splitmix64 of (stream, index)."""
    with np.errstate(over="ignore"):
        x = np.arange(size, dtype=np.uint64) + (np.uint64(stream) << np.uint64(40))
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0


def initial(index, name, shape):
    u = randoms(100 + index, math.prod(shape)).reshape(shape)
    if len(shape) == 1:
        u = 0.1 * u + (1.0 if name.endswith(("weight", "running_var")) else 0.0)
    elif len(shape) == 2:
        u = u * math.sqrt(3.0 / max(shape))
    else:
        u = u / math.sqrt(math.prod(shape[1:]))
    return torch.tensor(u.astype(np.float32).astype(np.float64))


def floats(stream, *shape):
    return torch.tensor(randoms(stream, math.prod(shape)).reshape(shape).astype(np.float32).astype(np.float64))


def integers(stream, limit, *shape):
    values = np.floor((randoms(stream, math.prod(shape)) + 1.0) / 2.0 * limit).astype(np.int64)
    return torch.tensor(values.reshape(shape))


class Case:
    """A model: its variables, and the loss of its batch as a function of them."""

    def __init__(self, shapes, loss, states=(), steps=3):
        self.steps = steps
        self.loss = loss  # (variables, is_step) -> mean loss; in a step it leaves new states in `variables`
        self.states = states
        self.variables = collections.OrderedDict(
            (name, initial(i, name, shape)) for i, (name, shape) in enumerate(shapes.items()))

    def write(self, path):
        lines = []
        for name, value in self.variables.items():
            kind = "state" if name in self.states else "trainable"
            lines.append(f"variable {name} {'x'.join(map(str, value.shape))} {kind}")
        trainable = [name for name in self.variables if name not in self.states]
        for step in range(self.steps):
            for name in trainable:
                self.variables[name] = self.variables[name].detach().requires_grad_(True)
            loss = self.loss(self.variables, True)
            lines.append(f"loss {step} {loss.item():.9g}")
            gradients = torch.autograd.grad(loss, [self.variables[name] for name in trainable])
            for name, gradient in zip(trainable, gradients):
                if step == 0:
                    lines.append(f"gradient {name} {fingerprint(gradient)}")
                self.variables[name] = self.variables[name].detach() - RATE * gradient
        for name in self.states:
            lines.append(f"state {name} {fingerprint(self.variables[name])}")
        lines.append(f"evaluation {self.loss(self.variables, False).item():.9g}")
        path.write_text("\n".join(lines) + "\n")


def fingerprint(tensor):
    values = tensor.detach().numpy().reshape(-1)
    products = [float(values @ randoms(stream, values.size)) for stream in (7, 8)]
    return f"{float(np.linalg.norm(values)):.6g} {products[0]:.6g} {products[1]:.6g}"


def dense_shapes(sizes, layer="layer{}"):
    shapes = {}
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        shapes[layer.format(i) + "/weight"] = (a, b)
        shapes[layer.format(i) + "/bias"] = (b,)
    return shapes


def mlp():
    x, labels, weights = floats(1, 6, 7), integers(2, 4, 6), torch.tensor([0.5, 1.0, 2.0, 0.0], dtype=torch.float64)

    def loss(v, _):
        hidden = torch.tanh(x @ v["layer0/weight"] + v["layer0/bias"])
        outputs = hidden @ v["layer1/weight"] + v["layer1/bias"]
        return F.cross_entropy(outputs, labels, weights, reduction="sum", label_smoothing=0.1) / 6

    return Case(dense_shapes([7, 9, 4]), loss)


def cnn():
    x, labels = floats(1, 3, 1, 28, 28), integers(2, 10, 3)

    def loss(v, _):
        y = F.relu(F.max_pool2d(F.conv2d(x, v["layer0/weight"], v["layer0/bias"]), 2))
        y = F.relu(F.max_pool2d(F.conv2d(y, v["layer1/weight"], v["layer1/bias"]), 2))
        y = F.relu(y.flatten(1) @ v["layer2/weight"] + v["layer2/bias"])
        return F.cross_entropy(y @ v["layer3/weight"] + v["layer3/bias"], labels, label_smoothing=0.2)

    shapes = {"layer0/weight": (32, 1, 5, 5), "layer0/bias": (32,), "layer1/weight": (64, 32, 5, 5), "layer1/bias": (64,),
              "layer2/weight": (1024, 512), "layer2/bias": (512,), "layer3/weight": (512, 10), "layer3/bias": (10,)}
    return Case(shapes, loss)


def resnet(depth, is_cifar, examples, side, steps):
    net = getattr(torchvision.models, f"resnet{depth}")(num_classes=10).double()
    if is_cifar:
        net.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False).double()
        net.maxpool = torch.nn.Identity()
    x, labels = floats(1, examples, 3, side, side), integers(2, 10, examples)
    ours = {name: name.replace(".", "/") for name in net.state_dict() if not name.endswith("num_batches_tracked")}
    states = [name for name in ours.values() if "running" in name]

    def loss(v, is_step):
        net.train(is_step)
        buffers = {theirs: v[name].clone() for theirs, name in ours.items()}
        outputs = torch.func.functional_call(net, buffers, (x,))
        if is_step:
            for theirs, name in ours.items():
                if name in states:
                    v[name] = buffers[theirs].detach()
        return F.cross_entropy(outputs, labels)

    shapes = {name: tuple(net.state_dict()[theirs].shape) for theirs, name in ours.items()}
    return Case(shapes, loss, states, steps)


def transformer(tied, lengths=(6, 6, 6), blocks=2, heads=2, width=8, context=5, vocabulary=11):
    tokens = integers(1, vocabulary, 3, context + 1)
    # Of a shorter record, the rest is padding.
    wanted = tokens.masked_fill(torch.arange(context + 1) >= torch.tensor(lengths)[:, None], -100)[:, 1:]
    shapes = {"token_embedding/weight": (vocabulary, width), "position_embedding/weight": (context, width)}
    for b in range(blocks):
        shapes |= {f"block{b}/attention/norm/weight": (width,), f"block{b}/attention/weight": (width, 3 * width),
                   f"block{b}/attention/projection/weight": (width, width), f"block{b}/mlp/norm/weight": (width,),
                   f"block{b}/mlp/weight": (width, 4 * width), f"block{b}/mlp/projection/weight": (4 * width, width)}
    shapes["norm/weight"] = (width,)
    if not tied:
        shapes["output/weight"] = (width, vocabulary)

    def norm(x, weight):
        x = x - x.mean(-1, keepdim=True)
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight

    def split(x):
        return torch.stack(x.split(width // heads, dim=-1), dim=1)  # [records, heads, context, width / heads]

    def loss(v, _):
        x = v["token_embedding/weight"][tokens[:, :-1]] + v["position_embedding/weight"]
        for b in range(blocks):
            qkv = norm(x, v[f"block{b}/attention/norm/weight"]) @ v[f"block{b}/attention/weight"]
            q, k, values = (split(part) for part in qkv.split(width, dim=-1))
            scores = q @ k.transpose(-1, -2) / math.sqrt(width // heads)
            scores = scores + torch.full((context, context), -math.inf).triu(1)
            y = torch.cat((torch.softmax(scores, -1) @ values).unbind(1), dim=-1)
            x = x + y @ v[f"block{b}/attention/projection/weight"]
            y = F.gelu(norm(x, v[f"block{b}/mlp/norm/weight"]) @ v[f"block{b}/mlp/weight"])
            x = x + y @ v[f"block{b}/mlp/projection/weight"]
        x = norm(x, v["norm/weight"])
        logits = x @ (v["token_embedding/weight"].T if tied else v["output/weight"])
        return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=-100)

    return Case(shapes, loss)


def matrix_factorization():
    users, items, targets = integers(1, 6, 8), integers(2, 5, 8), floats(3, 8)

    def loss(v, _):
        outputs = (v["user/factors"][users] * v["item/factors"][items]).sum(1)
        return F.mse_loss(outputs + v["user/bias"][users] + v["item/bias"][items] + v["bias"], targets)

    shapes = {"user/factors": (6, 3), "user/bias": (6,), "item/factors": (5, 3), "item/bias": (5,), "bias": (1,)}
    return Case(shapes, loss)


def wide_deep():
    numeric, first, second = floats(1, 5, 3), integers(2, 4, 5), integers(3, 6, 5)
    targets = integers(4, 2, 5, 2).double()

    def loss(v, _):
        wide = numeric @ v["wide/numeric/weight"] + v["wide/category0/weight"][first] + v["wide/category1/weight"][second]
        x = torch.cat([numeric, v["deep/category0/weight"][first], v["deep/category1/weight"][second]], 1)
        x = F.gelu(x @ v["deep/layer0/weight"] + v["deep/layer0/bias"])
        outputs = wide + v["wide/bias"] + x @ v["deep/layer1/weight"] + v["deep/layer1/bias"]
        return F.binary_cross_entropy_with_logits(outputs, targets, reduction="sum") / 5

    shapes = {"wide/numeric/weight": (3, 2), "wide/category0/weight": (4, 2), "wide/category1/weight": (6, 2),
              "wide/bias": (2,), "deep/category0/weight": (4, 7), "deep/category1/weight": (6, 7)}
    return Case(shapes | dense_shapes([17, 8, 2], "deep/layer{}"), loss)


def main():
    folder = pathlib.Path(sys.argv[1])
    cases = {"mlp": mlp(), "cnn": cnn(), "resnet18": resnet(18, True, 4, 32, 3), "resnet34": resnet(34, False, 4, 64, 1),
             "resnet50": resnet(50, False, 4, 64, 1), "transformer": transformer(True),
             "transformer-untied": transformer(False), "transformer-ragged": transformer(True, (6, 4, 1)),
             "matrix-factorization": matrix_factorization(), "wide-deep": wide_deep()}
    for name, case in cases.items():
        case.write(folder / f"{name}.txt")


if __name__ == "__main__":
    main()
