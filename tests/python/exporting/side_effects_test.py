"""What forward() does in Python beside computing its results is refused: a program would leave it out, or keep its values."""

import dataclasses
import datetime
import functools
import os
import pathlib
import random
import secrets
import tempfile
import threading
import time
import unittest
import uuid

import in_torch

in_torch.run(__file__)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from numpy import datetime64  # noqa: E402
from torch import nn  # noqa: E402

import disttrain  # noqa: E402
from disttrain.exporting import ExportError  # noqa: E402

OBJECT = random.Random(3)
GENERATOR = np.random.default_rng(1)
STATE = np.random.RandomState(3)
OF_TORCH = torch.Generator()
OF_THE_IMPORT = torch.rand(8)
COUNTED = [0]
RUNNING = torch.ones(8)
draw = random.random
clock = time.time


class Net(nn.Module):
    """A net with a function of the test's choice in the middle: change(net, hidden)."""

    def __init__(self, change):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.change = change

    def forward(self, inputs):
        return self.last(self.change(self, self.first(inputs)))


def plain():
    return Net(lambda net, hidden: hidden)


def shuffled(net, hidden):
    order = list(range(8))
    random.shuffle(order)
    return hidden[:, order]


def seeded(net, hidden):
    torch.manual_seed(3)
    return hidden * torch.rand(8)


def counted(net, hidden):
    net.steps = getattr(net, "steps", 0) + 1
    return hidden * 2 if net.steps > 1000 else hidden


def counted_elsewhere(net, hidden):
    COUNTED[0] += 1
    return hidden * (1 + 1 / COUNTED[0])


def averaged(net, hidden):
    net.average = 0.9 * getattr(net, "average", torch.zeros(8)) + 0.1 * hidden.detach().mean(0)
    return hidden - net.average


def running(net, hidden):
    RUNNING.mul_(1.1)
    return hidden * RUNNING


def of_the_first_batch(net, hidden):
    if not hasattr(net, "begun"):
        net.last.bias.data.copy_(hidden.detach().mean())
        net.begun = True
    return hidden


def under_no_grad(change):
    def changed(net, hidden):
        with torch.no_grad():
            change(net.last)
        return hidden

    return changed


def scale_in_place(layer):
    layer.weight.mul_(0.9)


def set_a_number(layer):
    layer.weight[0, 0] = 0.0


def set_data(layer):
    layer.weight.data = layer.weight.data * 0.9


def set_parameter(layer):
    layer.weight = nn.Parameter(layer.weight.detach() * 0.9)


def set_all(layer):
    nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(layer.parameters()) * 0.9, layer.parameters())


def write_with_numpy(layer):
    layer.weight.detach().numpy()[:] *= 0.9


def of_today(net, hidden):
    scale = 1

    scale += int(datetime64("today").astype(int)) % 7
    return hidden * scale


def a_clock_that_is_not_read(net, hidden):
    scale = 2
    if net is None:
        scale = int(np.datetime64("now").astype(int))
    return hidden * scale


def of_the_second_call(net, hidden):
    for is_late in (False, True):
        hidden = hidden * of_now(is_late)
    return hidden


def of_now(is_late):
    if not is_late:
        return 1
    return int(np.datetime64("now").astype(int)) % 7


class Record:
    id = 3


@dataclasses.dataclass(frozen=True)
class Shape:
    height: int
    width: int


