"""Decisions of Python by values, of which TorchScript's trace doesn't warn, are refused with their line in an export to .pt."""

import pathlib
import tempfile
import unittest

import in_torch

in_torch.run(__file__)

import torch  # noqa: E402
from torch import nn  # noqa: E402

import disttrain  # noqa: E402
from disttrain.exporting import ExportError  # noqa: E402


class Net(nn.Module):
    """A net with a function of the test's choice in the middle."""

    def __init__(self, change):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.change = change

    def forward(self, inputs):
        return self.last(self.change(self.first(inputs)))


def in_range(hidden):
    for _ in range((hidden > 0).nonzero().shape[0]):
        hidden = hidden + 0.01
    return hidden


def in_range_of_a_variable(hidden):
    count = hidden.unique().numel()
    for _ in range(count):
        hidden = hidden + 0.01
    return hidden


def by_a_variable(hidden):
    rows, columns = torch.nonzero(hidden > 0).shape
    if columns < 2:
        hidden = hidden * 3
    if rows > 3:
        hidden = hidden * 2
    return hidden


def by_a_mask(hidden):
    chosen = hidden[hidden > 0]
    return hidden * 2 if chosen.size(0) > 3 else hidden


def by_a_length(hidden):
    chosen = torch.masked_select(hidden, hidden > 0)
    return hidden / len(chosen)


def by_a_computed_mask(hidden):
    chosen = hidden[hidden > 0] * 2
    return hidden * 2 if chosen.relu().shape[0] > 3 else hidden


def by_a_sum(hidden):
    count = hidden.unique().numel()
    count += 1
    count = count * 2
    return hidden * 2 if (
        count > 3
    ) else hidden


def in_another_branch(hidden):
    if hidden.ndim == 2:
        count = hidden.unique().numel()
    else:
        count = hidden.shape[0]
    for _ in range(count):
        hidden = hidden + 0.01
    return hidden


def a_name_that_is_used_again(hidden):
    count = (hidden > 0).nonzero().shape[0]
    hidden = hidden / count
    count = hidden.shape[0]
    if count > 1:
        hidden = hidden * 2
    for count in range(hidden.shape[1] - 6):
        hidden = hidden * 3 if hidden.shape[1] > count else hidden
    return hidden


def beside_a_count(hidden):
    """The decision's own line takes another size."""
    picked, other = hidden[hidden > 0], hidden + 1
    count = picked.shape[0]
    with torch.no_grad():
        count = other.shape[1]
    other += other.shape[1] if other.shape[0] > 1 else 0
    if count > 2:
        other = other * 2
    return other + picked.sum() * 0


def a_count_as_a_tensor(hidden):
    """The trace keeps the count as a part of the program. The other size is no value."""
    count = (hidden > 0).nonzero().shape[0]
    hidden = hidden / count
    if hidden.shape[1] > 2:
        hidden = hidden * 2
    return hidden


def sizes_that_are_no_counts(hidden):
    picked = torch.where(hidden > 0, hidden, hidden * 2)
    for _ in range(picked[:, 0:2].shape[1]):
        picked = picked * 1.5
    return picked * 2 if picked.numel() > 0 and len(picked[0]) > 2 else picked


class DecisionsTest(unittest.TestCase):
    def export(self, change):
        torch.manual_seed(2)
        batch = torch.randn(4, 6), torch.arange(4) % 3
        with tempfile.TemporaryDirectory() as folder:
            disttrain.export(Net(change), nn.CrossEntropyLoss(), batch, pathlib.Path(folder) / "step.pt", say=None)

    def assert_refused(self, line, change):
        with self.subTest(line), self.assertRaises(ExportError) as caught:
            self.export(change)
        text = f"export: the model itself (Net) uses a tensor's value in Python at {__file__}:"
        self.assertIn(text, str(caught.exception))
        self.assertIn(line, str(caught.exception))
        self.assertIn("and a TorchScript file would keep the example's value for all batches", str(caught.exception))

    def test_FunctionsWithANumberAsResult(self):
        for line, change in {
            "torch.equal(": lambda hidden: hidden * 2 if torch.equal(hidden, hidden.abs()) else hidden,
            "hidden.allclose(": lambda hidden: hidden * 2 if hidden.allclose(hidden.abs()) else hidden,
            "torch.is_nonzero(": lambda hidden: hidden * 2 if torch.is_nonzero(hidden.sum()) else hidden,
            'f"{hidden.sum()': lambda hidden: hidden * 2 if f"{hidden.sum():.1f}" == "0.0" else hidden,
            '"{}".format': lambda hidden: hidden * 2 if "{}".format(hidden.sum()) == "0.0" else hidden,
        }.items():
            self.assert_refused(line, change)

    def test_CountsThatDependOnValues(self):
        for line, change in {
            "(for _ in range((hidden > 0).nonzero()": in_range,
            "(for _ in range(count):)": in_range_of_a_variable,
            "(if columns < 2:)": by_a_variable,
            "(return hidden * 2 if chosen.size(0) > 3": by_a_mask,
            "(return hidden / len(chosen))": by_a_length,
            "(return hidden * 2 if chosen.relu()": by_a_computed_mask,
            "(count > 3)": by_a_sum,
            "(for _ in range(count):)": in_another_branch,
        }.items():
            self.assert_refused(line, change)

    def test_OtherSizesAreTaken(self):
        for change in (
            a_count_as_a_tensor, sizes_that_are_no_counts, a_name_that_is_used_again, beside_a_count, lambda hidden: hidden
        ):
            with self.subTest(change.__name__):
                self.export(change)


if __name__ == "__main__":
    unittest.main()
