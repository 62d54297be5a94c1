"""The limits of columns that are indices, and which buffers are state."""

import json
import pathlib
import tempfile
import unittest
import zipfile

import in_torch

in_torch.run(__file__)

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import disttrain  # noqa: E402
from disttrain.exporting import ExportError  # noqa: E402


class Text(nn.Module):
    """A model of 65 tokens. `indices` makes indices of the column."""

    def __init__(self, indices):
        super().__init__()
        self.embedding = nn.Embedding(65, 4)
        self.head = nn.Linear(4, 256)
        self.indices = indices

    def forward(self, tokens):
        return self.head(self.embedding(self.indices(tokens)[:, :-1])), tokens[:, 1:]


class Pixels(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, pixels):
        return self.head(pixels.float() / 255)


class PlainNorm(nn.Module):
    """A batch norm that isn't one of torch's classes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("variance", torch.ones(6))
        self.register_buffer("constant", torch.ones(1))

    def forward(self, hidden):
        return functional.batch_norm(hidden, self.mean, self.variance, training=self.training) * self.constant


def loss_of_text(returned):
    outputs, targets = returned
    return functional.cross_entropy(outputs.flatten(0, 1), targets.flatten().long())


class ColumnsTest(unittest.TestCase):
    def export(self, *arguments, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.pt"
            disttrain.export(*arguments, path, say=None, **options)
            with zipfile.ZipFile(path) as package:
                name = next(each for each in package.namelist() if each.endswith("disttrain.json"))
                return json.loads(package.read(name))

    def limit_of_text(self, indices, dtype=torch.uint8, **options):
        torch.manual_seed(0)
        tokens = torch.randint(0, 65, (4, 9)).to(dtype)
        described = self.export(
            Text(indices), loss_of_text, {"tokens": tokens}, labels=None, outputs=lambda returned: returned[0], **options
        )
        return described["columns"][0]["limit"]

    def test_LimitOfBytesIsFoundThroughConversions(self):
        for indices in (
            lambda tokens: tokens.long(),
            lambda tokens: tokens.float().long(),
            lambda tokens: tokens.to(torch.int64),
            lambda tokens: tokens.to(dtype=torch.int32),
            lambda tokens: tokens.type(torch.LongTensor).clone().reshape(-1, 9),
        ):
            self.assertEqual(self.limit_of_text(indices), 65)
        self.assertEqual(self.limit_of_text(lambda tokens: tokens, torch.int64), 65)

    def test_GivenLimitOfBytesIsTaken(self):
        self.assertEqual(self.limit_of_text(lambda tokens: tokens.long(), limits={"tokens": 64 + 1}), 65)
        with self.assertRaisesRegex(ExportError, "has values from [0-9]* to [0-9]*; its limit is 3"):
            self.limit_of_text(lambda tokens: tokens.long(), limits={"tokens": 3})

    def test_BytesThatBecomeUnknownIndicesNeedALimit(self):
        # The loss also shows a limit of 256, for the targets.
        for indices in (
            lambda tokens: tokens.long() + 0,
            lambda tokens: (tokens + 0).long(),
            lambda tokens: torch.arange(65)[tokens.long()],
        ):
            with self.assertRaisesRegex(ExportError, 'how large may the integers of column "tokens" be'):
                self.limit_of_text(indices)
            self.assertEqual(self.limit_of_text(indices, limits={"tokens": 65}), 65)
            self.assertEqual(self.limit_of_text(indices, limits={"tokens": None}), 0)

    def test_UnknownIndicesOfIntegersNeedALimitToo(self):
        with self.assertRaisesRegex(ExportError, 'how large may the integers of column "tokens" be'):
            self.limit_of_text(lambda tokens: tokens + 0, torch.int64)

    def test_FloatsCantBeIndices(self):
        with self.assertRaisesRegex(ExportError, 'column "tokens" has dtype float32, but the model uses it as an index'):
            self.limit_of_text(lambda tokens: tokens.long(), torch.float32)

    def test_BytesThatArentIndicesNeedNoLimit(self):
        batch = torch.randint(0, 256, (4, 6), dtype=torch.uint8), torch.tensor([0, 1, 2, 0])
        columns = self.export(Pixels(), nn.CrossEntropyLoss(), batch)["columns"]
        self.assertEqual([column["limit"] for column in columns], [0, 3])

    def test_LabelsMayHaveTheValueThatTheLossIgnores(self):
        batch = torch.randn(4, 5), torch.tensor([0, 255, 2, 0])
        label = self.export(nn.Linear(5, 3), nn.CrossEntropyLoss(ignore_index=255), batch)["columns"][1]
        self.assertEqual((label["limit"], label["ignored"]), (3, 255))
        batch = torch.randn(4, 5), torch.tensor([0, -100, 2, 0])
        label = self.export(nn.Linear(5, 3), nn.CrossEntropyLoss(), batch)["columns"][1]
        self.assertEqual((label["limit"], label["ignored"]), (3, -100))

    def test_AValueThatOnlySomeUsesIgnoreIsRefused(self):
        def also_an_index(outputs, labels):
            return functional.cross_entropy(outputs, labels) + outputs.gather(1, labels[:, None]).mean()

        def also_a_margin(outputs, labels):
            return functional.cross_entropy(outputs, labels) + functional.multi_margin_loss(outputs, labels)

        for loss in (also_an_index, also_a_margin):
            batch = torch.randn(4, 5), torch.tensor([0, 1, 2, 0])
            label = self.export(nn.Linear(5, 3), loss, batch, limits={"labels": 3})["columns"][1]
            self.assertEqual((label["limit"], "ignored" in label), (3, False), loss.__name__)

    def test_StatisticsOfAnyLayerAreState(self):
        batch = torch.randn(4, 6), torch.tensor([0, 1, 2, 0])
        for norm, state in (
            (PlainNorm(), ["mean", "variance"]),
            (torch.jit.script(nn.BatchNorm1d(6)), ["running_mean", "running_var", "num_batches_tracked"]),
        ):
            described = self.export(nn.Sequential(norm, nn.Linear(6, 3)), nn.CrossEntropyLoss(), batch)
            found = [variable["name"] for variable in described["variables"] if variable["kind"] == "state"]
            self.assertEqual(found, ["0." + name for name in state])
            self.assertEqual(norm.state_dict()[state[0]].tolist(), [0] * 6, "the export changes nothing")


if __name__ == "__main__":
    unittest.main()
