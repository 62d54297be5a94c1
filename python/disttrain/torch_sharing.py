"""Finds parameters and state of a torch module that share memory with another tensor of the module without being the same
object.

Such a tensor follows the other one's changes, as a tied one does. But in the worker's memory each variable has a place of
its own, so they would go apart without a word.
"""

import numpy as np
import torch

from disttrain.errors import DisttrainError


_VARIABLE, _OTHER = range(2)
_OF_EACH_MODULE = frozenset(vars(torch.nn.Module()))  # attributes, such as _parameters


def refuse_shared_memory(variables, others):
    """`variables`: what the tensors are that the cluster keeps, such as 'the parameter "a"', and these tensors. `others`:
    the same of the module's other tensors. These may share memory with each other."""
    for (what, tensor), (other, other_tensor) in _shared(variables, others):
        if isinstance(tensor, torch.nn.Parameter) and isinstance(other_tensor, torch.nn.Parameter):
            advice = (
                "let the module have one parameter for both, as decoder.weight = encoder.weight makes it, and not "
                "decoder.weight.data = encoder.weight.data; or compute one of them in forward()"
            )
        else:
            advice = "register one of them, and take the view of it in forward()"
        _refuse(what, other, advice)


class ViewWatch:
    """Whether layers compute with views of parameters or state that they keep as plain attributes. Such a view keeps the values
    that it had before the loop, because the job moves the others to the worker's memory. Many forward passes make such views
    anew, so only one that is still there after a forward pass is an error."""

    def __init__(self, module):
        self._module = module
        # (what it is, the view, its place, what the variable is, the variable, its place, its version)
        self._views = []

    def begin_loop(self, variables):
        """`variables`: as those of refuse_shared_memory()."""
        self._views = [
            (what, view, view.data_ptr(), other, variable, variable.data_ptr(), variable._version)
            for (what, view), (other, variable) in _shared(variables, _attributes_of(self._module))
        ]

    def has_views(self):
        """Whether check() would look at any."""
        return bool(self._views)

    def check(self, without_gradient):
        """Call it after a step. `without_gradient`: ids of the parameters whose layers may not have run yet."""
        present = {id(each) for _, each in _attributes_of(self._module)}
        left = []
        for each in self._views:
            what, view, view_place, other, variable, place, version = each
            if id(view) not in present or view.data_ptr() != view_place or variable.data_ptr() == place:
                continue
            has_run = id(variable) not in without_gradient if variable.requires_grad else variable._version != version
            if has_run:
                _refuse(what, other, "take the view in forward(), or delete the attribute before job.wrap()")
            left.append(each)
        self._views = left


def _refuse(what, other, advice):
    raise DisttrainError(
        f"{other} and {what} share memory, but they are two tensors, so the job would change one of them without the other: "
        + advice
    )


def _shared(variables, others):
    """Pairs of a tensor and a variable that share memory, each with what it is. The tensor is one of `others`, or a variable,
    too."""
    found = []
    for tensors, kind in ((variables, _VARIABLE), (others, _OTHER)):
        for what, tensor in tensors:
            span = span_of(tensor)
            if span is not None:
                found.append((*span, kind, what, tensor))
    found.sort(key=lambda each: each[:3])
    group, group_end = [], None  # tensors whose spans overlap
    for each in found:
        device, begin, end = each[:3]
        if group and (device, begin) < group_end:
            group_end = max(group_end, (device, end))
        else:
            yield from _shared_in(group)
            group, group_end = [], (device, end)
        group.append(each)
    yield from _shared_in(group)


def _attributes_of(module):
    """What the tensors are that layers have as plain attributes, also in lists, tuples and dicts, and these tensors. The
    module's parameters and buffers aren't among them, nor are tensors that a job never moves to the worker's memory."""
    seen = set(map(id, (*module.parameters(), *module.buffers())))
    found = []
    for prefix, layer in module.named_modules():
        if isinstance(layer, torch.jit.ScriptModule):
            continue
        # torch.nn.utils.spectral_norm() and its kin compute such an attribute before each forward pass.
        computed = {getattr(hook, name, None) for hook in layer._forward_pre_hooks.values() for name in ("name", "_tensor_name")}
        if isinstance(layer, torch.nn.RNNBase):
            computed.add("_flat_weights")  # which its forward pass compares with the weights
        for name in (name for name in vars(layer) if name not in _OF_EACH_MODULE and name not in computed):
            values = [vars(layer)[name]]
            while values:
                value = values.pop()
                if not isinstance(value, (torch.Tensor, dict, list, tuple)) or id(value) in seen:
                    continue
                seen.add(id(value))
                if not isinstance(value, torch.Tensor):
                    values += value.values() if isinstance(value, dict) else value
                elif value.dtype in (torch.float32, torch.float64) and value.device.type == "cpu":
                    found.append((f'the attribute "{name}" of ' + (f'"{prefix}"' if prefix else "the module"), value))
    return found


def refuse_repeats(what, tensor):
    """Fails if elements of the tensor are one place in memory. In the worker's memory each has a place of its own."""
    reach = 1  # so many places the inner dimensions span
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size > 1 and stride < reach:
            raise DisttrainError(
                f"several elements of {what} share one place in memory, as expand() and unfold() make them, but the cluster "
                "changes each element alone: register the tensor that has a place for each of them, and take the view in "
                "forward()"
            )
        reach += (size - 1) * stride


def span_of(tensor):
    """(device, first byte, the byte after the last one). None: the tensor has no memory of this kind."""
    if tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized or tensor.is_meta or tensor.numel() == 0:
        return None
    try:
        begin = tensor.data_ptr()
    except (RuntimeError, NotImplementedError):  # a tensor of several others, as of a package for quantized weights
        return None
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return (str(tensor.device), begin, begin + (last + 1) * tensor.element_size()) if begin else None


def _shared_in(group):
    """_shared() of tensors whose spans overlap. Slices of a matrix, such as its columns, may still have no byte in common."""
    if len(group) < 2 or all(kind != _VARIABLE for *_, kind, _, _ in group):
        return
    first = min(begin for _, begin, *_ in group)
    used = np.zeros(max(end for _, _, end, *_ in group) - first, bool)  # bytes of variables
    marked = []
    for _, begin, _, kind, what, tensor in sorted(group, key=lambda each: each[3]):
        if _bytes_of(tensor, used[begin - first :]).any():
            bytes_of_it = np.zeros_like(used)
            _bytes_of(tensor, bytes_of_it[begin - first :])[...] = True
            yield (what, tensor), next(
                (other, each) for other, place, each in marked if _bytes_of(each, bytes_of_it[place:]).any()
            )
        if kind == _VARIABLE:
            _bytes_of(tensor, used[begin - first :])[...] = True
            marked.append((what, begin - first, tensor))


def _bytes_of(tensor, memory):
    """A view of the tensor's bytes in an array that has one entry for each byte from the tensor's first one on."""
    size = tensor.element_size()
    strides = (*(stride * size for stride in tensor.stride()), 1)
    return np.lib.stride_tricks.as_strided(memory, (*tensor.shape, size), strides)
