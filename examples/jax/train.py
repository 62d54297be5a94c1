"""A net with one hidden layer learns to read digits, in JAX: the trainer of job.toml, train.py [DEVIATION].

DEVIATION is the standard deviation of the first weights. The default is 1 / sqrt(the layer's inputs).
"""

import sys

import disttrain
import jax
import jax.numpy as jnp


def first_values(seed, deviation):
    def layer(key, inputs, outputs):
        weight = jax.random.normal(key, (inputs, outputs)) * (deviation or inputs**-0.5)
        return {"weight": weight, "bias": jnp.zeros(outputs)}

    hidden, output = jax.random.split(jax.random.key(seed))
    return {"hidden": layer(hidden, 784, 100), "output": layer(output, 100, 10)}


def measure(parameters, images, labels):
    """The mean cross entropy, and the accuracy."""
    units = jax.nn.sigmoid(images @ parameters["hidden"]["weight"] + parameters["hidden"]["bias"])
    logits = units @ parameters["output"]["weight"] + parameters["output"]["bias"]
    of_labels = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -of_labels.mean(), (logits.argmax(axis=1) == labels).mean()


# jit compiles a function again for each new size of a batch. Only the last batch of an epoch may have another size.
measure_only = jax.jit(measure)
measure_with_gradients = jax.jit(jax.value_and_grad(measure, has_aux=True))

job = disttrain.init(metrics=["accuracy"])
job.wrap(first_values(job.seed, float(sys.argv[1]) if len(sys.argv) > 1 else None))


@job.on_evaluate
def evaluate(batch):
    loss, accuracy = measure_only(job.variables, batch.inputs, batch.labels)
    return {"loss": loss, "accuracy": accuracy}


for batch in job.batches():  # the records of [data] in job.toml
    (loss, accuracy), gradients = measure_with_gradients(job.variables, batch.inputs, batch.labels)
    job.push_pull(gradients, loss=loss, accuracy=accuracy)
