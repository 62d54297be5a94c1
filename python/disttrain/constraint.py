"""job.wrap(constraint=...): bounds for the values of parameters.

The parameter servers can't run a function of the script. So this module finds out by trial which bounds the function
has. The parameter servers clip each new value to them, right after its update, in every mode. So the values within the
bounds are the only ones: workers, evaluations, averages and checkpoints have them.

To apply any function, a trainer would have to send values between the update and the next step. That is another round
trip in each step, no checkpoint may be taken meanwhile, and in async it would undo other workers' updates. So only
bounds for each element are possible. The module finds them by trying the function on extreme and on random values. It
could be wrong about a strange function, so each step tries the function on the new values of one more parameter, and
fails if it would change them.
"""

import inspect

import numpy as np

from disttrain.connection import number
from disttrain.errors import DisttrainError
from disttrain.wrapping import kind_of

_VERIFIED = 64 * 1024  # so many elements are verified in a step, on the average
_SCALES = [10.0**power for power in (-8, -4, -2, -1, 0, 1, 3, 6)]  # of the random values that are tried at job.wrap()
_WHOLE_SCALES = [1e-8, 1e-2, 1.0]  # of the values that a large variable takes one scale at a time


class Constraint:
    def __init__(self, function, call):
        """`call(function, *names, array)` returns function(*names, value), where `value` is the array as the script's
        library has it. Both the array and the result are arrays of NumPy."""
        self._function = function
        self._call = call
        self._names = _takes_a_name(function)
        self._next = 0  # the variable to verify next
        self._allowed = 0  # so many elements may be verified before the next step

    def bounds_of(self, variables):
        """A list with (low, high) or None for each variable."""
        found = [self._find(variable) if variable.kind == "trainable" else None for variable in variables]
        if not any(found):
            raise DisttrainError(
                "job.wrap() got a constraint that changes no parameter; expected a function that returns the new value or "
                "changes it in place, such as lambda value: value.clamp(-0.01, 0.01)"
            )
        return found

    def apply(self, variable, value):
        """A new array with the values that the function returns for these."""
        names = (variable.name,) if self._names else ()
        result = self._call(self._function, *names, np.array(value))
        if result is None or np.shape(result) != variable.shape or np.asarray(result).dtype != value.dtype:
            is_array = hasattr(result, "shape") and hasattr(result, "dtype")
            what = f"the shape {list(np.shape(result))} and type {result.dtype}" if is_array else kind_of(result)
            raise DisttrainError(
                f'the function of job.wrap(constraint=...) returned {what} for the parameter "{variable.name}"; expected a '
                f"value with the shape {list(variable.shape)} and type {value.dtype}, as it got, or None if it changes the "
                "value in place"
            )
        return np.asarray(result)

    def verify(self, variables, values):
        """Fails if the function would change some of the cluster's new values, also those of a parameter without bounds.
        Each call tries some of them. The function takes a variable as a whole, so a variable of n elements waits until
        n / _VERIFIED steps allow it."""
        self._allowed += _VERIFIED
        for _ in variables:
            variable, value = variables[self._next], np.asarray(values[self._next])
            if variable.kind == "trainable":
                if value.size > self._allowed:
                    return
                self._allowed -= value.size
                if not np.array_equal(self.apply(variable, value), value, equal_nan=True):
                    found = "no bounds" if variable.bounds is None else f"the bounds {list(variable.bounds)}"
                    raise DisttrainError(
                        f'the function of job.wrap(constraint=...) changes new values of the parameter "{variable.name}", '
                        f"for which job.wrap() found {found}; expected a function that always gives the same result for the "
                        "same value"
                    )
            self._next = (self._next + 1) % len(variables)
        self._allowed = 0  # this step has tried all variables

    def _find(self, variable):
        largest = np.finfo(variable.dtype).max
        with np.errstate(all="ignore"):
            ends = [self.apply(variable, np.full(variable.shape, end, variable.dtype)) for end in (-largest, largest)]
        low, high = (float(end.flat[0]) for end in ends)
        is_same = all((end == end.flat[0]).all() for end in ends)  # a NaN isn't
        if not is_same or low > high or not self._is_clip(variable, low, high):
            raise DisttrainError(
                f'the function of job.wrap(constraint=...) doesn\'t keep each element of the parameter "{variable.name}" within '
                "bounds that are the same for all of them; expected such a function, as value.clamp(-0.01, 0.01), because the "
                "parameter servers apply it. Other projections belong into the forward pass, such as "
                "torch.nn.utils.parametrize"
            )
        bounds = (-np.inf if low == -largest else low, np.inf if high == largest else high)
        return None if bounds == (-np.inf, np.inf) else bounds

    def _is_clip(self, variable, low, high):
        """Whether the function clips random values, also such near the bounds."""
        draw = np.random.default_rng(1)
        with np.errstate(all="ignore"):
            for values in _trials(variable, low, high, draw):
                tried = np.resize(values.astype(variable.dtype), variable.shape)
                expected = np.asarray(np.clip(tried, low, high), variable.dtype)
                if not np.array_equal(self.apply(variable, tried), expected):
                    return False
        return True


def _trials(variable, low, high, draw):
    """Yields random values to try, at most as many as the variable has elements; they repeat if they are fewer. A large
    variable takes values of several scales at once, so it needs few calls of the function. The largest scale then decides
    each norm and mean. So a large variable takes small values alone, too: a function may change only small norms."""
    size = variable.elements
    finite = [end for end in (low, high) if abs(end) < np.finfo(variable.dtype).max]
    scales = [(0.0, scale) for scale in _SCALES] + [
        (end, factor * (abs(end) or 1.0)) for end in finite for factor in (1e-3, 1.0)
    ]
    draws = [center + scale * draw.standard_normal(min(size, _VERIFIED)) for center, scale in scales]
    values = np.concatenate(draws)
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]
    if size > _VERIFIED:
        for scale in _WHOLE_SCALES:
            yield scale * draw.standard_normal(_VERIFIED)


def description_of(variable):
    """The variable as the message `describe` has it."""
    bounds = [] if variable.bounds is None else [number(bound) for bound in variable.bounds]
    return [variable.name, list(variable.shape), variable.kind, variable.dtype, *bounds]


def call_with_array(function, *names_and_array):
    """Constraint's `call` for trees of arrays. The result may be an array of JAX."""
    array = names_and_array[-1]
    result = function(*names_and_array)
    return array if result is None else np.asarray(result) if hasattr(result, "shape") else result


def _takes_a_name(function):
    if not callable(function):
        raise DisttrainError(
            f"job.wrap(constraint=...) got {kind_of(function)}; expected a function of a parameter's value, or of its name and "
            "its value"
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    if required > 2 or not positional and not any(p.kind == p.VAR_POSITIONAL for p in parameters):
        raise DisttrainError(
            f"job.wrap(constraint=...) got a function with {required} parameters; expected function(value) or "
            "function(name, value)"
        )
    return required == 2
