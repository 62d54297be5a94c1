"""Variables of float64: a trainer in NumPy trains them, and they are checkpointed, restored and exported as float64."""
import json
import math
import subprocess
import sys
import unittest

from harness import ROOT, SystemTest

sys.path.insert(0, str(ROOT / "tests/python"))
from fake_worker import PACKAGE, require_python  # noqa: E402

PLAIN_SAFETENSORS = ROOT / "tests/common/checkpoint/plain_safetensors.py"
PYTHON = require_python("numpy")

# Each record moves "wide" and "narrow" by the same gradient, whatever the order of the records. The step is 1/3 of a
# third, which neither type can hold, so float32 anywhere on the way would be seen.
SCRIPT = """
import disttrain, numpy as np
job = disttrain.init(metrics=[])
job.wrap({"wide": np.full(1003, 0.1), "narrow": np.full(1001, 0.1, "f4")}, state={"seen": np.full(3, 0.1)})
job.on_evaluate(lambda batch: {"loss": float(job.variables["wide"].sum())}, dataset=range(8))
for batch in job.batches(range(64)):
    ones = {name: np.full(value.shape, 1 / 3, value.dtype) for name, value in job.variables.items()}
    job.push_pull(ones, loss=1, state={"seen": np.full(3, 0.7)})
"""
JOB = """
[job]
name = "{name}"
[model]
trainer = ["{python}", "train.py"]
[train]
mode = "sync"
batch_size = 8
epochs = {epochs}
optimizer = {{ rule = "{rule}", learning_rate = 0.1 }}
"""


class Float64Test(SystemTest):
    def setUp(self):
        super().setUp()
        self.environment["PYTHONPATH"] = str(PACKAGE)
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()
        (self.folder / "train.py").write_text(SCRIPT)

    def train(self, epochs, *settings, name="wide", rule="momentum", ps=2):
        job = self.folder / f"{name}.toml"
        job.write_text(JOB.format(name=name, python=PYTHON, epochs=epochs, rule=rule))
        return self.assert_finished(self.up(job, "--set", f"checkpoint.directory={self.checkpoints}", *settings, ps=ps))

    def tensors(self, *arguments):
        """The tensors of an export."""
        file = self.folder / "model.safetensors"
        outcome = self.run_program("disttrain", "checkpoint", "export", self.checkpoints / "wide", file, "--force",
                                   *arguments)
        self.assertEqual(outcome.code, 0, str(outcome))
        said = subprocess.run([sys.executable, PLAIN_SAFETENSORS, "read", file], check=True, capture_output=True,
                              text=True)
        return json.loads(said.stdout)["tensors"]

    def test_trained_checkpointed_restored_and_exported(self):
        first = self.train(2, "--set", "job.shards=2")
        # The job goes on from its checkpoint, with another number of shards.
        second = self.train(4, "--set", "job.shards=1", ps=1)
        self.assertGreater(second["global_step"], first["global_step"])

        value, velocity = 0.1, 0.0
        for _ in range(second["global_step"]):
            velocity = 0.9 * velocity + 1 / 3
            value -= 0.1 * velocity
        tensors = self.tensors()
        self.assertEqual({name: tensor["dtype"] for name, tensor in tensors.items()},
                         {"wide": "F64", "narrow": "F32", "seen": "F64"})
        for found in tensors["wide"]["values"]:
            self.assertTrue(math.isclose(found, value, rel_tol=1e-13), f"{found!r}, expected {value!r}")
        self.assertEqual(tensors["seen"]["values"], [0.7] * 3)
        for found in tensors["narrow"]["values"]:
            self.assertTrue(math.isclose(found, value, rel_tol=1e-5))
            self.assertFalse(math.isclose(found, value, rel_tol=1e-13))
        self.assertEqual({tensor["dtype"] for tensor in self.tensors("--dtype", "f32").values()}, {"F32"})

        inspected = self.run_program("disttrain", "checkpoint", "inspect", self.checkpoints / "wide", "--json").json
        self.assertEqual({each["name"]: (each["dtype"], each["elements"]) for each in inspected["variables"]},
                         {"wide": ("float64", 1003), "narrow": ("float32", 1001), "seen": ("float64", 3)})
        self.assertEqual(inspected["elements"], 2007)

        # Another job begins with the exported file. Its first evaluation has the same parameters.
        self.tensors()
        warm = self.train(1, "--set", f"checkpoint.init_from={self.folder / 'model.safetensors'}", "--set",
                          "train.optimizer.learning_rate=1e-30", name="warm", rule="sgd")
        self.assertEqual(warm["evaluation"]["parameters_hash"], second["evaluation"]["parameters_hash"])


if __name__ == "__main__":
    unittest.main()
