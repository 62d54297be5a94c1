"""Compares disttrain.metrics with naive computations in Python."""

import math
import random
import unittest

import in_torch

in_torch.run(__file__)

import torch  # noqa: E402

from disttrain import metrics  # noqa: E402


def random_classes(examples, classes, seed):
    torch.manual_seed(seed)
    # Rounded outputs have ties.
    return torch.randn(examples, classes).round(decimals=1), torch.randint(0, classes, (examples,))


class MetricsTest(unittest.TestCase):
    def test_AccuracyCountsTheLargestOutputs(self):
        outputs, labels = random_classes(50, 4, 1)
        correct = 0
        for row, label in zip(outputs.tolist(), labels.tolist()):
            correct += max(range(4), key=lambda c: (row[c], -c)) == label
        self.assertEqual(metrics.Accuracy().accumulate(outputs, labels).tolist(), [correct, 50])

    def test_AccuracyOfOneOutputUsesTheThreshold(self):
        outputs, labels = torch.tensor([[-1.0], [2.0], [0.3]]), torch.tensor([0, 1, 0])
        self.assertEqual(metrics.Accuracy().accumulate(outputs, labels).tolist(), [2, 3])
        self.assertEqual(metrics.Accuracy(threshold=0.5).accumulate(outputs, labels).tolist(), [3, 3])

    def test_TopKCountsLabelsAmongTheKLargest(self):
        outputs, labels = random_classes(50, 6, 2)
        for k in (1, 2, 5):
            correct = 0
            for row, label in zip(outputs.tolist(), labels.tolist()):
                correct += label in sorted(range(6), key=lambda c: (-row[c], c))[:k]
            self.assertEqual(metrics.TopK(k).accumulate(outputs, labels).tolist(), [correct, 50])
        for k in (0, -1, 2.5, "5", None):
            with self.assertRaisesRegex(ValueError, f"k is {k!r}; expected a whole number of at least 1"):
                metrics.TopK(k)
        self.assertEqual(metrics.TopK(6).accumulate(outputs, labels).tolist(), [50, 50])
        with self.assertRaisesRegex(ValueError, "k is 7; expected at most 6, the number of outputs for each label"):
            metrics.TopK(7).accumulate(outputs, labels)

    def test_PerplexityOfALanguageModelIsThatOfAllItsTokens(self):
        torch.manual_seed(3)
        outputs, labels = torch.randn(3, 5, 7), torch.randint(0, 7, (3, 5))
        expected = torch.nn.functional.cross_entropy(outputs.reshape(15, 7).double(), labels.reshape(15)).exp()
        metric = metrics.Perplexity()
        self.assertAlmostEqual(metric.value(metric.accumulate(outputs, labels)), float(expected), places=4)
        # The layout of PyTorch's cross_entropy: classes in the second dimension.
        moved = metric.value(metric.accumulate(outputs.movedim(-1, 1), labels))
        self.assertAlmostEqual(moved, float(expected), places=4)
        self.assertEqual(metric.value([1e6, 1.0]), math.inf)
        self.assertTrue(math.isnan(metric.value([0.0, 0.0])))

    def test_AucIsTheShareOfPairsInOrder(self):
        random.seed(4)
        labels = [random.random() < 0.4 for _ in range(300)]
        outputs = [random.gauss(1.0 if label else 0.0, 1.0) for label in labels]
        metric = metrics.AUC()
        accumulator = metric.accumulate(torch.tensor(outputs).unsqueeze(1), torch.tensor(labels).float())
        self.assertEqual(float(accumulator.sum()), 300)
        positives = [output for output, label in zip(outputs, labels) if label]
        negatives = [output for output, label in zip(outputs, labels) if not label]
        exact = sum(p > n for p in positives for n in negatives) / (len(positives) * len(negatives))
        self.assertAlmostEqual(metric.value(accumulator), exact, delta=2 / metrics.AUC_BINS)

    def test_PrecisionAndRecallCountPositives(self):
        outputs, labels = torch.tensor([2.0, 1.0, -1.0, -2.0, 3.0]), torch.tensor([1, 0, 1, 0, 1])
        self.assertEqual(metrics.Precision().accumulate(outputs, labels).tolist(), [2, 3])
        self.assertEqual(metrics.Recall().accumulate(outputs, labels).tolist(), [2, 3])
        probabilities = outputs.sigmoid()
        self.assertEqual(metrics.Precision(logits=False).accumulate(probabilities, labels).tolist(), [2, 3])

    def test_ErrorsAreSummedOverAllValues(self):
        outputs, labels = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
        self.assertEqual(metrics.MSE().accumulate(outputs, labels).tolist(), [38, 4])
        self.assertEqual(metrics.MAE().accumulate(outputs, labels).tolist(), [10, 4])

    def test_MeanTakesAnyFunctionOfTheBatch(self):
        metric = metrics.Mean(lambda outputs, batch: outputs * batch["weights"])
        batch = {"weights": torch.tensor([1.0, 3.0])}
        self.assertEqual(metric(torch.tensor([2.0, 4.0]), batch).tolist(), [14, 2])

    def test_AccumulatorsOfPartsAddUp(self):
        outputs, labels = random_classes(40, 3, 5)
        for metric in (metrics.Accuracy(), metrics.TopK(2), metrics.Perplexity()):
            whole = metric.accumulate(outputs, labels)
            parts = metric.accumulate(outputs[:13], labels[:13]) + metric.accumulate(outputs[13:], labels[13:])
            self.assertTrue(torch.allclose(whole, parts, rtol=1e-12))


if __name__ == "__main__":
    unittest.main()
