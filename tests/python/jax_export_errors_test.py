"""Models of JAX that can't be exported, and packages that a worker can't compute: one sentence says why."""

import json
import unittest

from jax_package import JaxPackageTest, batch_of, classify, cross_entropy, logits_of, mlp

import jax  # after jax_package
import jax.numpy as jnp
import numpy as np
from disttrain import jax_metrics
from disttrain.jax_export import ExportError


class JaxExportErrorsTest(JaxPackageTest):
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
        too_many = lambda params, batch: jax_metrics.top_k(logits_of(params, batch), batch["labels"], 50)  # noqa: E731
        self.assert_refused("top_k: k is 50; expected 1 to 10, the number of outputs",
                            lambda params, batch: (classify(params, batch)[0], {"top_50": too_many(params, batch)}))
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
        self.assert_refused('column "labels" of example_batch has values from 3 to 9; its limit is 9', limits={"labels": 9},
                            batch={**batch_of(4), "labels": np.array([3, 9, 5, 4], np.int32)})
        self.assert_refused("limits is an object of the class int; expected a dict", limits=4)
        self.assert_refused("params isn't a tree of arrays:", params={1: np.ones(3), "w": np.ones(3)})
        for metrics in ([1.0], {5: 1.0}):
            self.assert_refused(f"step_fn returned the metrics {metrics}; expected a dict with texts as keys",
                                lambda params, batch, metrics=metrics: (classify(params, batch)[0], metrics))
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


class JaxPackageErrorsTest(JaxPackageTest):
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

        original = self.members()

        def refused(sentence, change):
            members = dict(original)
            described = json.loads(members["disttrain.json"])
            change(described, members)
            members["disttrain.json"] = json.dumps(described).encode()
            self.write_members(members)
            self.assertIn(sentence, self.run_package("step", batch_of(4), fails=True))

        refused("no member has the program step", lambda _, members: members.pop("stablehlo/step-4.mlirbc"))
        refused("was exported from torch", lambda described, _: described.update(kind="pt2", library="torch"))
        refused("doesn't take all columns", lambda described, _: described["programs"]["step"].update(columns=[]))
        refused("frozen variables must come after", lambda described, _: described["variables"][0].update(kind="frozen"))
        refused("compiling program \"step-4\"",
                lambda _, members: members.update({"stablehlo/step-4.mlirbc": b"no program"}))
        refused("output 1 is float32[6]; expected float32[4]", lambda described, _: described["metrics"].pop())


if __name__ == "__main__":
    unittest.main()
