"""Finds the lines of a model that decide in Python by a tensor's value, as `if x.mean() > 0` does.

TorchScript's trace keeps such a decision as it was for the example. It warns of it, but it warns of a decision by a size
(`if x.shape[0] > 1`) in the same words. When the model runs as it is, its sizes are plain numbers, so a watch sees the
values alone. A line that both name decides by a value.
"""

import linecache
import sys

import torch
from torch.overrides import TorchFunctionMode

from disttrain.exporting.errors import ExportError

# The methods that make a number, a list or an array of a tensor.
_DECIDING = frozenset(["__bool__", "__int__", "__float__", "__index__", "__complex__", "item", "tolist", "numpy"])


class DecisionWatch(TorchFunctionMode):
    """While it is entered, the model must run as it is. `layers` is the LayerTracker that watches this run."""

    def __init__(self, layers):
        super().__init__()
        self._layers = layers
        self._places = {}  # (file, line) -> layer, None for the loss and the metrics

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        if getattr(function, "__name__", "") in _DECIDING:
            frame = sys._getframe(1)
            self._places.setdefault((frame.f_code.co_filename, frame.f_lineno), self._layers.current())
        return function(*arguments, **(keywords or {}))

    def check(self, warnings):
        """`warnings`: those of the trace. Fails if one of them is about a place that the watch has seen."""
        for warning in warnings:
            place = warning.filename, warning.lineno
            if not issubclass(warning.category, torch.jit.TracerWarning) or place not in self._places:
                continue
            layer = self._places[place] or "the loss, the outputs or the metrics"
            line = linecache.getline(*place).strip()
            raise ExportError(
                f"export: {layer} uses a tensor's value in Python at {place[0]}:{place[1]}"
                + (f" ({line})" if line else "")
                + ", and a TorchScript file would keep the example's value for all batches; compute it with tensors, as "
                "torch.where does, or let workers run your script (model.trainer)"
            )
