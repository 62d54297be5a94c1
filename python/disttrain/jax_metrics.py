"""Metrics for models that are written in JAX.

Each function returns the accumulator of a metric over one batch, to be returned by the step_fn of export_jax():

    return loss, {"accuracy": jax_metrics.accuracy(logits, labels), "top_5": jax_metrics.top_k(logits, labels, 5)}

disttrain adds the accumulators of all batches and all workers, and computes the metric's value from the sum. So the
value doesn't depend on how the examples were divided into batches. common/model_metric.h defines each kind.
"""

import dataclasses

import jax
import jax.numpy as jnp

AUC_BINS = 1024  # of equal width over the probabilities 0 to 1


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Accumulator:
    """The accumulator of one metric: a vector of numbers that adds up over batches."""

    values: jax.Array
    kind: str = dataclasses.field(metadata={"static": True})  # as in job.toml: "accuracy", "top_5"


def size_of(kind):
    """The number of elements of a kind's accumulator."""
    return 2 * AUC_BINS if kind == "auc" else 2


def _accumulator(kind, *sums):
    return Accumulator(jnp.stack([jnp.asarray(each, jnp.float32) for each in sums]), kind)


def mean(values, weights=None):
    """The mean of the values, one for each example, or their weighted mean."""
    weights = jnp.ones_like(values) if weights is None else weights
    return _accumulator("mean", jnp.sum(values * weights), jnp.sum(weights))


def accuracy(outputs, labels, threshold=0.0):
    """The part of the examples whose largest output is at the label's index.

    outputs: [examples, classes], labels: [examples]. With one output for each example ([examples] or [examples, 1]) an
    example is correct if its output is above the threshold exactly if its label is 1.
    """
    if outputs.ndim == labels.ndim or outputs.shape[-1] == 1:
        correct = (outputs.reshape(labels.shape) > threshold) == (labels == 1)
    else:
        correct = jnp.argmax(outputs, axis=-1) == labels
    return _accumulator("accuracy", jnp.sum(correct), correct.size)


def top_k(outputs, labels, k):
    """The part of the examples whose label is among the k largest outputs. The smaller index wins between equals."""
    if not 1 <= k <= outputs.shape[-1]:
        raise ValueError(f"top_k: k is {k}; expected 1 to {outputs.shape[-1]}, the number of outputs")
    _, best = jax.lax.top_k(outputs, k)
    correct = jnp.any(best == labels[..., None], axis=-1)
    return _accumulator(f"top_{k}", jnp.sum(correct), correct.size)


def auc(probabilities, labels):
    """The area under the ROC curve, by a histogram of the probabilities that an example is positive (label 1)."""
    probabilities = jnp.where(jnp.isnan(probabilities), 0.0, probabilities).reshape(-1)
    bins = jnp.clip(jnp.floor(probabilities * AUC_BINS), 0, AUC_BINS - 1).astype(jnp.int32)
    bins = bins + jnp.where(labels.reshape(-1) == 1, AUC_BINS, 0)
    return Accumulator(jnp.zeros(2 * AUC_BINS, jnp.float32).at[bins].add(1.0), "auc")


def precision(predicted, labels):
    """The part of the examples predicted as positive that are positive. Both arrays: 1 or True means positive."""
    predicted, positive = predicted.astype(bool), labels == 1
    return _accumulator("precision", jnp.sum(predicted & positive), jnp.sum(predicted))


def recall(predicted, labels):
    """The part of the positive examples that were predicted as positive. Both arrays: 1 or True means positive."""
    predicted, positive = predicted.astype(bool), labels == 1
    return _accumulator("recall", jnp.sum(predicted & positive), jnp.sum(positive))


def perplexity(logits, labels):
    """exp of the mean of -log(probability of the label). logits: [..., classes], labels: [...]."""
    logs = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
    of_label = jnp.take_along_axis(logs, labels[..., None], axis=-1)
    return _accumulator("perplexity", -jnp.sum(of_label), labels.size)


def mse(outputs, targets):
    """The mean squared error."""
    return _accumulator("mse", jnp.sum(jnp.square(outputs - targets)), outputs.size)


def mae(outputs, targets):
    """The mean absolute error."""
    return _accumulator("mae", jnp.sum(jnp.abs(outputs - targets)), outputs.size)
