"""The tensors of a torch module in one pair of the worker's flat arrays, the parameters and the gradients.

Parameters and buffers become views of that memory, and so does each parameter's `grad`. The backward pass then adds the
gradients up right there, and nothing is copied after it. In a step of a GPT-2 with 3.3 MB of gradients this takes
0.2 ms less than a copy after the backward pass, although the array must be set to 0 before each step.

A tensor that isn't on the CPU, or isn't of the type of its variable, can't be such a view, nor can a buffer whose elements
expand() made one place. Its new value is copied into it before each computation, and its gradient, or the buffer's new
value, out of it after each backward pass. If a script has given a parameter another tensor as its gradient, as
module.zero_grad() does, that tensor is copied as well.

The measurement: a copy after the backward pass makes the step 540 us longer, views make it 325 us longer (medians of
812 rounds, in which both and a plain step alternated at random). In a loop without computation it is the other way
round, because the backward pass of a real model leaves other data in the caches. Autograd can't write gradients to a
place of our choice without a custom allocator in C++, so one of the two costs is necessary.
"""

import math
import operator

import torch

from disttrain.errors import DisttrainError
from disttrain.torch_buffers import LARGEST_EXACT
from disttrain.torch_values import PART, without_repeats
from disttrain.value_watch import ValueWatch
from disttrain.variable import split

_grad_of = operator.attrgetter("grad")
_place_of = torch.Tensor.data_ptr
_version_of = operator.attrgetter("_version")  # of a tensor; each change of its values raises it
_needs_gradient = operator.attrgetter("requires_grad")
_SAMPLES = 4096  # of a tensor that isn't a view; so many of its values are compared in a step


