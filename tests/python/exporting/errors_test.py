"""What can't be exported is refused with one sentence that names the layer, the variable or the column."""

import pathlib
import tempfile
import unittest

import in_torch

in_torch.run(__file__)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

import disttrain  # noqa: E402
from disttrain import metrics  # noqa: E402
from disttrain.exporting import ExportError  # noqa: E402


class Doubled(nn.Module):
    """A model with one inner layer of the test's choice."""

    def __init__(self, middle):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.middle = middle
        self.last = nn.Linear(8, 3)

    def forward(self, inputs):
        return self.last(self.middle(self.first(inputs)))


class FixedView(nn.Module):
    def forward(self, hidden):
        return hidden.view(4, 8) * 2


class Distances(nn.Module):
    """torch.cdist() takes another way for more than 25 records."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(6, 6)

    def forward(self, x):
        distances = torch.cdist(x, self.last.weight)
        return self.last(distances)


class Calling(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, hidden):
        return self.function(hidden)


class BranchOnSize(nn.Module):
    def forward(self, hidden):
        return hidden * 2 if hidden.shape[0] > 3 else hidden


class BranchOnValue(nn.Module):
    def forward(self, hidden):
        return hidden * 2 if hidden.sum() > 0 else hidden


class ScaledByItem(nn.Module):
    def forward(self, hidden):
        scale = hidden.abs().max().item()
        return hidden * scale


class BranchOnEqual(nn.Module):
    def forward(self, hidden):
        return hidden * 2 if torch.equal(hidden, hidden + 1) else hidden


class BranchOnSizeOfTheLayer(nn.Module):
    def forward(self, hidden):
        return hidden * 2 if hidden.shape[1] > 3 else hidden


class ScaledByAList(nn.Module):
    def forward(self, hidden):
        sums = hidden.sum(1).tolist()
        return hidden * (sum(sums) / len(sums))


class ScaledByTheLargestOfAList(nn.Module):
    def forward(self, hidden):
        return hidden * max(hidden.sum(1).tolist())


class ThroughNumpy(nn.Module):
    def forward(self, hidden):
        return torch.from_numpy(hidden.detach().numpy()) * 2


class ScaledByASum(nn.Module):
    def forward(self, hidden):
        return hidden * hidden.sum().item()


class ScaledByAText(nn.Module):
    def forward(self, hidden):
        return hidden * float(f"{hidden.detach().abs().sum()}")


class ScaledByAnArray(nn.Module):
    def forward(self, hidden):
        return hidden * float(np.asarray(hidden.detach()).sum())


class ConstantOfSize(nn.Module):
    def forward(self, hidden):
        return hidden * float(len(hidden))


class CountsSteps(nn.Module):
    def __init__(self, start=0):
        super().__init__()
        self.register_buffer("steps", torch.tensor(start))
        self.register_buffer("hidden_steps", torch.tensor(0), persistent=start < 0)

    def forward(self, hidden):
        self.steps += 1
        self.hidden_steps += 1
        return hidden


def example(records=4):
    torch.manual_seed(0)
    return torch.randn(records, 6), torch.arange(records) % 3


class ErrorsTest(unittest.TestCase):
    def test_TheErrorIsOfThePackage(self):
        self.assertIs(disttrain.ExportError, ExportError)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_refused(self, *texts, model=None, loss=None, batch=None, ending=".pt2", **options):
        with self.assertRaises(ExportError) as caught:
            path = self.folder / ("step" + ending)
            model = Doubled(nn.ReLU()) if model is None else model
            loss, batch = loss or nn.CrossEntropyLoss(), example() if batch is None else batch
            disttrain.export(model, loss, batch, path, say=None, **options)
        for text in texts:
            self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")

    def test_FixedBatchDimensionNamesTheLayer(self):
        layer = 'layer "middle" (FixedView)'
        self.assert_refused(layer, "only batches of 4 records fit", "dynamic_batch=False", model=Doubled(FixedView()))
        texts = (layer, "on a batch of 5 records, but example_batch has 4", "invalid for input of size 40")
        self.assert_refused(*texts, model=Doubled(FixedView()), ending=".pt")

    def test_BranchOnTheBatchsSizeNamesTheLayer(self):
        self.assert_refused('layer "middle" (BranchOnSize)', "which 2 records don't fit", model=Doubled(BranchOnSize()))
        text = "has another result than the model on a batch of 4 records"
        self.assert_refused(text, model=Doubled(BranchOnSize()), batch=example(3), ending=".pt")

    def test_BranchBeforeALayerNamesTheLayerThatHasIt(self):
        line = "distances = torch.cdist(x, self.last.weight)), which 26 records don't fit"
        self.assert_refused("the model itself (Distances)", "it needs batch <= 25 at ", line, model=Distances())

    def test_SparseConstantGoesToNoFile(self):
        matrix = torch.eye(8).to_sparse()
        layer = Calling(lambda hidden: torch.sparse.mm(matrix, hidden.T).T)
        self.assert_refused('layer "middle" (Calling)', "programs have no sparse tensors, so use dense", model=Doubled(layer))

    def test_SizeAsAConstantIsFound(self):
        self.assert_refused('layer "middle" (ConstantOfSize)', model=Doubled(ConstantOfSize()))

    def test_OperatorThatCantBeTracedNamesTheLayer(self):
        text = "is traced for its program step"
        self.assert_refused('layer "middle" (BranchOnEqual)', text, model=Doubled(BranchOnEqual()))

    def test_ValueInPythonNamesTheLayerAndTheLine(self):
        for layer, line in [
            (BranchOnValue(), "return hidden * 2 if hidden.sum() > 0 else hidden"),
            (ScaledByItem(), "scale = hidden.abs().max().item()"),  # only the compiler refuses this one
            (ScaledByTheLargestOfAList(), "return hidden * max(hidden.sum(1).tolist())"),
        ]:
            name = f'layer "1" ({type(layer).__name__}) uses a tensor\'s value in Python at {__file__}:'
            texts = (name, f" ({line}), and the program step can't be compiled", "as torch.where does")
            self.assert_refused(*texts, model=nn.Sequential(nn.Linear(6, 3), layer))
        texts = ('layer "1" (ThroughNumpy) uses', "(return torch.from_numpy(hidden.detach().numpy()) * 2), and no gradient passes there")
        self.assert_refused(*texts, model=nn.Sequential(nn.Linear(6, 3), ThroughNumpy()))
        name = 'layer "middle" (ScaledByAList) uses a tensor\'s value in Python'
        self.assert_refused(name, "and it takes a value for each record of example_batch", model=Doubled(ScaledByAList()))
        self.assert_refused(
            f"the loss, the outputs or the metrics uses a tensor's value in Python at {__file__}:",
            loss=lambda outputs, labels: nn.functional.cross_entropy(outputs, labels) * float(outputs.max()),
        )

    def test_ValueInPythonIsRefusedForTorchScriptToo(self):
        texts = ('layer "middle" (BranchOnValue)', "errors_test.py:", "if hidden.sum() > 0", "would keep the example's value")
        self.assert_refused(*texts, model=Doubled(BranchOnValue()), ending=".pt")
        dropping = Doubled(nn.Sequential(nn.Dropout(0.5), BranchOnValue()))
        self.assert_refused('layer "middle.1" (BranchOnValue)', model=dropping, ending=".pt")
        self.assert_refused(
            "uses a tensor's value in Python",
            loss=lambda outputs, labels: nn.functional.cross_entropy(outputs, labels) * float(outputs.max()),
            ending=".pt",
        )
        path = self.folder / "step.pt"
        disttrain.export(Doubled(BranchOnSizeOfTheLayer()), nn.CrossEntropyLoss(), example(), path, say=None)
        self.assertTrue(path.exists())

    def test_ModelWithDropoutIsCompared(self):
        class Dropped(nn.Module):
            def forward(self, hidden):
                return nn.functional.dropout(hidden, 0.5, self.training) * float(len(hidden))

        text = "the traced program step has another result than the model on a batch of 5 records"
        self.assert_refused(text, model=Doubled(Dropped()), ending=".pt")
        path = self.folder / "step.pt"
        disttrain.export(Doubled(nn.Dropout(0.5)), nn.CrossEntropyLoss(), example(), path, say=None)
        self.assertTrue(path.exists())

    def test_ProgramThatTheCompilerRefusesIsForTorchScript(self):
        class Frequencies(nn.Module):
            def forward(self, outputs):
                return outputs + 0 * torch.fft.fft(outputs).real

        texts = ("AOTInductor can't compile the program ", "; export to a .pt file instead")
        self.assert_refused(*texts, model=nn.Sequential(nn.Linear(6, 3), Frequencies()))

    def test_ErrorOfTheUsersCodeNamesTheLayer(self):
        model = Doubled(nn.Linear(8, 7))
        self.assert_refused('layer "last" (Linear) fails when the model runs', "mat1 and mat2", model=model)

    def test_NanWeightsAreRefused(self):
        model = Doubled(nn.ReLU())
        with torch.no_grad():
            model.last.bias[1] = float("nan")
        self.assert_refused('variable "last.bias" has 1 values of 3 that are NaN or infinite', model=model)

    def test_NanLossIsRefused(self):
        inputs, labels = example()
        self.assert_refused("the loss of example_batch is NaN", batch=(inputs * float("inf"), labels))

    def test_IntegerColumnNeedsALimit(self):
        def loss(outputs, labels):
            return outputs[torch.arange(len(labels)), labels].mean()

        self.assert_refused('how large may the integers of column "labels" be?', 'limits={"labels": N}', loss=loss)
        text = 'column "labels" of example_batch has values from 0 to 2; its limit is 2'
        self.assert_refused(text, loss=loss, limits={"labels": 2})
        self.assert_refused('limits has "label", but the columns are inputs, labels', limits={"label": 3})
        for limit in (-1, 0, 2.5, "3", True):
            self.assert_refused(f'limits has {limit!r} for column "labels"', "at least 1", limits={"labels": limit})
        self.assert_refused('column "inputs" has dtype float32, but limits names it', limits={"inputs": 3})

    def test_LossOfAnotherShapeIsRefused(self):
        self.assert_refused("the loss has the shape [4, 3]", loss=lambda outputs, labels: outputs)
        self.assert_refused("the loss returned a float", loss=lambda outputs, labels: 1.0)
        text = "doesn't depend on any trainable parameter"
        self.assert_refused(text, loss=lambda outputs, labels: outputs.detach().mean(), limits={"labels": 3})

    def test_LossThatIsASumIsRefused(self):
        texts = ("if each record comes twice; expected the mean over the batch", 'reduction="mean"')
        for ending in (".pt", ".pt2"):
            self.assert_refused(*texts, loss=nn.CrossEntropyLoss(reduction="sum"), ending=ending)
        noisy = Doubled(nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.5)))
        self.assert_refused(*texts, model=noisy, loss=nn.CrossEntropyLoss(reduction="sum"), ending=".pt")
        self.assert_refused(*texts, loss=lambda outputs, labels: nn.functional.cross_entropy(outputs, labels, reduction="sum") / 4)
        self.assert_refused(*texts, loss=lambda outputs, labels: -nn.functional.cross_entropy(outputs, labels, reduction="sum"))

    def test_LossThatGrowsByAValueInPythonNamesTheLine(self):
        for layer, line in [
            (ScaledByASum(), "return hidden * hidden.sum().item()"),
            (ScaledByAText(), 'return hidden * float(f"{hidden.detach().abs().sum()}")'),
            (ScaledByAnArray(), "return hidden * float(np.asarray(hidden.detach()).sum())"),
        ]:
            name = f'layer "1" ({type(layer).__name__}) uses a tensor\'s value in Python at {__file__}:'
            texts = (name, f" ({line}), and the loss grows with the number of records: it is ", "; compute it with tensors")
            options = {"model": nn.Sequential(nn.Linear(6, 3), layer), "limits": {"labels": None}}
            for ending in (".pt", ".pt2"):
                self.assert_refused(*texts, loss=lambda outputs, labels: outputs.abs().mean(), ending=ending, **options)
        # The same value in each run isn't the reason.
        text = "expected the mean over the batch"
        self.assert_refused(
            text, loss=lambda outputs, labels: nn.functional.cross_entropy(outputs, labels, reduction="sum") * torch.ones(()).item()
        )

    def test_LossThatIsNoSumIsTaken(self):
        def contrastive(outputs):
            return nn.functional.cross_entropy(outputs @ outputs.T * 1e-3, torch.arange(outputs.shape[0]))

        inputs, labels = example(2)
        path = self.folder / "step.pt"
        noisy = nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.5))
        for model, loss, name in [
            (noisy, nn.CrossEntropyLoss(), "labels"),
            (noisy, nn.CrossEntropyLoss(reduction="none"), "labels"),
            # ln 2 becomes ln 4 and ln 6.
            (nn.ReLU(), contrastive, None),
            (nn.ReLU(), lambda outputs: outputs.sum() * 0, None),
        ]:
            columns = {"inputs": inputs} if name is None else {"inputs": inputs, "labels": labels}
            disttrain.export(Doubled(model), loss, columns, path, labels=name, say=None)
            self.assertTrue(path.exists())
            path.unlink()

    def test_BatchIsChecked(self):
        inputs, labels = example()
        self.assert_refused("have different numbers of records", batch=(inputs, labels[:2]))
        self.assert_refused("has 1 record; expected at least 2", batch=(inputs[:1], labels[:1]))
        self.assert_refused('column "inputs" has dtype torch.complex64', batch=(inputs.to(torch.complex64), labels))
        self.assert_refused('labels names column "target"', batch={"inputs": inputs, "labels": labels}, labels="target")
        self.assert_refused("is a tuple of 3", batch=(inputs, inputs, labels))

    def test_StateThatCheckpointsWouldLoseIsRefused(self):
        self.assert_refused('changes buffer "middle.hidden_steps"', "persistent=True", model=Doubled(CountsSteps()))
        self.assert_refused('buffer "middle.steps" has integers above 16777216', model=Doubled(CountsSteps(2**30)))

    def test_InfiniteBufferMayNotChange(self):
        class Largest(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("largest", torch.full((8,), -torch.inf))

            def forward(self, hidden):
                self.largest.copy_(torch.maximum(self.largest, hidden.detach().amax(0)))
                return hidden - self.largest

        text = 'a training step changes buffer "middle.largest", which has an infinity; expected finite values in a buffer'
        self.assert_refused(text, model=Doubled(Largest()))

    def test_ModelsThatCantTrainAreRefused(self):
        model = Doubled(nn.ReLU()).requires_grad_(False)
        self.assert_refused("no parameter with requires_grad=True", model=model)
        self.assert_refused("of a lazy layer has no shape yet", model=Doubled(nn.LazyLinear(8)))
        loss = nn.CrossEntropyLoss()
        loss.scale = nn.Parameter(torch.ones(1))
        self.assert_refused("the loss has trainable parameters", loss=loss)

    def test_OptionsAreChecked(self):
        self.assert_refused("ends neither in .pt2", ending=".onnx")
        self.assert_refused('cpu is "i386"', cpu="i386")
        self.assert_refused("a TorchScript file runs on all processors", cpu="x86-64-v3", ending=".pt")
        self.assert_refused("dtype is torch.int8", dtype=torch.int8)
        texts = ('metric "area" (AUC) fails with outputs of the shape [4, 3] and labels of the shape [4]: ', "; it needs one output")
        self.assert_refused(*texts, metrics={"accuracy": metrics.Accuracy(), "area": metrics.AUC()})
        for ending in (".pt", ".pt2"):
            texts = (
                'metric "m" (TopK) fails with outputs of the shape [4, 3] and labels of the shape [4]: ',
                "k is 50; expected at most 3, the number of outputs for each label",
            )
            self.assert_refused(*texts, metrics={"m": metrics.TopK(50)}, ending=ending)
        text = 'metric "m" takes its labels from the column "target", but the columns are inputs, labels'
        self.assert_refused(text, metrics={"m": metrics.Accuracy(labels="target")})
        text = 'metric "m" (Mean) fails with outputs of the shape [4, 3] and labels of the shape [4]: '
        self.assert_refused(text, metrics={"m": metrics.Mean(lambda outputs, batch: {}["no such thing"])})
        self.assert_refused("metrics is a list; expected a dict from names to metrics", metrics=[metrics.Accuracy()])
        self.assert_refused("a metric's name is 5; expected a string", metrics={5: metrics.TopK(5)})
        self.assert_refused('metric "accuracy" is <class ', "; expected an object of a class of disttrain.metrics", metrics={"accuracy": metrics.Accuracy})
        for ending in (".pt", ".pt2"):
            self.assert_refused('metric name "top 5"', metrics={"top 5": metrics.TopK(5)}, ending=ending)
            text = 'metric name "loss": expected 1 to 100 of the characters'
            self.assert_refused(text, "none of the names of a job's own figures", metrics={"loss": metrics.TopK(5)}, ending=ending)

    def test_ArgumentsOfAnotherKindAreNamed(self):
        for text, options in [
            ("model is the class Linear; expected an object of it, Linear(...)", {"model": nn.Linear}),
            ("model is the function <lambda>; expected a torch.nn.Module", {"model": lambda inputs: inputs}),
            ("model is an object of the class OrderedDict; expected a torch", {"model": nn.ReLU().state_dict()}),
            ("loss is the class CrossEntropyLoss; expected a function loss(outputs, labels)", {"loss": nn.CrossEntropyLoss}),
            ("loss is an object of the class str; expected a function", {"loss": "mse"}),
            ("outputs is an object of the class str; expected a function of what the model", {"outputs": "logits"}),
            ("limits is an object of the class int; expected a dict", {"limits": 3}),
            ("inputs is 'inputs'; expected a list of names", {"inputs": "inputs"}),
            ("labels is 3; expected a list of names", {"labels": 3}),
            ("example_batch is a torch tensor with the shape [2]; expected a tuple (inputs, labels)", {"batch": torch.zeros(2)}),
            ("example_batch is an empty dict; expected a tuple", {"batch": {}}),
            ('column "inputs" of example_batch is an object of the class tuple', {"batch": (example(), torch.arange(4))}),
            ('column "inputs" of example_batch is an object of the class dict', {"batch": ({"a": 1}, torch.arange(4))}),
        ]:
            with self.subTest(text):
                self.assert_refused("export: " + text, **options)

    def test_PlaceThatCantBeWrittenIsFoundFirst(self):
        for ending in (".pt", ".pt2"):
            self.assert_refused("can't write", "there is no folder", ending="/none/a" + ending)

    def test_ModelsOfTorchJitGoToTorchScriptFilesOnly(self):
        text = "was compiled by torch.jit, which torch.export doesn't take; export to a .pt file"
        self.assert_refused('layer "middle" (', text, model=Doubled(torch.jit.script(nn.Linear(8, 8))))
        self.assert_refused("the model itself (", text, model=torch.jit.script(Doubled(nn.ReLU())))
        for ending in (".pt", ".pt2"):
            compiled = torch.compile(Doubled(nn.ReLU()))
            self.assert_refused("torch.compile has compiled the model", "_orig_mod", model=compiled, ending=ending)


if __name__ == "__main__":
    unittest.main()
