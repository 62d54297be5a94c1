"""Exported programs with float64 variables, trained by daemons: each number is known in closed form.

The model is LinearNet64 of tests/data/program/make.py, or the same in JAX: scale * (x . weight) + bias, with the mean
squared error. Only the bias is float32. Each step has all records.
"""
import json
import math
import os
import struct
import subprocess
import sys
import unittest
from pathlib import Path

from harness import ROOT, SystemTest
from npy import write_npy
from ports import free_ports
from predict_test import read_csv

sys.path.insert(0, str(ROOT / "tests/python"))
from pythons import require_pjrt_plugin, require_python  # noqa: E402

PROGRAMS = Path(os.environ.get("DISTTRAIN_PROGRAMS", ROOT / "build/release/tests/data/program/unpacked"))
PLAIN_SAFETENSORS = ROOT / "tests/common/checkpoint/plain_safetensors.py"
HAS_AVX2 = " avx2 " in Path("/proc/cpuinfo").read_text()
RECORDS = 6
INPUTS = [(math.sin(i + 1), math.cos(i)) for i in range(RECORDS)]
LABELS = [i / 7 for i in range(RECORDS)]

JOB = """
[job]
name = "wide"
shards = {shards}
[model]
program = "{program}"
[data]
format = "npy"
path = "{folder}"
files = "inputs.npy"
labels = "labels.npy"
[train]
mode = "sync"
batch_size = 6
steps = {steps}
optimizer = {{ rule = "sgd", learning_rate = 0.125 }}
[evaluate]
files = "inputs.npy"
labels = "labels.npy"
[checkpoint]
directory = "{folder}/checkpoints"
"""
CLUSTER = """
[cluster]
name = "wide"
[chief]
address = "127.0.0.1:{}"
state_directory = "{folder}/chief"
[metrics]
listen = "127.0.0.1:0"
[[ps]]
address = "127.0.0.1:{}"
[[ps]]
address = "127.0.0.1:{}"
[[worker]]
address = "127.0.0.1:{}"
device = "pjrt:{plugin}"
"""
EXPORT_JAX = """
import sys
import jax, jax.numpy as jnp, numpy as np
import disttrain

def outputs_of(params, batch):
    return params["scale"] * (batch["inputs"] @ params["weight"]) + params["bias"][0]

def step(params, batch, state):
    seen = 0.9 * state["seen"] + 0.1 * batch["inputs"].mean(0)
    return jnp.mean((outputs_of(params, batch) - batch["labels"]) ** 2), {}, {"seen": seen}

def evaluate(params, batch, state):
    return step(params, batch, state)[0]

params = {"weight": np.array([1, -2]) / 7, "bias": np.zeros(1, np.float32), "scale": np.array(1 / 3)}
with jax.enable_x64(True):
    disttrain.export_jax(step, params, {"inputs": np.zeros((6, 2)), "labels": np.zeros(6)}, sys.argv[1],
                         state={"seen": np.full(2, 0.1)}, frozen=["scale"], evaluate_fn=evaluate,
                         predict_fn=lambda params, batch, state: outputs_of(params, batch))
"""


def as_float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


class Model:
    """What the job must compute."""

    def __init__(self, steps):
        self.weight, self.bias, self.seen = [1 / 7, -2 / 7], 0.0, [0.1, 0.1]
        for _ in range(steps):
            errors = [output - label for output, label in zip(self.outputs(), LABELS)]
            for c in range(2):
                gradient = 2 / 3 / RECORDS * sum(error * x[c] for error, x in zip(errors, INPUTS))
                self.weight[c] -= 0.125 * gradient
                self.seen[c] = 0.9 * self.seen[c] + 0.1 * sum(x[c] for x in INPUTS) / RECORDS
            self.bias = as_float32(self.bias - 0.125 * as_float32(2 / RECORDS * sum(errors)))

    def outputs(self):
        return [(x[0] * self.weight[0] + x[1] * self.weight[1]) / 3 + self.bias for x in INPUTS]

    def loss(self):
        return sum((output - label) ** 2 for output, label in zip(self.outputs(), LABELS)) / RECORDS


class Float64ProgramsTest(SystemTest):
    def setUp(self):
        super().setUp()
        (self.folder / "checkpoints").mkdir()
        write_npy(self.folder / "inputs.npy", "<f8", (RECORDS, 2), [value for row in INPUTS for value in row])
        write_npy(self.folder / "labels.npy", "<f8", (RECORDS,), LABELS)

    def train(self, program, steps, shards, cluster=None):
        job = self.folder / "wide.toml"
        job.write_text(JOB.format(program=program, folder=self.folder, steps=steps, shards=shards))
        if cluster is None:
            return self.assert_finished(self.up(job, ps=shards, workers=1))
        return self.assert_finished(self.run_program("disttrain", "up", cluster, "--job", job, "--json"))

    def check(self, program, *device, cluster=None, loss_tolerance=1e-12):
        self.train(program, 20, 2, cluster)
        # The job goes on from its checkpoint, with another number of shards.
        status = self.train(program, 30, 1, cluster)
        self.assertEqual(status["global_step"], 30)
        expected = Model(30)
        self.assertAlmostEqual(status["evaluation"]["loss"], expected.loss(), delta=loss_tolerance)

        file = self.folder / "model.safetensors"
        exported = self.run_program("disttrain", "checkpoint", "export", self.folder / "checkpoints/wide", file)
        self.assertEqual(exported.code, 0, str(exported))
        said = subprocess.run([sys.executable, PLAIN_SAFETENSORS, "read", file], check=True, capture_output=True,
                              text=True)
        tensors = json.loads(said.stdout)["tensors"]
        self.assertEqual({name: tensor["dtype"] for name, tensor in tensors.items()},
                         {"weight": "F64", "bias": "F32", "scale": "F64", "seen": "F64"})
        for name, values in {"weight": expected.weight, "seen": expected.seen, "scale": [1 / 3]}.items():
            for found, value in zip(tensors[name]["values"], values, strict=True):
                self.assertAlmostEqual(found, value, delta=1e-12, msg=name)
        self.assertEqual(tensors["bias"]["values"], [expected.bias])

        outcome = self.run_program("disttrain", "predict", self.folder / "checkpoints/wide", "outputs.csv", *device)
        self.assertEqual(outcome.code, 0, str(outcome))
        for (found,), value in zip(read_csv(self.folder / "outputs.csv"), expected.outputs(), strict=True):
            self.assertAlmostEqual(found, value, delta=1e-6)

    @unittest.skipUnless(HAS_AVX2, "the package needs AVX2")
    def test_package_of_aotinductor(self):
        self.check(PROGRAMS / "float64.pt2")

    def test_package_of_torchscript(self):
        self.check(PROGRAMS / "float64.pt")

    def test_package_of_jax_on_the_cpu(self):
        jax, plugin = require_python("jax"), require_pjrt_plugin()
        package = self.folder / "step.shlo"
        subprocess.run([jax, "-c", EXPORT_JAX, package], check=True, capture_output=True,
                       env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        cluster = self.folder / "cluster.toml"
        cluster.write_text(CLUSTER.format(*free_ports(4), folder=self.folder, plugin=plugin))
        self.check(package, "--device", f"pjrt:{plugin}", cluster=cluster, loss_tolerance=1e-7)  # losses of JAX are float32


if __name__ == "__main__":
    unittest.main()
