"""Sends a torch module's gradients while its backward pass still computes the other ones (job.wrap(overlap=True)).

A hook on each parameter runs when the parameter's gradient is final. All operations that use the parameter have then
computed their gradients, so none of them reads the parameter any more, and the worker may overwrite it.
"""

import torch

from disttrain.errors import DisttrainError
from disttrain.torch_sharing import span_of
from disttrain.torch_values import samples_of, sum_of

# The worker sends buckets of at most so many words (kMaxBucketWords in common/layout.h).
_WORDS_PER_MESSAGE = 256 * 1024
_FIRST = 2  # so many steps at the beginning compare all values: most scripts change gradients in each step


class Overlap:
    def __init__(self, variables, tensors):
        self._variables = variables
        self._tensors = tensors
        self._send = None  # announces that all gradients before a flat word are final; None outside of a step
        self._order = []  # indices of the variables, by their place in the flat arrays
        self._ends = []  # of the variables in this order
        self._gradients = []
        self._marks = {}  # index of a variable whose gradient is final -> the version and the place of its gradient
        self._values = {}  # of some of these gradients, what _values_of() returned
        self._has_values = False  # end_step() compares values, too
        self._steps = 0
        self._next = 0  # the variables before this one, in the order, are final
        self._announced = 0
        self._check_values = None
        for i, (variable, tensor) in enumerate(zip(variables, tensors)):
            if variable.kind == "trainable":
                tensor.register_post_accumulate_grad_hook(lambda tensor, i=i: self._on_gradient(i, tensor))

    def lay_out(self, begins):
        self._order = sorted(range(len(begins)), key=begins.__getitem__)
        self._ends = [begins[i] + self._variables[i].words for i in self._order]

    def begin_step(self, gradients, send, check_values, is_only_read):
        """`check_values`: is called before the first gradient is sent, because then the worker may write new values.
        `is_only_read`: the worker only reads the gradients. With train.accumulate it writes the sum of the parts there as soon
        as they are sent, so only their versions and places tell whether the script has changed them."""
        self._gradients = gradients
        self._has_values = is_only_read
        self._check_values = check_values
        self._marks.clear()
        self._values.clear()
        self._steps += 1
        self._next = 0
        self._announced = 0
        self._send = send

    def has_sent(self):
        """Whether the worker may have sent gradients of this step."""
        return self._announced > 0

    def end_step(self):
        """Returns the indices of the variables whose gradients are in the worker's memory."""
        self._send = None
        for i, mark in self._marks.items():
            gradient = self._tensors[i].grad
            is_same = gradient is not None and _mark_of(gradient) == mark
            if not is_same or (i in self._values and not torch.equal(self._values_of(gradient), self._values[i])):
                raise DisttrainError(
                    f'the gradient of "{self._variables[i].name}" was changed after loss.backward(), but with '
                    "job.wrap(overlap=True) it has been sent already; leave overlap out"
                )
        return self._marks.keys()

    def _values_of(self, gradient):
        """PyTorch doesn't count a change by `parameter.grad.data`. The first steps compare checksums of all gradients, each
        later step a sample of one."""
        return torch.tensor(sum_of(gradient)) if self._steps <= _FIRST else samples_of(gradient)

    def _on_gradient(self, i, tensor):
        if self._send is None:
            return
        if i in self._marks:
            raise DisttrainError(
                f'the parameter "{self._variables[i].name}" got a second gradient in one step, but with '
                "job.wrap(overlap=True) the first one has been sent already; leave overlap out"
            )
        if tensor.grad is not self._gradients[i]:
            with torch.no_grad():
                self._gradients[i].copy_(tensor.grad)
        self._marks[i] = _mark_of(tensor.grad)
        if self._has_values and (self._steps <= _FIRST or i == self._steps % len(self._variables)):
            if span_of(tensor.grad) is not None:
                self._values[i] = self._values_of(tensor.grad)
        while self._next < len(self._order) and self._order[self._next] in self._marks:
            self._next += 1
        end = self._ends[self._next - 1] if self._next > 0 else 0
        if end - self._announced >= _WORDS_PER_MESSAGE:
            if self._announced == 0:
                self._check_values()
            self._announced = end
            self._send(end)


def _mark_of(gradient):
    return gradient._version, gradient.data_ptr() if gradient.layout == torch.strided else None
