"""Torch modules as trainers: their variables, and the values and gradients of their steps, also with overlap."""

import unittest

from fake_worker import FakeWorker
from torch_script import FROZEN_LAYER, PYTHON, VALUES, TorchScriptTest

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


class TorchModelTest(TorchScriptTest):
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

    def test_with_overlap_the_worker_may_write_the_sum_of_a_steps_parts(self):
        """As with train.accumulate, where it has no second array of gradients: the script goes on when it finds the sum."""
        wait = "loss.backward()\n    while model.layers[0].weight.grad.detach()[0, 0] != 7: pass"
        worker = self.start(script=DEEP.replace("loss.backward()", wait))
        sums = {name: [7] * size for (name, *_), size in zip(worker.model["variables"], worker.sizes)}
        for _ in range(3):
            worker.start(*worker.pair, [1, 3])
            message = worker.receive()
            while message["type"] == "ready":
                if message["end"] > 3 * 600 * 600:
                    worker.fill(worker.pair[1], sums)
                message = worker.receive()
            self.assertEqual(message["type"], "finished")
            self.assertEqual(worker.values(worker.pair[1])["layers.2.weight"], sums["layers.2.weight"])

    def test_with_overlap_a_change_by_data_is_an_error(self):
        worker = self.start(script=DEEP.replace("loss.backward()", "loss.backward(); model.layers[2].weight.grad.data += 1"))
        worker.start(*worker.pair, [1, 3], spare=worker.new_block(4 * worker.words))
        message = worker.receive()
        while message["type"] == "ready":
            message = worker.receive()
        self.assertIn('the gradient of "layers.2.weight" was changed after', message.get("message", ""))


if __name__ == "__main__":
    unittest.main()
