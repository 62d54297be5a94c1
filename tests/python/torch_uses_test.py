"""How scripts may and may not use a torch module, and the sentence for each wrong use. It needs a Python with PyTorch."""

import unittest

from fake_worker import require_python, run_code

PYTHON = require_python("torch")

# Each function is a case. It prints the error that it causes, or numbers. All cases run in one process, because the
# import of torch takes seconds.
CASES = """
import numpy as np, torch
from disttrain import DisttrainError
from disttrain.torch_model import TorchModel

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(2, 2, sparse=True)
        self.a = torch.nn.Linear(1, 1, bias=False)
        self.b = torch.nn.Linear(1, 1, bias=False)
        self.frozen = torch.nn.Parameter(torch.ones(1), requires_grad=False)
        self.register_buffer("seen", torch.zeros(1))
    def forward(self, x):
        self.seen += 1
        return self.b(self.a(x)) + self.table(torch.tensor([1])).sum()

class Run:
    "A module with its model, in flat arrays of its own, whose parameters are all 1."
    def __init__(self, overlap=False):
        self.net = Net()
        self.model = TorchModel(self.net, overlap)
        self.begins = [0, 1, 5, 6]  # of seen, table, a, b
        self.announced = []
        self.open()
    def open(self):
        self.parameters, self.gradients = np.ones(7, np.float32), np.full(7, 9, np.float32)
        self.model.lay_out(self.begins)
        self.model.bind("first", lambda: (self.parameters, self.gradients))
        self.begin()
    def begin(self):
        self.model.begin_step(), self.model.begin_batch(self.announced.append)
    def backward(self, x=2.0):
        self.net(torch.tensor([[x]])).sum().backward()
    def end(self):
        self.model.end_step()
        return self.gradients.tolist()

def variables_are_read_only_and_parameters_arent():
    run = Run()
    before = TorchModel(Net(), False).named_views()  # those before the loop
    views = run.model.named_views()
    with torch.no_grad():
        run.net.a.weight.mul_(2)
    return {view.flags.writeable for view in (*before.values(), *views.values())}, views["a.weight"].item()
def gradients_are_in_the_array_without_a_copy():
    run = Run()
    run.backward()
    before = run.gradients[1:].tolist()
    return before, run.end()
def each_step_begins_without_gradients():
    run = Run()
    for _ in range(3):
        run.backward(), run.end(), run.begin()
    return run.gradients.tolist()
def gradients_of_two_backward_passes_add_up():
    run = Run()
    run.backward(), run.backward(3.0)
    return run.end()
def gradients_that_the_script_replaced_are_copied():
    run = Run()
    run.net.zero_grad()
    run.backward()
    first = run.end()
    run.begin(), run.backward()
    return first, run.end(), run.net.a.weight.grad.data_ptr() == run.gradients[5:].ctypes.data
def gradients_of_0_are_gradients():
    run = Run()
    (run.net.b(run.net.a(torch.ones(1, 1))) * 0).sum().backward()  # the table has no gradient
    first = run.end()
    run.begin(), (run.net.b.weight * 0).sum().backward()
    return first, run.end()
def no_backward_after_a_step_of_zeros():
    run = Run()
    (run.net.b(run.net.a(torch.ones(1, 1))) * 0).sum().backward()
    run.end(), run.begin(), run.end()
def zero_grad_before_the_backward_pass_is_harmless():
    run = Run()
    run.model.clear_gradients(), run.backward()
    return run.end()
def zero_grad_drops_what_a_backward_pass_brought():
    run = Run()
    run.backward(), run.model.clear_gradients(), run.backward()
    return run.end()
def other_arrays():
    run = Run()
    run.backward(), run.end()
    parameters, gradients = np.full(7, 2, np.float32), np.full(7, 9, np.float32)
    run.model.bind("second", lambda: (parameters, gradients))
    run.begin(), run.backward(), run.model.end_step()
    return gradients.tolist()
def gradients_in_overlap_arent_copied():
    run = Run(overlap=True)
    run.backward()
    return run.end()
def converted_parameters():
    run = Run()
    run.net.a.double()
    run.open()
    run.net.a(torch.ones(1, 1, dtype=torch.double)).sum().backward()
    return run.end(), str(run.net.a.weight.dtype)
def no_backward():
    Run().end()
def no_backward_in_a_later_step():
    run = Run()
    run.backward(), run.end(), run.begin(), run.end()
def no_backward_in_the_rehearsal():
    TorchModel(Net(), False).end_step()
def a_replaced_parameter():
    run = Run()
    run.net.a = torch.nn.Linear(1, 1)
    run.model.check_unchanged()
def a_parameter_replaced_after_some_steps():
    run = Run()
    run.backward(), run.end(), run.begin()
    run.net.a.weight = torch.nn.Parameter(torch.ones(1, 1))
    run.backward(), run.end()
def a_layer_replaced_after_some_steps():
    run = Run()
    run.backward(), run.end(), run.begin()
    run.net.a = torch.nn.Linear(1, 1, bias=False)
    run.backward(), run.end()
def a_parameter_removed_after_some_steps():
    run = Run()
    run.backward(), run.end(), run.begin()
    run.backward()
    del run.net.a.weight
    run.end()
def the_only_parameter_replaced_in_the_rehearsal():
    net = torch.nn.Linear(1, 1, bias=False)
    model = TorchModel(net, False)
    net.weight = torch.nn.Parameter(torch.ones(1, 1))
    net(torch.ones(1, 1)).sum().backward(), model.end_step()
def a_layer_in_another_place_of_the_same_name():
    run = Run()
    run.backward(), run.end(), run.begin()
    a, run.net.a = run.net.a, torch.nn.Linear(1, 1, bias=False)
    run.net.a.weight = a.weight
    run.backward()
    first = run.end()
    run.begin(), run.backward()
    return first, run.end()
def a_parameter_of_another_shape():
    run = Run()
    run.net.a.weight.data = torch.ones(2, 2)
    run.model.check_unchanged()
def a_parameter_frozen_too_late():
    run = Run()
    run.net.a.weight.requires_grad = False
    run.model.check_unchanged()
def a_parameter_unfrozen_too_late():
    run = Run()
    run.net.frozen.requires_grad = True
    run.model.check_unchanged()
def a_buffer_that_forward_replaces():
    run = Run()
    run.net.seen = run.net.seen + 1
    run.backward(), run.end()
def a_module_moved_in_the_loop():
    run = Run()
    run.backward()
    run.net.a.weight.data = run.net.a.weight.data.clone()
    run.end()
def a_parameter_moved_after_some_steps():
    run = Run()
    run.backward(), run.end(), run.begin()
    run.net.a.weight.data = run.net.a.weight.data.clone()
    run.backward(), run.end()
def a_lazy_module():
    TorchModel(torch.nn.LazyLinear(2), False)
def an_empty_parameter():
    TorchModel(torch.nn.Linear(0, 2), False)
class Masked(torch.nn.Module):
    "Its buffer `scores` has an infinity."
    def __init__(self, worst=-torch.inf):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.inner = torch.nn.Module()
        self.inner.register_buffer("scores", torch.tensor([0.0, worst]))
    def model(self):
        model = TorchModel(self, False)
        model.lay_out([0, 1])
        model.bind("first", lambda: (np.ones(3, np.float32), np.zeros(3, np.float32)))
        model.begin_step()
        self.weight.sum().backward()
        return model
def a_buffer_with_an_infinity_is_no_variable():
    masked = Masked()
    model = masked.model()
    model.end_step()
    return [variable.name for variable in model.variables], masked.inner.scores.tolist()
def a_buffer_with_a_nan_is_a_variable():
    return [variable.name for variable in TorchModel(Masked(torch.nan), False).variables]
def a_buffer_with_an_infinity_may_be_loaded_before_the_loop():
    masked = Masked()
    model = TorchModel(masked, False)
    masked.load_state_dict(Masked().state_dict())
    model.begin_loop()
    masked.weight.sum().backward()
    model.end_step()
    return "taken"
def a_buffer_with_an_infinity_that_a_step_changes():
    masked = Masked()
    model = masked.model()
    masked.inner.scores += 1
    model.end_step()
def a_buffer_with_an_infinity_that_a_step_replaces():
    masked = Masked()
    model = masked.model()
    masked.inner.scores = torch.maximum(masked.inner.scores, torch.ones(2))
    model.end_step()
def a_module_of_torch_jit():
    module = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.BatchNorm1d(1)))
    model = TorchModel(module, True)
    names = [variable.name for variable in model.variables]
    parameters, gradients = np.ones(6, np.float32), np.zeros(6, np.float32)
    model.lay_out(range(6))
    model.bind("first", lambda: (parameters, gradients))
    for _ in range(2):
        model.load()
        model.begin_step(), model.begin_batch(lambda end: None)
        module(torch.tensor([[0.0], [2.0]])).square().mean().backward()
        model.end_step()
        model.store()
    return names, dict(zip(names, gradients.round(1).tolist()))["1.bias"], float(gradients[names.index("1.running_mean")])
def a_module_of_torch_jit_with_a_mask():
    net = torch.nn.Linear(1, 1)
    net.register_buffer("mask", torch.ones(1, dtype=torch.bool))
    net.register_buffer("seen", torch.zeros(1))
    module = torch.jit.script(net)
    model = TorchModel(module, False)
    model.lay_out(range(3))
    model.bind("first", lambda: (np.ones(3, np.float32), np.zeros(3, np.float32)))
    model.load(), model.begin_step()
    module(torch.ones(1, 1)).sum().backward()
    model.end_step()
    with model.evaluating():
        module.train()
        module.seen += 5
    return module.training, module.seen.item(), module.mask.item()
def a_layer_frozen_by_torch_jit():
    net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.jit.freeze(torch.jit.script(torch.nn.Linear(1, 1)).eval()))
    net[0].train(False)
    model = TorchModel(net, False)
    with model.evaluating():
        net.train()
    return net.training, net[0].training, len(model.variables)
def a_frozen_module():
    TorchModel(Net().requires_grad_(False), False)

for name, case in list(globals().items()):
    if getattr(case, "__module__", "") == "__main__" and not isinstance(case, type):
        try:
            print(f"{name}: {case()}", flush=True)
        except DisttrainError as error:
            print(f"{name}: {error}", flush=True)
"""
# The new value of seen; the gradients of table, whose record 0 isn't used; those of a and b, x * 1
ONE_STEP = [2.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
# The state comes first. The mean of the batch is 1, so the running mean, which begins with 1, stays.
JIT_NAMES, JIT_MEAN = ["1.running_mean", "1.running_var", "1.num_batches_tracked", "0.weight", "1.weight", "1.bias"], 1.0
SENTENCES = {
    "no_backward": "call loss.backward() before job.step()",
    "no_backward_in_a_later_step": "call loss.backward() before job.step()",
    "no_backward_after_a_step_of_zeros": "call loss.backward() before job.step()",
    "no_backward_in_the_rehearsal": "call loss.backward() before job.step()",
    "a_replaced_parameter": 'since job.wrap() the parameter "a.weight" was replaced by another tensor',
    "a_parameter_replaced_after_some_steps": 'since job.wrap() the parameter "a.weight" was replaced by another tensor',
    "a_layer_replaced_after_some_steps": 'since job.wrap() the parameter "a.weight" was replaced by another tensor',
    "a_parameter_removed_after_some_steps": 'since job.wrap() the parameter "a.weight" was replaced by another tensor',
    "the_only_parameter_replaced_in_the_rehearsal": 'the parameter "weight" was replaced by another tensor, or got another '
    "shape: change it before job.wrap(), or in place",
    "a_parameter_moved_after_some_steps": '"a.weight" isn\'t in the worker\'s memory any more',
    "a_parameter_of_another_shape": 'the parameter "a.weight" was replaced by another tensor, or got another shape',
    "a_parameter_frozen_too_late": 'the parameter "a.weight" was frozen: freeze it before job.wrap()',
    "a_parameter_unfrozen_too_late": 'the parameter "frozen" was added or unfrozen',
    "a_buffer_that_forward_replaces": 'the buffer "seen" was replaced by another tensor',
    "a_module_moved_in_the_loop": '"a.weight" isn\'t in the worker\'s memory any more',
    "a_lazy_module": 'has no shape yet, because it belongs to a lazy module: run the module once before job.wrap()',
    "an_empty_parameter": '"weight" has no elements (shape [2, 0]): remove it from the module',
    "a_buffer_with_an_infinity_that_a_step_changes": 'the step changed the buffer "inner.scores", which had an infinity at',
    "a_buffer_with_an_infinity_that_a_step_replaces": 'the step changed the buffer "inner.scores", which had an infinity at',
    "a_frozen_module": "that has no parameter that requires a gradient; expected at least one",
}
VALUES = {
    "a_buffer_with_an_infinity_is_no_variable": (["weight"], [0.0, float("-inf")]),
    "a_buffer_with_a_nan_is_a_variable": ["inner.scores", "weight"],
    "a_buffer_with_an_infinity_may_be_loaded_before_the_loop": "taken",
    "variables_are_read_only_and_parameters_arent": ({False}, 2.0),
    "gradients_are_in_the_array_without_a_copy": (ONE_STEP[1:], ONE_STEP),
    "each_step_begins_without_gradients": [0.0] * 7,
    "gradients_of_two_backward_passes_add_up": [3.0, 0.0, 0.0, 2.0, 2.0, 5.0, 5.0],
    "gradients_that_the_script_replaced_are_copied": (ONE_STEP, [3.0, *ONE_STEP[1:]], True),
    "zero_grad_before_the_backward_pass_is_harmless": ONE_STEP,
    "zero_grad_drops_what_a_backward_pass_brought": [3.0, *ONE_STEP[1:]],
    "gradients_of_0_are_gradients": ([1.0, *[0.0] * 6],) * 2,
    "a_layer_in_another_place_of_the_same_name": ([3.0, *ONE_STEP[1:]], [4.0, *ONE_STEP[1:]]),
    "other_arrays": [3.0, 0.0, 0.0, 1.0, 1.0, 4.0, 4.0],
    "gradients_in_overlap_arent_copied": ONE_STEP,
    "a_module_of_torch_jit": (JIT_NAMES, 2.0, JIT_MEAN),
    "a_module_of_torch_jit_with_a_mask": (True, 1.0, True),
    "a_layer_frozen_by_torch_jit": (True, False, 2),
    "converted_parameters": ([1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0], "torch.float64"),
}


class TorchUsesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = run_code(PYTHON, CASES)
        cls.output = done.stdout + done.stderr
        cls.found = dict(line.split(": ", 1) for line in done.stdout.splitlines())

    def test_each_wrong_use_is_one_clear_sentence(self):
        for name, sentence in SENTENCES.items():
            with self.subTest(name):
                self.assertIn(sentence, self.found.get(name, self.output))

    def test_gradients_and_state_come_into_the_array(self):
        for name, expected in VALUES.items():
            with self.subTest(name):
                self.assertEqual(self.found.get(name, self.output), str(expected))


if __name__ == "__main__":
    unittest.main()
