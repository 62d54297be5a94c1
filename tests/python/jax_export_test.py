"""Models that are exported from JAX: what a worker computes by PJRT equals what JAX computes itself.

The tests run in the venv with jax that tools/setup installs, and use the PJRT plugin that it installs.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "disttrain"
JAX = CACHE / "jax-0.10.2"
PLUGIN = next(CACHE.glob("pjrt-plugin-0.0.1/lib/python3*/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"), None)
if not (JAX / "bin/python").exists() or PLUGIN is None:
    raise unittest.SkipTest("jax or the PJRT plugin isn't installed; run tools/setup")
if Path(sys.prefix) != JAX:
    os.execv(JAX / "bin/python", [JAX / "bin/python", *sys.argv])

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import disttrain  # noqa: E402
from disttrain import jax_metrics  # noqa: E402
from disttrain.exporting import stage_ends  # noqa: E402
from disttrain.jax_export import ExportError  # noqa: E402

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


class JaxExportTest(unittest.TestCase):
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
        with zipfile.ZipFile(self.package) as package:
            described = json.loads(package.read("disttrain.json"))
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

    # ---- results ----

    def test_AnMlpHasTheGradientsLossAndMetricsOfJax(self):
        params = mlp()
        self.export(classify, params, batch_of(32), predict_fn=logits_of, limits={"labels": 10})
        for examples in (32, 37, 5):  # 37 and 5 are composed of parts
            batch = batch_of(examples)
            (loss, metrics), gradients = jax.value_and_grad(classify, has_aux=True)(params, batch)
            loss_sum = self.run_package("step", batch)
            self.assertAlmostEqual(loss_sum / examples, float(loss), places=5)
            found = self.flat("gradients")
            for layer in params:
                for name in params[layer]:
                    self.assert_close(found[f"{layer}/{name}"], gradients[layer][name])
                    self.assert_close(self.flat("parameters")[f"{layer}/{name}"], params[layer][name], 0)
            accuracy, entropy, top_3 = self.metrics()
            self.assert_close(accuracy, metrics["accuracy"].values)
            self.assert_close(entropy, [metrics["entropy"] * examples, examples], 1e-3)
            self.assert_close(top_3, metrics["top_3"].values)

            self.assertAlmostEqual(self.run_package("evaluate", batch), loss_sum, places=3)
            self.assert_close(self.metrics()[0], accuracy)

            self.run_package("predict", batch)
            outputs = np.fromfile(self.folder / "outputs", np.float32).reshape(examples, 10)
            self.assert_close(outputs, logits_of(params, batch), 1e-5)

    def test_BatchNormalizationsStateEqualsJaxsAfterSeveralSteps(self):
        params = {"scale": np.ones(4, np.float32), "shift": np.zeros(4, np.float32)}
        state = {"mean": np.zeros(4, np.float32), "variance": np.ones(4, np.float32), "batches": np.int32(0)}

        def normalize(params, batch, state):
            x = batch["inputs"]
            mean, variance = x.mean(0), x.var(0)
            y = (x - mean) / jnp.sqrt(variance + 1e-5) * params["scale"] + params["shift"]
            state = {"mean": 0.9 * state["mean"] + 0.1 * mean, "variance": 0.9 * state["variance"] + 0.1 * variance,
                     "batches": state["batches"] + 1}
            return jnp.mean((y - batch["targets"][:, None]) ** 2), {}, state

        def evaluate(params, batch, state):
            y = (batch["inputs"] - state["mean"]) / jnp.sqrt(state["variance"] + 1e-5) * params["scale"]
            return jnp.mean((y + params["shift"] - batch["targets"][:, None]) ** 2)

        random = np.random.default_rng(3)
        batches = [{"inputs": random.normal(2, 3, (16, 4)).astype(np.float32),
                    "targets": random.normal(size=16).astype(np.float32)} for _ in range(4)]
        self.export(normalize, params, batches[0], state=state, evaluate_fn=evaluate)
        for step, batch in enumerate(batches):
            loss = lambda params: (lambda out: (out[0], out[2]))(normalize(params, batch, state))  # noqa: B023, E731
            (_, state), gradients = jax.value_and_grad(loss, has_aux=True)(params)
            self.run_package("step", batch)
            found = self.flat("gradients")
            for name, gradient in gradients.items():
                self.assert_close(found[name], gradient, 1e-5)
            for name, value in state.items():
                self.assert_close(found[name], value)
            self.assertEqual(found["batches"], step + 1)
            params = {name: params[name] - 0.1 * gradients[name] for name in params}
            self.set_flat({**params, **state})
        evaluated = self.run_package("evaluate", batches[0])
        self.assertAlmostEqual(evaluated / 16, float(evaluate(params, batches[0], state)), places=4)

    def test_FrozenVariablesKeepTheirTypeAndArentSent(self):
        params = mlp()
        params["first"] = {name: jnp.asarray(value, jnp.bfloat16) for name, value in params["first"].items()}
        self.export(classify, params, batch_of(8), frozen=["first/"])
        self.assertEqual([each["name"] for each in self.variables()], ["second/bias", "second/weight"])
        self.run_package("step", batch_of(8))
        gradients = jax.grad(lambda params: classify(params, batch_of(8))[0])(params)
        self.assert_close(self.flat("gradients")["second/weight"], gradients["second"]["weight"], 1e-4)

    def test_VariablesInHalfPrecisionAreKeptAsFloat32(self):
        params = jax.tree.map(lambda array: jnp.asarray(array, jnp.bfloat16), mlp())
        self.export(classify, params, batch_of(8))
        self.run_package("step", batch_of(8))
        self.assert_close(self.flat("parameters")["first/weight"], params["first"]["weight"].astype(np.float32), 0)
        gradients = jax.grad(lambda params: classify(params, batch_of(8))[0])(params)
        np.testing.assert_allclose(self.flat("gradients")["second/bias"],
                                   gradients["second"]["bias"].astype(np.float32), rtol=0.05, atol=0.01)

    def test_VariablesOfFloat64AreComputedInFullPrecision(self):
        def output_of(params, batch):
            return params["scale"] * (batch["inputs"] @ params["weight"]) + params["bias"][0]

        def step(params, batch, state):
            outputs = output_of(params, batch)
            seen = 0.9 * state["seen"] + 0.1 * batch["inputs"].mean(0)
            return (jnp.mean((outputs - batch["labels"]) ** 2),
                    {"error": jax_metrics.mse(outputs, batch["labels"])}, {"seen": seen})

        def evaluate(params, batch, state):
            return step(params, batch, state)[:2]

        def some(examples):
            i = np.arange(examples)
            return {"inputs": np.stack([np.sin(i + 1), np.cos(i)], axis=1), "labels": i / 7}

        params = {"weight": np.array([1, -2]) / 7, "bias": np.array([0.25], np.float32), "scale": np.array(1 / 3)}
        state = {"seen": np.full(2, 0.1)}
        with jax.enable_x64(True):
            self.export(step, params, some(8), state=state, frozen=["scale"], evaluate_fn=evaluate,
                        predict_fn=lambda params, batch, state: output_of(params, batch))
        self.assertEqual({each["name"]: each["dtype"] for each in self.variables()},
                         {"weight": "float64", "bias": "float32", "seen": "float64"})
        for examples in (8, 5):  # 5 is composed of parts
            batch = some(examples)
            inputs = batch["inputs"]
            errors = inputs @ params["weight"] / 3 + 0.25 - batch["labels"]
            self.assertAlmostEqual(self.run_package("step", batch), np.sum(errors ** 2), places=6)
            np.testing.assert_array_equal(self.flat("parameters")["weight"], params["weight"])
            found = self.flat("gradients")
            np.testing.assert_allclose(found["weight"], 2 / 3 * errors @ inputs / examples, rtol=0, atol=1e-12)
            np.testing.assert_allclose(found["bias"], [2 * errors.mean()], rtol=1e-6)
            if examples == 8:
                np.testing.assert_allclose(found["seen"], 0.09 + 0.1 * inputs.mean(0), rtol=0, atol=1e-12)

        # Losses, metrics and predictions are float32, but they are computed in float64: both products of a record nearly
        # cancel out.
        self.set_flat({**params, **state, "bias": np.zeros(1)})
        outputs = np.arange(1, 9) * 1e-10 / 21
        batch = {"inputs": np.stack([2 + 21 * outputs, np.ones(8)], axis=1), "labels": np.zeros(8)}
        np.testing.assert_allclose(self.run_package("evaluate", batch), np.sum(outputs ** 2), rtol=1e-4)
        np.testing.assert_allclose(self.metrics(), [[np.sum(outputs ** 2), 8]], rtol=1e-4)
        self.run_package("predict", batch)
        np.testing.assert_allclose(np.fromfile(self.folder / "outputs", np.float32), outputs, rtol=1e-4)

    def test_DropoutDiffersFromPartToPartAndIsTheSameWhenRepeated(self):
        def dropped(params, batch, key):
            mask = jax.random.bernoulli(key, 0.5, batch["inputs"].shape)
            return jnp.mean(batch["inputs"] * mask @ params["w"])

        params = {"w": np.ones(200, np.float32)}
        batch = {"inputs": np.ones((4, 200), np.float32)}
        self.export(dropped, params, batch, rng=True)
        self.run_package("step", batch)
        first = self.flat("gradients")["w"]
        self.assertEqual(set(first.tolist()), {0, 0.25, 0.5, 0.75, 1})
        self.run_package("step", batch)
        np.testing.assert_array_equal(self.flat("gradients")["w"], first)
        self.assertIn('no program "evaluate"', self.run_package("evaluate", batch, fails=True))

        self.export(dropped, params, batch, rng=True, batch_sizes=[1])
        self.run_package("step", batch)
        self.assertGreater(len(set(self.flat("gradients")["w"].tolist())), 2, "all parts dropped the same")

    def test_ColumnsAreInTheOrderOfTheDict(self):
        batch = {"z": np.ones((2, 3), np.float32), "a": np.ones((2, 1), np.uint8)}
        self.export(lambda params, batch: jnp.mean(batch["z"] * params["w"]) + jnp.mean(batch["a"] * params["w"]),
                    {"w": np.ones(3, np.float32)}, batch)
        with zipfile.ZipFile(self.package) as package:
            columns = json.loads(package.read("disttrain.json"))["columns"]
        self.assertEqual([column["name"] for column in columns], ["z", "a"])
        self.assertAlmostEqual(self.run_package("step", batch), 4.0, places=5)

    def test_TheSameModelMakesTheSameFile(self):
        self.export(classify, mlp(), batch_of(4))
        first = self.package.read_bytes()
        self.export(classify, mlp(), batch_of(4))
        self.assertEqual(self.package.read_bytes(), first)
        self.assertNotIn(str(ROOT).encode(), first)

    # ---- metrics ----

    def test_MetricsAreThoseOfTheDefinitions(self):
        labels = np.array([1, 0, 1, 1])
        probabilities = jnp.array([0.9, 0.9, 0.1, 2.0])
        auc = jax_metrics.auc(probabilities, labels).values
        self.assertEqual((auc[921], auc[1024 + 921], auc[1024 + 102], auc[2047]), (1, 1, 1, 1))
        self.assertEqual(auc.sum(), 4)
        predicted = probabilities > 0.5
        self.assertEqual(jax_metrics.precision(predicted, labels).values.tolist(), [2, 3])
        self.assertEqual(jax_metrics.recall(predicted, labels).values.tolist(), [2, 3])
        self.assertEqual(jax_metrics.accuracy(probabilities, labels, threshold=0.5).values.tolist(), [2, 4])
        self.assertEqual(jax_metrics.mse(jnp.array([1.0, 3.0]), jnp.array([0.0, 1.0])).values.tolist(), [5, 2])
        self.assertEqual(jax_metrics.mae(jnp.array([1.0, 3.0]), jnp.array([0.0, 1.0])).values.tolist(), [3, 2])
        self.assertEqual(jax_metrics.mean(jnp.array([1.0, 3.0]), jnp.array([1.0, 3.0])).values.tolist(), [10, 4])
        self.assert_close(jax_metrics.perplexity(jnp.zeros((2, 8)), jnp.array([1, 2])).values, [2 * np.log(8), 2])

    # ---- errors of the export ----

    def assert_refused(self, sentence, step_fn=classify, params=None, batch=None, **options):
        with self.assertRaises(ExportError) as raised:
            self.export(step_fn, mlp() if params is None else params, batch_of(4) if batch is None else batch, **options)
        self.assertIn(sentence, str(raised.exception))
        self.assertFalse(self.package.exists())

    def test_AModelThatCantBeExportedSaysWhy(self):
        params = mlp()
        params["second"]["bias"][3] = np.nan
        self.assert_refused('params: "second/bias" has a value that is NaN', params=params)
        self.assert_refused('params: "0" has dtype int32', params=[np.int32(3)])
        self.assert_refused('column "labels" has shape (3,); expected the number of examples',
                            batch={"inputs": np.ones((4, 20), np.float32), "labels": np.ones(3, np.int32)})
        self.assert_refused('column "labels" has dtype complex64', batch={"labels": np.ones(3, np.complex64)})
        self.assert_refused('frozen: no variable is named "third/"', frozen=["third/"])
        self.assert_refused("no variable is left to train", frozen=["first/", "second/"])
        self.assert_refused('limits: no column is named "label"', limits={"label": 10})
        self.assert_refused("a loss of float32[4]; expected a floating-point scalar",
                            lambda params, batch: jnp.sum(logits_of(params, batch), axis=1))
        self.assert_refused("expected (loss, metrics, new state)", lambda params, batch, state: jnp.sum(params["first"]["bias"]),
                            state={"mean": np.zeros(3, np.float32)})
        self.assert_refused('state "mean" with shape (2,); expected (3,)',
                            lambda params, batch, state: (jnp.sum(params["first"]["bias"]), {}, {"mean": jnp.zeros(2)}),
                            state={"mean": np.zeros(3, np.float32)})
        self.assert_refused('metric name "loss": expected', lambda params, batch: (classify(params, batch)[0], {"loss": 1.0}))
        self.assert_refused("evaluate_fn returned the metrics", evaluate_fn=lambda params, batch: classify(params, batch)[0])
        self.assert_refused("expected the examples as first dimension", predict_fn=lambda params, batch: params["first"]["bias"])
        for step_fn, code in (
            (lambda params, batch: jnp.float32(float(params["first"]["bias"][0])), "jnp.float32(float(params"),
            (lambda params, batch: params["first"]["bias"].sum().item(), "params[\"first\"][\"bias\"].sum().item()"),
            (lambda params, batch: np.asarray(batch["inputs"]).sum(), "np.asarray(batch[\"inputs\"]).sum()"),
        ):
            self.assert_refused(f"JAX can't make the program step for cpu at {__file__}:", step_fn)
            self.assert_refused(code, step_fn)
            self.assert_refused("; only a batch has this value, so compute it with jax.numpy", step_fn)
        for given, kind in ((dict, "the class dict"), ("step", "an object of the class str")):
            self.assert_refused(f"export_jax: step_fn is {kind}; expected a function of params and a batch", given)
            self.assert_refused(f"export_jax: predict_fn is {kind}; expected a function", predict_fn=given)
        self.assert_refused("batch_sizes is [0]", batch_sizes=[0])
        self.assert_refused("batch_sizes is 64; expected a list", batch_sizes=64)
        self.assert_refused("batch_sizes is [2.5]", batch_sizes=[2.5])
        self.assert_refused('frozen is the text "first/"; expected a list', frozen="first/")
        masked = {"mask": np.array([0, -np.inf], np.float32), **params}
        self.assert_refused('params: "mask" has a value that is NaN, infinite', params=masked)
        self.assert_refused('params: "mask" has a value that is NaN', params={**masked, "mask": np.array([np.nan])},
                            frozen=["mask"])
        self.assert_refused('limits has -1 for column "labels"', limits={"labels": -1})
        self.assert_refused('limits has 10 for column "inputs" of float32', limits={"inputs": 10})
        self.assert_refused("export_jax: platform is 'abacus'; expected one of cpu, cuda, rocm, tpu", platform="abacus")
        for name, text in (("missing/step.shlo", "can't write"), ("step.pt2", "doesn't end in .shlo")):
            self.package = self.folder / name
            self.assert_refused(text)

    def test_NewStateOfAnotherTypeIsRefused(self):
        def step(params, batch, state):
            return classify(params, batch)[0], {}, {"steps": state["steps"] + 0.5}

        text = 'step_fn returned state "steps" of float32; expected int32, as given'
        self.assert_refused(text, step, state={"steps": np.int32(0)})

    def test_LossThatIsASumIsRefused(self):
        def step(params, batch, *state_and_key):
            loss = cross_entropy(logits_of(params, batch), batch["labels"]) * len(batch["labels"])
            return (loss, {}, *state_and_key[:1]) if state_and_key else loss

        text = "if each example comes twice; expected the mean over the batch"
        self.assert_refused("the loss of step_fn for example_batch is ", step)
        self.assert_refused(text, step, state={"seen": np.zeros(3, np.float32)}, rng=True)
        self.assert_refused("the loss of evaluate_fn for example_batch is ", evaluate_fn=lambda *inputs: (step(*inputs), classify(*inputs)[1]))
        # ln 4 becomes ln 8 and ln 12, and values aren't needed.
        contrastive = lambda params, batch: jax.nn.logsumexp(logits_of(params, batch) * 1e-3)  # noqa: E731
        self.export(contrastive, mlp(), batch_of(4))
        self.export(step, mlp(), {name: jax.ShapeDtypeStruct(each.shape, each.dtype) for name, each in batch_of(4).items()})

    def test_LossThatDependsOnNoVariableIsRefused(self):
        text = "the loss of step_fn doesn't depend on any trainable variable"
        self.assert_refused(text, lambda params, batch: jnp.mean(batch["inputs"]))
        self.assert_refused(text, jax.jit(lambda params, batch: jax.lax.stop_gradient(classify(params, batch))))
        self.assert_refused(text, lambda params, batch: jnp.mean(params["second"]["bias"]), frozen=["second/"])
        self.export(lambda params, batch: jnp.mean(params["second"]["bias"]), mlp(), batch_of(4))

    # ---- errors of the worker ----

    def test_AWorkerRefusesAPackageThatItCantCompute(self):
        self.export(classify, mlp(), batch_of(4), batch_sizes=[4])
        self.assertIn("exported for batches of 4, which leave 2 over", self.run_package("step", batch_of(6), fails=True))
        self.assertIn("doesn't exist", self.run_package("step", batch_of(4), plugin="/nowhere.so", fails=True))
        whole = self.package.read_bytes()
        self.package.write_bytes(whole[: len(whole) // 2])
        self.assertIn("truncated", self.run_package("step", batch_of(4), fails=True))
        program = whole.index(b"StableHLO_v") + 200
        self.package.write_bytes(whole[:program] + b"damage" + whole[program + 6:])
        self.assertIn("wrong checksum", self.run_package("step", batch_of(4), fails=True))

    def test_AWorkerRefusesAPackageWhosePartsDontFit(self):
        self.export(classify, mlp(), batch_of(4), batch_sizes=[4])

        def rewrite(change):
            with zipfile.ZipFile(self.package) as package:
                members = {name: package.read(name) for name in package.namelist()}
            described = json.loads(members["disttrain.json"])
            change(described, members)
            members["disttrain.json"] = json.dumps(described).encode()
            with zipfile.ZipFile(self.folder / "changed.shlo", "w") as package:
                for name, content in members.items():
                    package.writestr(name, content)

        def refused(sentence, change):
            original = self.package
            rewrite(change)
            self.package = self.folder / "changed.shlo"
            self.assertIn(sentence, self.run_package("step", batch_of(4), fails=True))
            self.package = original

        refused("no member has the program step", lambda _, members: members.pop("stablehlo/step-4.mlirbc"))
        refused("was exported from torch", lambda described, _: described.update(kind="pt2", library="torch"))
        refused("doesn't take all columns", lambda described, _: described["programs"]["step"].update(columns=[]))
        refused("frozen variables must come after", lambda described, _: described["variables"][0].update(kind="frozen"))
        refused("compiling program \"step-4\"",
                lambda _, members: members.update({"stablehlo/step-4.mlirbc": b"no program"}))
        refused("output 1 is float32[6]; expected float32[4]", lambda described, _: described["metrics"].pop())


class JaxStagesTest(JaxExportTest):
    """Steps of several stages compute the same."""

    # These say nothing about stages.
    test_AModelThatCantBeExportedSaysWhy = None
    test_AWorkerRefusesAPackageThatItCantCompute = None
    test_AWorkerRefusesAPackageWhosePartsDontFit = None
    test_MetricsAreThoseOfTheDefinitions = None

    def setUp(self):
        super().setUp()
        patch = unittest.mock.patch.object(stage_ends, "LEAST_BYTES", 1)
        patch.start()
        self.addCleanup(patch.stop)

    def stages(self):
        with zipfile.ZipFile(self.package) as package:
            return sorted(name for name in package.namelist() if "/step_" in name)

    def gradients_of(self, step_fn, params, batch, *arguments, **options):
        """Exports the model and runs a step. Returns JAX's gradients and those of the package, by the names of the
        package."""
        self.export(step_fn, params, batch, **options)
        loss_sum = self.run_package("step", batch)
        loss, expected = jax.value_and_grad(step_fn)(params, batch, *arguments)
        self.assertAlmostEqual(loss_sum / len(batch["labels"]), float(loss), places=5)
        found = self.flat("gradients")
        return {f"{layer}/{name}": (found[f"{layer}/{name}"], expected[layer][name])
                for layer in params for name in params[layer]}

    def test_AStepInsideAJitIsCut(self):
        step = jax.jit(lambda params, batch: cross_entropy(logits_of(params, batch), batch["labels"]))
        for found, expected in self.gradients_of(step, mlp(), batch_of(4), batch_sizes=[4]).values():
            self.assert_close(found, expected)
        self.assertEqual(self.stages(), ["stablehlo/step_0-4.mlirbc", "stablehlo/step_1-4.mlirbc"])

    def test_SmallModelsAreNotCut(self):
        stage_ends.LEAST_BYTES = 2 << 20
        self.export(classify, mlp(), batch_of(4), batch_sizes=[4])
        self.assertEqual(self.stages(), [])

    def test_DropoutIsTheSameInAllStages(self):
        def dropped(params, batch, key):
            hidden = batch["inputs"] @ params["first"]["weight"]
            keys = jax.random.split(key)
            hidden *= jax.random.bernoulli(keys[0], 0.5, hidden.shape)
            # All weights are 1, so an output is the number of kept values.
            return jnp.mean(hidden @ params["second"]["weight"] * jax.random.bernoulli(keys[1], 0.5, (4, 1)))

        params = {"first": {"weight": np.ones((1, 50), np.float32)}, "second": {"weight": np.ones((50, 1), np.float32)}}
        self.export(dropped, params, {"inputs": np.ones((4, 1), np.float32)}, rng=True, batch_sizes=[4])
        self.assertEqual(len(self.stages()), 2)
        loss_sum = self.run_package("step", {"inputs": np.ones((4, 1), np.float32)})
        found = self.flat("gradients")
        # With these weights both gradients add up the same kept values as the loss.
        self.assertAlmostEqual(float(found["first/weight"].sum()), loss_sum / 4, places=4)
        self.assertAlmostEqual(float(found["second/weight"].sum()), loss_sum / 4, places=4)
        self.assertGreater(loss_sum, 0)

    def test_AStageThatIsMissingIsRefused(self):
        self.export(classify, mlp(), batch_of(4), batch_sizes=[4, 2])
        with zipfile.ZipFile(self.package) as package:
            members = {name: package.read(name) for name in package.namelist()}
        del members["stablehlo/step_1-2.mlirbc"]
        with zipfile.ZipFile(self.package, "w") as package:
            for name, content in members.items():
                package.writestr(name, content)
        self.assertIn("the step's members aren't those of its 2 stages", self.run_package("step", batch_of(4), fails=True))


if __name__ == "__main__":
    unittest.main()
