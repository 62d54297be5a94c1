"""The rehearsal of a loop with a torch module, which leaves the module and the random numbers as they were."""

import unittest

from fake_worker import FakeWorker, run_code
from torch_script import PYTHON, VALUES, TorchScriptTest

# A table that the forward pass fills once, and a mode that the loop sets once.
SET_UP_ONCE = """
import disttrain, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.register_buffer("table", torch.zeros(1), persistent=False)
        self.ready = False
    def forward(self, x):
        if not self.ready:
            self.table.copy_(torch.tensor([7.0]))
            self.ready = True
        return self.layer(x) * self.table
model = Net().eval()
job = disttrain.init()
job.wrap(model)
@job.on_evaluate
def evaluate(batch):
    return {"loss": model(batch.x).sum()}
for i, batch in enumerate(job.batches([torch.tensor([1.0])] * 2)):
    if i == 0:
        model.train()
    model(batch.x).sum().backward()
    print(model.table.item(), model.training)
    job.step(loss=0)
"""
# Gives its bias values once, from the first batch, by `data` or at a place that takes a case's code.
SET_UP_A_PARAMETER = """
import disttrain, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(2))
        self.ready = False
    def forward(self, x):
        if not self.ready:
            {change}
            self.ready = True
        return x + self.bias
model = Net()
job = disttrain.init()
job.wrap(model)
@job.on_evaluate
def evaluate(batch):
    {evaluate}
    return {{"loss": 0}}
for batch in job.batches([torch.tensor([1.0, 2.0])] * 2):
    model(batch.x).sum().backward()
    job.step(loss=0)
    {after}
"""
# Draws random numbers of Python, NumPy and PyTorch. They are seeded between batches() and the loop.
SEEDED = """
import disttrain, random, numpy as np, torch
model = {model}
job = disttrain.init({init})
job.wrap(model)
loop = job.batches([torch.tensor([float(i)]) for i in range(10)])
random.seed(1), np.random.seed(1), torch.manual_seed(1)
for batch in loop:
    print(random.random(), np.random.rand(), torch.rand(1).item())
    {step}
"""


class TorchRehearsalTest(TorchScriptTest):
    def test_the_rehearsal_leaves_what_the_script_sets_up_once(self):
        with FakeWorker(PYTHON, SET_UP_ONCE) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            worker.start(parameters, gradients, [1])
            worker.receive()
            worker.end()
            self.assertEqual(worker.finish(), (0, "7.0 True\n7.0 True\n"))

    def test_a_parameter_that_the_rehearsal_changes_is_an_error(self):
        for case in (
            {"change": "self.bias.data = -x.mean(0)"},
            {"change": "self.bias.data -= x.mean(0)"},
            {"change": "self.bias.detach().sub_(x.mean(0))"},
            {"after": "model.bias.data += 1"},
            {"evaluate": "model.bias.data += 1"},
        ):
            with self.subTest(case):
                script = SET_UP_A_PARAMETER.format(**{"change": "pass", "evaluate": "pass", "after": "pass", **case})
                with FakeWorker(PYTHON, script) as worker:
                    message = worker.receive()
                    who = "the function of job.on_evaluate() or job.on_predict()" if "evaluate" in case else "the loop"
                    self.assertIn(f'{who} changed the parameter "bias" in place', message.get("message", ""))
                    self.assertEqual(worker.finish()[0], 1)

    def test_the_rehearsal_leaves_the_random_numbers(self):
        for model, step in (
            ("torch.nn.Linear(1, 1)", "model(batch.x).sum().backward(); job.step(loss=0)"),
            ("{'w': np.ones(1)}", "job.push_pull({'w': np.ones(1)}, loss=0)"),
        ):
            with self.subTest(model), FakeWorker(PYTHON, SEEDED.format(init="", model=model, step=step)) as worker:
                worker.open()
                parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
                worker.start(parameters, gradients, [1])
                worker.receive()
                worker.end()
                code, output = worker.finish()
                self.assertEqual(code, 0, output)
                rehearsed, first = output.splitlines()
                self.assertEqual(rehearsed, first)

    def test_random_numbers_of_devices_in_use_are_restored(self):
        code = """
import torch
from disttrain.random_states import RandomStates
states = {name: "before" for name in ("cuda", "xpu", "mps")}
def install(name, device, suffix):
    setattr(device, "get_rng_state" + suffix, lambda: states[name])
    setattr(device, "set_rng_state" + suffix, lambda state: states.update({name: state}))
torch.cuda.is_initialized = torch.backends.mps.is_available = lambda: True
torch.xpu.is_initialized = lambda: False
install("cuda", torch.cuda, "_all"), install("xpu", torch.xpu, "_all"), install("mps", torch.mps, "")
noted = RandomStates()
states.update(dict.fromkeys(states, "after"))
noted.restore()
print(states)
"""
        done = run_code(PYTHON, code)
        self.assertEqual(done.stdout, "{'cuda': 'before', 'xpu': 'after', 'mps': 'before'}\n", done.stderr)

    def test_the_rehearsal_changes_nothing(self):
        rehearsed, plain = self.start(init=""), self.start()
        for worker in (rehearsed, plain):
            self.assertEqual(worker.model, plain.model)
            worker.first = worker.initial()
            worker.fill(worker.pair[0], VALUES)
            worker.start(*worker.pair, [1, 3])
            worker.receive()
            worker.end()
            worker.lines = worker.finish()[1].splitlines()
        self.assertEqual(rehearsed.first, plain.first)
        self.assertEqual(len(rehearsed.lines), 7)
        # Also the random number. The buffer with persistent=False is the script's, and has counted the rehearsal.
        flags, counted, counted_twice = "[[True, True], ", "[2.0, 2.0], ", "[4.0, 4.0], "
        self.assertIn(flags + counted_twice, rehearsed.lines[5])
        found = [line.replace(flags + counted_twice, flags + counted) for line in rehearsed.lines[3:]]
        self.assertEqual(found, plain.lines)


if __name__ == "__main__":
    unittest.main()
