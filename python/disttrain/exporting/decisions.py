"""Finds the lines of a model that decide in Python by a tensor's value, as `if x.mean() > 0` does.

TorchScript's trace keeps such a decision as it was for the example. It warns of it, but it warns of a decision by a size
(`if x.shape[0] > 1`) in the same words. When the model runs as it is, its sizes are plain numbers, so a watch sees the
values alone. A line that both name decides by a value. Of some functions, such as torch.equal, the trace doesn't warn. Sizes
that depend on values, such as that of x.nonzero(), are watched, too.

The trace for compiled programs has no values. There, bool() of a tensor fails, and item() returns a symbol, which most
programs can't be compiled with.
"""

import ast
import contextlib
import functools
import linecache
import os
import sys

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from disttrain.exporting.errors import ExportError, FixedBatchError
from disttrain.exporting.places import is_users

# The methods that make a number, a list, an array or a text of a tensor.
_DECIDING = frozenset(
    "__array__ __bool__ __complex__ __float__ __format__ __index__ __int__ item numpy tolist".split()
)
# Those, and functions with a number as their result, of which a trace doesn't warn.
_SILENT = frozenset("__format__ allclose equal is_nonzero".split())
# The functions whose results have as many elements as the values say.
_COUNTING = frozenset("argwhere masked_select nonzero unique unique_consecutive where __getitem__".split())
_OF_SIZE = frozenset("__iter__ __len__ nelement numel shape size".split())
_KEPT = "a TorchScript file would keep the example's value for all batches"
_TORCH = os.path.join(os.path.dirname(torch.__file__), "")
# The files of torch that call these methods, or a watch, in the model's place.
_BETWEEN = tuple(_TORCH + part for part in (f"fx{os.sep}", f"_subclasses{os.sep}", "overrides.py", "_tensor.py"))
# These check the sizes of a packed sequence, and raise an error or do nothing.
_CHECKS = {
    method.__code__
    for method in (torch.nn.RNNBase.get_expected_hidden_size, torch.nn.LSTM.get_expected_cell_size)
}
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


class DecisionWatch(TorchFunctionMode):
    """While it is entered, the model must run as it is. `layers` is the LayerTracker that watches this run."""

    def __init__(self, layers):
        super().__init__()
        self._layers = layers
        self._places = {}  # (file, line) -> layer, None for the loss and the metrics
        self._silent = set()  # those of which a trace doesn't warn
        self._counted = {}  # where the model takes a size that depends on values: (file, line) -> layer
        self._of_values = WeakTensorKeyDictionary()  # the tensors that have such a size

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        name = getattr(function, "__name__", "")
        if name == "__get__":
            name = getattr(function.__self__, "__name__", "")
        if name in _DECIDING or name in _SILENT:
            frame = _caller(sys._getframe(1))
            if name in _DECIDING:
                self._note(frame)
            if name in _SILENT and is_users(frame):
                self._silent.add(self._note(frame))
        elif name in _OF_SIZE and arguments and arguments[0] in self._of_values:
            frame = _caller(sys._getframe(1))
            if is_users(frame):
                self._counted.setdefault((frame.f_code.co_filename, frame.f_lineno), self._layers.current())
        result = function(*arguments, **(keywords or {}))
        if name in _COUNTING:
            self._follow(name, arguments, result)
        if self._of_values and isinstance(result, torch.Tensor) and self._has_size_of(result, (arguments, keywords)):
            self._of_values[result] = True
        return result

    def _has_size_of(self, result, arguments):
        """Whether a tensor has the size of an argument that is in _of_values, and of no other argument."""
        tensors = [each for each in torch.utils._pytree.tree_leaves(arguments) if isinstance(each, torch.Tensor)]
        same = [each in self._of_values for each in tensors if each.shape == result.shape]
        return bool(same) and all(same)

    def _follow(self, name, arguments, result):
        """Notes the tensors whose sizes depend on values."""
        if name == "where" and len(arguments) > 1:
            return
        if name == "__getitem__" and not any(_is_mask(each) for each in torch.utils._pytree.tree_leaves(arguments[1:])):
            return
        for each in torch.utils._pytree.tree_leaves(result):
            self._of_values[each] = True
            if name.startswith("unique"):
                return  # the other results may have the argument's size

    def _note(self, frame):
        place = frame.f_code.co_filename, frame.f_lineno
        if frame.f_code not in _CHECKS:
            self._places.setdefault(place, self._layers.current())
        return place

    def check(self, warnings):
        """`warnings`: those of the trace. Fails if one of them is about a place that the watch has seen."""
        told = {(each.filename, each.lineno): None for each in warnings if issubclass(each.category, torch.jit.TracerWarning)}
        for counted, layer in self._counted.items():
            self._places.update(dict.fromkeys(_places_of_decisions(counted, told), layer))
        place = next((place for place in self._places if place in told or place in self._silent), None)
        if place is not None:
            raise ExportError(self._text(place, _KEPT))

    def check_gradient(self, error):
        """Fails if the model used a value in Python. error: the loss has no gradient."""
        if self._places:
            why = "no gradient passes there: the loss doesn't depend on any trainable parameter"
            raise ExportError(self._text(list(self._places)[-1], why)) from error

    def _text(self, place, why):
        layer = self._places[place] or "the loss, the outputs or the metrics"
        line = linecache.getline(*place).strip()
        return (
            f"export: {layer} uses a tensor's value in Python at {place[0]}:{place[1]}"
            + (f" ({line})" if line else "")
            + f", and {why}; compute it with tensors, as torch.where does, or let workers run your script (model.trainer)"
        )