class TorchArrays:
    def __init__(self, variables, tensors, begins, parameters, gradients, owner, whole_numbers, schedule):
        """`owner` is a list with one element, the same list for all arrays of a module: the TorchArrays whose gradients
        are the tensors' `grad`, or None. `whole_numbers`: indices of the state that must be exact. `schedule`: the module's
        WholeSchedule."""
        self._owner = owner
        self._variables = variables
        self._tensors = tensors
        self._flat_gradients = torch.from_numpy(gradients)
        self.values = [torch.from_numpy(view) for view in split(parameters, begins, variables)]
        self._gradient_views = split(gradients, begins, variables)
        self.gradients = list(map(torch.from_numpy, self._gradient_views))
        self._is_view = [
            t.dtype == v.dtype and t.device.type == "cpu" and not _has_repeats(t) for t, v in zip(tensors, self.values)
        ]
        self._views = [t for t, is_view in zip(tensors, self._is_view) if is_view]
        self._view_places = [v.data_ptr() for v, is_view in zip(self.values, self._is_view) if is_view]
        self._converted = [i for i, is_view in enumerate(self._is_view) if not is_view]
        self._trained = [i for i, variable in enumerate(variables) if variable.kind == "trainable"]
        self._state = [i for i, variable in enumerate(variables) if variable.kind == "state"]
        self._parameters = [tensors[i] for i in self._trained]
        # What tensor.grad of each parameter is at the beginning of a step.
        self._prepared = [self.gradients[i] if self._is_view[i] else None for i in self._trained]
        self._places = [self.gradients[i] for i in self._trained]
        self._gradient_places = list(map(_place_of, self._places))
        self._versions = []  # of these places, after clear()
        self._is_clear = False  # clear_ahead() has set the gradients of the next step to 0
        self._whole_numbers = [self.gradients[i].reshape(-1) for i in whole_numbers]
        self._schedule = schedule
        self._watch = ValueWatch(parameters, begins, variables, schedule)
        self._sampled = [i for i in self._trained if not self._is_view[i]]
        self._next_sampled = 0
        self._is_whole = False  # changed_value() compares all values

    # ---- values ----

    def attach(self, before=None):
        """Makes the module's tensors views of the arrays, after they were views of those of `before`."""
        if before is not None and before.values[0].data_ptr() == self.values[0].data_ptr():
            return
        for tensor, value, is_view in zip(self._tensors, self.values, self._is_view):
            if is_view:
                tensor.data = value
        self._owner[0] = None

    @torch.no_grad()
    def load(self):
        """Copies the values of tensors that aren't views into them."""
        for i in self._converted:
            tensor = self._tensors[i]
            value = without_repeats(self.values[i], tensor)
            without_repeats(tensor).copy_(value if tensor.is_floating_point() else value.round())

    @torch.no_grad()
    def store(self):
        """The opposite of load()."""
        for i in self._converted:
            self.values[i].copy_(self._tensors[i])

    def note_values(self, is_whole):
        """The parameters' present values are the cluster's. `is_whole`: changed_value() compares all of them."""
        self._is_whole = is_whole
        self._watch.note(is_whole)

    def changed_value(self):
        """The name of a parameter whose values the script has changed since note_values(); None: it finds none."""
        name = self._changed_tensor() if self._sampled else None
        return self._watch.changed() if name is None else name

    def _changed_tensor(self):
        """The same for tensors that aren't views."""
        if self._is_whole:
            with self._schedule.timed():
                return next((self._variables[i].name for i in self._sampled if self._is_changed(i, 1)), None)
        i = self._sampled[self._next_sampled]
        self._next_sampled = (self._next_sampled + 1) % len(self._sampled)
        stride = max(1, -(-self._variables[i].elements // _SAMPLES))
        return self._variables[i].name if self._is_changed(i, stride) else None

    def _is_changed(self, i, stride):
        found = self._tensors[i].detach().reshape(-1)[::stride].split(PART)
        expected = self.values[i].reshape(-1)[::stride].split(PART)
        return not all(map(_are_same, found, expected))

    # ---- gradients ----

    # clear(), has_gradient() and collect() run in each step, with cold caches. So in the usual case they do nothing for
    # each array, except for one loop that runs in C.

    def clear(self):
        """Sets all gradients to 0."""
        has_moved = self._take_back_gradients()
        self._own_gradients()
        # A function of job.on_evaluate() may have run a backward pass since clear_ahead().
        if has_moved or not self._is_clear or self.was_written():
            self._flat_gradients.zero_()
        self._is_clear = False
        self._versions = list(map(_version_of, self._places))

    def clear_ahead(self):
        """Does the work of the next clear() now, which does it again if the gradients were changed meanwhile."""
        self._own_gradients()
        self._flat_gradients.zero_()
        self._is_clear = True
        self._versions = list(map(_version_of, self._places))

    def _own_gradients(self):
        if self._owner[0] is self:
            return
        for tensor, grad in zip(self._parameters, self._prepared):
            tensor.grad = grad
        self._owner[0] = None if self._has_converted_parameters() else self

    def has_gradient(self):
        """Whether a backward pass has brought a gradient since clear(). A gradient that is 0 counts, too, but not one that
        the script has dropped."""
        gradients = list(map(_grad_of, self._parameters))
        if not any(map(operator.is_not, gradients, self._prepared)):
            return self.was_written()
        return any(map(self._is_new, gradients, self._places, self._versions))

    @staticmethod
    def _is_new(gradient, place, version):
        return gradient is not None and (gradient is not place or gradient._version != version)

    def was_written(self):
        """Whether something was written into the arrays of gradients since clear()."""
        return any(map(operator.ne, map(_version_of, self._places), self._versions))

    def frozen_without_gradient(self):
        """The name of a parameter that needs no gradient any more and has none in this step; None: there is none."""
        if all(map(_needs_gradient, self._parameters)):
            return None
        for i, tensor, version in zip(self._trained, self._parameters, self._versions):
            if not tensor.requires_grad and not self._is_new(tensor.grad, self.gradients[i], version):
                return self._variables[i].name
        return None

    def trained_gradients(self):
        return self._places

    def names_without_gradient(self):
        """The parameters that the first step's backward pass hasn't reached."""
        return [
            self._variables[i].name
            for i, grad in zip(self._trained, map(_grad_of, self._parameters))
            if grad is None or (grad is self.gradients[i] and grad._version == 0)
        ]

    def collect(self, done=()):
        """Copies what isn't in the array of gradients yet. `done`: indices of the variables that are there already."""
        if list(map(_place_of, self._views)) != self._view_places:
            self._refuse_moved()
        self._take_back_gradients()
        to = [self.gradients[i] for i in self._state]
        values = [self._tensors[i] for i in self._state]
        if any(map(operator.is_not, map(_grad_of, self._parameters), self._prepared)) or self._owner[0] is not self:
            self._owner[0] = None
            for i, tensor in zip(self._trained, self._parameters):
                grad, place = tensor.grad, self.gradients[i]
                if grad is place or i in done:
                    continue
                if grad is None:
                    place.zero_()  # the loss doesn't depend on this parameter
                    continue
                to.append(place)
                values.append(grad.to_dense() if grad.is_sparse else grad)
        if to:
            torch._foreach_copy_(to, values)

    def _take_back_gradients(self):
        """A script may have given a gradient other memory, by `parameter.grad.data = ...`. The array gets the new values, and
        the gradient its place there. Returns whether there was such a gradient."""
        if list(map(_place_of, self._places)) == self._gradient_places:
            return False
        for i, gradient, place in zip(self._trained, self._places, self._gradient_places):
            if gradient.data_ptr() == place:
                continue
            variable, view = self._variables[i], torch.from_numpy(self._gradient_views[i])
            if tuple(gradient.shape) != variable.shape:
                raise DisttrainError(
                    f'the gradient of "{variable.name}" has got the shape {list(gradient.shape)} by grad.data = ...; expected '
                    f"that of the parameter, {list(variable.shape)}"
                )
            view.copy_(gradient.data)
            gradient.data = view
        return True

    def may_have_large_integers(self):
        """Whether collect() may have rounded whole numbers of the state."""
        # Of each copy, its largest absolute value. The least number that is rounded becomes this one.
        return bool(self._whole_numbers) and max(map(float, torch._foreach_norm(self._whole_numbers, math.inf))) >= LARGEST_EXACT

    def _has_converted_parameters(self):
        return any(grad is None for grad in self._prepared)

    def _refuse_moved(self):
        for variable, tensor, value, is_view in zip(self._variables, self._tensors, self.values, self._is_view):
            if is_view and tensor.data_ptr() != value.data_ptr():
                raise DisttrainError(
                    f'"{variable.name}" isn\'t in the worker\'s memory any more, because the script moved, converted '
                    "or replaced it in the loop: do this before job.batches()"
                )


def _has_repeats(tensor):
    """Whether elements are one place in memory, as expand() makes them."""
    return any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape))


def _are_same(found, expected):
    """Whether a tensor has the cluster's values, as it would get them. A NaN is the same as a NaN."""
    expected = expected.to(found)
    if found.element_size() == 1:  # PyTorch can't compare these floats
        found, expected = found.float(), expected.float()
    return torch.equal(found, expected) or torch.equal(torch.nan_to_num(found), torch.nan_to_num(expected))
