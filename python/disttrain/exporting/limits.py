"""Finds the limits of integer columns: the number of values that an index may have.

Bytes may be pixels or tokens. So a column of uint8 needs a limit only if the model makes int32 or int64 of it, as every
operator that reads at an index wants. Targets of a cross entropy may stay bytes, and get its limit. Limits are followed
through conversions and views, but not through arithmetic: of `tokens.long() + 1` the export asks for the limit.
"""

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from disttrain.exporting.places import place_of

# The methods and functions that return the same numbers as their first argument has, maybe fewer of them, or as another
# type.
_KEEPING = frozenset(
    "__getitem__ as_strided chunk clone contiguous detach double expand expand_as flatten flip float int long movedim narrow "
    "pad permute ravel repeat reshape roll select split squeeze t to transpose type type_as unbind unflatten unsqueeze view "
    "view_as".split()
)
# Those that read or write at indices, which are other arguments than the first.
_INDEXING = frozenset(
    "__getitem__ __setitem__ gather index_add index_add_ index_copy index_copy_ index_fill index_fill_ "
    "index_put index_put_ index_select scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ take "
    "take_along_dim".split()
)


class LimitFinder(TorchFunctionMode):
    """While it is entered, follows the columns through the model, and notes which ones go to an embedding, a cross
    entropy, multi_margin_loss or one_hot. Then `limits` has the smallest limit of each such column by name, and `ignored`
    the value that all of these uses of the column leave out, or None. `unknown` has the columns from which the model
    computes indices whose limit the finder doesn't know, and the columns that it uses as such indices. `widened` has the
    columns of bytes that became int32 or int64: the model may use them as indices."""

    def __init__(self, columns):
        super().__init__()
        # Place of a storage -> (column, whether the storage has the column's own numbers). A view has the storage of its
        # column. `_kept` keeps the storages of copies alive, so that no other tensor gets their places.
        self._known = {place_of(column): (name, True) for name, column in columns.items()}
        self._kept = []
        self._bytes = {name for name, column in columns.items() if column.dtype == torch.uint8}
        self.limits = {}
        self.ignored = {}
        self.unknown = set()
        self.widened = set()

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        if function is functional.embedding or function is torch.embedding:
            index, weight = arguments[:2] if function is functional.embedding else arguments[1::-1]
            self._note(index, weight.shape[0])
        elif function is functional.embedding_bag or function is torch.embedding_bag:
            index, weight = arguments[:2] if function is functional.embedding_bag else arguments[1::-1]
            self._note(index, weight.shape[0])
            offsets = self._known_of(arguments[2] if len(arguments) > 2 else keywords.get("offsets"))
            if offsets is not None:
                self.unknown.add(offsets[0])
        elif function in (functional.cross_entropy, functional.nll_loss, functional.multi_margin_loss):
            outputs = arguments[0] if arguments else keywords.get("input")
            target = arguments[1] if len(arguments) > 1 else keywords.get("target")
            if isinstance(outputs, torch.Tensor) and outputs.dim() > 0:
                ignored = arguments[4] if len(arguments) > 4 else keywords.get("ignore_index", -100)
                if function is functional.multi_margin_loss:
                    ignored = None
                self._note(target, outputs.shape[1 if outputs.dim() > 1 else 0], ignored)
        elif function is functional.one_hot:
            classes = arguments[1] if len(arguments) > 1 else keywords.get("num_classes", -1)
            if classes > 0:
                self._note(arguments[0], classes)
        elif getattr(function, "__name__", "") in _INDEXING:
            for index in torch.utils._pytree.tree_leaves((arguments[1:], keywords)):
                known = self._known_of(index)
                if known is not None and index.dtype in (torch.int32, torch.int64):
                    self.unknown.add(known[0])
        result = function(*arguments, **keywords)
        keeps = getattr(function, "__name__", "") in _KEEPING
        for i, argument in enumerate([*arguments, *keywords.values()]):
            known = self._known_of(argument)
            # Indices that are computed in floating point aren't followed.
            if known is not None and ((keeps and i == 0) or _is_integer(argument)):
                self._follow(result, argument, known[0], known[1] and keeps and i == 0)
        return result

    def _follow(self, result, argument, name, is_same):
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if not isinstance(tensor, torch.Tensor) or not (is_same or _is_integer(tensor)):
                continue
            if name in self._bytes and tensor.dtype in (torch.int32, torch.int64):
                self.widened.add(name)
            if self._known_of(tensor) is None:
                self._known[place_of(tensor)] = name, is_same
                self._kept.append(tensor)

    def _known_of(self, value):
        return self._known.get(place_of(value)) if isinstance(value, torch.Tensor) else None

    def _note(self, index, limit, ignored=None):
        # A cross entropy takes floats as probabilities.
        if not isinstance(index, torch.Tensor) or index.is_floating_point():
            return
        name, is_same = self._known_of(index) or (None, False)
        if name is not None and not is_same:
            self.unknown.add(name)
        elif is_same:
            self.limits[name] = min(int(limit), self.limits.get(name, int(limit)))
            self.ignored[name] = ignored if self.ignored.get(name, ignored) == ignored else None


def _is_integer(tensor):
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
