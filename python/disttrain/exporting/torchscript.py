"""Writes a TorchScript file (.pt): the model's forward pass, loss and metrics, traced. workerd adds the backward pass."""

import contextlib
import os
import pathlib
import re
import tempfile
import warnings

import torch

from disttrain.exporting import sidecar, torch_sidecar
from disttrain.exporting.comparing import compare_gradients, compare_trace
from disttrain.exporting.decisions import DecisionWatch
from disttrain.exporting.errors import ExportError, NamedErrors, first_line
from disttrain.exporting.model import TRAINABLE
from disttrain.exporting.programs import as_rows

PROGRAMS = ("step", "evaluate", "predict")


def write(path, functions, cpu, say):
    if cpu is not None:
        raise ExportError("export: cpu is for compiled programs (.pt2); a TorchScript file runs on all processors")
    say("export: tracing step, evaluate and predict")
    with _unchanged(functions.described.model):
        traced = _trace(functions)
        _compare(functions, traced)
    with _unchanged(functions.described.model):
        text, values = torch_sidecar.encode(functions, "torchscript", "", PROGRAMS)
        _save(path, traced, {sidecar.JSON_NAME: text, sidecar.VALUES_NAME: values})
    say(f"export: wrote {path}: {os.path.getsize(path):,} bytes")


class _Programs(torch.nn.Module):
    """The module that is saved. Its methods take columns in the order of Functions.columns_of()."""

    def __init__(self, functions):
        super().__init__()
        self.model = functions.described.model
        if isinstance(functions.described.loss, torch.nn.Module):
            self.loss = functions.described.loss
        # A list hides the object from torch.jit.
        self.__dict__["_hidden"] = [functions]

    def step(self, *columns):
        """The mean loss, from which workerd computes the gradients, and the accumulators."""
        return self._score("step", True, columns)

    def evaluate(self, *columns):
        return self._score("evaluate", False, columns)

    def predict(self, *columns):
        functions = self._hidden[0]
        functions.described.set_training(False)
        return as_rows(functions.outputs_of(functions.run_model(dict(zip(functions.columns_of("predict"), columns)))))

    def _score(self, program, training, columns):
        functions = self._hidden[0]
        functions.described.set_training(training)
        columns = dict(zip(functions.columns_of(program), columns))
        loss, outputs = functions.forward(columns)
        return loss.mean(), functions.accumulate(outputs, columns)


def _examples(functions):
    return {
        program: tuple(functions.columns[name].example for name in functions.columns_of(program)) for program in PROGRAMS
    }


def _trace(functions):
    programs, examples, layers = _Programs(functions), _examples(functions), functions.described.layers
    watch = DecisionWatch(layers)
    with torch.no_grad(), NamedErrors(layers, "runs"), watch:
        for program, columns in examples.items():
            getattr(programs, program)(*columns)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with NamedErrors(layers, "is traced by TorchScript", hint="; try to export to a .pt2 file"):
            traced = torch.jit.trace_module(programs, examples, check_trace=False)
    watch.check(told)
    return traced


def _compare(functions, traced):
    programs = _Programs(functions)

    def results_of(module, program):
        def run(columns):
            with torch.no_grad(), _unchanged(functions.described.model):
                results = getattr(module, program)(*columns)
            return results if isinstance(results, tuple) else (results,)

        return run

    for program in PROGRAMS:
        compare_trace(program, functions, results_of(programs, program), results_of(traced, program))
    _compare_gradients(functions, programs, traced)


def _compare_gradients(functions, programs, traced):
    trainable = functions.described.of_kind(TRAINABLE)
    parameters = [variable.tensor for variable in trainable]

    def gradients_of(module):
        def run(columns):
            with torch.enable_grad(), _unchanged(functions.described.model):
                loss, _ = module.step(*columns)
                return torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)

        return run

    names = [variable.name for variable in trainable]
    compare_gradients(functions, gradients_of(programs), gradients_of(traced), names)


@contextlib.contextmanager
def _unchanged(model):
    """Restores the buffers, which a training forward changes."""
    kept = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
    try:
        yield
    finally:
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                buffer.copy_(kept[name])


def _save(path, traced, members):
    try:
        with tempfile.TemporaryDirectory(prefix=".disttrain-export-", dir=os.path.dirname(path) or ".") as folder:
            unfinished = pathlib.Path(folder) / os.path.basename(path)
            torch.jit.save(traced, str(unfinished), _extra_files=members)
            os.replace(unfinished, path)
    except RuntimeError as error:  # torch has no narrower class for this
        function = re.search(r"Could not export Python function call '(\w+)'", str(error))
        what = f"the model or the loss calls the autograd.Function {function[1]}" if function else first_line(error)
        hint = ". torch.utils.checkpoint makes such calls; take it out, or" if function else ";"
        raise ExportError(f"export: TorchScript can't save the programs: {what}{hint} export to a .pt2 file") from error
    except OSError as error:
        raise ExportError(f"export: can't write {path}: {error.strerror}") from None
