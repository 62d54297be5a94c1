"""A torch module as the model of a job. Its parameters and buffers become views of the worker's memory.

A tensor that isn't float32 on the CPU can't be such a view. disttrain then copies the cluster's value into it before
each computation.

Gradients are copied into the worker's memory after each backward pass. They could be views, too, but then each step
would have to set them to 0, and autograd would add to them. For 50 arrays of 800,000 numbers in all this took 340 us,
and the copy takes 240 us.
"""

import numpy as np
import torch

from disttrain.errors import DisttrainError
from disttrain.overlap import Overlap
from disttrain.variable import Variable


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
            # A buffer that state_dict() leaves out, or one of flags, is a constant.
            if name in saved and buffer.dtype != torch.bool:
                self._add(name, buffer, "state")
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                self._add(name, parameter, "trainable")
        if not any(variable.kind == "trainable" for variable in self.variables):
            raise DisttrainError("the module has no parameter that requires a gradient")
        self._initial = [tensor.detach().cpu().to(torch.float32).numpy().copy() for tensor in self._tensors]
        self._kinds = [variable.kind for variable in self.variables]
        self._is_view = [t.dtype == torch.float32 and t.device.type == "cpu" for t in self._tensors]
        self._bound = {}  # key of the buffers -> (values, gradients), lists of tensors
        self._key = None
        self._now = None
        self._overlap = Overlap(self.variables, self._tensors) if overlap else None
        self._generators = torch.get_rng_state()

    def _add(self, name, tensor, kind):
        if tensor.is_complex() or tensor.layout != torch.strided or tensor.numel() == 0:
            raise DisttrainError(
                f'"{name}" is of type {tensor.dtype} and layout {tensor.layout} with {tensor.numel()} elements; '
                "expected a dense tensor of real numbers with at least one element"
            )
        self.variables.append(Variable(name, tuple(tensor.shape), kind))
        self._tensors.append(tensor)

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
        if self._overlap is not None:
            self._overlap.lay_out(begins)

    def bind(self, key, parameters, gradients):
        """From now on the model's values are these views, one for each variable. The same key means the same views."""
        if key == self._key:
            return
        if key not in self._bound:
            self._bound[key] = (
                [torch.from_numpy(view) for view in parameters],
                [torch.from_numpy(view) for view in gradients],
            )
        self._key = key
        self._now = self._bound[key]
        for tensor, value, is_view in zip(self._tensors, self._now[0], self._is_view):
            if is_view:
                tensor.data = value

    def forget(self):
        self._bound.clear()
        self._key = None

    def load(self):
        """Takes the new values before a computation."""
        with torch.no_grad():
            for tensor, value, is_view in zip(self._tensors, self._now[0], self._is_view):
                if not is_view:
                    tensor.copy_(value if tensor.is_floating_point() else value.round())

    def store(self):
        """The opposite of load(): the script has changed the tensors."""
        with torch.no_grad():
            for tensor, value, is_view in zip(self._tensors, self._now[0], self._is_view):
                if not is_view:
                    value.copy_(tensor)

    def clear_gradients(self):
        for tensor in self._tensors:
            if tensor.grad is not None:
                tensor.grad.zero_()

    def begin_step(self, announce=None):
        """`announce(end)` tells the worker that the gradients of all flat elements before `end` are final."""
        for tensor in self._tensors:
            tensor.grad = None
        if self._overlap is not None and announce is not None:
            self._overlap.begin_step(self._now[1], announce)

    @torch.no_grad()
    def end_step(self):
        """Copies the gradients, and the state's new values, into the worker's memory."""
        to, values = [], []
        copied = self._overlap.end_step() if self._overlap is not None else ()
        for i, (tensor, gradient, kind) in enumerate(zip(self._tensors, self._now[1], self._kinds)):
            if i in copied:
                continue
            value = tensor if kind == "state" else tensor.grad
            if value is None:
                gradient.zero_()  # the loss doesn't depend on this parameter
                continue
            to.append(gradient)
            values.append(value.to_dense() if value.is_sparse else value)
        torch._foreach_copy_(to, values)

    def write_gradients(self, gradients, state=None):
        raise DisttrainError("the model is a torch module: call loss.backward() and job.step(), not job.push_pull()")

    def named_views(self):
        if self._now is None:
            return {variable.name: value for variable, value in zip(self.variables, self._initial)}
        return {variable.name: value.numpy() for variable, value in zip(self.variables, self._now[0])}

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
        self._was_training = self._module.training
        self._module.eval()
        self._no_grad.__enter__()

    def __exit__(self, *error):
        self._no_grad.__exit__(*error)
        self._module.train(self._was_training)
