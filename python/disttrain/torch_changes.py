"""Finds out what a script does to a torch module in the loop that wouldn't reach the cluster. Each finding is an error
that says which line to change.

Everything that runs in each step loops in C over all tensors.

A change that stays in the script's process would train other values than the cluster's. PyTorch's version counters find
most changes in place, at 2 us for 50 tensors. They don't count changes by `tensor.data` and NumPy, as WGAN's code makes
them; value_watch.py finds these. Changed frozen parameters are an error, too. DistributedDataParallel allows them, but
there no worker joins later, and checkpoints have them. A parameter without a gradient is no error, because many models
have such parameters in some steps.

OutsideWatch looks for gradients of other modules' parameters. To walk the graph of the loss would find the same, but it
costs a microsecond for each node, and many scripts give `job.step()` a number. Such a parameter with an optimizer of
its own may be one that the script trains alone on purpose, as meta-learning does. So there the package only prints a
line.
"""

import gc
import operator
import sys
import weakref

import torch
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import register_optimizer_step_pre_hook

from disttrain.errors import DisttrainError
from disttrain.torch_values import KeptValues
from disttrain.value_watch import changed_in_place

_version_of = operator.attrgetter("_version")


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

    def __init__(self, names, tensors, frozen_names, frozen, schedule, with_max_norm=()):
        """`schedule`: the module's WholeSchedule. `with_max_norm`: the names of parameters whose layer itself changes them,
        as Embedding(max_norm=...) does."""
        self._names = names
        self._with_max_norm = with_max_norm
        self._tensors = tensors
        self._versions = []
        self._frozen_names = frozen_names
        self._frozen = KeptValues(frozen, schedule)
        self._is_whole = False  # check() compares all values of the frozen parameters

    def begin_loop(self):
        """The present values of the frozen parameters stay."""
        self._frozen.note()
        self._versions = []

    def note(self, is_whole):
        """The parameters have new values. A graph that was built before can't compute gradients any more, as after
        torch.optim's step(), because it would mix the old and the new values. `is_whole`: check() compares all values of
        the frozen parameters."""
        self._is_whole = is_whole
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
                name = self._names[changed]
                if name in self._with_max_norm:
                    raise DisttrainError(_changed_by_max_norm(name))
                raise DisttrainError(changed_in_place(f'the parameter "{name}"'))
        frozen = self._frozen.changed(self._is_whole)
        if frozen is not None:
            raise DisttrainError(
                f'the loop changed the frozen parameter "{self._frozen_names[frozen]}", but the cluster doesn\'t keep parameters '
                "that were frozen at job.wrap(): other workers, evaluations and checkpoints have other values of it. Make it a "
                "buffer (register_buffer), which is state of the job, or don't change it"
            )


def _changed_by_max_norm(name):
    return (
        f'the layer of the parameter "{name}" changed it in place, because it has max_norm=.... Such a change stays in this '
        "process. Leave max_norm out, and compute with rows of that norm: with torch.nn.functional.embedding(x, "
        "torch.renorm(self.weight, 2, 0, max_norm)), or with torch.nn.utils.parametrize"
    )


class OptimizerWatch:
    """Whether the loop calls step() of an optimizer of torch.optim on the module's parameters, or of its schedule, or changes
    the optimizer's learning rate or another setting by hand."""

    def __init__(self, tensors):
        self._tensors = set(map(id, tensors))
        self._own = None  # the optimizer of a script that runs alone
        self._may_step = False  # it may make steps
        self._schedules = []  # (schedule, its epoch at the beginning of the loop)
        self._settings = []  # (optimizer, its settings then)
        self._is_in_loop = False
        mine = weakref.ref(self)

        def before_step(optimizer, *_):
            watch = mine()
            if watch is not None:
                watch._refuse(optimizer)

        self._hook = register_optimizer_step_pre_hook(before_step)
        weakref.finalize(self, self._hook.remove)

    def begin_loop(self, own, is_alone):
        """`own`: the optimizer of a script that runs alone, or None. `is_alone`: this script does. On a cluster this optimizer is
        there, too, and what the script sets in it is meant for a run alone."""
        self.end_loop()
        self._own = own
        self._may_step = is_alone
        self._is_in_loop = True
        # PyTorch doesn't say which schedules and optimizers there are, so this looks for them among all objects, once.
        for each in gc.get_objects():
            if issubclass(type(each), LRScheduler) and self._is_left_over(getattr(each, "optimizer", None)):
                self._schedules.append((each, each.last_epoch))
            elif issubclass(type(each), torch.optim.Optimizer) and self._is_left_over(each):
                self._settings.append((each, _settings_of(each)))

    def end_loop(self):
        self._is_in_loop = False
        self._schedules = []
        self._settings = []

    def check(self):
        for schedule, epoch in self._schedules:
            if schedule.last_epoch != epoch:
                raise DisttrainError(
                    f"the loop called step() of a torch.optim.lr_scheduler.{type(schedule).__name__}, but the learning rate "
                    "is job.toml's: take this line out, and write the schedule into train.schedule"
                )
        for optimizer, settings in self._settings:
            now = _settings_of(optimizer)
            if now != settings:
                self._refuse_setting(optimizer, settings, now)

    @staticmethod
    def _refuse_setting(optimizer, before, now):
        changed = {name for a, b in zip(before, now) for name in a if name in b and a[name] != b[name]}
        if "lr" in changed:
            raise DisttrainError(
                f"the loop changed the lr of a torch.optim.{type(optimizer).__name__}, but the learning rate is job.toml's: take "
                "this line out, and write the schedule into train.schedule"
            )
        if changed:
            raise DisttrainError(
                f"the loop changed the {min(changed)} of a torch.optim.{type(optimizer).__name__}, but the update rule is "
                "job.toml's: take this line out, and write the value into train.optimizer"
            )

    def _is_left_over(self, optimizer):
        return optimizer is not self._own and self._is_ours(optimizer)

    def _is_ours(self, optimizer):
        groups = getattr(optimizer, "param_groups", ())
        return any(id(tensor) in self._tensors for group in groups for tensor in group["params"])

    def _refuse(self, optimizer):
        if self._is_in_loop and self._is_ours(optimizer) and not (self._may_step and optimizer is self._own):
            raise DisttrainError(
                f"the loop called step() of a torch.optim.{type(optimizer).__name__} on parameters of the module that "
                "job.wrap() got: take this line and its zero_grad() out, because job.step(loss=...) does both. The update rule "
                "and the learning rate are job.toml's (train.optimizer)"
            )


