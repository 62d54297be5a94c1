"""Finds gradients that are still scaled by a torch.amp.GradScaler.

A hook on each scaled loss tells when a backward pass begins there, and a hook on each parameter, from the first scaled loss
on, which gradients the pass reaches. So a scaled loss of another module, and gradients that torch.autograd.grad() returns, are
no concern.
"""

import functools
import math
import types
import weakref

import torch

from disttrain.errors import DisttrainError

_watches = weakref.WeakSet()  # those of modules whose loop runs


class ScalerWatch:
    """Whether the gradients of a step are still scaled."""

    def __init__(self, names, tensors):
        """The trained parameters."""
        self._names = names
        self._tensors = tensors
        self._has_hooks = False
        self.begin_step()

    def begin_loop(self):
        _follow_scalers()
        _watches.add(self)

    def end_loop(self):
        _watches.discard(self)

    def begin_step(self):
        """What was scaled before is no part of the step, as the loss of an evaluation."""
        self._scaler = None  # whose scale() the loop has called in this step
        self._is_in_pass = False  # a backward pass of a scaled loss is under way
        self._scaled = {}  # id of a parameter that such a pass reached -> (its gradient, the gradient's version)
        self._has_read = False  # the loop may itself have divided gradients in this step: it has called get_scale()
        self._has_read_in_pass = False  # the same in such a pass, as hooks do that divide gradients
        self._size = None  # of the last parameter's gradient, after the newest backward pass since scale()

    def note(self, method, scaler, result, *arguments):
        if method == "scale":
            self._scaler, self._size = scaler, None
            self._add_hooks()
            self._follow(result)
        elif method == "unscale_":
            unscaled = {id(each) for group in arguments[0].param_groups for each in group["params"]}
            for each in unscaled:
                self._scaled.pop(each, None)
            # The optimizer may have copies of the parameters, and the script may copy their gradients back.
            self._has_read = self._has_read or unscaled.isdisjoint(map(id, self._tensors))
        else:
            self._has_read = True
            self._has_read_in_pass = self._has_read_in_pass or self._is_in_pass

    def _add_hooks(self):
        if self._has_hooks:
            return
        self._has_hooks = True
        mine = weakref.ref(self)

        def on_gradient(tensor):
            watch = mine()
            if watch is not None and watch._scaler is not None:
                watch._note_gradient(tensor)

        for tensor in self._tensors:
            tensor.register_post_accumulate_grad_hook(on_gradient)

    def _follow(self, scaled):
        """Notes the backward passes of what scale() returned."""
        if isinstance(scaled, (list, tuple)):
            for each in scaled:
                self._follow(each)
        elif isinstance(scaled, torch.Tensor) and scaled.requires_grad:
            mine = weakref.ref(self)

            def on_pass(_):
                watch = mine()
                if watch is not None:
                    watch._is_in_pass = True
                    torch.autograd.Variable._execution_engine.queue_callback(watch._end_pass)

            scaled.register_hook(on_pass)

    def _end_pass(self):
        self._is_in_pass = False

    def _note_gradient(self, tensor):
        gradient = tensor.grad
        if self._is_in_pass:
            # A hook of the script on the parameter may have divided the gradient.
            if not tensor._backward_hooks:
                self._scaled[id(tensor)] = gradient, gradient._version
        elif id(tensor) in self._scaled:
            # Another pass has added its gradient to the scaled one, unless the script has dropped or changed that one before.
            before, version = self._scaled.pop(id(tensor))
            if gradient is before and gradient._version == version + 1:
                self._scaled[id(tensor)] = gradient, gradient._version
        if tensor is self._tensors[-1]:
            self._size = _size_of(gradient)

    def check(self):
        scaler = self._scaler
        if scaler is None or scaler._scale is None or not self._scaled or self._has_read_in_pass:
            return
        name = next((name for name, tensor in zip(self._names, self._tensors) if self._is_scaled(tensor)), None)
        if name is None:
            return
        scale = float(scaler._scale)
        if scale == 1.0 or (self._has_read and self._is_divided(scale)):
            return
        what = "the gradients are" if len(self._scaled) == len(self._tensors) else f'the gradient of "{name}" is'
        raise DisttrainError(
            f"{what} {scale:g} times too large, because the loop scaled the loss by a torch.amp.GradScaler: "
            "take the scaler out, and call loss.backward(). Autocast with bfloat16 needs none. For float16 call "
            "scaler.unscale_(optimizer) before job.step(), with an optimizer of torch.optim that has the module's parameters "
            "and makes no step"
        )

    def _is_scaled(self, tensor):
        return id(tensor) in self._scaled and tensor.grad is not None and float(_size_of(tensor.grad)) != 0

    def _is_divided(self, scale):
        """Whether the script itself seems to have divided the gradients by get_scale(), which it may also read for a log."""
        gradient = self._tensors[-1].grad
        if self._size is None or gradient is None:
            return True  # the backward pass didn't reach this parameter, so nobody knows
        before, after = float(self._size), float(_size_of(gradient))
        if not (0 < before < math.inf and after < math.inf):
            return True
        return (after / before < scale**-0.5) == (scale > 1)


def _size_of(gradient):
    """The sum of the absolute values."""
    values = gradient.detach()
    values = values.coalesce().values() if values.is_sparse else values
    return torch.linalg.vector_norm(values, 1, dtype=None if values.dtype == torch.float64 else torch.float32)


def _follow_scalers():
    """Lets the methods of all scalers, also of those that the loop makes, tell the watches about each call. A class may have
    methods of its own that don't call those of GradScaler."""
    kinds = [torch.amp.GradScaler]
    for kind in kinds:
        kinds += kind.__subclasses__()
        for name in ("scale", "unscale_", "get_scale"):
            method = vars(kind).get(name)
            if isinstance(method, types.FunctionType) and not hasattr(method, "notes_for_disttrain"):
                setattr(kind, name, _noting(name, method))


def _noting(name, method):
    @functools.wraps(method)
    def call(scaler, *arguments, **options):
        result = method(scaler, *arguments, **options)
        if scaler.is_enabled():
            for watch in list(_watches):
                watch.note(name, scaler, result, *arguments, *options.values())
        return result

    call.notes_for_disttrain = True
    return call
