"""Models that are exported from JAX: what a worker computes by PJRT equals what JAX computes itself."""

import json
import unittest

from jax_package import ROOT, JaxPackageTest, batch_of, classify, logits_of, mlp

import jax  # after jax_package
import jax.numpy as jnp
import numpy as np
from disttrain import jax_metrics


class JaxExportTest(JaxPackageTest):
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
        columns = json.loads(self.members()["disttrain.json"])["columns"]
        self.assertEqual([column["name"] for column in columns], ["z", "a"])
        self.assertAlmostEqual(self.run_package("step", batch), 4.0, places=5)

    def test_TheSameModelMakesTheSameFile(self):
        self.export(classify, mlp(), batch_of(4))
        first = self.package.read_bytes()
        self.export(classify, mlp(), batch_of(4))
        self.assertEqual(self.package.read_bytes(), first)
        self.assertNotIn(str(ROOT).encode(), first)


class JaxMetricsTest(JaxPackageTest):
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


if __name__ == "__main__":
    unittest.main()
