"""Convolutions whose kernels are cropped have the same results and gradients."""

import itertools
import types
import unittest

import in_torch

in_torch.run(__file__)

import torch  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from disttrain.exporting import comparing  # noqa: E402
from disttrain.exporting.cropping import decompositions  # noqa: E402


def gradients_of(inputs, weight, bias, *settings):
    leaves = [tensor.clone().requires_grad_() for tensor in (inputs, weight, bias)]
    outputs = torch.nn.functional.conv2d(*leaves, *settings)
    return [outputs, *torch.autograd.grad(outputs.sin().sum(), leaves)]


def traced(tensors, settings):
    return make_fx(lambda *leaves: gradients_of(*leaves, *settings), decompositions())(*tensors)


class CroppingTest(unittest.TestCase):
    def test_AllSmallConvolutionsHaveTheSameGradients(self):
        torch.manual_seed(0)
        cropped = 0
        for size, kernel, stride, padding, dilation, groups in itertools.product(
            (1, 2, 3), (1, 2, 3, 5), (1, 2), (0, 1, 2), (1, 2), (1, 2)
        ):
            if size + 2 * padding < dilation * (kernel - 1) + 1:
                continue
            tensors = [
                torch.randn(shape, dtype=torch.double)
                for shape in ((3, 4, size, size + 1), (6, 4 // groups, kernel, kernel), (6,))
            ]
            settings = (stride, padding, dilation, groups)
            graph = traced(tensors, settings)
            cropped += "constant_pad_nd" in graph.code
            for expected, found in zip(gradients_of(*tensors, *settings), graph(*tensors)):
                torch.testing.assert_close(found, expected, msg=lambda text: f"{size} {kernel} {settings}: {text}")
        self.assertGreater(cropped, 20)

    def test_AKernelOnOnePixelIsItsMiddle(self):
        graph = traced([torch.randn(2, 3, 1, 1), torch.randn(5, 3, 3, 3), torch.randn(5)], (1, 1))
        kernels = [node.args[1].meta["val"].shape for node in graph.graph.nodes
                   if node.target is torch.ops.aten.convolution.default]
        self.assertEqual(kernels, [(5, 3, 1, 1)])

    def test_AKernelThatCountsWholeIsLeftAlone(self):
        graph = traced([torch.randn(2, 3, 4, 4), torch.randn(5, 3, 3, 3), torch.randn(5)], (1, 1))
        self.assertNotIn("constant_pad_nd", graph.code)


class ComparingTest(unittest.TestCase):
    """How much a compiled program may differ from its model."""

    def compare(self, of_trace, of_library, *arguments, dtype=torch.float32):
        functions = types.SimpleNamespace(
            rounding=torch.finfo(dtype).eps, batch=types.SimpleNamespace(examples=1), columns={}, columns_of=lambda program: [],
            described=types.SimpleNamespace(variables=[]), step=lambda: [],  # without columns nothing is drawn
            name_of_result=lambda program, i: f"result {i}")
        comparing.compare_compiled("step", functions, of_trace, lambda inputs: of_library(*inputs), arguments)

    def test_AnActivationThatIsAlmost0MayFallOnTheOtherSide(self):
        inputs = torch.cat([torch.randn(100), torch.tensor([1e-9, 1.0])])

        def step(values):
            return [(values > 0).float().reshape(-1, 2) @ torch.tensor([1.0, 20.0])]

        self.compare(step, lambda values: step(values - 2e-9), inputs)
        with self.assertRaisesRegex(disttrain_error(), "has another result than the model"):
            self.compare(step, lambda values: [step(values)[0] * 1.5], inputs)

    def test_SmoothResultsAreComparedClosely(self):
        inputs = torch.randn(50)
        self.compare(lambda values: [values.sin()], lambda values: [values.sin() * 1.001], inputs)
        with self.assertRaises(disttrain_error()):
            self.compare(lambda values: [values.sin()], lambda values: [values.sin() * 1.05], inputs)
        with self.assertRaises(disttrain_error()):
            self.compare(lambda values: [values.sin()], lambda values: [values.sin() / 0], inputs)

    def test_AGradientThatIs0ButForRoundingIsNotCompared(self):
        self.compare(lambda values: [values, values * 1e-9], lambda values: [values, values * -1e-9], torch.randn(50))

    def test_ResultsOfBfloat16MayDifferByItsRounding(self):
        """Such as the gradient of a bias in front of a batch norm, which is 0 but for rounding."""
        logits = torch.randn(64, 4, generator=torch.Generator().manual_seed(1)).bfloat16().float()

        def step(values, sign=1):
            values = values.bfloat16()
            centred = values - values.mean(0)
            return [torch.tensor(90.0), values.argmax(1).float().mean(), values.float(), sign * centred.float().mean(0)]

        def changed(values):
            loss_sum, accuracy, outputs, noise = step(values)
            return [loss_sum, accuracy, outputs * 1.5, noise]

        self.compare(step, lambda values: step(values * (1 + 2**-9), sign=-1), logits, dtype=torch.bfloat16)
        with self.assertRaises(disttrain_error()):
            self.compare(step, changed, logits, dtype=torch.bfloat16)


def disttrain_error():
    from disttrain.exporting.errors import ExportError

    return ExportError


if __name__ == "__main__":
    unittest.main()
