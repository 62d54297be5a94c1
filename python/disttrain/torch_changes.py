"""Finds out what a script does to a torch module in the loop that wouldn't reach the cluster. Each finding is an error
that says which line to change.

Everything that runs in each step loops in C over all tensors.
"""

import gc
import operator
import weakref

import torch
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import register_optimizer_step_pre_hook

from disttrain.errors import DisttrainError
from disttrain.value_watch import changed_in_place

_version_of = operator.attrgetter("_version")
_place_of = torch.Tensor.data_ptr
_SAMPLES = 4096


class MemberWatch:
    """Whether the module got or lost a layer, a parameter or a buffer."""

    def __init__(self, module, kept):
        """`kept`: the tensors that the cluster knows. A module of torch.jit has no dicts of its tensors."""
        kept = set(map(id, kept))
        self._dicts = []
        members = []
        for layer in module.modules():
            if isinstance(layer, torch.jit.ScriptModule):
                continue
            self._dicts += [layer._modules, layer._parameters, layer._buffers]
            for name, child in layer._modules.items():
                if child is None or not kept.isdisjoint(map(id, (*child.parameters(), *child.buffers()))):
                    members.append((layer._modules, name, child))
            # The place of a parameter that a layer doesn't have, such as a bias, is watched, too.
            for tensors in (layer._parameters, layer._buffers):
                members += [(tensors, name, each) for name, each in tensors.items() if each is None or id(each) in kept]
        self._sizes = list(map(len, self._dicts))
        self._holders, self._names, self._members = map(list, zip(*members)) if members else ([], [], [])

    def has_changed(self):
        """Whether the script may have added or replaced something."""
        return list(map(len, self._dicts)) != self._sizes or any(
            map(operator.is_not, map(dict.get, self._holders, self._names), self._members)
        )


class InPlaceWatch:
    """Whether the loop changes parameters in place. PyTorch counts the changes of each tensor, but not those by
    tensor.data or NumPy. ValueWatch finds these in the worker's memory, and this class in tensors that are elsewhere."""

    def __init__(self, names, tensors, frozen_names, frozen):
        self._names = names
        self._tensors = tensors
        self._versions = []
        self._frozen_names = frozen_names
        self._frozen = frozen
        self._frozen_marks = []
        self._frozen_samples = []
        self._next = 0

    def begin_loop(self):
        """The present values of the frozen parameters stay."""
        self._frozen_marks = self._marks_of_frozen()
        self._frozen_samples = [_samples_of(tensor) for tensor in self._frozen]
        self._versions = []

    def note(self):
        """The parameters have new values. A graph that was built before can't compute gradients any more, as after
        torch.optim's step(), because it would mix the old and the new values."""
        self._raise_versions()
        self.note_versions()

    def _raise_versions(self):
        try:
            torch.autograd.graph.increment_version(self._tensors)
        except TypeError:  # before PyTorch 2.6 it takes one tensor
            for tensor in self._tensors:
                torch.autograd.graph.increment_version(tensor)

    def note_versions(self):
        self._versions = list(map(_version_of, self._tensors))

    def check(self):
        if self._versions:
            now = list(map(_version_of, self._tensors))
            if now != self._versions:
                changed = next(i for i, (a, b) in enumerate(zip(now, self._versions)) if a != b)
                raise DisttrainError(changed_in_place(f'the parameter "{self._names[changed]}"'))
        if self._frozen:
            self._check_frozen()

    def _marks_of_frozen(self):
        return list(map(_version_of, self._frozen)), list(map(_place_of, self._frozen))

    def _check_frozen(self):
        if not self._frozen_marks:
            return
        i = self._next = (self._next + 1) % len(self._frozen)
        is_same = torch.equal(_samples_of(self._frozen[i]), self._frozen_samples[i])
        now = self._marks_of_frozen()
        if is_same and now == self._frozen_marks:
            return
        if is_same:
            differs = [a != b for a, b in zip(zip(*now), zip(*self._frozen_marks))]
            i = differs.index(True)
        raise DisttrainError(
            f'the loop changed the frozen parameter "{self._frozen_names[i]}", but the cluster doesn\'t keep parameters that '
            "were frozen at job.wrap(): other workers, evaluations and checkpoints have other values of it. Make it a "
            "buffer (register_buffer), which is state of the job, or don't change it"
        )


