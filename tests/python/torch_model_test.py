"""Torch modules as trainers. It needs a Python with PyTorch, or the variable TORCH_PYTHON with the path of one."""

import unittest

from fake_worker import FakeWorker, require_python, run_code

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
DEEP = """
import disttrain, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(600, 600, bias=False) for _ in range(3)])
        self.bias = torch.nn.Parameter(torch.zeros(600))
        self.register_buffer("steps", torch.zeros(1))
    def forward(self, x):
        self.steps += 10
        for layer in self.layers:
            x = layer(x)
        return x + self.bias
model = Net()
job = disttrain.init({init})
job.wrap(model, overlap=True)
for batch in job.batches([torch.ones(600)] * 10):
    loss = model(batch.x).sum() / len(batch.x)
    loss.backward()
    {step}(loss=loss)
"""
NAMES = ["first.weight", "norm.weight", "norm.bias", "wide.weight", "unused"]
STATE = ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]
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


# Takes a line of a case before the evaluation's backward pass.
BACKWARD_IN_EVALUATION = """
import disttrain, torch
torch.manual_seed(1)
model = torch.nn.Linear(1, 1)
model.register_buffer("offsets", torch.tensor([0, 2**24 + 1]))
job = disttrain.init(metrics=[], alone=disttrain.Alone(batch_size=1, epochs=3))
opt = job.wrap(model)
@job.on_evaluate(dataset=[torch.tensor([2.0])])
def evaluate(batch):
    with torch.enable_grad():
        loss = 3 * model(batch.x).sum()
        {line}
        loss.backward()
    return {{"loss": loss.detach()}}
for batch in job.batches([torch.tensor([2.0])]):
    assert model.offsets.tolist() == [0, 2**24 + 1], model.offsets
    model(batch.x).sum().backward()
    job.step(loss=0)
print([parameter.item() for parameter in model.parameters()])
"""
# Its forward pass changes buffers of all kinds in every mode.
BUFFERS = """
import disttrain, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.norm = torch.nn.BatchNorm1d(1)
        self.register_buffer("small", torch.zeros(1))
        self.register_buffer("wide", torch.zeros(1, dtype=torch.float64))
        self.register_buffer("narrow", torch.zeros(1, dtype=torch.float16))
        self.register_buffer("whole", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("own", torch.zeros(1), persistent=False)
        self.register_buffer("is_ready", torch.zeros(1, dtype=torch.bool))
    def forward(self, x):
        for buffer in (self.small, self.wide, self.narrow, self.whole, self.own):
            buffer += 1
        return self.norm(self.layer(x))
model = Net()
job = disttrain.init({init})
job.wrap(model)
@job.on_evaluate
def evaluate(batch):
    model.train()
    return {{"loss": model(batch.x).sum()}}
for batch in job.batches([torch.tensor([float(i)]) for i in range(10)]):
    print({{name: buffer.item() for name, buffer in model.named_buffers()}})
    model(batch.x).sum().backward()
    job.step(loss=0)
"""
COUNTED = """
import disttrain, torch
model = torch.nn.Linear(1, 1)
model.register_buffer("seen", torch.zeros(1))
job = disttrain.init(metrics=["seen"])
job.wrap(model)
@job.on_evaluate
def evaluate(batch):
    model.seen += 1
    return {"loss": model.seen, "seen": model.seen[0]}
job.on_predict(lambda batch: model.seen.add_(5))
for batch in job.batches([torch.tensor([1.0])] * 2):
    pass
"""
DRAWN = """
import disttrain, random, numpy as np, torch
random.seed(1), np.random.seed(1), torch.manual_seed(1)
model = torch.nn.Linear(1, 1)
job = disttrain.init(metrics=[])
job.wrap(model)
def draw(who):
    print(who, random.random(), np.random.rand(), torch.rand(1).item())
@job.on_evaluate
def evaluate(batch):
    draw("evaluation")
    return {"loss": 0}
for batch in job.batches([torch.tensor([1.0])] * 2):
    draw("step")
    model(batch.x).sum().backward()
    job.step(loss=0)
"""
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


