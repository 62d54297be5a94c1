"""Leaves out the parts of convolutions' kernels that see nothing but padding.

On small images the last layers of a deep network work on one or a few pixels. There a kernel of 3x3 with padding 1
multiplies mostly zeros: on a single pixel, only its middle counts. PyTorch's convolutions compute all of it, and the
backward pass costs most. A convolution with the middle alone has the same result and the same gradients; those of the
rest of the kernel are 0. The decompositions below trace a convolution in this way when that is possible.

On images of 32x32, a third of a step of resnet18 was the time of such convolutions.
"""

import torch

aten = torch.ops.aten


def decompositions():
    """For make_fx. A decomposition that returns NotImplemented leaves the operator as it is."""
    return {aten.convolution.default: _convolution, aten.convolution_backward.default: _backward}


def _crop(size, kernel, stride, padding, dilation):
    """What counts of a kernel along one dimension: (begin, end, padding of the cropped kernel). All of it if the
    cropped kernel would give another number of outputs."""
    outputs = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    read = [
        tap
        for tap in range(kernel)
        if any(0 <= output * stride - padding + tap * dilation < size for output in range(outputs))
    ]
    if not read:
        return 0, kernel, padding
    begin, end = read[0], read[-1] + 1
    cropped = padding - begin * dilation
    same = cropped >= 0 and (size + 2 * cropped - dilation * (end - begin - 1) - 1) // stride + 1 == outputs
    return (begin, end, cropped) if same else (0, kernel, padding)


def _crops(inputs, weight, stride, padding, dilation, transposed):
    """One crop for each dimension of the images, or None if the whole kernel counts."""
    dimensions = weight.dim() - 2
    sizes = [*inputs.shape[2:], *weight.shape[2:]]
    if transposed or inputs.dim() != weight.dim() or not all(isinstance(size, int) for size in sizes):
        return None
    spread = [list(values) * (dimensions if len(values) == 1 else 1) for values in (stride, padding, dilation)]
    crops = [_crop(*each) for each in zip(inputs.shape[2:], weight.shape[2:], *spread)]
    is_whole = all(end - begin == size for (begin, end, _), size in zip(crops, weight.shape[2:]))
    return None if is_whole else crops


def _cropped(weight, crops):
    for dimension, (begin, end, _) in enumerate(crops):
        weight = aten.slice.Tensor(weight, dimension + 2, begin, end)
    return aten.clone.default(weight, memory_format=torch.contiguous_format)


def _convolution(inputs, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    crops = _crops(inputs, weight, stride, padding, dilation, transposed)
    if crops is None:
        return NotImplemented
    padding = [cropped for _, _, cropped in crops]
    return aten.convolution.default(
        inputs, _cropped(weight, crops), bias, stride, padding, dilation, transposed, output_padding, groups
    )


def _backward(
    gradient, inputs, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask
):
    crops = _crops(inputs, weight, stride, padding, dilation, transposed)
    if crops is None:
        return NotImplemented
    padding = [cropped for _, _, cropped in crops]
    of_inputs, of_weight, of_bias = aten.convolution_backward.default(
        gradient, inputs, _cropped(weight, crops), bias_sizes, stride, padding, dilation, transposed, output_padding,
        groups, mask,
    )
    if mask[1]:
        around = []  # the last dimension comes first
        for (begin, end, _), size in reversed(list(zip(crops, weight.shape[2:]))):
            around += [begin, size - end]
        of_weight = aten.constant_pad_nd.default(of_weight, around, 0.0)
    return of_inputs, of_weight, of_bias
