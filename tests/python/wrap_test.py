"""What job.wrap() says about objects that aren't a model. It needs a Python with PyTorch."""

import unittest

from fake_worker import require_python, run_code

PYTHON = require_python("torch")

CASES = """
import collections, numpy, torch
from disttrain.job import Job

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

class Plain:
    pass

net = Net()
for model in (
    {models}
):
    job = Job([])
    try:
        {call}
        print([variable.name for variable in job._model.variables])
    except Exception as error:
        print(type(error).__name__ + ": " + str(error))
"""
ARRAYS = 'a dict, list or tuple of arrays of NumPy or JAX, such as {"weights": array}'
MODEL = f"; expected a torch module, or {ARRAYS}"
TENSORS = "expected the module that has the tensors: job.wrap(model)"
SEVERAL = "expected one module: torch.nn.ModuleList or torch.nn.ModuleDict makes one of several"
MODELS = {
    "None": f"None{MODEL}: does the function that makes the model return it?",
    "lambda x: x": f"the function <lambda>{MODEL}",
    "torch.nn.functional.relu": f"the function relu{MODEL}",
    "numpy": f"the Python module numpy{MODEL}",
    "'net.pt'": f"an object of the class str{MODEL}",
    "Plain": f"the class Plain{MODEL}",
    "dict": f"the class dict{MODEL}",
    "{1, 2}": f"an object of the class set{MODEL}",
    "numpy.zeros(2)": f"one array (ndarray) with the shape [2]{MODEL}",
    "torch.zeros(2)": f"a torch tensor with the shape [2]{MODEL}",
    "Net": "the class Net; expected an object of it: job.wrap(Net(...))",
    "net.layer.forward": "the function forward; expected the module itself: job.wrap(model)",
    "net.parameters()": "an object of the class generator; expected the module itself, and not its parameters: job.wrap(model)",
    "net.state_dict()": f'an OrderedDict with a torch tensor with the shape [2, 2] at "layer.weight"; {TENSORS}',
    "list(net.parameters())": f'a list with a torch tensor with the shape [2, 2] at "0"; {TENSORS}',
    "{'model': net.state_dict(), 'epoch': 3}": f'a dict with a torch tensor with the shape [2, 2] at "model/layer.weight"; {TENSORS}',
    "[net, net]": f'a list with a torch module (Net) at "0"; {SEVERAL}',
    "{'w': Plain()}": 'a dict with an object of the class Plain at "w"; expected an array of floats there',
    "{'a': {'w': Plain}}": 'a dict with the class Plain at "a/w"; expected an array of floats there',
    "[1, 2]": 'the array "0" with values of type int64; expected floats, because the cluster averages them: leave other '
    "arrays out of the tree",
    "{}": "a dict without arrays; expected at least one array of floats",
    "{'w': None}": "a dict without arrays; expected at least one array of floats",
    "{'a/b': numpy.zeros(1)}": 'the key "a/b"; expected keys without "/"',
    "torch.nn.ReLU()": "a module (ReLU) that has no parameter that requires a gradient; expected at least one, because a "
    "job trains",
    "torch.nn.Linear(2, 2, device='meta')": 'a module whose "weight" is on the device meta, without values; expected values: '
    "call module.to_empty(device=...) and initialize it before job.wrap()",
}
STATES = {
    "numpy.zeros(2)": f"one array (ndarray) with the shape [2]; expected {ARRAYS}",
    "3": f"an object of the class int; expected {ARRAYS}",
    "net": f"a torch module (Net); expected {ARRAYS}",
    "{'w': numpy.zeros(2)}": 'an array "w", and the tree of parameters has one of this name, too; expected names of its own for '
    'the state, such as state={"state": ...}',
    "{'w': numpy.zeros(1, int)}": 'the array "w" with values of type int64; expected floats',
}


class WrapTest(unittest.TestCase):
    def results(self, call, models):
        script = CASES.replace("{models}", "".join(f"{model},\n    " for model in models)).replace("{call}", call)
        done = run_code(PYTHON, script)
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(zip(models, done.stdout.splitlines(), strict=True))

    def test_objects_that_are_no_model_are_named_in_one_sentence(self):
        for model, result in self.results("job.wrap(model)", MODELS).items():
            with self.subTest(model):
                self.assertEqual(result, "DisttrainError: job.wrap() got " + MODELS[model])

    def test_objects_that_are_no_state_are_named_in_one_sentence(self):
        results = self.results('job.wrap({"w": numpy.zeros(1)}, state=model)', STATES)
        for state, result in results.items():
            with self.subTest(state):
                self.assertIn("DisttrainError: job.wrap(state=...) got " + STATES[state], result)

    def test_trees_of_arrays_are_models(self):
        models = {
            "[0.5, numpy.zeros(2)]": ["0", "1"],
            "collections.namedtuple('T', 'a b')(numpy.zeros(1), None)": ["0"],
            "{'a': {'b': numpy.float32(1)}}": ["a/b"],
        }
        for model, result in self.results("job.wrap(model)", models).items():
            with self.subTest(model):
                self.assertEqual(result, str(models[model]))

    def test_functions_are_checked_when_they_are_given(self):
        for call in ("job.on_evaluate(model)", "job.on_predict(model)"):
            for model, result in self.results(call, ["3", "'loss'"]).items():
                kind = type(eval(model)).__name__
                name = call.replace("model", "")
                self.assertEqual(result, f"DisttrainError: {name} got an object of the class {kind}; expected a function of a batch")


if __name__ == "__main__":
    unittest.main()
