"""The metrics of a model: torch functions from outputs and a batch to an accumulator.

A metric is computed in two parts, as common/model_metric.h describes: a program adds the examples of a batch to an
accumulator of float64 numbers, accumulators of several batches and workers are added up, and disttrain turns the sum
into the metric's value. The classes here compute the accumulator of one batch. They are plain torch functions, so that
disttrain.export() can make them part of a program, and a script can call them as they are:

    accuracy = disttrain.metrics.Accuracy()
    accumulator = accuracy(outputs, batch)      # batch: {"inputs": ..., "labels": ...}
    accuracy.value(accumulator)                 # a float

torch is imported only when an accumulator is computed.
"""

import math
import numbers

AUC_BINS = 1024  # kAucBins in common/model_metric.h


class Metric:
    """Base class: what all metrics have. `kind` is the name of the kind in job.toml. Each metric also has a method
    accumulate(outputs, labels), which returns the accumulator of one batch: a float64 tensor of `size` numbers.

    labels: the name of the column with the labels. None: the label column that disttrain.export() was given.
    needs: what outputs and labels the metric needs, for errors; "" = it isn't known.
    """

    kind = ""
    needs = ""
    size = 2  # the number of float64 numbers in the accumulator

    def __init__(self, labels=None):
        self.labels = labels

    def __call__(self, outputs, batch):
        return self.accumulate(outputs, batch[self.labels or "labels"])

    def value(self, accumulator):
        """The metric's value, as metric_value() in common/model_metric.h computes it. NaN without examples."""
        total, weight = (float(number) for number in accumulator)
        return total / weight if weight else math.nan


def _pair(total, weight):
    import torch

    # A number that depends on the batch's size must not become a constant of the program, as as_tensor() would make it.
    if not isinstance(weight, torch.Tensor):
        weight = torch.full((), weight, dtype=torch.float64, device=total.device)
    return torch.stack([total.to(torch.float64), weight.to(torch.float64)])


def _is_single_output(outputs, labels):
    """Whether the model has one output per label: a logit, and not one output for each class."""
    return outputs.dim() == labels.dim() or (outputs.dim() == labels.dim() + 1 and outputs.shape[-1] == 1)


def _classes(outputs, labels):
    """Outputs with the shape [labels, classes], labels as int64 [labels], for one label or several per record.

    As in PyTorch's cross_entropy the classes are the second dimension of the outputs. For language models, whose outputs
    are [records, length, classes] and whose labels are [records, length], the classes are the last dimension.
    """
    import torch

    if outputs.dim() > 2 and outputs.shape[:-1] != labels.shape:
        outputs = outputs.movedim(1, -1)
    return outputs.reshape(-1, outputs.shape[-1]), labels.reshape(-1).to(torch.int64)


class Accuracy(Metric):
    """{correct, labels}. A label is correct if the largest output is at its index; with one output, if the output is
    above `threshold` exactly if the label is 1. The default threshold fits logits; use 0.5 for probabilities."""

    kind = "accuracy"

    def __init__(self, labels=None, threshold=0.0):
        super().__init__(labels)
        self.threshold = threshold

    def accumulate(self, outputs, labels):
        if _is_single_output(outputs, labels):
            correct = (outputs.reshape(-1) > self.threshold) == (labels.reshape(-1) == 1)
        else:
            outputs, labels = _classes(outputs, labels)
            correct = outputs.argmax(-1) == labels
        return _pair(correct.sum(), correct.numel())


class TopK(Metric):
    """{correct, labels}. A label is correct if it is among the k largest outputs. Of equal outputs, those before the
    label count as larger. k is at most the number of classes."""

    def __init__(self, k, labels=None):
        super().__init__(labels)
        if not isinstance(k, numbers.Integral) or k < 1:
            raise ValueError(f"TopK: k is {k!r}; expected a whole number of at least 1")
        self.k = int(k)
        self.kind = f"top_{self.k}"

    def accumulate(self, outputs, labels):
        import torch

        outputs, labels = _classes(outputs, labels)
        # TorchScript's tracer would warn of this comparison. The export has run the metric before it traces.
        if not torch.jit.is_tracing() and self.k > outputs.shape[1]:
            raise ValueError(f"k is {self.k}; expected at most {outputs.shape[1]}, the number of outputs for each label")
        own = outputs.gather(1, labels.unsqueeze(1))
        index = torch.arange(outputs.shape[1], device=outputs.device)
        larger = (outputs > own) | ((outputs == own) & (index < labels.unsqueeze(1)))
        correct = larger.sum(1) < self.k
        return _pair(correct.sum(), correct.numel())


