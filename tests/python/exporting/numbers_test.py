"""Traces programs of different kinds of models, and compares their results with those of plain PyTorch training."""

import unittest
import unittest.mock

import in_torch

in_torch.run(__file__)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from disttrain import metrics  # noqa: E402
from disttrain.exporting import stage_ends, stages  # noqa: E402
from disttrain.exporting.batch import describe_batch  # noqa: E402
from disttrain.exporting.compiling import _key  # noqa: E402
from disttrain.exporting.decisions import SymbolWatch  # noqa: E402
from disttrain.exporting.model import FROZEN, STATE, TRAINABLE, describe_model  # noqa: E402
from disttrain.exporting.programs import Functions  # noqa: E402
from disttrain.exporting.trace import trace  # noqa: E402


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8, momentum=0.3)
        self.head = nn.Linear(8, 4)

    def forward(self, images):
        return self.head(torch.relu(self.norm(self.conv(images))).mean((2, 3)))


class Decoder(nn.Module):
    """One block of a language model. The embedding and the head share their weight."""

    def __init__(self, tokens=11, width=8, length=8):
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, tokens, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("mask", torch.ones(length, length).tril().log(), persistent=False)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        query, key, value = self.mix(self.norm(hidden)).split(hidden.shape[-1], 2)
        weights = (query @ key.transpose(1, 2) + self.mask[: tokens.shape[1], : tokens.shape[1]]).softmax(-1)
        return self.head(hidden + weights @ value)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(5, 6, batch_first=True)
        self.head = nn.Linear(6, 1)

    def forward(self, series):
        return self.head(self.cells(series)[0][:, -1]).squeeze(1)


class ScaledByConstant(ConvNet):
    def forward(self, images):
        return super().forward(images) * torch.tensor(2.0).item()


OF_THE_MODULE = torch.tensor([1.0, -2.0, 3.0, 0.5])


class Constants(nn.Module):
    """Computes with tensors that are neither parameters nor buffers."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, 4)
        self.own = torch.randn(8)
        self.several = {"list": [torch.randn(8), self.own], "half": torch.randn(8).half(), "bytes": torch.tensor([1, -1] * 4, dtype=torch.int8)}
        self.array = np.linspace(0.5, 2, 8, dtype=np.float32)
        self.chosen, self.hidden = torch.tensor([3, 1]), torch.tensor([True, False] * 4)
        self.rotation = torch.randn(5, dtype=torch.complex64).conj()
        self.part, self.turned = torch.randn(4, 8)[1], torch.randn(8, 8).t()
        closed_over = torch.rand(8)
        self.function = lambda hidden: hidden * closed_over

    def forward(self, inputs, default=torch.arange(8.0)):
        hidden = self.first(inputs) * self.own + torch.tensor(0.5) + default
        hidden = hidden + self.several["list"][0] * self.several["list"][1] * self.several["half"].float() * self.several["bytes"]
        hidden = self.function(hidden) * torch.from_numpy(self.array) + torch.as_tensor(self.array[:1]) + float(self.array[2])
        hidden = hidden.masked_fill(self.hidden, 0.0) + hidden[:, self.chosen].sum(1, keepdim=True)
        hidden = torch.fft.irfft(torch.fft.rfft(hidden) * self.rotation) * self.part @ self.turned
        made = torch.zeros(8)
        made[torch.tensor([1, 3])] = torch.tensor([5.0, 7.0])
        return self.last(hidden + made).tanh() * OF_THE_MODULE


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 4, mode="sum")
        self.head = nn.Linear(7, 1)
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, categories, numbers):
        return self.head(torch.cat([self.bag(categories), numbers], 1)).squeeze(1)


class Traced:
    """The programs of a model, and its variables as a worker keeps them."""

    def __init__(self, model, loss, example, measured=None, limits=None, dtype=None, **names):
        self.batch = describe_batch(example, names.get("inputs"), names.get("labels", "labels"), True, model)
        self.described = describe_model(model, loss)
        self.values = None
        with self.described.tracing_mode():
            self.functions = Functions(self.described, loss, self.batch, None, measured or {}, dtype)
            self.batch.set_limits(self.functions.observe(), limits or {})
            watch = SymbolWatch(self.described.layers)
            programs = {name: trace(self.functions, name, watch) for name in ("step", "evaluate", "predict")}
        self.programs = {name: program.module() for name, program in programs.items()}
        # These models are too small to be cut.
        with unittest.mock.patch.object(stage_ends, "LEAST_BYTES", 1):
            self.stages = stages.cut(programs["step"], self.functions)
        self.values = [variable.carried.clone() for variable in self.described.variables]

    def kinds(self):
        return {variable.name: variable.kind for variable in self.described.variables}

    def run(self, program, columns):
        columns = [columns[name] for name in self.functions.columns_of(program)]
        torch.manual_seed(1)
        results = list(self.programs[program](*self.values, *columns))
        if program == "step" and self.stages:
            torch.manual_seed(1)
            arguments = [*self.values, *columns]
            values = stages.run_stages(self.stages, [stage.module for stage in self.stages], arguments)
            for number, result in enumerate(results, len(arguments)):
                assert torch.equal(values[number], result), f"the stages have another value {number}"
        return results

    def step(self, columns, rate):
        """One step of SGD. Returns the loss's sum and the accumulators."""
        loss_sum, accumulators, *results = self.run("step", columns)
        for index, variable in enumerate(self.described.variables):
            if variable.kind == TRAINABLE:
                self.values[index] = self.values[index] - rate * results.pop(0)
            elif variable.kind == STATE:
                self.values[index] = results.pop(0)
        assert not results
        return float(loss_sum), accumulators


