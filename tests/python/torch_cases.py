"""Cases of what a script may do to a torch module within the loop: it works as in PyTorch, or an error says which line to
change. They need a Python with PyTorch.

A file of cases is a program. Each function of it that takes no arguments is a case. It prints the error that it causes, or
what it returns. All cases of a file run in one process, because the import of torch takes seconds.
"""

from fake_worker import require_python, run_code

PYTHON = require_python("torch")

# What stands before the cases of each file.
BEGIN = """
import warnings
import numpy as np, torch
from disttrain import DisttrainError
from disttrain.torch_model import TorchModel
from torch.utils._python_dispatch import TorchDispatchMode
warnings.simplefilter("ignore")
nn = torch.nn

class Run:
    "A module with its model, in flat arrays of its own, in its first step."
    def __init__(self, net=None, **options):
        self.net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)) if net is None else net
        rehearse = options.pop("rehearse", False)
        self.model = TorchModel(self.net, options.pop("overlap", False), **options)
        self.model.begin_loop()
        if rehearse:
            self.model.begin_rehearsal()
            self.backward(), self.end(), self.model.reset()
        begins, words = [], 0
        for variable in self.model.variables:
            begins.append(words)
            words += variable.words
        self.parameters, self.gradients = np.zeros(words, np.float32), np.zeros(words, np.float32)
        for begin, variable, value in zip(begins, self.model.variables, self.model.initial()):
            self.parameters[begin : begin + variable.words] = value.reshape(-1).view(np.float32)
        self.model.lay_out(begins)
        self.model.bind("arrays", lambda: (self.parameters, self.gradients))
        self.begin()
    def begin(self):
        self.model.load()
        self.model.begin_step(), self.model.begin_batch(lambda end: None)
    def backward(self, scale=1.0):
        x = torch.ones(3, 2, dtype=next(self.net.parameters()).dtype)
        (self.net(x).sum() * scale).backward()
    def end(self):
        self.model.end_step()
        return "taken"
    def step(self):
        self.backward(), self.end(), self.begin()
    def after(self, change):
        "A change in the body of the second step, before its backward pass."
        self.step()
        change()
        self.backward()
        return self.end()

def in_place(change, parameters):
    with torch.no_grad():
        for parameter in parameters:
            change(parameter)

class Calls(TorchDispatchMode):
    "The functions of PyTorch that run in it."
    def __init__(self):
        super().__init__()
        self.calls = []  # (name, elements of the first argument)
    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if arguments and isinstance(arguments[0], torch.Tensor):
            self.calls.append((function.overloadpacket.__name__, arguments[0].numel()))
        return function(*arguments, **(options or {}))
"""
# What follows them.
END = """
for name, case in list(globals().items()):
    if getattr(case, "__module__", "") == "__main__" and not isinstance(case, type) and not case.__code__.co_argcount:
        try:
            print(f"{name}: {case()}", flush=True)
        except DisttrainError as error:
            print(f"{name}: {error}", flush=True)
"""
DROPPED = "the gradients were dropped between loss.backward() and job.step(), as zero_grad() does: take this line out"


def changed(name):
    return f'the loop changed the parameter "{name}" in place. Such a change stays in this process'


class TorchCases:
    """The tests of a file of cases, for a class that also inherits unittest.TestCase and has the program `cases`, and the
    tables `sentences` and `values`: name of a case -> a part of its error, or what it returns."""

    @classmethod
    def setUpClass(cls):
        done = run_code(PYTHON, BEGIN + cls.cases + END)
        cls.output = done.stdout + done.stderr
        cls.found = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)

    def test_what_a_loop_may_not_do_is_one_sentence(self):
        for name, sentence in self.sentences.items():
            with self.subTest(name):
                self.assertIn(sentence, self.found.get(name, self.output))

    def test_what_a_loop_may_do_works(self):
        for name, expected in self.values.items():
            with self.subTest(name):
                self.assertEqual(self.found.get(name, self.output), str(expected))