class _Binary(Metric):
    """A metric of two classes: outputs and labels have one value per label; a label is positive if it is 1.

    logits: the outputs are logits, to which a sigmoid is applied. False: the outputs are probabilities.
    """

    needs = "it needs one output for each label, which is 0 or 1"

    def __init__(self, labels=None, logits=True):
        super().__init__(labels)
        self.logits = logits

    def _probabilities(self, outputs, labels):
        outputs = outputs.reshape(-1)
        return outputs.sigmoid() if self.logits else outputs, labels.reshape(-1) == 1


class AUC(_Binary):
    """The area under the ROC curve. Accumulator: a histogram of the probabilities of the negative examples, then one of
    the positive examples, with AUC_BINS bins of equal width each."""

    kind = "auc"
    size = 2 * AUC_BINS

    def accumulate(self, outputs, labels):
        import torch

        probabilities, positive = self._probabilities(outputs, labels)
        bins = (probabilities.nan_to_num(0.0).clamp(0, 1) * AUC_BINS).to(torch.int64).clamp(max=AUC_BINS - 1)
        places = bins + positive.to(torch.int64) * AUC_BINS
        counts = torch.zeros(self.size, dtype=torch.float64, device=outputs.device)
        return counts.scatter_add(0, places, torch.ones_like(places, dtype=torch.float64))

    def value(self, accumulator):
        numbers = [float(number) for number in accumulator]
        negatives, positives = numbers[:AUC_BINS], numbers[AUC_BINS:]
        below = area = 0.0
        for negative, positive in zip(negatives, positives):
            area += positive * (below + negative / 2)
            below += negative
        pairs = below * sum(positives)
        return area / pairs if pairs else math.nan


class Precision(_Binary):
    """{true positives, predicted positives}. An example is predicted positive if its probability is above 0.5."""

    kind = "precision"

    def accumulate(self, outputs, labels):
        probabilities, positive = self._probabilities(outputs, labels)
        predicted = probabilities > 0.5
        return _pair((predicted & positive).sum(), predicted.sum())


class Recall(_Binary):
    """{true positives, positives}. An example is predicted positive if its probability is above 0.5."""

    kind = "recall"

    def accumulate(self, outputs, labels):
        probabilities, positive = self._probabilities(outputs, labels)
        return _pair(((probabilities > 0.5) & positive).sum(), positive.sum())


class Perplexity(Metric):
    """{sum of -log(probability of the label), labels}. The outputs are logits."""

    kind = "perplexity"

    def accumulate(self, outputs, labels):
        outputs, labels = _classes(outputs, labels)
        chosen = outputs.float().log_softmax(-1).gather(1, labels.unsqueeze(1))
        return _pair(-chosen.double().sum(), labels.numel())

    def value(self, accumulator):
        mean = super().value(accumulator)
        return math.exp(mean) if mean < 700 else mean * math.inf  # exp(710) is no float any more; NaN stays NaN


class MSE(Metric):
    """{sum of squared errors, values}."""

    kind = "mse"
    needs = "it needs as many outputs as labels"

    def accumulate(self, outputs, labels):
        error = (outputs.reshape(-1) - labels.reshape(-1)).double()
        return _pair((error * error).sum(), error.numel())


class MAE(Metric):
    """{sum of absolute errors, values}."""

    kind = "mae"
    needs = "it needs as many outputs as labels"

    def accumulate(self, outputs, labels):
        error = (outputs.reshape(-1) - labels.reshape(-1)).double()
        return _pair(error.abs().sum(), error.numel())


class Mean(Metric):
    """{sum, weight} of whatever `function(outputs, batch)` returns: a tensor with one value per record or more, whose
    mean over all records is the metric."""

    kind = "mean"

    def __init__(self, function):
        super().__init__()
        self.function = function

    def __call__(self, outputs, batch):
        values = self.function(outputs, batch)
        return _pair(values.double().sum(), values.numel())
