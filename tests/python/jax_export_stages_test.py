"""Packages of JAX whose step has several stages compute the same as those with one."""

import unittest
import unittest.mock

import jax_export_test
from jax_package import batch_of, classify, cross_entropy, logits_of, mlp

import jax  # after jax_package
import jax.numpy as jnp
import numpy as np
from disttrain.exporting import stage_ends


class JaxStagesTest(jax_export_test.JaxExportTest):
    """Has the tests of JaxExportTest, too."""

    def setUp(self):
        super().setUp()
        patch = unittest.mock.patch.object(stage_ends, "LEAST_BYTES", 1)
        patch.start()
        self.addCleanup(patch.stop)

    def stages(self):
        return sorted(name for name in self.members() if "/step_" in name)

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
        members = self.members()
        del members["stablehlo/step_1-2.mlirbc"]
        self.write_members(members)
        self.assertIn("the step's members aren't those of its 2 stages", self.run_package("step", batch_of(4), fails=True))


if __name__ == "__main__":
    unittest.main()
