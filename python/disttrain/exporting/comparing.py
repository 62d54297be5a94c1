"""Compares the stages of an export with each other: the model, its trace, and the compiled program.

A trace keeps Python's numbers and branches as they were for the example, so it is compared on a batch of another size.
Most of what goes wrong raises an error while tracing or compiling; these comparisons find the rest.
"""

import torch

from disttrain.exporting.errors import ExportError, NamedErrors, first_line


def compare_trace(program, functions, of_model, of_trace, columns):
    """of_model, of_trace: functions of a list of columns that return lists of tensors. columns: of the example."""
    if not functions.batch.dynamic:
        return
    # Not a smaller batch, because batch norm doesn't take a single record.
    records = functions.batch.examples + 1
    sizes = f"on a batch of {records} records, but example_batch has {records - 1}"
    columns = [torch.cat([column, column[:1]]) for column in columns]
    hint = "; write the batch's size as x.shape[0] or -1 there, or export with dynamic_batch=False"
    with NamedErrors(functions.described.layers, f"runs {sizes}", hint=hint):
        expected, is_random = _results_of(of_model, columns)
    try:
        found = _seeded(of_trace, columns, 1)
    except Exception as error:  # whatever an operator raises
        raise ExportError(
            f"export: the traced program {program} fails {sizes}: the model or the loss fixes the batch's dimension. "
            f"Write its size as x.shape[0] or -1, or export with dynamic_batch=False ({first_line(error)})"
        ) from error
    if not _agree(expected, found, is_random):
        raise ExportError(
            f"export: the traced program {program} has another result than the model {sizes}. The model or the loss "
            "computes with the batch's size or with values of the batch in Python; write it with tensors, or export with "
            "dynamic_batch=False"
        )


def compare_compiled(program, of_trace, of_library, arguments):
    """of_library: the compiled program, a function of a list of tensors as of_trace."""
    expected, is_random = _results_of(of_trace, arguments)
    try:
        found = _seeded(of_library, arguments, 1)
    except Exception as error:  # whatever an operator raises
        raise ExportError(f"export: the compiled program {program} fails: {first_line(error)}; {_INSTEAD}") from error
    if not _agree(expected, found, is_random):
        raise ExportError(f"export: the compiled program {program} has another result than the model; {_INSTEAD}")


_INSTEAD = "AOTInductor has an error in one of the model's operators. Export to a .pt file instead"


def _results_of(function, arguments):
    """The results, and whether they depend on random numbers."""
    results = _seeded(function, arguments, 1)
    return results, not _equal(results, _seeded(function, arguments, 2), 0)


def _agree(expected, found, is_random):
    # Programs with dropout draw their random numbers in another order than the model.
    return [tensor.shape for tensor in expected] == [tensor.shape for tensor in found] and (
        is_random or _equal(expected, found, 1e-2)
    )


def _seeded(function, columns, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return [tensor.detach() for tensor in function(columns)]


def _equal(some, others, tolerance):
    """Whether the tensors are equal, up to a share of the largest value of each."""
    for one, other in zip(some, others):
        one, other = one.double(), other.double()
        scale = one.abs().nan_to_num(0, 0, 0).max() if one.numel() else 0
        if not torch.allclose(one, other, rtol=tolerance, atol=float(scale * tolerance), equal_nan=True):
            return False
    return True
