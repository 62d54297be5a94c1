"""For tests of packages that are exported from JAX: a model, and a fixture that exports one and runs it as a worker does.

Import this module before jax. It starts the venv with jax that tools/setup installs in place of the running Python. The
fixture uses the PJRT plugin that tools/setup installs.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from pythons import require_pjrt_plugin, run_in_python_with

PLUGIN = require_pjrt_plugin()
run_in_python_with("jax", sys.argv)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import disttrain  # noqa: E402
from disttrain import jax_metrics  # noqa: E402

RUN_PACKAGE = Path(os.environ.get("BUILD", ROOT / "build/release")) / "tests/run_package"


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def logits_of(params, batch):
    hidden = jax.nn.relu(batch["inputs"] @ params["first"]["weight"] + params["first"]["bias"])
    return hidden @ params["second"]["weight"] + params["second"]["bias"]


def classify(params, batch):
    logits = logits_of(params, batch)
    return cross_entropy(logits, batch["labels"]), {
        "accuracy": jax_metrics.accuracy(logits, batch["labels"]),
        "top_3": jax_metrics.top_k(logits, batch["labels"], 3),
        "entropy": jnp.mean(jnp.sum(-jax.nn.softmax(logits) * jax.nn.log_softmax(logits), axis=1)),
    }


def mlp(inputs=20, hidden=16, classes=10):
    random = np.random.default_rng(1)

    def dense(rows, columns):
        return {"weight": random.normal(0, 0.3, (rows, columns)).astype(np.float32),
                "bias": random.normal(0, 0.1, columns).astype(np.float32)}

    return {"first": dense(inputs, hidden), "second": dense(hidden, classes)}


def batch_of(examples, inputs=20, classes=10):
    random = np.random.default_rng(2)
    return {"inputs": random.normal(size=(examples, inputs)).astype(np.float32),
            "labels": random.integers(0, classes, examples).astype(np.int32)}


class JaxPackageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="disttrain-jax-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = self.folder / "step.shlo"

    def export(self, step_fn, params, batch, **options):
        disttrain.export_jax(step_fn, params, batch, self.package, **options)

    def run_package(self, program, batch, plugin=PLUGIN, fails=False):
        """Runs a program in C++. Returns the sum of losses, or the error."""
        for name, column in batch.items():
            (self.folder / f"column-{name}").write_bytes(np.ascontiguousarray(column).tobytes())
        examples = len(next(iter(batch.values())))
        command = [RUN_PACKAGE, plugin, self.package, self.folder, program, str(examples)]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode != 0, fails, run.stdout + run.stderr)
        return run.stdout.strip() if fails else float(run.stdout)

    def variables(self):
        described = json.loads(self.members()["disttrain.json"])
        return [each for each in described["variables"] if each["kind"] != "frozen"]

    def flat(self, file):
        """The variables of a flat array by name."""
        content = (self.folder / file).read_bytes()
        arrays = {}
        for dtype in (np.float64, np.float32):  # see run_package.cc
            for variable in self.variables():
                if (variable["dtype"] == "float64") != (dtype == np.float64):
                    continue
                values = np.frombuffer(content, dtype, int(np.prod(variable["shape"])))
                arrays[variable["name"]] = values.reshape(variable["shape"])
                content = content[values.nbytes:]
        return arrays

    def set_flat(self, arrays):
        doubles = [each for each in self.variables() if each["dtype"] == "float64"]
        floats = [each for each in self.variables() if each["dtype"] != "float64"]
        (self.folder / "parameters").write_bytes(
            b"".join(np.asarray(arrays[each["name"]], np.float64).tobytes() for each in doubles) +
            b"".join(np.asarray(arrays[each["name"]], np.float32).tobytes() for each in floats))

    def metrics(self):
        """The accumulators of metrics that have two numbers each."""
        return np.fromfile(self.folder / "metrics", np.float64).reshape(-1, 2)

    def assert_close(self, found, expected, tolerance=2e-6):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=tolerance)

    def members(self):
        """The names and contents of the package's members."""
        with zipfile.ZipFile(self.package) as package:
            return {name: package.read(name) for name in package.namelist()}

    def write_members(self, members):
        with zipfile.ZipFile(self.package, "w") as package:
            for name, content in members.items():
                package.writestr(name, content)
