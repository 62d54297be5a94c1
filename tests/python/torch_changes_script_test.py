"""Whole scripts that change a torch module, its gradients or its loop, under a worker and alone."""

import unittest

from fake_worker import FakeWorker, run_code
from torch_cases import DROPPED, PYTHON, changed

# Takes lines for before the loop, for its body before job.step() and after it, and for after the loop.
SCRIPT = """
import disttrain, torch
job = disttrain.init(metrics=[])
model = torch.nn.Linear(1, 1, bias=False){dtype}
opt = job.wrap(model{wrap})
for batch in job.batches([torch.tensor([1.0]){dtype}] * 10):
    loss = model(batch.x).sum()
    loss.backward()
    {step}
    {after}
print(model.weight.item())
"""


class TorchChangesScriptTest(unittest.TestCase):
    def run_steps(self, steps, dtype="", wrap="", step="job.step(loss=loss)", after="pass"):
        """Gives the weight the values 1, 2, 3 ... in the steps, and one more at the end. Returns the first message that
        isn't the end of a step, and what the script printed."""
        with FakeWorker(PYTHON, SCRIPT.format(dtype=dtype, wrap=wrap, step=step, after=after)) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            message = None
            for i in range(steps):
                worker.fill(parameters, {"weight": [i + 1]})
                worker.start(parameters, gradients, [i])
                message = worker.receive()
                if message is None or message["type"] != "finished":
                    return message, worker.finish()[1]
            worker.fill(parameters, {"weight": [steps + 1]})
            worker.end()
            code, output = worker.finish()
            if code != 0:
                message = worker.receive()
            return message, output

    def test_after_the_loop_a_module_has_the_newest_values(self):
        for dtype in ("", ".half()", ".bfloat16()", ".double()"):
            self.assertEqual(self.run_steps(2, dtype=dtype)[1], "3.0\n", dtype)

    def test_a_change_after_the_last_step_is_an_error(self):
        for dtype in ("", ".half()"):
            message, _ = self.run_steps(1, dtype=dtype, after="model.weight.data.clamp_(0, 0.5)")
            self.assertIn(changed("weight"), message.get("message", ""))

    def test_a_script_that_runs_alone_gets_the_same_errors(self):
        for step, after, expected in (
            ("job.step(loss=loss)", "pass", None),
            ("job.step(loss=loss)", "model.weight.data += 1", changed("weight")),
            ("model.zero_grad(); job.step(loss=loss)", "pass", DROPPED),
        ):
            done = run_code(PYTHON, SCRIPT.format(dtype="", wrap="", step=step, after=after))
            self.assertEqual(done.returncode, 0 if expected is None else 1, done.stderr)
            self.assertIn(expected or "", done.stderr)
        optimizer = "alone=disttrain.Alone(optimizer=torch.optim.SGD(model.parameters(), lr=0.5))"
        script = SCRIPT.format(dtype="", wrap="", step="job.step(loss=loss)", after="pass")
        made, joined = "job = disttrain.init(metrics=[])\n", "model = torch.nn.Linear(1, 1, bias=False)\n"
        script = script.replace(made, "").replace(joined, joined + made.replace("metrics=[]", "metrics=[], " + optimizer))
        done = run_code(PYTHON, script)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_optimizer_of_a_run_alone_is_none_of_the_job(self):
        """A script may change its settings in the loop, also where the job has another one."""
        begin = "job = disttrain.init(metrics=[])\nmodel = torch.nn.Linear(1, 1, bias=False)\n"
        self.assertIn(begin, SCRIPT.format(dtype="", wrap="", step="", after=""))
        own = (
            "model = torch.nn.Linear(1, 1, bias=False)\nown = torch.optim.SGD(model.parameters(), lr=0.5)\n"
            "job = disttrain.init(metrics=[], alone=disttrain.Alone(optimizer=own))\n"
        )
        stepped = "the loop called step() of a torch.optim.SGD"
        for after, expected in (("own.param_groups[0]['lr'] = 0.1", None), ("own.step()", stepped)):
            script = SCRIPT.format(dtype="", wrap="", step="job.step(loss=loss)", after=after).replace(begin, own)
            with FakeWorker(PYTHON, script) as worker:
                worker.open()
                parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
                for i in range(2):
                    worker.start(parameters, gradients, [i])
                    message = worker.receive()
                    if message["type"] != "finished":
                        break
                self.assertIn(expected or "", message.get("message", ""))
                self.assertEqual(message["type"], "failed" if expected else "finished")

    def test_lines_of_an_optimizer_that_were_left_in_the_script(self):
        no_loss = "got no loss. One call does the whole step, job.step(loss=loss) or opt.step(loss=loss)"
        for step, expected in {
            "opt.step(); opt.zero_grad()": no_loss,
            "job.step(loss=loss); opt.step(); opt.zero_grad()": no_loss,
            "job.step()": "job.step() got no loss; write job.step(loss=loss)",
            "opt.zero_grad(); job.step(loss=loss)": DROPPED,
            "opt.step(lambda: loss)": "got the function <lambda>; expected the loss: no update rule of job.toml computes a",
            "continue": "set train.accumulate in job.toml",
            "job.step(loss=loss); job.step(loss=loss)": "job.step() was called without a batch, or twice for one",
            "job.wrap(model)": "job.wrap() was called",
            "torch.optim.lr_scheduler.StepLR(opt, 1)": "WrappedModule is not an Optimizer",
        }.items():
            with self.subTest(step):
                # The error may come after the end of the step.
                message, output = self.run_steps(2, step=step)
                self.assertIn(expected, output)
        _, output = self.run_steps(1, step="opt.param_groups[0]['lr'] = 0.1")
        self.assertIn("AttributeError: what job.wrap() returned is no optimizer of torch.optim and has no \"param_groups\"", output)

        message, _ = self.run_steps(1, step="opt.zero_grad(set_to_none=True)\n    model(batch.x).sum().backward()\n    job.step(loss=loss)")
        self.assertEqual(message["type"], "finished")

    def test_a_backward_pass_after_the_step_is_dropped(self):
        """As it is when the script runs alone."""
        for wrap in ("", ", overlap=True"):
            script = SCRIPT.format(dtype="", wrap=wrap, step="job.step(loss=loss)", after="model(batch.x).sum().mul(5).backward()")
            with FakeWorker(PYTHON, script) as worker:
                worker.open()
                parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
                for i in range(3):
                    worker.start(parameters, gradients, [i])
                    self.assertEqual(worker.receive()["type"], "finished")
                    self.assertEqual(worker.values(gradients)["weight"], [1.0], wrap)

    def test_a_loop_that_is_not_the_jobs(self):
        loop = "for batch in job.batches([torch.tensor([1.0]){dtype}] * 10):"
        script = SCRIPT.replace(loop, "from types import SimpleNamespace\nfor batch in [SimpleNamespace(x=torch.ones(1))]:")
        done = run_code(PYTHON, script.format(dtype="", wrap="", step="job.step(loss=loss)", after="pass"))
        self.assertIn("job.step() was called outside the loop over job.batches(); write `for batch in", done.stderr)
        done = run_code(PYTHON, "import disttrain, torch\njob = disttrain.init()\n" + 2 * "job.wrap(torch.nn.Linear(1, 1))\n")
        self.assertIn("a job has one model: make one of both, such as torch.nn.ModuleDict({...})", done.stderr)

    def test_the_worker_gets_the_bounds(self):
        script = SCRIPT.format(dtype="", wrap=", constraint=lambda value: value.clamp(min=-0.5)", step="pass", after="pass")
        with FakeWorker(PYTHON, script) as worker:
            worker.open()
            self.assertEqual(worker.model["variables"], [["weight", [1, 1], "trainable", "float32", -0.5, "inf"]])
            self.assertGreaterEqual(worker.initial()["weight"][0], -0.5)


if __name__ == "__main__":
    unittest.main()