def _samples_of(tensor):
    """Some of the values, as bits would compare: a NaN isn't the same as a NaN."""
    flat = tensor.detach().reshape(-1)
    return torch.nan_to_num(flat[:: max(1, -(-flat.numel() // _SAMPLES))].clone())


class OptimizerWatch:
    """Whether the loop calls step() of an optimizer of torch.optim on the module's parameters, or of its schedule."""

    def __init__(self, tensors):
        self._tensors = set(map(id, tensors))
        self._allowed = None
        self._schedules = []
        self._is_in_loop = False
        mine = weakref.ref(self)

        def before_step(optimizer, *_):
            watch = mine()
            if watch is not None:
                watch._refuse(optimizer)

        self._hook = register_optimizer_step_pre_hook(before_step)
        weakref.finalize(self, self._hook.remove)

    def begin_loop(self, allowed):
        """`allowed`: the optimizer of a script that runs alone, or None."""
        self._allowed = allowed
        self._is_in_loop = True
        # PyTorch doesn't say which schedules there are, so this looks for them among all objects, once.
        self._schedules = [
            (each, each.last_epoch)
            for each in gc.get_objects()
            if issubclass(type(each), LRScheduler) and self._is_ours(getattr(each, "optimizer", None))
        ]

    def end_loop(self):
        self._is_in_loop = False
        self._schedules = []

    def check(self):
        for schedule, epoch in self._schedules:
            if schedule.last_epoch != epoch:
                raise DisttrainError(
                    f"the loop called step() of a torch.optim.lr_scheduler.{type(schedule).__name__}, but the learning rate "
                    "is job.toml's: take this line out, and write the schedule into train.schedule"
                )

    def _is_ours(self, optimizer):
        groups = getattr(optimizer, "param_groups", ())
        is_ours = any(id(tensor) in self._tensors for group in groups for tensor in group["params"])
        return is_ours and optimizer is not self._allowed

    def _refuse(self, optimizer):
        if self._is_in_loop and self._is_ours(optimizer):
            raise DisttrainError(
                f"the loop called step() of a torch.optim.{type(optimizer).__name__} on parameters of the module that "
                "job.wrap() got: take this line and its zero_grad() out, because job.step(loss=...) does both. The update rule "
                "and the learning rate are job.toml's (train.optimizer)"
            )


class DroppedGradients:
    """Whether the script has set all gradients to 0 after the backward pass. It notes whether the backward pass gave a
    gradient other than 0 to one parameter, the last one, which is a small one in most models."""

    def __init__(self, tensor):
        self._found = None  # a tensor: whether a backward pass has found such a gradient
        mine = weakref.ref(self)

        def on_gradient(tensor):
            watch = mine()
            if watch is not None:
                found = tensor.grad.detach()
                found = (found.coalesce().values() if found.is_sparse else found).any()
                watch._found = found if watch._found is None else watch._found | found

        tensor.register_post_accumulate_grad_hook(on_gradient)

    def begin_step(self):
        self._found = None

    def check(self, place, flat_gradients):
        """`place`: the parameter's gradient that would be sent. `flat_gradients`: a function that returns all of them."""
        if self._found is None or bool(place.any()) or not bool(self._found):
            return
        if not any(bool(gradient.any()) for gradient in flat_gradients()):
            raise DisttrainError(DROPPED)


DROPPED = (
    "the gradients were dropped between loss.backward() and job.step(), as zero_grad() does: take this line out, or put it "
    "before loss.backward(). It isn't needed, because each batch begins with gradients of 0"
)
