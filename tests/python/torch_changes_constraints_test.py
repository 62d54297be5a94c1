"""The constraint of job.wrap(): its bounds, and the functions that have none."""

import unittest

from torch_cases import TorchCases

CASES = """
import dataclasses
from disttrain.array_model import ArrayModel
from disttrain.constraint import Constraint, call_with_array
from disttrain.variable import Variable

def bounds_of(constraint, net=None):
    return {v.name: v.bounds for v in TorchModel(nn.Linear(1, 1) if net is None else net, False, constraint).variables}
def half_of_a_tenth():
    return float(np.float32(0.05))
def a_clamp():
    return bounds_of(lambda value: value.clamp(-half_of_a_tenth(), half_of_a_tenth()))
def a_clamp_in_place():
    return bounds_of(lambda value: value.clamp_(min=0) and None if value.numel() == 0 else (value.clamp_(min=0), None)[1])
def a_clamp_of_one_parameter():
    return bounds_of(lambda name, value: value.clamp(max=0.5) if name == "weight" else value)
def a_clamp_of_a_double():
    return bounds_of(lambda value: value.clamp(-0.1, 0.1), nn.Linear(1, 1, bias=False).double())
def initial_values_within_the_bounds():
    run = Run(constraint=lambda value: value.clamp(0.0, 0.125))
    return bool((run.parameters >= 0).all() and (run.parameters <= 0.125).all() and run.parameters.any())
def a_longest_norm():
    bounds_of(lambda value: value / max(1.0, float(value.norm())), nn.Linear(3, 3))
def rounded_values():
    bounds_of(lambda value: value.round(decimals=1))
def absolute_values():
    bounds_of(lambda value: value.abs())
def bounds_by_element():
    bounds_of(lambda value: torch.minimum(value, torch.arange(value.numel()).reshape(value.shape)), nn.Linear(3, 3))
def a_constraint_that_changes_nothing():
    bounds_of(lambda value: value)
def a_constraint_that_returns_another_shape():
    bounds_of(lambda value: value.sum())
def a_constraint_that_returns_a_number():
    bounds_of(lambda value: 0.1)
def a_constraint_that_is_no_function():
    bounds_of(0.01)
def a_constraint_of_three_arguments():
    bounds_of(lambda module, name, value: value.clamp(0, 1))
def a_constraint_that_changes_with_time():
    width = [1.0]
    run = Run(constraint=lambda value: value.clamp(-width[0], width[0]))
    width[0] = 0.0
    run.begin()
def a_constraint_of_arrays():
    model = ArrayModel({"a": np.full(2, 3.0), "b": np.zeros(())}, None, lambda value: np.clip(value, -1, 1))
    return [v.bounds for v in model.variables], model.initial()[0].tolist()
class Large:
    "A parameter of ten times as many elements as are verified in a step, and a small one."
    def __init__(self, function):
        self.calls = []
        def noted(value):
            self.calls.append(value.size)
            return function(value)
        self.constraint = Constraint(noted, call_with_array)
        self.variables = [Variable("large", (640, 1024), "trainable"), Variable("small", (3,), "trainable")]
        bounds = self.constraint.bounds_of(self.variables)
        self.variables = [dataclasses.replace(v, bounds=b) for v, b in zip(self.variables, bounds)]
    def steps(self, count):
        self.calls.clear()
        for _ in range(count):
            self.constraint.verify(self.variables, [np.ones(v.shape, v.dtype) for v in self.variables])
def calls_with_a_large_parameter():
    large = Large(lambda value: np.clip(value, -1, 1))
    at_wrap = large.calls.count(655360)
    large.steps(9)
    first = large.calls.copy()
    large.steps(91)
    return [v.bounds for v in large.variables], at_wrap <= 7, first, large.calls.count(655360) in (8, 9, 10), 3 in large.calls
def a_constraint_of_a_large_parameter_that_changes_with_time():
    width = [1.0]
    large = Large(lambda value: np.clip(value, -width[0], width[0]))
    width[0] = 0.5
    large.steps(10)
def a_constraint_that_begins_with_time():
    "The function changes nothing of the large parameter at job.wrap()."
    begun = [False]
    large = Large(lambda value: np.clip(value, -0.5, 0.5) if begun[0] else np.clip(value, -1, 1) if value.size == 3 else value)
    begun[0] = True
    large.variables = large.variables[:1]
    large.steps(10)
def a_constraint_of_a_function_of_large_values(function):
    "The error for a function that works on the large parameter alone."
    try:
        Large(lambda value: np.clip(value, -1, 1) if value.size == 3 else function(value).astype(value.dtype))
    except DisttrainError as error:
        return "doesn't keep each element" in str(error)
def functions_of_small_norms():
    length = lambda value: float(np.linalg.norm(value)) or 1.0
    spread = lambda value: float(np.sqrt(np.mean(np.square(value)))) or 1.0
    return [a_constraint_of_a_function_of_large_values(function) for function in (
        lambda value: value / min(1.0, length(value)),
        lambda value: value * max(1.0, 1e-3 / spread(value)),
        lambda value: value - value.mean() if spread(value) < 0.1 else value,
        lambda value: value / 2 if length(value) < 10 else value,
        lambda value: value / 2 if 0.1 < spread(value) < 10 else value,
    )]
def a_longest_row():
    Large(lambda value: value / np.maximum(1, np.linalg.norm(value, axis=-1, keepdims=True)).astype(value.dtype))
def a_longest_column():
    Large(lambda value: value / np.maximum(1, np.linalg.norm(value, axis=0, keepdims=True)).astype(value.dtype))
def a_shortest_row():
    Large(lambda value: value / np.minimum(1, np.linalg.norm(value, axis=-1, keepdims=True)).astype(value.dtype))
"""
NO_BOUNDS = "the function of job.wrap(constraint=...) doesn't keep each element of the parameter \"weight\" within bounds"
SMALL = 0.05000000074505806  # of float32
SENTENCES = {
    "a_longest_norm": NO_BOUNDS,
    "rounded_values": NO_BOUNDS,
    "absolute_values": NO_BOUNDS,
    "bounds_by_element": NO_BOUNDS,
    "a_constraint_that_changes_nothing": "job.wrap() got a constraint that changes no parameter",
    "a_constraint_that_returns_another_shape": "returned the shape [] and type float32 for the parameter \"weight\"; expected",
    "a_constraint_that_returns_a_number": "returned an object of the class float for the parameter",
    "a_constraint_that_is_no_function": "job.wrap(constraint=...) got an object of the class float; expected a function",
    "a_constraint_of_three_arguments": "got a function with 3 parameters; expected function(value) or function(name, value)",
    "a_constraint_that_changes_with_time": 'changes new values of the parameter "0.weight", for which job.wrap() found the '
    "bounds [-1.0, 1.0]; expected a function that always gives the same result",
    "a_constraint_of_a_large_parameter_that_changes_with_time": 'changes new values of the parameter "large", for which',
    "a_constraint_that_begins_with_time": 'changes new values of the parameter "large", for which job.wrap() found no bounds',
    "a_longest_row": NO_BOUNDS.replace("weight", "large"),
    "a_longest_column": NO_BOUNDS.replace("weight", "large"),
    "a_shortest_row": NO_BOUNDS.replace("weight", "large"),
}
VALUES = {
    "a_clamp": {"weight": (-SMALL, SMALL), "bias": (-SMALL, SMALL)},
    "a_clamp_in_place": {"weight": (0.0, float("inf")), "bias": (0.0, float("inf"))},
    "a_clamp_of_one_parameter": {"weight": (-float("inf"), 0.5), "bias": None},
    "a_clamp_of_a_double": {"weight": (-0.1, 0.1)},
    "initial_values_within_the_bounds": True,
    "calls_with_a_large_parameter": ([(-1.0, 1.0), (-1.0, 1.0)], True, [], True, True),
    "functions_of_small_norms": [True] * 5,
    "a_constraint_of_arrays": ([(-1.0, 1.0), (-1.0, 1.0)], [1.0, 1.0]),
}


class TorchConstraintsTest(TorchCases, unittest.TestCase):
    cases, sentences, values = CASES, SENTENCES, VALUES


if __name__ == "__main__":
    unittest.main()