RANDOM = [
    ("draws random numbers of Python's module random", lambda net, hidden: hidden * random.random()),
    ("draws random numbers of Python's module random", lambda net, hidden: hidden * 2 if random.random() < 1e-6 else hidden),
    ("draws random numbers of Python's module random", lambda net, hidden: hidden * draw()),
    ("draws random numbers of Python's module random", lambda net, hidden: hidden if net.training else hidden * draw()),
    ("draws random numbers of Python's module random", shuffled),
    ("draws random numbers of an object of random.Random", lambda net, hidden: hidden * OBJECT.gauss(1, 1)),
    ("takes the seed of a random.Random from the operating", lambda net, hidden: hidden if random.Random().random() else hidden * 2),
    ("draws random numbers of numpy.random", lambda net, hidden: hidden * float(np.random.rand())),
    ("draws random numbers of numpy.random", lambda net, hidden: hidden * 2 if np.random.rand() < 1e-6 else hidden),
    ("draws random numbers of a generator of numpy.random", lambda net, hidden: hidden * float(GENERATOR.random())),
    ("draws random numbers of a generator of numpy.random", lambda net, hidden: hidden * torch.from_numpy(STATE.rand(8)).float()),
    ("draws random numbers of the operating system", lambda net, hidden: hidden * float(np.random.default_rng().random())),
    ("draws random numbers of the operating system", lambda net, hidden: hidden * os.urandom(1)[0]),
    ("draws random numbers of the operating system", lambda net, hidden: hidden * secrets.randbelow(10)),
    ("draws random numbers of the operating system", lambda net, hidden: hidden * (uuid.uuid4().int % 7)),
    ("draws random numbers of the operating system", lambda net, hidden: hidden * random.SystemRandom().random()),
    ("reads the clock (time.time)", lambda net, hidden: hidden * (int(time.time()) % 5)),
    ("reads the clock (time.time)", lambda net, hidden: hidden * (int(clock()) % 5)),
    ("reads the clock (time.monotonic)", lambda net, hidden: hidden * time.monotonic()),
    ("reads the clock (datetime.now)", lambda net, hidden: hidden * datetime.datetime.now().hour),
    ("reads the clock (time.time)", lambda net, hidden: hidden * (int(functools.partial(time.time)()) % 5)),
    ("reads the clock (os.times)", lambda net, hidden: hidden * (os.times().user > 1e6)),
    ('reads the clock (np.datetime64("now"))', lambda net, hidden: hidden * (int(np.datetime64("now").astype(int)) % 7)),
    ('reads the clock (np.datetime64("today"))', of_today),
    ('reads the clock (np.datetime64("now"))', lambda net, hidden: hidden * (np.array("now", "M8[s]").astype(int).item() % 7)),
    ('reads the clock (np.datetime64("now"))', of_the_second_call),
    ("uses os.getpid(), whose numbers differ from process to process", lambda net, hidden: hidden * (os.getpid() % 5)),
    ("uses threading.get_ident(), whose numbers", lambda net, hidden: hidden * (threading.get_ident() % 7)),
    ("uses threading.Thread.ident, whose numbers", lambda net, hidden: hidden * (threading.current_thread().ident % 7)),
    ("uses id(), whose numbers", lambda net, hidden: hidden * (id(net) % 7)),
    ("uses id(), whose numbers", lambda net, hidden: hidden * len(max(["one", "three"], key=id))),
    ("uses hash(), whose numbers", lambda net, hidden: hidden * (sum(map(hash, ["one", "three"])) % 7)),
    ("uses hash(), whose numbers differ from process to process", lambda net, hidden: hidden * (hash("net") % 7)),
    ("draws random numbers of a torch.Generator of its own", lambda net, hidden: hidden * torch.rand(8, generator=OF_TORCH)),
    ("draws random numbers of a torch.Generator of its own", lambda net, hidden: hidden + torch.empty(8).normal_(generator=OF_TORCH)),
    ("uses the seed of PyTorch's random numbers", seeded),
]


class SideEffectsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(2)
        self.batch = torch.randn(4, 6), torch.arange(4) % 3

    def export(self, model, loss=nn.CrossEntropyLoss(), ending=".pt", batch=None):
        disttrain.export(model, loss, batch or self.batch, self.folder / ("step" + ending), say=None)

    def assert_refused(self, *texts, model, endings=(".pt", ".pt2"), **options):
        for ending in endings:
            with self.subTest(texts[0], ending=ending):
                with self.assertRaises(ExportError) as caught:
                    self.export(model(), ending=ending, **options)
                for text in texts:
                    self.assertIn(text, str(caught.exception))
                self.assertNotIn("\n", str(caught.exception))

    def test_RandomNumbersOfPythonAreFound(self):
        for text, change in RANDOM:
            name = "the model itself (Net) " + text
            self.assert_refused(name, f" at {__file__}:", model=lambda change=change: Net(change))

    def test_TheErrorNamesTheLineOfADate(self):
        self.assert_refused('scale += int(datetime64("today")', model=lambda: Net(of_today))

    def test_RandomNumbersInTheLossAreFound(self):
        def loss(outputs, labels):
            return nn.functional.cross_entropy(outputs, labels) * random.random()

        texts = ("the loss, the outputs or the metrics draws random numbers of Python's module random", "* random.random())")
        self.assert_refused(*texts, model=plain, loss=loss)

    def test_NumbersThatStayTheSameAreTaken(self):
        for change in (
            lambda net, hidden: hidden * OF_THE_IMPORT,
            lambda net, hidden: hidden * torch.rand(8),
            lambda net, hidden: hidden * random.Random(5).random(),
            lambda net, hidden: hidden * (int(np.datetime64("2020-01-01").astype(int)) % 7) + len("now"),
            lambda net, hidden: hidden * float(np.random.default_rng(5).random()),
            a_clock_that_is_not_read,
            lambda net, hidden: hidden * len(set(map(id, net.parameters()))),
            lambda net, hidden: hidden * max(Record.id, 2, key=float),
            lambda net, hidden: hidden * {Shape(2, 3): 0.5}[Shape(2, 3)],
            lambda net, hidden: hidden * len(str(np.ones(2))),
        ):
            self.export(Net(change))

    def test_AnExportLeavesTheFunctionsOfPython(self):
        before = id, hash, time.time, os.getpid, threading.get_ident
        self.export(plain())
        with self.assertRaises(ExportError):
            self.export(Net(lambda net, hidden: hidden * os.getpid()))
        self.assertEqual(before, (id, hash, time.time, os.getpid, threading.get_ident))

    def test_OtherThreadsMayReadTheClock(self):
        end = threading.Event()

        def read():
            while not end.is_set():
                time.monotonic(), end.wait(0.001)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            self.export(plain())
        finally:
            end.set()
            reader.join()

    def test_ValuesThatForwardKeepsAreFound(self):
        for text, change in [
            ('the model itself (Net) changes its attribute "steps" in each run', counted),
            ("the model has another result when it runs again on the same batch", counted_elsewhere),
            ('the model itself (Net) keeps a tensor in its attribute "average", which changes in each run', averaged),
            ("the model itself (Net) writes to a tensor that is no buffer of the model (mul_) at", running),
        ]:
            self.assert_refused(text, "register_buffer" if "Net" in text else "a buffer", model=lambda change=change: Net(change))

    def test_WritesToParametersAreFound(self):
        writes = 'the model itself (Net) writes to parameter "last.weight" ('
        gives = 'the model gives parameter "last.weight" another value'
        for text, change in [
            (writes + "clamp_) at", lambda layer: layer.weight.data.clamp_(-9, 9)),  # changes no value here
            (writes + "mul_) at", scale_in_place),
            (writes + "copy_) at", lambda layer: layer.weight.copy_(layer.weight.clamp(-9, 9))),
            (writes + "copy_) at", set_a_number),
            (writes + "renorm_) at", lambda layer: layer.weight.renorm_(2, 0, 9.0)),
            (writes + "_foreach_mul_) at", lambda layer: torch._foreach_mul_([layer.weight], 0.99)),
            (writes + "mul) at", lambda layer: torch.mul(layer.weight, 0.9, out=layer.weight)),
            (gives, set_data),
            (gives, set_parameter),
            (gives, set_all),
            (gives, write_with_numpy),
        ]:
            self.assert_refused(text, "only the optimizer may", model=lambda change=change: Net(under_no_grad(change)))
        self.assert_refused('writes to parameter "last.bias" (copy_) at', model=lambda: Net(of_the_first_batch))

    def test_MaxNormIsRefused(self):
        def model():
            return nn.Sequential(nn.Embedding(9, 4, max_norm=1.0), nn.Flatten(), nn.Linear(24, 3))

        text = 'layer "0" (Embedding) writes to parameter "0.weight" (embedding_renorm_, which max_norm= asks for)'
        self.assert_refused(text, model=model, batch=(torch.randint(0, 9, (4, 6)), torch.arange(4) % 3))

    def test_BufferOfTheLossMayNotChange(self):
        class Loss(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("scale", torch.tensor(1.0))

            def forward(self, outputs, labels):
                self.scale.mul_(0.9)
                return nn.functional.cross_entropy(outputs, labels) * self.scale

        self.assert_refused('writes to parameter "loss:scale" (mul_)', model=plain, loss=Loss())

    def test_TensorThatRequiresAGradientIsNoConstant(self):
        outside, layers = nn.Parameter(torch.ones(8)), [nn.Linear(8, 8)]
        for change in (lambda net, hidden: hidden * outside, lambda net, hidden: layers[0](hidden)):
            text = "computes with a tensor that requires a gradient and is no parameter of the model at"
            self.assert_refused(text, "torch.nn.ModuleList", model=lambda change=change: Net(change))

    def test_ViewOfAParameterInAnAttributeIsNoConstant(self):
        """A program has other tensors in the places of parameters and state."""

        def with_view(of, change):
            net = Net(change)
            net.norm = nn.BatchNorm1d(8)
            net.view = of(net)
            return net

        for name, of in (
            ("last.weight", lambda net: net.last.weight.t()),
            ("last.weight", lambda net: net.last.weight.data.t()),
            ("norm.running_mean", lambda net: net.norm.running_mean[:3]),
        ):
            self.assert_refused(
                f'the model itself (Net) computes with a tensor that shares memory with "{name}"',
                "; take the view in forward()",
                model=lambda of=of: with_view(of, lambda net, hidden: net.norm(hidden) * net.view.sum()),
            )
        self.export(with_view(lambda net: net.last.weight.t(), lambda net, hidden: net.norm(hidden)))
        self.export(with_view(lambda net: net.last.weight.t().detach().clone(), lambda net, hidden: hidden * net.view.sum()))
        computed = plain().last.weight.t() * 2
        text = "computes with a tensor that requires a gradient and is no parameter of the model at"
        self.assert_refused(text, model=lambda: Net(lambda net, hidden: hidden * computed.sum()))

    def test_ExportLeavesTheModelAndTheBatchAsTheyAre(self):
        def change(net, hidden):
            net.seen = hidden
            return hidden

        model = nn.Sequential(nn.ReLU(inplace=True), Net(change))
        before = self.batch[0].clone()
        self.export(model)
        self.assertTrue(torch.equal(self.batch[0], before))
        self.assertNotIn("seen", vars(model[1]))


if __name__ == "__main__":
    unittest.main()
