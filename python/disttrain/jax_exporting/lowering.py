"""Turns functions of JAX into programs of StableHLO."""

import contextlib
import os
import traceback

import jax
import jax.export
import jaxlib
import numpy
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from disttrain.exporting.errors import ExportError, first_line

# The version of StableHLO's portable artifacts that the programs are written in, so that plugins since 2024 take them.
# A program that this version can't express is written in jaxlib's own version.
STABLEHLO_VERSION = "1.8.0"
# The folders of Python's own modules, of JAX and of this package.
_NOT_THE_USERS = tuple(
    os.path.join(os.path.dirname(file), "")
    for file in (os.__file__, jax.__file__, jaxlib.__file__, numpy.__file__, os.path.dirname(__file__))
)


@contextlib.contextmanager
def naming(name, platform):
    """Turns errors of JAX into an ExportError that names the program."""
    try:
        yield
    except ExportError:
        raise
    except Exception as error:
        place = _place_of(error)
        hint = ""
        if isinstance(error, jax.errors.ConcretizationTypeError | jax.errors.TracerArrayConversionError):
            hint = (
                "; only a batch has this value, so compute it with jax.numpy, as jnp.where does, or let workers run your "
                "script (model.trainer)"
            )
        raise ExportError(f"JAX can't make the program {name} for {platform}{place}: {first_line(error)}{hint}") from error


def _place_of(error):
    """The line of the user's code that failed: the innermost one outside of JAX and this package."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_NOT_THE_USERS):
            return f" at {frame.filename}:{frame.lineno}" + (f" ({frame.line})" if frame.line else "")
    return ""


def lower(function, shapes, platform, name):
    """The function as a portable artifact of StableHLO, for inputs of these shapes."""
    with naming(name, platform):
        exported = jax.export.export(jax.jit(function, keep_unused=True), platforms=[platform])(*shapes)
    if exported.nr_devices != 1:
        raise ExportError(f"the program {name} needs {exported.nr_devices} devices; expected 1: a worker has one "
                          "device, and disttrain divides the batch among workers")
    return _portable(exported.mlir_module_serialized, name)


def _portable(artifact, name):
    """Takes the names of source files out of the artifact, and writes it in a version that old plugins take."""
    with ir.Context() as context:
        stablehlo.register_dialect(context)
        context.attach_diagnostic_handler(lambda diagnostic: True)  # without it, MLIR prints what fails
        module = ir.Module.parse(
            stablehlo.deserialize_portable_artifact(context, artifact).operation.get_asm(enable_debug_info=False))
        problem = None
        for version in (STABLEHLO_VERSION, stablehlo.get_current_version()):
            try:
                return stablehlo.serialize_portable_artifact(module, version)
            except Exception as error:  # jaxlib doesn't document which
                problem = error
    raise ExportError(f"can't write the program {name} as a portable artifact of StableHLO: {problem}")