class NumbersTest(unittest.TestCase):
    def check(self, model, loss, batch_of, inputs, labels, tolerance=1e-5, autocast=None, **options):
        """Trains the model by its traced programs and by PyTorch, with batches of several sizes, and compares."""
        traced = Traced(model, loss, batch_of(6), inputs=inputs, labels=labels, dtype=autocast, **options)
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.2)
        model.train()
        with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            for size in (5, 2, 9):
                columns = batch_of(size)
                with self.subTest(size=size):
                    optimizer.zero_grad()
                    expected = loss(model(*(columns[name] for name in inputs)), columns[labels]).mean()
                    expected.backward()
                    optimizer.step()
                    found, _ = traced.step(columns, 0.2)
                    self.assertAlmostEqual(found, float(expected.detach()) * size, delta=tolerance * 100)
        tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        for variable, value in zip(traced.described.variables, traced.values):
            if variable.name in tensors:
                expected = tensors[variable.name].detach()
                torch.testing.assert_close(value.to(expected.dtype), expected, rtol=tolerance, atol=tolerance)
        model.eval()
        columns = batch_of(1)
        with torch.no_grad(), torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            outputs = model(*(columns[name] for name in inputs))
            (predicted,) = traced.run("predict", columns)
            torch.testing.assert_close(predicted, outputs.float().reshape(1, -1), rtol=tolerance, atol=tolerance)
            loss_sum, _ = traced.run("evaluate", columns)
            self.assertAlmostEqual(float(loss_sum), float(loss(outputs, columns[labels]).mean()), delta=tolerance * 100)
        return traced

    def images(self, size):
        return {"inputs": torch.randn(size, 3, 6, 6), "labels": torch.randint(0, 4, (size,))}

    def setUp(self):
        torch.manual_seed(12)

    def test_ConvolutionAndBatchNorm(self):
        measured = {"accuracy": metrics.Accuracy(), "top": metrics.TopK(2)}
        traced = self.check(ConvNet(), nn.CrossEntropyLoss(), self.images, ["inputs"], "labels", measured=measured)
        self.assertGreater(len(traced.stages), 1)
        kinds = traced.kinds()
        self.assertEqual([name for name, kind in kinds.items() if kind == STATE],
                         ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"])
        columns = self.images(8)
        _, accumulators = traced.step(columns, 0.0)
        self.assertEqual(accumulators.dtype, torch.float64)
        self.assertEqual(accumulators[1], 8)
        self.assertGreaterEqual(accumulators[2], accumulators[0])

    def test_FrozenLayersAndBatchNormInEvalModeStayAsTheyAre(self):
        model = ConvNet().requires_grad_(False)
        model.head.requires_grad_(True)
        model.train()
        model.norm.eval()
        traced = Traced(model, nn.CrossEntropyLoss(), self.images(6))
        self.assertEqual([name for name, kind in traced.kinds().items() if kind != FROZEN], ["head.weight", "head.bias"])
        before = [value.clone() for value in traced.values]
        traced.step(self.images(5), 0.1)
        for variable, old, new in zip(traced.described.variables, before, traced.values):
            self.assertEqual(bool(torch.equal(old, new)), variable.kind == FROZEN, variable.name)
        self.assertFalse(model.norm.training, "the export restores training flags")
        self.assertTrue(model.training)

    def test_LanguageModelWithTiedEmbedding(self):
        def batch_of(size):
            return {"tokens": torch.randint(0, 11, (size, 7)), "labels": torch.randint(0, 11, (size, 7))}

        def loss(outputs, labels):
            return functional.cross_entropy(outputs.reshape(-1, 11), labels.reshape(-1))

        traced = self.check(Decoder(), loss, batch_of, ["tokens"], "labels", measured={"perplexity": metrics.Perplexity()})
        self.assertEqual(traced.described.aliases, {"head.weight": "embedding.weight"})
        self.assertEqual([column.limit for column in traced.batch.columns], [11, 11])
        self.assertEqual(traced.kinds()["mask"], FROZEN)

    def test_RecurrentLayer(self):
        def batch_of(size):
            return {"series": torch.randn(size, 4, 5), "labels": torch.randint(0, 2, (size,)).float()}

        self.check(Recurrent(), functional.binary_cross_entropy_with_logits, batch_of, ["series"], "labels",
                   measured={"auc": metrics.AUC(), "precision": metrics.Precision(), "recall": metrics.Recall()})

    def test_TwoInputsAndAParameterThatIsntUsed(self):
        def batch_of(size):
            categories = torch.randint(0, 20, (size, 3))
            return {"categories": categories, "numbers": torch.randn(size, 3), "target": torch.randn(size)}

        self.check(TwoInputs(), nn.MSELoss(), batch_of, ["categories", "numbers"], "target", limits={"categories": 20},
                   measured={"mae": metrics.MAE("target"), "size": metrics.Mean(lambda outputs, batch: outputs.abs())})

    def test_ColumnsWithTheNamesOfArgumentsAreTakenByName(self):
        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 2)

            def forward(self, first, unused=None, *, second):
                return self.layer(first) - 2 * self.layer(second)

        batch = {"second": torch.randn(4, 3), "first": torch.randn(4, 3), "labels": torch.randint(0, 2, (4,))}
        model = Named()
        traced = Traced(model, nn.CrossEntropyLoss(), batch, inputs=None)
        (outputs,) = traced.run("predict", batch)
        torch.testing.assert_close(outputs, model(batch["first"], second=batch["second"]).detach())

    def test_LossWithOneValuePerRecord(self):
        self.check(ConvNet(), nn.CrossEntropyLoss(reduction="none"), self.images, ["inputs"], "labels")

    def test_LossWithWeights(self):
        loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0, 4.0]))
        traced = self.check(ConvNet(), loss, self.images, ["inputs"], "labels")
        self.assertEqual(traced.kinds()["loss:weight"], FROZEN)

    def test_NumberTakenOfAConstantIsAConstant(self):
        self.check(ScaledByConstant(), nn.CrossEntropyLoss(), self.images, ["inputs"], "labels")

    def test_ConstantsOfTheModelAndOfTheLoss(self):
        class Loss:
            weight = torch.tensor([1.0, 2.0, 3.0, 4.0])

            def __call__(self, outputs, labels):
                return functional.cross_entropy(outputs, labels, weight=self.weight) + torch.tensor(0.25)

        def batch_of(size):
            return {"inputs": torch.randn(size, 5), "labels": torch.randint(0, 4, (size,))}

        traced = self.check(Constants(), Loss(), batch_of, ["inputs"], "labels")
        self.assertGreater(len(traced.stages), 1)
        self.assertNotEqual(_key(traced.programs["step"], ""), _key(Traced(Constants(), Loss(), batch_of(6)).programs["step"], ""))

    def test_VariablesOfFloat64StayFloat64(self):
        def batch_of(size):
            return {"inputs": torch.randn(size, 5, dtype=torch.float64), "labels": torch.randint(0, 3, (size,))}

        model = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3)).double()
        traced = self.check(model, nn.CrossEntropyLoss(), batch_of, ["inputs"], "labels", tolerance=1e-12)
        dtypes = {variable.name: value.dtype for variable, value in zip(traced.described.variables, traced.values)}
        self.assertEqual(dtypes.pop("1.num_batches_tracked"), torch.float32)
        self.assertEqual(set(dtypes.values()), {torch.float64})

    def test_AutocastComputesInBfloat16(self):
        traced = self.check(ConvNet(), nn.CrossEntropyLoss(), self.images, ["inputs"], "labels", tolerance=5e-2,
                            autocast=torch.bfloat16)
        operators = {node.kwargs.get("dtype") for node in traced.programs["step"].graph.nodes}
        self.assertIn(torch.bfloat16, operators)
        self.assertEqual({value.dtype for value in traced.values}, {torch.float32})

    def test_BatchSizeEqualToAnotherDimensionStaysFree(self):
        # The example has 6 records of 6 values: the two sizes must not become one.
        def batch_of(size):
            return {"inputs": torch.randn(size, 6), "labels": torch.randint(0, 6, (size,))}

        model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
        self.check(model, nn.CrossEntropyLoss(), batch_of, ["inputs"], "labels")


if __name__ == "__main__":
    unittest.main()
