"""Evaluations of torch modules, which change nothing that a step uses."""

import unittest

from fake_worker import FakeWorker, run_code
from torch_script import FROZEN_LAYER, PYTHON, VALUES, TorchScriptTest

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


class TorchEvaluationTest(TorchScriptTest):
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


if __name__ == "__main__":
    unittest.main()