class ValueLog(DecisionWatch):
    """The same, and it compares the values that several runs of the model take into Python."""

    def __init__(self, layers):
        super().__init__(layers)
        self._taken = []  # for each run: (place, value)

    def run(self):
        """Enter what this returns for a run."""
        self._taken.append([])
        return self

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        if getattr(function, "__name__", "") in _DECIDING:
            place = self._note(_caller(sys._getframe(1)))
            self._taken[-1].append((place, repr(result.tolist() if hasattr(result, "tolist") else result)))
        return result

    def check_equal(self, why):
        """Fails if two runs took different values. The error names the first place that did, and says `why`."""
        for values in zip(*self._taken):
            if len(set(values)) > 1:
                raise ExportError(self._text(values[0][0], why))


class SymbolWatch(DecisionWatch):
    """The same for the trace of a compiled program: while it is entered, the model is traced without values. It notes
    the places that got a symbol or failed."""

    def __init__(self, layers):
        super().__init__(layers)
        self._failure = None  # of the newest call that failed
        self._repeated = None  # the newest place that got several symbols, as tolist() does

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        if getattr(function, "__name__", "") not in _DECIDING:
            return function(*arguments, **(keywords or {}))
        frame = _caller(sys._getframe(1))
        try:
            result = function(*arguments, **(keywords or {}))
        except Exception as error:  # torch raises errors of many classes here
            self._failure = error
            self._note(frame)
            raise
        if any(isinstance(value, _SYMBOLS) for value in torch.utils._pytree.tree_leaves(result)):
            known = set(self._places)
            place = self._note(frame)
            self._repeated = place if place in known else self._repeated
        return result

    @contextlib.contextmanager
    def naming(self, program):
        """If the body fails because a value isn't known, raises an ExportError that names the newest place."""
        try:
            yield
        except FixedBatchError as error:
            if self._repeated is None:
                raise
            why = "it takes a value for each record of example_batch, so only batches of that size fit"
            raise ExportError(self._text(self._repeated, why)) from error
        except Exception as error:
            has_failed = self._failure is not None and self._failure in (error, error.__cause__)
            if not self._places or not (has_failed or "data-dependent" in str(error)):
                raise
            why = f"the program {program} can't be compiled for values that only a batch has"
            raise ExportError(self._text(list(self._places)[-1], why)) from error


def _is_mask(index):
    return isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)


def _places_of_decisions(counted, told):
    """The places where the model decides by a size that it took at the place `counted`: in the same statement, or in a later
    one that uses a variable with this size. `told`: the places that the trace has warned of. It doesn't warn of range()."""
    file, number = counted
    search = _Search(number, {line for name, line in told if name == file})
    search.block(_innermost_function(file, number), frozenset())
    for line in sorted(search.decisions):
        told[file, line] = None
        yield file, line


def _innermost_function(file, number):
    """Its statements."""
    found = []
    for each in ast.walk(_tree_of("".join(linecache.getlines(file)))):  # an inner function comes after the outer one
        if isinstance(each, (ast.FunctionDef, ast.Lambda)) and each.lineno <= number <= each.end_lineno:
            found = each.body if isinstance(each, ast.FunctionDef) else [ast.copy_location(ast.Expr(each.body), each.body)]
    return found


@functools.lru_cache(16)
def _tree_of(text):
    try:
        return ast.parse(text)
    except SyntaxError:  # such as a cell of a notebook with commands
        return ast.Module([], [])


class _Search:
    """Looks for decisions by a size in the statements of a function."""

    def __init__(self, number, told):
        """`number`: the line that takes the size. `told`: the lines of which the trace has warned."""
        self._number = number
        self._told = told
        self.decisions = {number} & told  # lines

    def block(self, statements, names):
        """`names`: the variables that have the size before these statements. Returns those that have it after them."""
        for each in statements:
            names = self._statement(each, names)
        return names

    def _statement(self, statement, names):
        blocks = [each for _, each in ast.iter_fields(statement) if _is_block(each)]
        names = self._own_part(statement, blocks, names)
        ends = [self.block(_statements_of(each), names) for each in blocks]
        # The other blocks may be left out.
        if not isinstance(statement, ast.With) and not (isinstance(statement, ast.If) and statement.orelse):
            ends.append(names)
        return frozenset().union(*ends)

    def _own_part(self, statement, blocks, names):
        """The statement without its blocks, such as the test of an `if`."""
        inner = {id(each) for block in blocks for each in block}
        nodes = [statement]
        for node in nodes:  # grows
            nodes += [each for each in ast.iter_child_nodes(node) if id(each) not in inner]
        ends = [each.end_lineno for each in nodes[0 if not blocks else 1 :] if hasattr(each, "end_lineno")]
        lines = range(statement.lineno, max([statement.lineno, *ends]) + 1)
        is_here = self._number in lines
        stored = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        is_changed = isinstance(statement, ast.AugAssign) and not stored.isdisjoint(names)
        if not (is_here or is_changed or _uses(nodes, names)):
            return names - stored
        self.decisions |= self._told.intersection(lines)
        for call in (each for each in nodes if isinstance(each, ast.Call) and ast.unparse(each.func) == "range"):
            if _uses(ast.walk(call), names) or call.lineno <= self._number <= call.end_lineno:
                self.decisions.add(call.lineno)
        return names | stored if is_here else names


def _is_block(value):
    return isinstance(value, list) and any(isinstance(each, (ast.stmt, ast.ExceptHandler, ast.match_case)) for each in value)


def _statements_of(block):
    """Those of the handlers of a `try`, or of the cases of a `match`, one after the other."""
    return [each for part in block for each in ([part] if isinstance(part, ast.stmt) else part.body)]


def _uses(nodes, names):
    return any(isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id in names for each in nodes)


def _caller(frame):
    """The model's frame that made the call. The trace has torch function modes of its own, which were called first."""
    while frame.f_back and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
    return frame
