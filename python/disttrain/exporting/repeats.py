"""Checks that a model computes the same when it runs again: a program computes what one run did.

Each program runs twice as it is, with the same seed of PyTorch's random numbers. What differs between these runs comes from
something that a program doesn't have: random numbers of other modules, the clock, or what forward() keeps in Python.
"""

import contextlib
import dataclasses

import torch

from disttrain.exporting.comparing import largest_difference
from disttrain.exporting.decisions import DecisionWatch
from disttrain.exporting.errors import ExportError, NamedErrors, NoGradientError
from disttrain.exporting.randomness import DrawFinder, GeneratorStates, RandomWatch, existing_generators
from disttrain.exporting.writes import WriteWatch, existing_tensors

_TRAINER = "let workers run your script (model.trainer)"
_INSTEAD = f"draw random numbers with PyTorch (torch.rand, torch.randint), or {_TRAINER}"
# Sums of several threads may add in another order.
_ROUNDING = 1e-5


@dataclasses.dataclass
class _Run:
    results: list
    random: RandomWatch
    writes: WriteWatch
    generators: GeneratorStates
    attributes: dict  # of the layers and the loss: DescribedModel.attributes()


def check_repeats(functions):
    """Runs the programs. Raises ExportError if one has a side effect or another result in its second run. Notes the
    columns that the model writes to."""
    existing = existing_tensors(), existing_generators()
    for program in ("step", "evaluate", "predict"):
        first, second = _run(functions, program, *existing), _run(functions, program, *existing)
        functions.written_columns |= first.writes.columns
        drawn_from = first.generators.changed(second.generators)
        if drawn_from is not None:
            finder = DrawFinder(functions.described.layers, drawn_from)
            _run(functions, program, *existing, finder)
            raise ExportError(f"export: {finder.text}, and a program would keep those that the export drew; {_INSTEAD}")
        _check(first, second)


def _run(functions, program, tensors, generators, also=contextlib.nullcontext()):
    """Runs a program, and enters `also` meanwhile."""
    described = functions.described
    arguments = [argument.clone() for argument in functions.example_arguments(program)]
    writes, watched, decisions = WriteWatch(described, tensors), RandomWatch(described.layers), DecisionWatch(described.layers)
    functions.watch = writes
    try:
        with torch.random.fork_rng(devices=[]), NamedErrors(described.layers, "runs"):
            torch.manual_seed(1)
            with decisions, writes, watched, also:
                results = getattr(functions, program)(*arguments)
    except NoGradientError as error:
        decisions.check_gradient(error)
        raise
    finally:
        functions.watch = None
    results = [each.detach() for each in results]
    run = _Run(results, watched, writes, GeneratorStates(generators), described.attributes())
    if writes.problem:
        raise ExportError(f"export: {writes.problem}")
    if watched.seeding and writes.draws:
        raise ExportError(
            f"export: {watched.seeding}, and a program draws its random numbers by the job's seed alone; let forward() draw "
            f"without a seed of its own, or {_TRAINER}"
        )
    if watched.problem:
        raise ExportError(f"export: {watched.problem}, and a program would keep what the export got; take it out, or {_TRAINER}")
    return run


def _check(first, second):
    changed = [
        (owner, value, second.attributes[owner]) for owner, value in first.attributes.items() if owner in second.attributes
    ]
    for (layer, name), before, now in changed:
        if not isinstance(before, torch.Tensor) and repr(before) != repr(now):
            raise ExportError(
                f'export: {layer} changes its attribute "{name}" in each run (from {before} to {now}), and a program would '
                "keep the number that it has now; make it a buffer (register_buffer) and compute with tensors"
            )
    if largest_difference(first.results, second.results) <= _ROUNDING:
        return
    for (layer, name), before, now in changed:
        if isinstance(before, torch.Tensor) and isinstance(now, torch.Tensor) and largest_difference([before], [now]) > 0:
            raise ExportError(
                f'export: {layer} keeps a tensor in its attribute "{name}", which changes in each run, and a program would keep '
                "the one that it has now; make it a buffer (register_buffer)"
            )
    raise ExportError(
        "export: the model has another result when it runs again on the same batch with the same random numbers of PyTorch: "
        "it takes something from Python that changes, such as random numbers of another module, or a value that forward() "
        f"keeps; {_INSTEAD}, or make the value a buffer"
    )
