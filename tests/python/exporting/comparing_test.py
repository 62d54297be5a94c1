"""How programs are compared with the model: on which batches, and when a compiled program is called wrong."""

import unittest

import in_torch

in_torch.run(__file__)

import torch  # noqa: E402
from torch import nn  # noqa: E402

from disttrain.exporting import ExportError  # noqa: E402
from disttrain.exporting.batch import describe_batch  # noqa: E402
from disttrain.exporting.comparing import compare_compiled  # noqa: E402
from disttrain.exporting.decisions import SymbolWatch  # noqa: E402
from disttrain.exporting.drawing import draws  # noqa: E402
from disttrain.exporting.model import describe_model  # noqa: E402
from disttrain.exporting.programs import Functions  # noqa: E402
from disttrain.exporting.trace import trace  # noqa: E402


def functions_of(model, loss, batch, **names):
    described = describe_batch(batch, names.get("inputs"), names.get("labels", "labels"), True, model)
    functions = Functions(describe_model(model, loss), loss, described, None, {}, None)
    described.set_limits(functions.observe(), names.get("limits", {}))
    return functions


def images(records=6):
    return torch.zeros(records, 1, 8, 8), torch.zeros(records, dtype=torch.int64)


def net():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))


class Chaotic(nn.Module):
    """Its results depend on the last digit of its inputs."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, inputs):
        return torch.sin(inputs * 1e12) * self.scale


class DrawingTest(unittest.TestCase):
    def drawn(self, model, loss, batch, **names):
        functions = functions_of(model, loss, batch, **names)
        (columns,) = draws(functions, "step", 64, 1)
        return dict(zip(functions.columns_of("step"), columns))

    def test_ZerosBecomeDifferentNumbers(self):
        columns = self.drawn(net(), nn.CrossEntropyLoss(), images())
        self.assertGreater(columns["inputs"].unique().numel(), 4000)
        self.assertEqual(set(columns["labels"].tolist()), {0, 1, 2, 3, 4})

    def test_FloatsStayInTheExamplesRange(self):
        inputs = torch.linspace(2, 3, 12).reshape(4, 3)
        columns = self.drawn(nn.Linear(3, 5), nn.CrossEntropyLoss(), (inputs, torch.tensor([1, 3, 3, 1])))
        self.assertGreaterEqual(float(columns["inputs"].min()), 2)
        self.assertLessEqual(float(columns["inputs"].max()), 3)
        self.assertEqual(set(columns["labels"].tolist()), {1, 3}, "integers are those of the example")

    def test_EachPlaceKeepsToItsValuesIfTheModelAsksForThat(self):
        class Coded(nn.Linear):
            def forward(self, inputs):
                if not set(inputs[:, 0].tolist()) <= {0, 1, 2}:
                    raise ValueError("the first value is a code")
                return super().forward(inputs)

        inputs = torch.tensor([[0.0, 2.5], [2.0, 40.25], [1.0, 7.5]])
        columns = self.drawn(Coded(2, 3), nn.CrossEntropyLoss(), (inputs, torch.tensor([0, 1, 2])))
        self.assertEqual(set(columns["inputs"][:, 0].tolist()), {0, 1, 2})
        self.assertEqual(set(columns["inputs"][:, 1].tolist()), {2.5, 7.5, 40.25})

    def test_ExampleIsTakenIfTheModelTakesNothingElse(self):
        class Ordered(nn.Linear):
            def forward(self, inputs):
                if not torch.equal(inputs[:, 0], inputs[:, 0].sort().values):
                    raise ValueError("the records aren't sorted")
                return super().forward(inputs)

        inputs = torch.arange(256.0).reshape(64, 4)
        columns = self.drawn(Ordered(4, 3), nn.CrossEntropyLoss(), (inputs, torch.arange(64) % 3))
        self.assertTrue(torch.equal(columns["inputs"], inputs))


class CompiledTest(unittest.TestCase):
    """A function in Python stands in for the compiled program."""

    def setUp(self):
        torch.manual_seed(3)

    def compare(self, functions, library_of):
        watch = SymbolWatch(functions.described.layers)
        with functions.described.tracing_mode():
            traced = trace(functions, "step", watch).module(check_guards=False)
            variables = functions.example_arguments("step")[: len(functions.described.variables)]
            compare_compiled("step", functions, traced, library_of(traced), variables)

    def test_OtherRoundingIsTaken(self):
        # The last digits of the example's zeros decide where the gradient of the max pooling goes.
        def rounded(traced):
            return lambda tensors: traced(*tensors[:-2], tensors[-2] + 1e-8 * torch.randn_like(tensors[-2]), tensors[-1])

        self.compare(functions_of(net(), nn.CrossEntropyLoss(), images()), rounded)

    def test_WrongGradientIsAnError(self):
        def wrong(traced):
            def run(tensors):
                results = list(traced(*tensors))
                results[2] = results[2].flip(-1)
                return results

            return run

        with self.assertRaises(ExportError) as caught:
            self.compare(functions_of(net(), nn.CrossEntropyLoss(), images()), wrong)
        text = str(caught.exception)
        self.assertIn('another result than the model: the gradient of "0.weight" differs by', text)
        self.assertIn("if the model computes in float64; AOTInductor has an error in one of the model's operators", text)

    def test_NobodyIsBlamedIfAnOperatorDoesntTakeFloat64(self):
        class OfFloats(nn.Linear):
            def forward(self, inputs):
                # This view of float64 has twice as many numbers, so the product fails.
                return super().forward((inputs.view(torch.int32) < 0).float())

        def wrong(traced):
            return lambda tensors: [2 * result for result in traced(*tensors)]

        functions = functions_of(OfFloats(3, 5), nn.CrossEntropyLoss(), (torch.randn(4, 3), torch.arange(4) % 5))
        with self.assertRaises(ExportError) as caught:
            self.compare(functions, wrong)
        text = str(caught.exception)
        self.assertIn("another result than the model", text)
        self.assertIn("which of the two is right isn't known, because an operator of the model doesn't take float64", text)
        self.assertNotIn("AOTInductor", text)

    def test_ProgramIsNotBlamedForTheModelsRounding(self):
        def nudged(traced):
            return lambda tensors: traced(*tensors[:-2], tensors[-2] * (1 + 1e-7), tensors[-1])

        functions = functions_of(Chaotic(), nn.CrossEntropyLoss(), (torch.randn(4, 3), torch.arange(4) % 3))
        with self.assertRaises(ExportError) as caught:
            self.compare(functions, nudged)
        self.assertIn("can't be compared with the model, because rounding alone changes the model's results", str(caught.exception))
        self.assertNotIn("AOTInductor", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