def _settings_of(optimizer):
    """For each group of parameters, its settings that are numbers, such as lr and betas."""
    return [
        {name: number for name, value in group.items() if name != "params" and (number := _plain(value)) is not None}
        for group in optimizer.param_groups
    ]


def _plain(value):
    """The value as numbers of Python, or None. A learning rate may be a tensor."""
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 else None
    return value if isinstance(value, (bool, int, float, tuple)) else None


class OutsideWatch:
    """Whether the loop's backward passes reach tensors that aren't in the module that job.wrap() got, such as the
    parameters of a second module. The job doesn't train them."""

    def __init__(self, known):
        """`known`: all parameters of the module."""
        self._known = set(map(id, known))
        # (a weak reference to a tensor that needs a gradient, the mark of its gradient before the loop or after the last
        # evaluation)
        self._marks = []
        self._is_in_loop = False
        self._is_noted = False
        mine = weakref.ref(self)

        def on_registration(module, name, parameter):
            watch = mine()
            if watch is not None and watch._is_in_loop and parameter is not None:
                watch._add(parameter)

        self._hook = torch.nn.modules.module.register_module_parameter_registration_hook(on_registration)
        weakref.finalize(self, self._hook.remove)

    def begin_loop(self):
        # PyTorch doesn't say which tensors there are, so this looks for them among all objects, once. Tensors that the loop
        # makes may need a gradient for other reasons, such as a gradient penalty.
        self._marks = []
        for each in gc.get_objects():
            if type(each) is torch.Tensor or issubclass(type(each), torch.nn.Parameter):
                if each.requires_grad and each.is_leaf and id(each) not in self._known:
                    self._add(each)
        self._is_in_loop = True

    def end_loop(self):
        self._is_in_loop = False
        self._marks = []

    def end_evaluation(self):
        """An evaluation may train layers of its own, such as one that probes the module's outputs."""
        self._marks = [(reference, _mark_of_gradient(tensor)) for reference, _, tensor in self._alive()]

    def _add(self, tensor):
        self._marks.append((weakref.ref(tensor), _mark_of_gradient(tensor)))

    def _alive(self):
        return [(*each, tensor) for each in self._marks if (tensor := each[0]()) is not None]

    def check(self):
        marked = self._alive()
        changed = [t for _, mark, t in marked if t.grad is not None and _mark_of_gradient(t) != mark]
        if changed:
            self._report(changed)
        # The script has been told of the changed ones.
        told = set(map(id, changed))
        self._marks = [(reference, mark) for reference, mark, tensor in marked if id(tensor) not in told]

    def _report(self, tensors):
        owned = _ids_in_optimizers()
        for tensor in tensors:
            if isinstance(tensor, torch.nn.Parameter) and id(tensor) not in owned:
                raise DisttrainError(
                    f"{_gave_gradient(tensor)}. Give job.wrap() one module that has all that are to be trained, such as "
                    "torch.nn.ModuleDict({...}), and keep layers in a torch.nn.ModuleList instead of a list. If it isn't to be "
                    "trained, call requires_grad_(False)"
                )
        if self._is_noted:
            return
        self._is_noted = True
        print(
            f"disttrain: {_gave_gradient(tensors[0])}. If the script trains it, each worker has values of its own, and no "
            "checkpoint has them",
            file=sys.stderr,
            flush=True,
        )


def _gave_gradient(tensor):
    return (
        f"the backward pass gave a gradient to {_place_of_tensor(tensor)}, which isn't in the module that job.wrap() got, so "
        "the job doesn't train it"
    )


def _mark_of_gradient(tensor):
    """Another one after each backward pass that reaches the tensor."""
    gradient = tensor.grad
    return None if gradient is None else (id(gradient), gradient._version)


def _place_of_tensor(tensor):
    shape = f"with the shape {list(tensor.shape)}"
    for each in gc.get_objects():
        if issubclass(type(each), torch.nn.Module):
            for name, other in each._parameters.items():
                if other is tensor:
                    return f'the parameter "{name}" of a {type(each).__name__}, {shape}'
    return f"a {type(tensor).__name__} {shape}"


def _ids_in_optimizers():
    """Of all tensors that an optimizer of torch.optim has."""
    return {
        id(tensor)
        for each in gc.get_objects()
        if issubclass(type(each), torch.optim.Optimizer)
        for group in each.param_groups
        for tensor in group["params"]
    }


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

    def has_found(self):
        """Whether a backward pass since begin_step() has given the parameter a gradient other than 0."""
        return self._found is not None and bool(self._found)

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
