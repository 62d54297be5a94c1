"""A net with one hidden layer learns to read digits, in plain NumPy: the trainer of job.toml, train.py [DEVIATION].

DEVIATION is the standard deviation of the first weights. The default is 1 / sqrt(the layer's inputs).
"""

import sys

import disttrain
import numpy as np


def first_values(seed, deviation):
    random = np.random.default_rng(seed)

    def layer(inputs, outputs):
        weight = random.standard_normal((inputs, outputs), np.float32) * (deviation or inputs**-0.5)
        return {"weight": weight, "bias": np.zeros(outputs, np.float32)}

    return {"hidden": layer(784, 100), "output": layer(100, 10)}


def forward(parameters, images):
    """The units of the hidden layer, and the probability of each digit."""
    hidden, output = parameters["hidden"], parameters["output"]
    units = 1 / (1 + np.exp(-(images @ hidden["weight"] + hidden["bias"])))
    logits = units @ output["weight"] + output["bias"]
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return units, odds / odds.sum(axis=1, keepdims=True)


def measure(probabilities, labels):
    """The mean cross entropy and the accuracy."""
    of_labels = probabilities[np.arange(len(labels)), labels]
    return {
        "loss": -np.log(np.maximum(of_labels, 1e-30)).mean(),
        "accuracy": (probabilities.argmax(axis=1) == labels).mean(),
    }


def backward(parameters, images, units, probabilities, labels):
    """The gradients of the mean cross entropy, as a tree like the parameters."""
    errors = probabilities.copy()
    errors[np.arange(len(labels)), labels] -= 1
    errors /= len(labels)
    of_units = errors @ parameters["output"]["weight"].T * units * (1 - units)
    return {
        "hidden": {"weight": images.T @ of_units, "bias": of_units.sum(axis=0)},
        "output": {"weight": units.T @ errors, "bias": errors.sum(axis=0)},
    }


job = disttrain.init(metrics=["accuracy"])
job.wrap(first_values(job.seed, float(sys.argv[1]) if len(sys.argv) > 1 else None))


@job.on_evaluate
def evaluate(batch):
    return measure(forward(job.variables, batch.inputs)[1], batch.labels)


for batch in job.batches():  # the records of [data] in job.toml
    parameters = job.variables
    units, probabilities = forward(parameters, batch.inputs)
    gradients = backward(parameters, batch.inputs, units, probabilities, batch.labels)
    job.push_pull(gradients, **measure(probabilities, batch.labels))
