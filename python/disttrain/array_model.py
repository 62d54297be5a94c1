"""A model of the user's own arrays, in NumPy or JAX: disttrain holds their values, and the user's code computes."""

import contextlib
import dataclasses

import numpy as np

from disttrain import tree
from disttrain.constraint import Constraint, call_with_array
from disttrain.errors import DisttrainError
from disttrain.value_watch import ValueWatch, WholeSchedule, changed_in_place
from disttrain.variable import Variable, kept_as, read_only, split
from disttrain.wrapping import STATE, check_arrays, kind_of


class ArrayModel:
    is_torch = False

    def __init__(self, parameters, state=None, constraint=None):
        """`parameters` and `state` are trees of arrays (tree.py). The values are copied."""
        self._trees = {"trainable": parameters, "state": {} if state is None else state}
        self.variables = []
        self._initial = []
        self._names = {}  # kind -> names, in the order of the leaves
        for kind, arrays in self._trees.items():
            self._add(kind, arrays)
        if not self._names["trainable"]:
            raise DisttrainError(
                f"job.wrap() got a {type(parameters).__name__} without arrays; expected at least one array of floats"
            )
        self._constraint = None
        if constraint is not None:
            self._constraint = Constraint(constraint, call_with_array)
            bounds = self._constraint.bounds_of(self.variables)
            self.variables = [dataclasses.replace(v, bounds=b) for v, b in zip(self.variables, bounds)]
            self._initial = [
                value if variable.bounds is None else self._constraint.apply(variable, value)
                for variable, value in zip(self.variables, self._initial)
            ]
        self._begins = []
        self._views = {}  # key of the flat arrays -> the views of parameters and gradients
        self._now = None
        self._schedule = WholeSchedule()

    def _add(self, kind, arrays):
        where = "job.wrap()" if kind == "trainable" else STATE
        check_arrays(arrays, where)
        leaves = tree.flatten(arrays, where)
        self._names[kind] = list(leaves)
        for name, leaf in leaves.items():
            value = np.asarray(leaf)
            if not np.issubdtype(value.dtype, np.floating) and not _is_bfloat16(value):
                raise DisttrainError(
                    f'{where} got the array "{name}" with values of type {value.dtype}; expected floats, because the '
                    "cluster averages them: leave other arrays out of the tree"
                )
            if value.size == 0:
                raise DisttrainError(
                    f'{where} got the array "{name}" without elements (shape {list(value.shape)}); leave it out of the tree'
                )
            if kind == "state" and name in self._names["trainable"]:
                raise DisttrainError(
                    f'{where} got an array "{name}", and the tree of parameters has one of this name, too; expected names of '
                    'its own for the state, such as state={"state": ...}'
                )
            self.variables.append(Variable(name, value.shape, kind, kept_as(value.dtype)))
            self._initial.append(np.array(value, self.variables[-1].dtype))

    def initial(self):
        return self._initial

    def begin_rehearsal(self):
        """Notes what reset() restores. Nothing to do: the user's code doesn't write to the model."""

    def reset(self):
        """Undoes the rehearsal. Nothing to do, too."""

    def check_unchanged(self):
        """Nothing to do: the user's code has no part of the model."""

    def begin_loop(self, optimizer=None, is_alone=False):
        """Nothing to do: wrap() has copied the values."""

    def end_loop(self):
        """Nothing to do."""

    def lay_out(self, begins):
        """Gets the places of the variables in the flat arrays."""
        self._begins = begins
        self.forget()

    def bind(self, key, arrays):
        """From now on the model's values and gradients are in the two flat arrays that `arrays()` returns. The same key
        means the same arrays."""
        if key not in self._views:
            parameters, gradients = arrays()
            parameter_views = list(map(read_only, split(parameters, self._begins, self.variables)))
            gradient_views = split(gradients, self._begins, self.variables)
            watch = ValueWatch(parameters, self._begins, self.variables, self._schedule)
            self._views[key] = (*self._make_views(parameter_views, gradient_views), watch)
        self._now = self._views[key]

    def forget(self):
        self._views.clear()

    def load(self):
        """Takes the new values before a computation. Nothing to do: the views show them."""

    def store(self):
        """The opposite of load()."""

    def begin_step(self):
        """Every step writes all gradients."""
        self._note_values(self._schedule.is_due())

    def begin_batch(self, announce=None, is_only_read=True):
        """That of a torch module drops gradients. Here the script itself gives them."""

    def note_values(self, is_last=False):
        """From now on the script may not change the parameters' values. The arrays are read-only, but NumPy has ways
        around this. `is_last`: they are the last ones."""
        self._note_values(self._schedule.is_due(is_step=False, is_last=is_last))

    def _note_values(self, is_whole):
        if self._now is None:
            return
        if self._constraint is not None:
            self._constraint.verify(self.variables, self._now[2])
        self._now[4].note(is_whole)

    def check_values(self):
        name = self._now[4].changed() if self._now is not None else None
        if name is not None:
            raise DisttrainError(changed_in_place(f'the parameter "{name}"'))

    def evaluating(self):
        return contextlib.nullcontext()

    @staticmethod
    def to_tensor(value):
        return value

    def write_gradients(self, gradients, state=None):
        """Copies the gradients, and the new state, into the shared memory. State that isn't given keeps its value. In
        the rehearsal there is no such memory yet."""
        is_rehearsal = self._now is None
        unused = self._initial, self._initial
        parameter_views, gradient_views = unused if is_rehearsal else self._now[2:4]
        self.check_values()
        given = tree.flatten(gradients, "job.push_pull()")
        self._check_names("gradients", given, self._names["trainable"])
        given_state = tree.flatten(state, "job.push_pull(state=...)") if state is not None else {}
        if state is not None:
            self._check_names("state", given_state, self._names["state"])
        for variable, old, to in zip(self.variables, parameter_views, gradient_views):
            if variable.kind == "state":
                value = old if state is None else _array_of("new value", variable, given_state[variable.name])
            else:
                value = _array_of("gradient", variable, given[variable.name])
            if not is_rehearsal and value is not to:
                np.copyto(to, value, casting="unsafe" if _is_bfloat16(value) else "same_kind")

    def end_step(self):
        raise DisttrainError("the model is a tree of arrays: call job.push_pull(gradients, loss=...), not job.step()")

    def values(self):
        """The trees of parameters and state, as read-only views that show the cluster's values."""
        if self._now is None:
            flat = {v.name: read_only(value) for v, value in zip(self.variables, self._initial)}
            return tree.build(self._trees["trainable"], flat), tree.build(self._trees["state"], flat)
        return self._now[0], self._now[1]

    def gradients(self):
        """The tree of the trainable variables' gradients, as views of the memory that the worker sends. In the rehearsal,
        which has no such memory yet, these are new arrays."""
        if self._now is None:
            views = [np.zeros_like(value) for value in self._initial]
        else:
            views = self._now[3]
        return tree.build(self._trees["trainable"], {v.name: view for v, view in zip(self.variables, views)})

    def _make_views(self, parameters, gradients):
        flat = {variable.name: view for variable, view in zip(self.variables, parameters)}
        return (
            tree.build(self._trees["trainable"], flat),
            tree.build(self._trees["state"], flat),
            parameters,
            gradients,
        )

    def _check_names(self, what, given, expected):
        if list(given) == expected or set(given) == set(expected):
            return
        missing = [name for name in expected if name not in given]
        extra = [name for name in given if name not in expected]
        raise DisttrainError(
            f"the tree of {what} isn't like the tree that job.wrap() got: "
            + "; ".join(
                part
                for part in (
                    f"it lacks {missing[:3]}" if missing else "",
                    f"{extra[:3]} are new" if extra else "",
                )
                if part
            )
        )


def _array_of(what, variable, given):
    """What the script gives for a variable, as an array of real numbers with the variable's shape."""
    try:
        value = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:  # as a tensor that requires a gradient
        raise DisttrainError(
            f'the {what} of "{variable.name}" is {kind_of(given)}, of which NumPy can\'t make an array ({error}); expected an '
            "array of real numbers"
        ) from None
    if value.dtype.kind not in "fiub" and not _is_bfloat16(value):
        raise DisttrainError(
            f'the {what} of "{variable.name}" has values of type {value.dtype}; expected real numbers, as the variable has'
        )
    if value.shape != variable.shape:
        raise DisttrainError(
            f'the {what} of "{variable.name}" has the shape {list(value.shape)}; '
            f"expected {list(variable.shape)}, as the variable has"
        )
    return value


def _is_bfloat16(value):
    return value.dtype.kind == "V" and value.dtype.name == "bfloat16"
