"""A model whose gradients a file would change is refused: hooks, TorchScript's lost no_grad(), sparse gradients."""

import pathlib
import tempfile
import unittest

import in_torch

in_torch.run(__file__)

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import disttrain  # noqa: E402
from disttrain.exporting import ExportError  # noqa: E402


class Layers(nn.Module):
    """Two layers with a function of the test's choice between them."""

    def __init__(self, between=lambda first, inputs: first(inputs)):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.last = nn.Linear(8, 3)
        self.between = between

    def forward(self, inputs):
        return self.last(self.between(self.first, inputs))


class Bag(nn.Module):
    def __init__(self, sparse_layer=False, sparse_call=False):
        super().__init__()
        self.bag = nn.EmbeddingBag(50, 8, mode="sum", sparse=sparse_layer)
        self.last = nn.Linear(8, 3)
        self.sparse_call = sparse_call

    def forward(self, inputs):
        if self.sparse_call:
            return self.last(nn.functional.embedding_bag(inputs, self.bag.weight, mode="sum", sparse=True))
        return self.last(self.bag(inputs))


def without_gradients(first, inputs):
    with torch.no_grad():
        return first(inputs)


def with_a_hook(first, inputs):
    hidden = first(inputs)
    if hidden.requires_grad:
        hidden.register_hook(lambda gradient: gradient * 0.5)
    return hidden


def example():
    torch.manual_seed(0)
    return torch.randn(4, 6), torch.arange(4) % 3


class GradientsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def export(self, model, ending, batch=None, **options):
        path = self.folder / ("step" + ending)
        disttrain.export(model, nn.CrossEntropyLoss(), batch or example(), path, say=None, **options)
        self.assertTrue(path.exists())

    def assert_refused(self, *texts, model, endings=(".pt",), **options):
        for ending in endings:
            with self.assertRaises(ExportError) as caught:
                self.export(model, ending, **options)
            for text in texts:
                self.assertIn(text, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))
            self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")

    def test_TorchScriptThatLosesNoGradIsRefused(self):
        texts = ('the gradient of parameter "first.weight" in the traced program step differs', "export to a .pt2 file")
        self.assert_refused(*texts, "use detach()", model=Layers(without_gradients))
        self.assert_refused(*texts, model=Layers(without_gradients), dynamic_batch=False)

    def test_TorchScriptThatLosesAHookIsRefused(self):
        texts = ('the gradient of parameter "first.weight" in the traced program step differs', "nor hooks of the forward pass")
        self.assert_refused(*texts, model=Layers(with_a_hook))
        hooked = Layers()
        hooked.first.register_full_backward_pre_hook(lambda module, gradients: tuple(each * 0.5 for each in gradients))
        self.assert_refused(*texts, model=hooked)

    def test_TorchScriptWhoseBackwardPassFailsIsRefused(self):
        model = Layers()
        model.last = nn.utils.parametrizations.spectral_norm(model.last)
        texts = ("the backward pass of the traced program step fails: ", "automatic differentiation", "export to a .pt2 file")
        self.assert_refused(*texts, model=model)

    def test_ModelsWithTheSameGradientsGoToTorchScript(self):
        noisy = nn.Sequential(nn.Linear(6, 64), nn.Dropout(0.5), nn.BatchNorm1d(64), nn.Dropout(0.3), nn.Linear(64, 3))
        attending = nn.Sequential(nn.Unflatten(1, (3, 2)), nn.TransformerEncoderLayer(2, 1, 8, 0.2, batch_first=True),
                                  nn.Flatten(), nn.Linear(6, 3))
        half_detached = Layers(lambda first, inputs: first(inputs).relu() + first(inputs).detach())
        unused = Layers(lambda first, inputs: inputs[:, :1].expand(-1, 8))
        for model in (noisy, attending, half_detached, unused, torch.jit.script(noisy), Bag()):
            batch = (torch.randint(0, 50, (4, 6)), torch.arange(4) % 3) if isinstance(model, Bag) else example()
            self.export(model, ".pt", batch, limits={"inputs": 50} if isinstance(model, Bag) else {})

    def test_PythonFunctionsOfAutogradGoToCompiledProgramsOnly(self):
        class Doubling(torch.autograd.Function):
            @staticmethod
            def forward(context, hidden):
                return hidden * 2

            @staticmethod
            def backward(context, gradient):
                return gradient * 2

        text = "TorchScript can't save the programs: the model or the loss calls the autograd.Function "
        model = Layers(lambda first, inputs: Doubling.apply(first(inputs)))
        self.assert_refused(text + "Doubling", "export to a .pt2 file", model=model)
        model = Layers(lambda first, inputs: checkpoint(first, inputs, use_reentrant=False))
        self.assert_refused(text, "torch.utils.checkpoint", "export to a .pt2 file", model=model)
        model = Layers(lambda first, inputs: checkpoint(first, inputs, use_reentrant=True))
        self.assert_refused("fails when the model is traced by TorchScript", "try to export to a .pt2 file", model=model)

    def test_DetachedOutputsAreRefused(self):
        model = nn.Sequential(Layers(), type("Detach", (nn.Module,), {"forward": lambda self, outputs: outputs.detach()})())
        self.assert_refused("the loss doesn't depend on any trainable parameter", model=model, endings=(".pt", ".pt2"))

    def test_SparseGradientsAreRefused(self):
        options = {"batch": (torch.randint(0, 50, (4, 6)), torch.arange(4) % 3), "endings": (".pt", ".pt2")}
        text = 'layer "bag" (EmbeddingBag) makes a sparse gradient, which a program can\'t return; use sparse=False'
        self.assert_refused(text, model=Bag(sparse_layer=True), **options)
        text = 'the gradient of parameter "bag.weight" is sparse, which a program can\'t return; use sparse=False'
        self.assert_refused(text, model=Bag(sparse_call=True), limits={"inputs": 50}, **options)

    def test_ParametersWithHooksAreRefused(self):
        for register in ("register_hook", "register_post_accumulate_grad_hook"):
            model = Layers()
            handle = getattr(model.first.weight, register)(lambda tensor: None)
            text = 'parameter "first.weight" has a hook, which a program would leave out'
            self.assert_refused(text, "model.trainer", model=model, endings=(".pt", ".pt2"))
            handle.remove()
            self.export(model, ".pt")
            (self.folder / "step.pt").unlink()


if __name__ == "__main__":
    unittest.main()
