"""Finds gradients that are still scaled by a torch.amp.GradScaler."""

import functools
import math
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
        self.begin_step()
        mine = weakref.ref(self)

        def on_gradient(tensor):
            watch = mine()
            if watch is not None and watch._scaler is not None:
                watch._size = _size_of(tensor.grad)

        tensors[-1].register_post_accumulate_grad_hook(on_gradient)

    def begin_loop(self):
        _follow_scalers()
        _watches.add(self)

    def end_loop(self):
        _watches.discard(self)

    def begin_step(self):
        """What was scaled before is no part of the step, as the loss of an evaluation."""
        self._scaler = None  # whose scale() the loop has called in this step
        self._unscaled = set()  # ids of the parameters whose gradients unscale_() has divided
        self._has_read = False  # the loop has called get_scale() in this step
        self._size = None  # of the last parameter's gradient, after the newest backward pass since scale()

    def note(self, method, scaler, *arguments):
        if method == "scale":
            # Each of several losses may have an optimizer of its own.
            if all(id(tensor) in self._unscaled for tensor in self._tensors):
                self._unscaled = set()
            self._scaler, self._size = scaler, None
        elif method == "unscale_":
            self._unscaled.update(id(each) for group in arguments[0].param_groups for each in group["params"])
        else:
            self._has_read = True

    def check(self):
        scaler = self._scaler
        if scaler is None or scaler._scale is None or float(scaler._scale) == 1.0:
            return
        scale = float(scaler._scale)
        name = next((name for name, tensor in zip(self._names, self._tensors) if self._is_scaled(tensor)), None)
        if name is None or (self._has_read and self._is_divided(scale)):
            return
        what = f'the gradient of "{name}" is' if self._unscaled else "the gradients are"
        raise DisttrainError(
            f"{what} {scale:g} times too large, because the loop scaled the loss by a torch.amp.GradScaler: "
            "take the scaler out, and call loss.backward(). Autocast with bfloat16 needs none. For float16 call "
            "scaler.unscale_(optimizer) before job.step(), with an optimizer of torch.optim that has the module's parameters "
            "and makes no step"
        )

    def _is_scaled(self, tensor):
        return id(tensor) not in self._unscaled and tensor.grad is not None and float(_size_of(tensor.grad)) != 0

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
    values = gradient.detach()
    return (values.coalesce().values() if values.is_sparse else values).abs().sum(dtype=torch.float32)


@functools.cache  # once in a process
def _follow_scalers():
    """Lets the methods of all scalers, also of those that the loop makes, tell the watches about each call."""
    for name in ("scale", "unscale_", "get_scale"):
        setattr(torch.amp.GradScaler, name, _noting(name, getattr(torch.amp.GradScaler, name)))


def _noting(name, method):
    @functools.wraps(method)
    def call(scaler, *arguments, **options):
        result = method(scaler, *arguments, **options)
        if scaler.is_enabled():
            for watch in list(_watches):
                watch.note(name, scaler, *arguments, *options.values())
        return result

    return call
