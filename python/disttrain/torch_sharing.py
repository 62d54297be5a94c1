"""Finds parameters of a torch module that share memory with another tensor of the module without being the same object.

Such a parameter follows the other tensor's changes, as one that is tied. But in the worker's memory each variable has a
place of its own, so they would go apart without a word.
"""

import numpy as np
import torch

from disttrain.errors import DisttrainError


def refuse_shared_memory(trained, others):
    """`trained`: what the module's trained parameters are, such as 'the parameter "a"', and their tensors. `others`: the
    same of its other tensors. These may share memory with each other."""
    found = []
    for tensors, is_trained in ((trained, True), (others, False)):
        for what, tensor in tensors:
            span = _span_of(tensor)
            if span is not None:
                found.append((*span, not is_trained, what, tensor))
    found.sort(key=lambda each: each[:3])
    group, group_end = [], None  # tensors whose spans overlap
    for each in found:
        device, begin, end = each[:3]
        if group and (device, begin) < group_end:
            group_end = max(group_end, (device, end))
        else:
            _check(group)
            group, group_end = [], (device, end)
        group.append(each)
    _check(group)


def _span_of(tensor):
    """(device, first byte, the byte after the last one). None: the tensor has no memory of this kind."""
    if tensor.layout != torch.strided or tensor.numel() == 0 or tensor.is_meta:
        return None
    try:
        begin = tensor.data_ptr()
    except (RuntimeError, NotImplementedError):  # a tensor of several others, as of a package for quantized weights
        return None
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return (str(tensor.device), begin, begin + (last + 1) * tensor.element_size()) if begin else None


def _check(group):
    """The spans of these tensors overlap. Slices of one matrix, such as its columns, may still have no byte in common."""
    if len(group) < 2:
        return
    first = min(begin for _, begin, *_ in group)
    used = np.zeros(max(end for _, _, end, *_ in group) - first, bool)  # bytes of trained parameters
    marked = []
    for _, begin, _, is_other, what, tensor in sorted(group, key=lambda each: each[3]):
        if _bytes_of(tensor, used[begin - first :]).any():
            _refuse(what, begin - first, tensor, marked, used)
        if not is_other:
            _bytes_of(tensor, used[begin - first :])[...] = True
            marked.append((what, begin - first, tensor))


def _refuse(what, begin, tensor, marked, used):
    used[:] = False
    _bytes_of(tensor, used[begin:])[...] = True
    other = next(name for name, place, each in marked if _bytes_of(each, used[place:]).any())
    raise DisttrainError(
        f"{other} and {what} share memory, but they are two tensors, so the job would change one of them without the other: "
        "let the module have one parameter for both, as decoder.weight = encoder.weight makes it, and not "
        "decoder.weight.data = encoder.weight.data; or compute one of them in forward()"
    )


def _bytes_of(tensor, memory):
    """A view of the tensor's bytes in an array that has one entry for each byte from the tensor's first one on."""
    size = tensor.element_size()
    strides = (*(stride * size for stride in tensor.stride()), 1)
    return np.lib.stride_tricks.as_strided(memory, (*tensor.shape, size), strides)
