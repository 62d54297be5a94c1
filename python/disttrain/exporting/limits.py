"""Finds the limits of integer columns: the number of values that an index may have."""

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode


class LimitFinder(TorchFunctionMode):
    """While it is entered, notes which columns go to an embedding, a cross entropy or one_hot. `limits` then has the
    smallest limit of each such column by name."""

    def __init__(self, columns):
        super().__init__()
        # A view of a column has the column's storage.
        self._names = {column.untyped_storage().data_ptr(): name for name, column in columns.items()}
        self.limits = {}

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        if function is functional.embedding or function is torch.embedding:
            index, weight = arguments[:2] if function is functional.embedding else arguments[1::-1]
            self._note(index, weight.shape[0])
        elif function in (functional.cross_entropy, functional.nll_loss):
            outputs = arguments[0] if arguments else keywords.get("input")
            target = arguments[1] if len(arguments) > 1 else keywords.get("target")
            if isinstance(outputs, torch.Tensor) and outputs.dim() > 0:
                self._note(target, outputs.shape[1 if outputs.dim() > 1 else 0])
        elif function is functional.one_hot:
            classes = arguments[1] if len(arguments) > 1 else keywords.get("num_classes", -1)
            if classes > 0:
                self._note(arguments[0], classes)
        return function(*arguments, **keywords)

    def _note(self, index, limit):
        if not isinstance(index, torch.Tensor) or index.is_floating_point():
            return
        name = self._names.get(index.untyped_storage().data_ptr())
        if name is not None:
            self.limits[name] = min(int(limit), self.limits.get(name, int(limit)))
