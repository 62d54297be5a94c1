"""Runs a traced program in float64, to find out which of two results is right."""

import torch

_SHORT = (torch.float32, torch.float16, torch.bfloat16)


def run_exactly(module, arguments):
    """The results of a GraphModule with float64 in place of all shorter types. None if an operator doesn't take that."""
    try:
        with torch.no_grad():
            return _Exact(module).run(*(_exact(argument) for argument in arguments))
    except Exception:  # whatever an operator raises
        return None


class _Exact(torch.fx.Interpreter):
    def get_attr(self, target, arguments, keywords):
        return _exact(super().get_attr(target, arguments, keywords))

    def call_function(self, target, arguments, keywords):
        arguments, keywords = torch.utils._pytree.tree_map(_exact, (arguments, keywords))
        return super().call_function(target, arguments, keywords)


def _exact(value):
    if isinstance(value, torch.Tensor) and value.dtype in _SHORT:
        return value.double()
    if isinstance(value, torch.dtype) and value in _SHORT:
        return torch.float64
    return value
