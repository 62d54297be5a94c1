"""A torch module as the model of a job. torch_arrays.py puts its tensors into the worker's memory."""

import dataclasses
import sys

import numpy as np
import torch

from disttrain.constraint import Constraint
from disttrain.errors import DisttrainError
from disttrain.overlap import Overlap
from disttrain.torch_arrays import TorchArrays
from disttrain.torch_buffers import (
    LARGEST_EXACT,
    Constants,
    has_large_integers,
    is_dense,
    is_state,
    may_be_large,
    refuse_inference,
    unused_counts,
)
from disttrain.torch_changes import (
    DROPPED,
    DroppedGradients,
    InPlaceWatch,
    MemberWatch,
    OptimizerWatch,
    OutsideWatch,
)
from disttrain.torch_saved import Evaluating, SavedModule
from disttrain.torch_scaling import ScalerWatch
from disttrain.torch_sharing import ViewWatch, refuse_repeats, refuse_shared_memory
from disttrain.torch_values import sum_of, without_repeats
from disttrain.value_watch import WholeSchedule, changed_in_place
from disttrain.variable import Variable, kept_as, read_only

# The advice about large whole numbers in a step.
_INSTEAD = "let it be a buffer of float64, or one with persistent=False, of which each worker has values of its own"


class TorchModel:
    is_torch = True

    def __init__(self, module, overlap, constraint=None):
        module = _plain(module)
        self.module = module
        self.variables = []
        self._tensors = []
        saved = set(module.state_dict())  # names alone: the tensors would keep their memory
        # A layout has the variables in reverse order. So the gradients of the last layer come first there, and the
        # state, which is final at the end of a step, comes last.
        unused = unused_counts(module)
        for name, buffer in module.named_buffers():
            if is_state(name, buffer, saved, unused):
                self._add(name, buffer, "state")
        self._whole_numbers = [
            i for i, each in enumerate(self._tensors) if may_be_large(each) and self.variables[i].name not in unused
        ]
        self._schedule = WholeSchedule()
        self._constants = Constants(module, saved, unused, self._schedule)
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                self._add(name, parameter, "trainable")
        if not any(variable.kind == "trainable" for variable in self.variables):
            raise DisttrainError(
                f"job.wrap() got a module ({type(module).__name__}) that has no parameter that requires a gradient; expected "
                "at least one, because a job trains"
            )
        self._outside = [(name, each) for name, each in module.named_parameters() if not each.requires_grad]
        for name, tensor in self._outside:
            _check_tensor(name, tensor)
        # Buffers that the cluster doesn't know.
        self._known_buffers = {name for name, _ in module.named_buffers()}
        self._constraint = None
        if constraint is not None:
            self._constraint = Constraint(constraint, _call_with_tensor)
            bounds = self._constraint.bounds_of(self.variables)
            self.variables = [dataclasses.replace(v, bounds=b) for v, b in zip(self.variables, bounds)]
        trained = [i for i, variable in enumerate(self.variables) if variable.kind == "trainable"]
        tensors = [self._tensors[i] for i in trained]
        self._last = trained[-1]
        names = [self.variables[i].name for i in trained]
        self._in_place = InPlaceWatch(
            names,
            tensors,
            [name for name, _ in self._outside],
            [tensor for _, tensor in self._outside],
            self._schedule,
            _parameters_with_max_norm(module),
        )
        self._optimizers = OptimizerWatch(tensors)
        self._scalers = ScalerWatch(names, tensors)
        self._others = OutsideWatch(module.parameters())
        self._dropped = DroppedGradients(tensors[-1])
        self._views = ViewWatch(module)
        self._read_values()
        self._begins = []
        self._bound = {}  # key of the flat arrays -> TorchArrays
        self._key = None
        self._now = None
        self._owner = [None]  # see TorchArrays
        self._is_gradient_seen = False  # a backward pass has brought a gradient
        self._has_said_dropped = False
        self._is_cleared = False  # the script has called zero_grad() of job.wrap()'s object after a backward pass
        self._is_evaluating = False
        self._before_rehearsal = None
        self._rehearsed_sums = []  # while the rehearsal lasts: checksums of the parameters
        self._is_whole = False  # this step compares all values
        self._overlap = Overlap(self.variables, self._tensors) if overlap else None
        self._members = MemberWatch(module, self._tensors)

    def _add(self, name, tensor, kind):
        _check_tensor(name, tensor)
        if not is_dense(tensor) or tensor.is_complex() or not _has_numbers(tensor):
            nested = "nested, " if tensor.is_nested else ""
            raise DisttrainError(
                f'"{name}" is {nested}of type {tensor.dtype} and layout {tensor.layout}; expected a dense tensor of real numbers'
                + (", or a buffer with persistent=False, of which each worker has values of its own" if kind == "state" else "")
            )
        if tensor.numel() == 0:
            raise DisttrainError(f'"{name}" has no elements (shape {list(tensor.shape)}): remove it from the module')
        self.variables.append(Variable(name, tuple(tensor.shape), kind, kept_as(tensor.dtype)))
        self._tensors.append(tensor)

    def check_unchanged(self, is_in_loop=False):
        """The script may change the module after wrap(), but its parameters and buffers must stay the same ones. A module
        of torch.jit has no dicts of them, so there only this function finds a replaced tensor."""
        now = {**dict(self.module.named_buffers()), **dict(self.module.named_parameters())}
        for variable, tensor in zip(self.variables, self._tensors):
            what = "parameter" if variable.kind == "trainable" else "buffer"
            found = now.pop(variable.name, None)
            if found is not tensor or tuple(tensor.shape) != variable.shape:
                raise DisttrainError(
                    f'since job.wrap() the {what} "{variable.name}" was replaced by another tensor, or got another '
                    "shape: change it before job.wrap(), or in place"
                    + (" before job.batches()" if variable.kind == "trainable" else "")
                )
            if variable.kind == "trainable" and not tensor.requires_grad and not is_in_loop:
                raise DisttrainError(
                    f'since job.wrap() the parameter "{variable.name}" was frozen: freeze it before job.wrap()'
                )
        for name, tensor in now.items():
            if tensor.requires_grad:
                raise DisttrainError(
                    f'since job.wrap() the parameter "{name}" was added or unfrozen: do this before job.wrap()'
                )
        saved, unused = self.module.state_dict().keys(), unused_counts(self.module)
        for name, buffer in self.module.named_buffers():
            if name not in self._known_buffers and is_state(name, buffer, saved, unused):
                raise DisttrainError(
                    f'since job.wrap() the buffer "{name}" was added, so neither the other workers nor the checkpoints have it: '
                    "add it before job.wrap(), or with persistent=False if each worker may have values of its own"
                )

    def _named_tensors(self):
        return [
            (f'the {"parameter" if variable.kind == "trainable" else "buffer"} "{variable.name}"', tensor)
            for variable, tensor in zip(self.variables, self._tensors)
        ]

    def _read_values(self):
        kept = self._named_tensors()
        known = set(map(id, self._tensors))
        refuse_shared_memory(
            kept,
            [
                *((f'the frozen parameter "{name}"', tensor) for name, tensor in self._outside),
                *((f'the buffer "{name}"', each) for name, each in self.module.named_buffers() if id(each) not in known),
            ],
        )
        for variable, (what, tensor) in zip(self.variables, kept):
            refuse_repeats(what, without_repeats(tensor) if variable.kind == "state" else tensor)
        self._refuse_large_integers("give it these numbers before job.wrap(), then it is a constant")
        self._initial = [
            tensor.detach().cpu().to(getattr(torch, variable.dtype)).resolve_neg().numpy().copy()
            for variable, tensor in zip(self.variables, self._tensors)
        ]
        if self._constraint is not None:
            self._initial = [
                value if variable.bounds is None else self._constraint.apply(variable, value)
                for variable, value in zip(self.variables, self._initial)
            ]
        self._constants.note_values()

    def begin_loop(self, optimizer=None, is_alone=False):
        """Takes the module's values as the initial ones. The script may load weights between wrap() and batches().
        `optimizer`: that of a script that runs alone. `is_alone`: this one does."""
        self._read_values()
        self._views.begin_loop(self._named_tensors())
        self._in_place.begin_loop()
        self._in_place.note_versions()
        self._optimizers.begin_loop(optimizer, is_alone)
        self._scalers.begin_loop()
        self._others.begin_loop()
        self._dropped.begin_step()

    def end_loop(self):
        """From now on the module is the script's."""
        self._optimizers.end_loop()
        self._scalers.end_loop()
        self._others.end_loop()

    def initial(self):
        return self._initial

    def begin_rehearsal(self):
        """Notes what reset() restores, and the parameters' values, which the script may not change."""
        self._before_rehearsal = self.saved_state()
        with torch.no_grad():
            self._rehearsed_sums = [sum_of(tensor) for tensor in self._trained()]

    def reset(self):
        """Undoes the rehearsal: the state and the gradients are as before it. The layers' modes and other buffers stay as
        they are, because the script may set them up once, and note this in attributes of its own."""
        self._rehearsed_sums = []
        self._before_rehearsal.restore()
        self._before_rehearsal = None
        self.drop_gradients()
        self._dropped.begin_step()
        self._views.begin_loop(self._named_tensors())  # the forward pass may have left others

    def lay_out(self, begins):
        """Gets the places of the variables in the flat arrays."""
        self._begins = begins
        self.forget()
        if self._overlap is not None:
            self._overlap.lay_out(begins)

    def bind(self, key, arrays):
        """From now on the model's values and gradients are in the two flat arrays that `arrays()` returns. The same key
        means the same arrays."""
        if key == self._key:
            return
        if key not in self._bound:
            self._bound[key] = TorchArrays(
                self.variables, self._tensors, self._begins, *arrays(), self._owner, self._whole_numbers, self._schedule
            )
        self._key = key
        before, self._now = self._now, self._bound[key]
        self._now.attach(before)

    def forget(self):
        self._bound.clear()
        self._key = None
        self._now = None

    def clear_ahead(self, key):
        """The next step will have these arrays, and nobody uses their gradients until then."""
        if key in self._bound and key != self._key:
            self._bound[key].clear_ahead()

    def load(self):
        """Takes the new values before a computation."""
        if self._now is not None:
            self._now.load()

    def store(self):
        """The opposite of load(): the script has changed the tensors."""
        self._now.store()

    def clear_gradients(self, set_to_none=True):
        """Does what zero_grad() of an optimizer does, if a backward pass has changed the gradients."""
        self._dropped.begin_step()
        if self._now is None or self._is_evaluating:
            self.module.zero_grad(set_to_none)
        elif self._now.has_gradient():
            # The script may keep the gradients, and needs their values later. PyTorch then sets none of them to 0, either.
            if set_to_none:
                self.drop_gradients()
            else:
                self.module.zero_grad(set_to_none=False)
                self._now.clear()
            self._is_cleared = True

    def drop_gradients(self):
        """The parameters have no gradients from now on. The next step prepares them."""
        for tensor in self._tensors:
            tensor.grad = None
        self._owner[0] = None

    def note_values(self, is_last=False):
        """From now on the script may not change the parameters' values. They are new ones, of the cluster. `is_last`: the
        last ones."""
        self._note_values(self._schedule.is_due(is_step=False, is_last=is_last))

    def _note_values(self, is_whole):
        self._is_whole = is_whole
        if self._now is None:
            return
        if self._constraint is not None:
            self._constraint.verify(self.variables, [value.numpy() for value in self._now.values])
        self._in_place.note(is_whole)
        self._now.note_values(is_whole)

    def check_values(self, who="the loop"):
        """Fails if the script has changed values that the cluster doesn't get from it."""
        self._constants.check(is_whole=self._is_whole)
        self._in_place.check()
        self.check_values_in_memory(who)

    def check_values_in_memory(self, who="the loop"):
        name = self._changed_in_rehearsal() if self._now is None else self._now.changed_value()
        if name is not None:
            raise DisttrainError(changed_in_place(f'the parameter "{name}"', who))

    def _trained(self):
        return [tensor for variable, tensor in zip(self.variables, self._tensors) if variable.kind == "trainable"]

    def _changed_in_rehearsal(self):
        names = (variable.name for variable in self.variables if variable.kind == "trainable")
        sums = zip(names, self._trained(), self._rehearsed_sums)
        return next((name for name, tensor, noted in sums if sum_of(tensor) != noted), None)

    def begin_step(self):
        self._say_dropped()
        self._now.clear()
        self._is_cleared = False
        self._note_values(self._schedule.is_due())

    def begin_batch(self, announce=None, is_only_read=True):
        """The loop's body begins with the step's batch. On a cluster, the rest of the body of the step before has run since
        begin_step(). Its backward passes, such as those for a log, belong to no step. `announce(end)` tells the worker that
        the gradients of all flat elements before `end` are final. `is_only_read`: the worker doesn't write gradients then."""
        if self._now.has_gradient():
            self._say_dropped()
            self._owner[0] = None
            self._now.clear()
        self._is_cleared = False
        self._dropped.begin_step()
        self._scalers.begin_step()
        if self._overlap is not None and announce is not None:
            self._overlap.begin_step(self._now.gradients, announce, self.check_values_in_memory, is_only_read)

    @torch.no_grad()
    def end_step(self):
        """Makes sure that the gradients and the state's new values are in the worker's memory. In the rehearsal there is
        no such memory yet."""
        if self._members.has_changed():
            self.check_unchanged(is_in_loop=True)
            self._members = MemberWatch(self.module, self._tensors)
        for name, tensor in self._outside:
            if tensor.grad is not None:
                raise DisttrainError(
                    f'the parameter "{name}" got a gradient, but it was frozen at job.wrap(), so the job doesn\'t train '
                    "it: set requires_grad = True before job.wrap(), or leave it frozen"
                )
        self._optimizers.check()
        self._scalers.check()
        self._others.check()
        if self._overlap is not None and self._overlap.has_sent():
            self._constants.check(is_whole=self._is_whole)
            self._in_place.check()  # the worker may have written new values already
        else:
            self.check_values()
        if self._now is None:
            if not any(tensor.grad is not None for tensor in self._tensors):
                self._refuse_no_gradient()
            self._refuse_large_integers(_INSTEAD)
            return
        if not self._now.has_gradient():
            self._refuse_no_gradient()
        self._check_frozen()
        if not self._is_gradient_seen:
            self._is_gradient_seen = True
            self.check_unchanged(is_in_loop=True)
            self._warn_of_missing_gradients()
        if self._views.has_views():
            names = set(self._now.names_without_gradient())
            self._views.check({id(t) for v, t in zip(self.variables, self._tensors) if v.name in names})
        self._now.collect(self._overlap.end_step() if self._overlap is not None else ())
        if self._now.may_have_large_integers():
            self._refuse_large_integers(_INSTEAD)
        self._dropped.check(self._now.gradients[self._last], self._now.trained_gradients)
        self._dropped.begin_step()  # what it finds from now on belongs to no step

    def _refuse_large_integers(self, advice):
        for i in self._whole_numbers:
            if has_large_integers(self._tensors[i]):
                raise DisttrainError(
                    f'the buffer "{self.variables[i].name}" has got whole numbers above {LARGEST_EXACT} since job.wrap(), which the '
                    f"cluster can't keep exactly: {advice}"
                )

    def _refuse_no_gradient(self):
        if self._is_cleared or (self._now is not None and self._now.was_written()):
            raise DisttrainError(DROPPED)
        raise DisttrainError(
            "job.step() found no gradient in any parameter of the module: call loss.backward() before job.step(), and no "
            "zero_grad() between the two"
        )

    def _check_frozen(self):
        name = self._now.frozen_without_gradient()
        if name is not None:
            raise DisttrainError(
                f'the loop froze the parameter "{name}" (requires_grad = False), but the job trains it: momentum and weight '
                "decay still change it. Freeze it before job.wrap(), or take this line out"
            )

    def _say_dropped(self):
        """Says once that a backward pass after job.step() is in vain."""
        if self._has_said_dropped or not self._dropped.has_found():
            return
        self._has_said_dropped = True
        print(
            "disttrain: the gradients of a backward pass after job.step() are dropped, because the next batch begins with "
            "gradients of 0: call loss.backward() before job.step() if they are to count",
            file=sys.stderr,
            flush=True,
        )

    def _warn_of_missing_gradients(self):
        names = self._now.names_without_gradient()
        if not names:
            return
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        print(
            f"disttrain: the first step brought no gradient for {', '.join(names[:5])}{more}: their gradients count as "
            "0. If they aren't to be trained, set requires_grad = False before job.wrap()",
            file=sys.stderr,
            flush=True,
        )

    def write_gradients(self, gradients, state=None):
        raise DisttrainError("the model is a torch module: call loss.backward() and job.step(), not job.push_pull()")

    def named_views(self):
        values = self._initial if self._now is None else [value.numpy() for value in self._now.values]
        return {variable.name: read_only(value) for variable, value in zip(self.variables, values)}

    def evaluating(self):
        return Evaluating(self)

    def saved_state(self):
        return SavedModule(self.module, [t for v, t in zip(self.variables, self._tensors) if v.kind == "state"])

    def check_constants(self, who):
        self._constants.check(who, self._is_whole)

    def begin_evaluation(self):
        self.note_values()
        self._constants.check(is_whole=self._is_whole)
        # The worker may still send the gradients of the step before, and those of the next step may be 0 already. So a
        # backward pass of the function, and its zero_grad(), must find neither.
        self.drop_gradients()
        self._is_evaluating = True

    def end_evaluation(self):
        self._is_evaluating = False
        self._others.end_evaluation()
        self._dropped.begin_step()
        self._scalers.begin_step()
        self.drop_gradients()

    @staticmethod
    def to_tensor(value):
        """Arrays of numbers become tensors that share their memory; other values stay."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            return torch.from_numpy(value)
        return value


def _check_tensor(name, tensor):
    """Fails if the tensor has no values yet, or none that a job can train with."""
    if torch.nn.parameter.is_lazy(tensor):
        raise DisttrainError(
            f'"{name}" has no shape yet, because it belongs to a lazy module: run the module once before job.wrap()'
        )
    if tensor.is_meta:
        raise DisttrainError(
            f'job.wrap() got a module whose "{name}" is on the device meta, without values; expected values: call '
            "module.to_empty(device=...) and initialize it before job.wrap()"
        )
    refuse_inference(name, tensor)


def _has_numbers(tensor):
    """Whether PyTorch can convert the tensor's elements, unlike those of torch.float4_e2m1fn_x2, which are two numbers each."""
    try:
        tensor.detach()[(slice(0, 1),) * tensor.ndim].to(torch.float32)
    except (NotImplementedError, RuntimeError, TypeError):
        return False
    return True


def _parameters_with_max_norm(module):
    return {
        f"{prefix}.weight" if prefix else "weight"
        for prefix, layer in module.named_modules()
        if getattr(layer, "max_norm", None) is not None
    }


def _plain(module):
    """The module itself, without what only makes it faster. Its variables then have the names that they have there."""
    if type(module).__name__ == "OptimizedModule" and hasattr(module, "_orig_mod"):  # by torch.compile()
        return module._orig_mod
    for name in ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"):
        if type(module).__name__ == name and hasattr(module, "module"):
            raise DisttrainError(
                f"job.wrap() got a {name} around a {type(module.module).__name__}; expected the module itself, without "
                f"{name}: the job divides the batches among the workers and averages their gradients"
            )
    return module


def _call_with_tensor(function, *names_and_array):
    *names, array = names_and_array
    with torch.no_grad():
        result = function(*names, torch.from_numpy(array))
    if result is None:
        return array  # the function has changed it in place
    return result.detach().cpu().numpy() if isinstance(result, torch.Tensor) else result