class TorchModelTest(unittest.TestCase):
    def start(self, init="metrics=['accuracy']", step="job.step", script=SCRIPT):
        worker = FakeWorker(PYTHON, script.format(init=init, step=step))
        self.addCleanup(worker.__exit__)
        worker.open()
        worker.pair = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
        return worker

    def test_variables_are_the_trainable_parameters_and_the_buffers_of_the_state_dict(self):
        worker = self.start()
        kinds = {name: kind for name, _, kind, _ in worker.model["variables"]}
        self.assertEqual(list(kinds), [*STATE, "unused", *NAMES[:-1]])  # as named_parameters() gives them
        self.assertEqual([name for name, kind in kinds.items() if kind == "state"], STATE)
        initial = worker.initial()
        self.assertEqual(initial["norm.running_var"], [1, 1])
        self.assertEqual(initial["unused"], [1, 1])

    def test_a_step_uses_the_clusters_values_and_returns_gradients_and_new_state(self):
        for step in ("job.step", "opt.step"):
            worker = self.start(step=step)
            worker.fill(worker.pair[0], VALUES)
            worker.fill(worker.pair[1], VALUES)  # gradients of an earlier step
            worker.start(*worker.pair, [1, 3])
            answer = worker.receive()
            # first: (1, -1) and (3, -3). norm: about -1, 1 and 1, -1; so 1 * n + 0.5 and 2 * n + 0.25.
            self.assertEqual(answer["metrics"], [1, 2])
            gradients = worker.values(worker.pair[1])
            worker.end()
            code, output = worker.finish()
            self.assertEqual(code, 0, output)
            parameters, printed, buffers, warning = output.splitlines()
            self.assertIn("the first step brought no gradient for unused: their gradients count as 0", warning)
            parameters, printed = eval(parameters), eval(printed)
            frozen = parameters.pop(0)  # parameters() begins with those of the module itself
            unused = parameters.pop(0)
            self.assertEqual((frozen, unused), ([1], [9, 9]))
            self.assertEqual(parameters, [VALUES[name] for name in NAMES[:-1]])
            self.assertEqual(printed[:2], [None, [0, 0]])
            for name, gradient in zip(NAMES[:-1], printed[2:]):
                for got, expected in zip(gradients[name], gradient):
                    self.assertAlmostEqual(got, expected, places=5)
            self.assertNotEqual(gradients["wide.weight"], [0, 0, 0, 0])
            self.assertEqual(gradients["unused"], [0, 0])
            self.assertEqual(gradients["norm.running_mean"], [1.5, -0.5])  # halfway to the means 2 and -2
            self.assertEqual(gradients["norm.num_batches_tracked"], [41])

    def test_two_pairs_of_arrays_alternate(self):
        worker = self.start()
        other = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
        for i, pair in enumerate([worker.pair, other, worker.pair]):
            worker.fill(pair[0], {**VALUES, "norm.num_batches_tracked": [10 * i]})
            worker.start(*pair, [1, 3])
            worker.receive()
            self.assertEqual(worker.values(pair[1])["norm.num_batches_tracked"], [10 * i + 1])

    def test_gradients_of_the_next_step_are_set_to_0_while_those_of_this_step_are_sent(self):
        worker = self.start()
        parameters, first = worker.pair
        second = worker.new_block(4 * worker.words)
        for block in (parameters, first, second):
            worker.fill(block, VALUES)
        found = []
        for gradients, spare in [(first, second), (second, first), (first, second)]:
            worker.start(parameters, gradients, [1, 3], spare=spare)
            worker.receive()
            worker.initial()  # the answer comes after the package has set the spare gradients to 0
            found.append(worker.values(gradients)["wide.weight"])
            if gradients is second:
                self.assertEqual(worker.values(first)["wide.weight"], [0, 0, 0, 0])
        self.assertNotEqual(found[0], [0, 0, 0, 0])
        self.assertEqual(found, [found[0]] * 3)

    def test_evaluation_uses_running_statistics_and_changes_nothing(self):
        worker = self.start()
        worker.fill(worker.pair[0], VALUES)
        worker.start(*worker.pair, [1, 3], program="evaluate")
        self.assertEqual(worker.receive()["metrics"], [2, 2])
        self.assertEqual(worker.values(worker.pair[0]), {name: list(map(float, v)) for name, v in VALUES.items()})
        worker.start(*worker.pair, [1], program="predict")
        outputs = worker.receive()["payload"]
        # norm: ((1 - 1) / sqrt(2), (-1 - 1) / sqrt(2)) * (1, 2) + (0.5, 0.25), then wide twice
        norm = [0.5, -4 / 2**0.5 + 0.25]
        for _ in range(2):
            norm = [norm[0] + 2 * norm[1], 3 * norm[0] + 4 * norm[1]]
        for got, expected in zip(outputs, norm):
            self.assertAlmostEqual(got, expected, places=3)

    def printed_after_an_evaluation(self, script):
        """What the script prints in a step that follows an evaluation."""
        with FakeWorker(PYTHON, script) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            worker.start(parameters, gradients, [0], program="evaluate")
            worker.receive()
            worker.start(parameters, gradients, [0])
            worker.receive()
            worker.end()
            code, printed = worker.finish()
        self.assertEqual(code, 0, printed)
        return printed

    def test_an_evaluation_leaves_the_modes_of_the_layers(self):
        script = FROZEN_LAYER.format(
            before="", data="[torch.tensor([2.0])]", show="print(model.training, model.norm.training, model.head.training)"
        )
        self.assertEqual(self.printed_after_an_evaluation(script), "True False True\n")

    def test_a_function_that_ends_in_train_leaves_the_modes_of_the_layers_too(self):
        script = FROZEN_LAYER.format(before="", data="[torch.tensor([2.0])]", show="print(model.training, model.norm.training)")
        returned = 'return {"loss": model(batch.x).sum()}'
        self.assertIn(returned, script)
        script = script.replace(returned, 'loss = model(batch.x).sum(); model.train(); return {"loss": loss}')
        self.assertEqual(self.printed_after_an_evaluation(script), "True False\n")

    def test_a_backward_pass_of_an_evaluation_changes_no_step(self):
        for line in ("pass", "model.zero_grad()", "model.zero_grad(set_to_none=False)", "opt.zero_grad()"):
            for has_spare in (True, False):  # without: as with train.accumulate
                with self.subTest(line, has_spare=has_spare), self.evaluated(line) as worker:
                    parameters, first, second = (worker.new_block(4 * worker.words) for _ in range(3))
                    for gradients, spare in [(first, second), (second, first), (first, second)]:
                        gradients, spare = (gradients, spare) if has_spare else (first, None)
                        worker.start(parameters, gradients, [0], spare=spare)
                        worker.receive()
                        self.assertEqual(worker.values(gradients), {"weight": [2], "bias": [1]})
                        worker.start(parameters, gradients, [0], program="evaluate")
                        worker.receive()
                        # With train.pipeline = 1 the worker still sends them.
                        self.assertEqual(worker.values(gradients), {"weight": [2], "bias": [1]})
                    worker.end()
                    self.assertEqual(worker.finish()[0], 0)

    def evaluated(self, line):
        worker = FakeWorker(PYTHON, BACKWARD_IN_EVALUATION.format(line=line))
        worker.open()
        self.assertEqual([name for name, *_ in worker.model["variables"]], ["weight", "bias"])  # offsets are a constant
        return worker

    def test_alone_a_backward_pass_of_an_evaluation_changes_no_step(self):
        found = set()
        for line in ("model.zero_grad()", "opt.zero_grad()", "pass"):
            done = run_code(PYTHON, BACKWARD_IN_EVALUATION.format(line=line))
            self.assertEqual((done.returncode, done.stderr.count("evaluation after epoch")), (0, 3), done.stderr)
            found.add(done.stdout)
        without = BACKWARD_IN_EVALUATION.format(line="pass").replace("@job.on_evaluate(dataset=[torch.tensor([2.0])])", "")
        self.assertEqual(found, {run_code(PYTHON, without).stdout})

    def test_an_evaluation_changes_no_state(self):
        with FakeWorker(PYTHON, BUFFERS.format(init="metrics=[]")) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            before = {name: [3.0] for name, *_ in worker.model["variables"]}
            worker.fill(parameters, before)
            for _ in range(2):
                worker.start(parameters, gradients, [1, 3], program="evaluate")
                worker.receive()
                self.assertEqual(worker.values(parameters), before)
                worker.start(parameters, gradients, [1, 3])
                worker.receive()
                self.assertEqual({worker.values(gradients)[name][0] for name in ("small", "wide", "narrow", "whole")}, {4})
                worker.fill(parameters, before)
            worker.end()
            code, output = worker.finish()
        self.assertEqual(code, 0, output)
        first, second = map(eval, output.splitlines())
        self.assertEqual((first.pop("own"), second.pop("own")), (1, 3))  # this one is the script's
        self.assertEqual(first, second)
        self.assertIs(first.pop("is_ready"), False)
        self.assertEqual(set(first.values()), {3})

    def test_a_result_that_is_a_buffer_has_the_value_of_the_evaluation(self):
        with FakeWorker(PYTHON, COUNTED) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            worker.fill(parameters, {"weight": [1.0], "bias": [1.0], "seen": [3.0]})
            worker.start(parameters, gradients, [1], program="evaluate")
            answer = worker.receive()
            self.assertEqual((answer["loss_sum"], answer["metrics"]), (4, [4, 1]))
            worker.start(parameters, gradients, [1], program="predict")
            self.assertEqual(list(worker.receive()["payload"]), [8])
            self.assertEqual(worker.values(parameters)["seen"], [3])

    def test_an_evaluation_draws_random_numbers_of_its_own(self):
        drawn = {}
        for evaluations in (0, 2):
            with FakeWorker(PYTHON, DRAWN) as worker:
                worker.open()
                parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
                for _ in range(2):
                    worker.start(parameters, gradients, [1])
                    worker.receive()
                    for _ in range(evaluations):
                        worker.start(parameters, gradients, [1], program="evaluate")
                        worker.receive()
                worker.end()
                drawn[evaluations] = worker.finish()[1].splitlines()
        of_evaluations = [line for line in drawn[2] if line.startswith("evaluation")]
        self.assertEqual(len(set(of_evaluations)), 4)
        self.assertEqual([line for line in drawn[2] if line not in of_evaluations], drawn[0])

    def test_the_rehearsal_leaves_what_the_script_sets_up_once(self):
        with FakeWorker(PYTHON, SET_UP_ONCE) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            worker.start(parameters, gradients, [1])
            worker.receive()
            worker.end()
            self.assertEqual(worker.finish(), (0, "7.0 True\n7.0 True\n"))

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

    def test_weights_loaded_after_wrap_are_the_initial_ones(self):
        before = "model.load_state_dict({name: value * 0 + 5 for name, value in model.state_dict().items()})"
        script = FROZEN_LAYER.format(before=before, data="[torch.tensor([2.0])]", show="pass")
        with FakeWorker(PYTHON, script) as worker:
            worker.open()
            self.assertEqual(set(sum(worker.initial().values(), [])), {5.0})

    def test_a_parameter_that_is_unfrozen_in_the_loop_is_an_error(self):
        script = FROZEN_LAYER.format(before="", data="[torch.tensor([2.0])]", show="model.norm.weight.requires_grad = True")
        with FakeWorker(PYTHON, script) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            worker.start(parameters, gradients, [0])
            message = worker.receive()
            self.assertEqual(message["type"], "failed")
            self.assertIn('the parameter "norm.weight" got a gradient, but it was frozen', message["message"])

    def test_arrays_of_gradients_are_not_for_a_module(self):
        with FakeWorker(PYTHON, FROZEN_LAYER.format(before="job.gradients", data="[]", show="pass")) as worker:
            message = worker.receive()
            self.assertIn("job.gradients is for a tree of arrays", message.get("message", ""))

    def test_a_data_set_without_numbers_is_an_error(self):
        before = """
class Stream(torch.utils.data.IterableDataset):
    def __len__(self): return 3
    def __iter__(self): return iter([torch.ones(1)] * 3)
"""
        with FakeWorker(PYTHON, FROZEN_LAYER.format(before=before, data="Stream()", show="pass")) as worker:
            message = worker.receive()
            self.assertIn("got a Stream, an IterableDataset; expected a map-style data set", message["message"])

    def test_gradients_of_the_last_layers_are_announced_early(self):
        worker = self.start(script=DEEP)
        size = 600 * 600
        for step in (1, 2):
            worker.start(*worker.pair, [1, 3])
            # The flat array has the layers from the last to the first, then the bias. Each layer has more elements than
            # a bucket.
            answers = [worker.receive() for _ in range(4)]
            self.assertEqual([answer.get("end") for answer in answers], [size, 2 * size, 3 * size + 600, None])
            gradients = worker.values(worker.pair[1])
            for name in ("layers.0.weight", "layers.1.weight", "layers.2.weight"):
                self.assertEqual(set(gradients[name]), {0})  # the parameters are 0
            self.assertEqual(gradients["bias"], [1] * 600)
            self.assertEqual(gradients["steps"], [step * 10])
            worker.fill(worker.pair[0], {**worker.values(worker.pair[0]), "steps": [10]})

    def test_what_overlap_cant_do_is_an_error(self):
        for line, expected in (
            ("loss.backward(retain_graph=True); loss.backward()", "got a second gradient in one step"),
            ("loss.backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)", "was changed after"),
        ):
            worker = self.start(script=DEEP.replace("loss.backward()", line))
            worker.start(*worker.pair, [1, 3])
            message = worker.receive()
            while message["type"] == "ready":
                message = worker.receive()
            self.assertEqual(message["type"], "failed")
            self.assertIn(expected, message["message"])

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
