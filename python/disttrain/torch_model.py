"""A torch module as the model of a job. torch_arrays.py puts its tensors into the worker's memory."""

import operator
import sys

import numpy as np
import torch

from disttrain.errors import DisttrainError
from disttrain.overlap import Overlap
from disttrain.torch_arrays import TorchArrays
from disttrain.torch_buffers import InfiniteConstants, is_state
from disttrain.variable import Variable, kept_as, read_only


class TorchModel:
    is_torch = True

    def __init__(self, module, overlap):
        self.module = module
        self.variables = []
        self._tensors = []
        saved = module.state_dict().keys()
        # A layout has the variables in reverse order. So the gradients of the last layer come first there, and the
        # state, which is final at the end of a step, comes last.
        for name, buffer in module.named_buffers():
            if is_state(name, buffer, saved):
                self._add(name, buffer, "state")
        self._infinite = InfiniteConstants(module, saved)
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                self._add(name, parameter, "trainable")
        if not any(variable.kind == "trainable" for variable in self.variables):
            raise DisttrainError(
                f"job.wrap() got a module ({type(module).__name__}) that has no parameter that requires a gradient; expected "
                "at least one, because a job trains"
            )
        self._outside = [(name, each) for name, each in module.named_parameters() if not each.requires_grad]
        self.read_values()
        self._begins = []
        self._bound = {}  # key of the flat arrays -> TorchArrays
        self._key = None
        self._now = None
        self._owner = [None]  # see TorchArrays
        self._is_gradient_seen = False  # a backward pass has brought a gradient
        self._overlap = Overlap(self.variables, self._tensors) if overlap else None
        self._note_members()

    def _add(self, name, tensor, kind):
        if torch.nn.parameter.is_lazy(tensor):
            raise DisttrainError(
                f'"{name}" has no shape yet, because it belongs to a lazy module: run the module once before job.wrap()'
            )
        if tensor.numel() == 0:
            raise DisttrainError(f'"{name}" has no elements (shape {list(tensor.shape)}): remove it from the module')
        if tensor.is_meta:
            raise DisttrainError(
                f'job.wrap() got a module whose "{name}" is on the device meta, without values; expected values: call '
                "module.to_empty(device=...) and initialize it before job.wrap()"
            )
        if tensor.is_complex() or tensor.layout != torch.strided:
            raise DisttrainError(
                f'"{name}" is of type {tensor.dtype} and layout {tensor.layout}; expected a dense tensor of real numbers'
            )
        self.variables.append(Variable(name, tuple(tensor.shape), kind, kept_as(tensor.dtype)))
        self._tensors.append(tensor)

    def _note_members(self):
        """Notes where the module and its submodules have the tensors, for _has_other_members(). A module of torch.jit
        has no dicts of them, so there only check_unchanged() at the first gradient finds a replaced tensor."""
        kept = set(map(id, self._tensors))
        members = []
        for module in self.module.modules():
            if isinstance(module, torch.jit.ScriptModule):
                continue
            for name, child in module._modules.items():
                if child is not None and not kept.isdisjoint(map(id, (*child.parameters(), *child.buffers()))):
                    members.append((module._modules, name, child))
            for tensors in (module._parameters, module._buffers):
                members += [(tensors, name, tensor) for name, tensor in tensors.items() if id(tensor) in kept]
        self._members = [list(each) for each in zip(*members)] or [[], [], []]

    def _has_other_members(self):
        """Whether the script may have replaced a tensor since _note_members(). It runs in each step, so it loops in C."""
        holders, names, members = self._members
        return any(map(operator.is_not, map(dict.get, holders, names), members))

    def check_unchanged(self):
        """The script may change the module after wrap(), but its parameters and buffers must stay the same ones."""
        now = {**dict(self.module.named_buffers()), **dict(self.module.named_parameters())}
        for variable, tensor in zip(self.variables, self._tensors):
            what = "parameter" if variable.kind == "trainable" else "buffer"
            found = now.pop(variable.name, None)
            if found is not tensor or tuple(tensor.shape) != variable.shape:
                raise DisttrainError(
                    f'since job.wrap() the {what} "{variable.name}" was replaced by another tensor, or got another '
                    "shape: change it before job.wrap(), or in place"
                )
            if variable.kind == "trainable" and not tensor.requires_grad:
                raise DisttrainError(
                    f'since job.wrap() the parameter "{variable.name}" was frozen: freeze it before job.wrap()'
                )
        for name, tensor in now.items():
            if tensor.requires_grad:
                raise DisttrainError(
                    f'since job.wrap() the parameter "{name}" was added or unfrozen: do this before job.wrap()'
                )

    def read_values(self):
        """Takes the module's values as the initial ones. The script may load weights between wrap() and batches()."""
        self._initial = [
            tensor.detach().cpu().to(getattr(torch, variable.dtype)).numpy().copy()
            for variable, tensor in zip(self.variables, self._tensors)
        ]
        self._generators = torch.get_rng_state()
        self._infinite.note_values()

    def initial(self):
        return self._initial

    def reset(self):
        """Undoes the rehearsal: buffers, gradients and random numbers are as before it."""
        with torch.no_grad():
            for tensor, value, variable in zip(self._tensors, self._initial, self.variables):
                tensor.grad = None
                if variable.kind == "state":
                    tensor.copy_(torch.from_numpy(value))
        torch.set_rng_state(self._generators)

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
            self._bound[key] = TorchArrays(self.variables, self._tensors, self._begins, *arrays(), self._owner)
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
        self._now.load()

    def store(self):
        """The opposite of load(): the script has changed the tensors."""
        self._now.store()

    def clear_gradients(self):
        """Sets the gradients to 0, if a backward pass has changed them."""
        if self._now is None:
            self.module.zero_grad()
        elif self._now.has_gradient():
            self._now.clear()

    def begin_step(self, announce=None):
        """`announce(end)` tells the worker that the gradients of all flat elements before `end` are final."""
        self._now.clear()
        if self._overlap is not None and announce is not None:
            self._overlap.begin_step(self._now.gradients, announce)

    @torch.no_grad()
    def end_step(self):
        """Makes sure that the gradients and the state's new values are in the worker's memory. In the rehearsal there is
        no such memory yet."""
        is_rehearsal = self._now is None
        if self._has_other_members():
            self.check_unchanged()
            self._note_members()
        for name, tensor in self._outside:
            if tensor.grad is not None:
                raise DisttrainError(
                    f'the parameter "{name}" got a gradient, but it was frozen at job.wrap(), so the job doesn\'t train '
                    "it: set requires_grad = True before job.wrap(), or leave it frozen"
                )
        self._infinite.check()
        if is_rehearsal and any(tensor.grad is not None for tensor in self._tensors):
            return
        if is_rehearsal or not self._now.has_gradient():
            raise DisttrainError(
                "job.step() found no gradient in any parameter of the module: call loss.backward() before job.step()"
            )
        if not self._is_gradient_seen:
            self._is_gradient_seen = True
            self.check_unchanged()
            self._warn_of_missing_gradients()
        self._now.collect(self._overlap.end_step() if self._overlap is not None else ())

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
        return _Evaluating(self.module)

    @staticmethod
    def to_tensor(value):
        """Arrays of numbers become tensors that share their memory; other values stay."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            return torch.from_numpy(value)
        return value


class _Evaluating:
    """The module in evaluation mode, without gradients."""

    def __init__(self, module):
        self._module = module
        self._no_grad = torch.no_grad()

    def __enter__(self):
        self._trained = [module for module in self._module.modules() if module.training]
        self._module.eval()
        self._no_grad.__enter__()

    def __exit__(self, *error):
        self._no_grad.__exit__(*error)
        # Not train(), because it would switch layers that the script keeps in evaluation mode.
        for module in self._trained:
            module.training = True
