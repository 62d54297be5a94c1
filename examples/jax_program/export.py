"""Exports a net of JAX with one hidden layer, which reads digits: export.py [SEED [DEVIATION]] writes step.shlo.

DEVIATION is the standard deviation of the first weights. The default is 1 / sqrt(the layer's inputs).
"""

import sys

import disttrain
import jax
import jax.numpy as jnp
from disttrain import jax_metrics


def first_values(seed, deviation):
    def layer(key, inputs, outputs):
        weight = jax.random.normal(key, (inputs, outputs)) * (deviation or inputs**-0.5)
        return {"weight": weight, "bias": jnp.zeros(outputs)}

    hidden, output = jax.random.split(jax.random.key(seed))
    return {"hidden": layer(hidden, 784, 100), "output": layer(output, 100, 10)}


def step(parameters, batch):
    """The mean cross entropy, and the accuracy. The export makes the gradients."""
    units = jax.nn.sigmoid(batch["inputs"] @ parameters["hidden"]["weight"] + parameters["hidden"]["bias"])
    logits = units @ parameters["output"]["weight"] + parameters["output"]["bias"]
    of_labels = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["labels"][:, None], axis=1)
    return -of_labels.mean(), {"accuracy": jax_metrics.accuracy(logits, batch["labels"])}


seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
deviation = float(sys.argv[2]) if len(sys.argv) > 2 else None
# Only the shapes and types of the example count. 100 is the batch_size of job.toml.
example = {"inputs": jnp.zeros((100, 784), jnp.float32), "labels": jnp.zeros(100, jnp.int32)}
disttrain.export_jax(step, first_values(seed, deviation), example, "step.shlo", limits={"labels": 10})
