"""A training loop in JAX as a trainer. It needs a Python with JAX."""

import unittest

from fake_worker import FakeWorker, require_python

PYTHON = require_python("jax")

SCRIPT = """
import disttrain, jax, jax.numpy as jnp
@jax.jit
@jax.value_and_grad
def loss_of(parameters, x, y):
    return jnp.mean((x @ parameters["w"] + parameters["b"] - y) ** 2)
job = disttrain.init(metrics=[])
job.wrap({"w": jnp.ones(2), "b": jnp.zeros((), jnp.bfloat16)})
data = [(jnp.array([i, 1.0]), 2.0 * i) for i in range(10)]
for batch in job.batches(data):
    loss, gradients = loss_of(job.variables, batch.x, batch.y)
    job.push_pull(gradients, loss=loss)
"""


class JaxTrainerTest(unittest.TestCase):
    def test_gradients_of_a_jitted_function_at_the_clusters_values(self):
        with FakeWorker(PYTHON, SCRIPT) as worker:
            worker.open()
            described = [["w", [2], "trainable", "float32"], ["b", [], "trainable", "float32"]]
            self.assertEqual(worker.model["variables"], described)
            self.assertEqual(worker.initial(), {"w": [1, 1], "b": [0]})
            parameters, gradients = worker.new_block(12), worker.new_block(12)
            for w, record in (([1, 0], 3), ([3, 0], 2)):
                worker.fill(parameters, {"w": w, "b": [1]})
                worker.start(parameters, gradients, [record])
                error = w[0] * record + w[1] + 1 - 2 * record
                self.assertAlmostEqual(worker.receive()["loss_sum"], error**2, places=4)
                self.assertEqual(worker.values(gradients), {"w": [2 * error * record, 2 * error], "b": [2 * error]})


if __name__ == "__main__":
    unittest.main()
