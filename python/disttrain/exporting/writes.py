"""Finds the tensors that a model writes to, and those of its own generators, while it runs as it is."""

import gc
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from disttrain.exporting.model import FROZEN, LOSS, TRAINABLE
from disttrain.exporting.places import line_of_user, place_of


def existing_tensors():
    """All tensors that Python has now, also those in closures and lists, but for those of traces, which have no numbers."""
    return [
        each for each in gc.get_objects() if issubclass(type(each), torch.Tensor) and not issubclass(type(each), FakeTensor)
    ]


class WriteWatch(TorchDispatchMode):
    """While it is entered, the model runs as it is. `layers` is the LayerTracker that watches this run.

    existing: the tensors that Python has (existing_tensors()).
    problem: the first thing that the run did and that no program does, with a hint; None if nothing.
    columns: the names of the columns that the model has written to.
    draws: whether the run drew from PyTorch's own generator.
    """

    def __init__(self, described, existing):
        super().__init__()
        self._described = described
        self._layers = described.layers
        # The place of a storage -> what it is. A view has the storage of its tensor.
        self._known = {place_of(tensor): None for tensor in existing}
        self._of_others = {id(tensor) for tensor in existing if tensor.requires_grad}
        # The program runs with other tensors in their places.
        self._replaced = {place_of(each.tensor): each.name for each in described.variables if each.kind != FROZEN}
        self._kept = list(existing)  # so that no other tensor gets their places
        self.problem = None
        self.columns = set()
        self.draws = False
        self._is_checking = False

    def follow(self, values, columns):
        """values, columns: the tensors by name with which the model is about to run."""
        names = {each.name for each in self._described.variables if each.kind == TRAINABLE or each.name.startswith(LOSS)}
        self._kept += [*values.values(), *columns.values()]
        self._values, self._places = values, {name: place_of(tensor) for name, tensor in values.items()}
        for name, tensor in values.items():
            self._known[place_of(tensor)] = f'parameter "{name}"' if name in names else ""
        for name, tensor in columns.items():
            self._known[place_of(tensor)] = name, "column"

    def check_values(self, value_of):
        """Call it after the run. value_of: gives the current tensor of a variable by its name."""
        self._is_checking = True
        for variable in self._described.variables:
            if self.problem is None and (variable.kind == TRAINABLE or variable.name.startswith(LOSS)):
                now, was = value_of(variable.name), self._values[variable.name]
                if now is not was or place_of(now) != self._places[variable.name] or not _equal(now, variable.tensor):
                    self.problem = (
                        f'the model gives parameter "{variable.name}" another value, which a program can\'t do; {_ONLY_OPTIMIZER}'
                    )
        self._is_checking = False

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        if self._is_checking:
            return function(*arguments, **keywords)
        schema = getattr(function, "_schema", None)
        if schema is not None and schema.is_mutable:
            for index, argument in enumerate(schema.arguments):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    value = keywords.get(argument.name, arguments[index] if index < len(arguments) else None)
                    for tensor in torch.utils._pytree.tree_leaves(value):
                        self._note_write(tensor, function)
        tensors = [each for each in torch.utils._pytree.tree_leaves((arguments, keywords)) if isinstance(each, torch.Tensor)]
        for name in filter(None, (self._replaced.get(place_of(each)) for each in tensors)):
            self._note(
                f'computes with a tensor that shares memory with "{name}", such as a view of it in an attribute',
                "take the view in forward()",
            )
        if torch.is_grad_enabled() and function is not torch.ops.aten.detach.default:
            if any(id(each) in self._of_others for each in tensors):
                self._note(
                    "computes with a tensor that requires a gradient and is no parameter of the model",
                    "make it one (torch.nn.Parameter, torch.nn.ModuleList) if it is to be trained, and else detach() it",
                )
        if any(isinstance(each, torch.Generator) for each in (*arguments, *keywords.values())):
            self._note(
                "draws random numbers of a torch.Generator of its own", "leave generator= out, so that the job's seed decides"
            )
        self.draws = self.draws or torch.Tag.nondeterministic_seeded in getattr(function, "tags", ())
        return function(*arguments, **keywords)

    def _note_write(self, tensor, function):
        place = place_of(tensor) if isinstance(tensor, torch.Tensor) else None
        if place is None or place not in self._known:
            return
        known = self._known[place]
        if isinstance(known, tuple):
            self.columns.add(known[0])
        elif known is None:
            self._note(
                f"writes to a tensor that is no buffer of the model ({_name_of(function)})",
                "make the tensor a buffer (register_buffer), so that checkpoints and programs have its new values",
            )
        elif known:
            by_max_norm = ", which max_norm= asks for" if function is torch.ops.aten.embedding_renorm_.default else ""
            self._note(f"writes to {known} ({_name_of(function)}{by_max_norm})", _ONLY_OPTIMIZER)

    def _note(self, what, hint):
        if self.problem is None:
            layer = self._layers.current() or "the loss, the outputs or the metrics"
            self.problem = f"{layer} {what}{line_of_user(sys._getframe(2))}, which a program can't do; {hint}"


_ONLY_OPTIMIZER = (
    "only the optimizer may: let forward() compute with a changed copy, or let workers run your script (model.trainer)"
)


def _equal(some, others):
    return some.shape == others.shape and bool(((some == others) | (some.isnan() & others.isnan())).all())


def _name_of(function):
    return getattr(function, "_opname", str(function))
