"""Scripts that use the package disttrain alone, without a worker."""

import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from fake_worker import PACKAGE
from linear_job import PYTHON, linear


class AloneTest(unittest.TestCase):
    def run_script(self, script):
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("DISTTRAIN_TRAINER", None)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "train.py"
            path.write_text(script)
            return subprocess.run([PYTHON, str(path)], env=environment, capture_output=True, text=True, timeout=60)

    def test_the_same_script_trains_alone(self):
        script = linear(
            init="alone=disttrain.Alone(learning_rate=0.5, batch_size=4, epochs=2)",
            before="job.on_evaluate(lambda batch: {'loss': 7.0}, dataset=range(3))",
            show="sorted(batch.x.tolist()), job.rank, job.size",
            after="print(job.variables['layer']['b'], job.state['seen'], job.variables['layer']['w'][0, 0])",
        )
        done = self.run_script(script)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 7)
        # Two epochs of 10 records in batches of 4: 6 steps, and each record is visited twice.
        self.assertEqual(lines[-1], f"[-3.] [6.] {1 - 0.5 * 2 * 45}")
        self.assertIn("so it trains alone: SGD(0.5), batches of 4 records", done.stderr)
        self.assertIn("evaluation after epoch 1: loss 7", done.stderr)

    def test_ctrl_c_is_one_line(self):
        done = self.run_script(linear(show="os.kill(os.getpid(), signal.SIGINT)", before="import os, signal"))
        self.assertEqual(done.returncode, -signal.SIGINT)
        self.assertEqual(done.stderr.splitlines()[-1], "disttrain: interrupted in step 1")
        self.assertNotIn("Traceback", done.stderr)

    def test_alone_metrics_that_init_doesnt_name_are_found_too(self):
        evaluate = "job.on_evaluate(lambda batch: {'loss': 0, 'm': 1}, dataset=range(3))"
        for script, where in (
            (linear(metrics=", m=1"), "the step got"),
            (linear(before=evaluate), "the function of job.on_evaluate() returned"),
        ):
            done = self.run_script(script)
            self.assertIn(f'{where} the metric m, which disttrain.init(metrics=[]) doesn\'t name; write ', done.stderr)

    def test_alone_an_optimizer_that_is_none_is_refused(self):
        done = self.run_script(linear(init="alone=disttrain.Alone(optimizer=lambda parameters: 1)"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("disttrain.Alone(optimizer=...) got the function <lambda>; expected an optimizer of torch.optim", done.stderr)

    def test_alone_a_data_set_is_required(self):
        done = self.run_script(linear(data=""))
        self.assertEqual(done.returncode, 1)
        self.assertIn("alone has no [data] of a job.toml", done.stderr)


if __name__ == "__main__":
    unittest.main()
