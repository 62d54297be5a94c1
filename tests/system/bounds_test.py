"""A trainer with a constraint: in every mode the parameter servers keep the parameters within its bounds, and so do
checkpoints and averages."""
import array
import sys
import unittest

from evaluator_test import tensors_and_metadata
from harness import ROOT, SystemTest

sys.path.insert(0, str(ROOT / "tests/python"))
from fake_worker import PACKAGE, require_python  # noqa: E402

# The loss is the sum of a and b times the record's number plus 1, so plain SGD lowers a and b without end. The trainer
# fails if it ever gets a value beyond the bounds.
SCRIPT = """
import disttrain
import numpy as np
job = disttrain.init(metrics=[])
bounds = {"a": (-0.25, 0.5), "b": (-np.inf, np.inf)}
start = {"a": np.full(3, 2.0, "f4"), "b": np.zeros(2)}
job.wrap(start, constraint=lambda name, value: np.clip(value, *bounds[name]))

@job.on_evaluate(dataset=range(4))
def evaluate(batch):
    a = job.variables["a"]
    assert (a >= -0.25).all() and (a <= 0.5).all(), a
    return {"loss": a.mean()}

for batch in job.batches(range(40)):
    a = job.variables["a"]
    assert (a >= -0.25).all() and (a <= 0.5).all(), a
    slope = float(np.mean(batch.x)) + 1
    job.push_pull({"a": np.full(3, slope), "b": np.full(2, slope)}, loss=slope)
"""
JOB = """
[job]
name = "bounds"
shards = 2
[model]
trainer = ["{python}", "train.py"]
[train]
mode = "{mode}"
batch_size = 4
steps = 30
optimizer = {{ rule = "momentum", momentum = 0.9, learning_rate = 0.01 }}
[evaluate]
average = 0.5
every_steps = 10
[checkpoint]
directory = "{folder}"
"""


class BoundsTest(SystemTest):
    def values(self, *options):
        outcome = self.run_program("disttrain", "checkpoint", "export", "--force", *options,
                                   self.folder / "checkpoints/bounds", self.folder / "out.safetensors")
        self.assertEqual(outcome.code, 0, str(outcome))
        tensors, _ = tensors_and_metadata(self.folder / "out.safetensors")
        return array.array("f", tensors["a"]).tolist(), array.array("d", tensors["b"]).tolist()

    def run_mode(self, mode):
        self.environment |= {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        (self.folder / "checkpoints").mkdir()
        (self.folder / "train.py").write_text(SCRIPT)
        job = self.folder / "job.toml"
        job.write_text(JOB.format(python=require_python("numpy"), mode=mode, folder=self.folder / "checkpoints"))
        outcome = self.finish(self.start_up(job, ps=2, workers=2))
        self.assertEqual(outcome.code, 0, str(outcome))
        a, b = self.values()
        self.assertEqual(a, [-0.25] * 3)
        self.assertLess(max(b), -1.0, "b has no bounds")
        a, _ = self.values("--average")
        for value in a:
            self.assertAlmostEqual(value, -0.25, delta=0.01)

    def test_the_values_stay_within_the_bounds_async(self):
        self.run_mode("async")

    def test_the_values_stay_within_the_bounds_sync(self):
        self.run_mode("sync")

    def test_the_values_stay_within_the_bounds_ssp(self):
        self.run_mode("ssp")


if __name__ == "__main__":
    unittest.main()
