"""Refuses losses that can't be trained: a sum over the batch, and one that depends on no parameter."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from disttrain.exporting.errors import ExportError
from disttrain.exporting.sums import is_sum


def check_loss(programs, model):
    """programs: Model.step() and Model.evaluate() by name. The errors of the user's functions come up here, too."""
    _check_gradients(programs["step"], model)
    for name in ("step", "evaluate"):
        if name in programs:
            _check_mean(programs[name], name, model)


def _check_gradients(step, model):
    """The gradient of a parameter that the loss doesn't depend on is 0, computed from no input."""
    shapes = model.shapes(model.columns.examples, "step")
    closed = jax.make_jaxpr(step)(*shapes)
    begin = 2 if model.metrics else 1  # after the loss and the accumulators
    end = begin + len(model.trainable)
    if _uses_inputs(closed.jaxpr, closed.jaxpr.outvars[begin:end]):
        return
    # The compiler leaves out all but the gradients, which are constants.
    zeros = [np.zeros(each.shape, each.dtype) for each in shapes]
    if not any(np.any(np.asarray(gradient)) for gradient in jax.jit(lambda *inputs: step(*inputs)[begin:end])(*zeros)):
        raise ExportError("export_jax: the loss of step_fn doesn't depend on any trainable variable; expected a loss that "
                          "is computed from params without jax.lax.stop_gradient")


def _uses_inputs(jaxpr, results):
    needed = {each for each in results if not isinstance(each, Literal)}
    for equation in reversed(jaxpr.eqns):
        if not needed.isdisjoint(equation.outvars):
            needed |= {each for each in equation.invars if not isinstance(each, Literal)}
    return not needed.isdisjoint(jaxpr.invars)


def _check_mean(program, name, model):
    losses = _losses_of_repeats(program, name, model)
    if losses is not None and is_sum(losses):
        raise ExportError(
            f"export_jax: the loss of {name}_fn for example_batch is {losses[0]:.6g}, and {losses[1]:.6g} if each example "
            "comes twice; expected the mean over the batch, which stays the same: use jnp.mean in place of jnp.sum"
        )


def _losses_of_repeats(program, name, model):
    """The losses of the example batch, and of its examples twice and three times. None if they can't be computed, as for
    a batch without values or a model that takes batches of one size alone."""
    values = [array for _, _, array in model.stored()]
    seed = [np.zeros(2, np.uint32)] if name == "step" else []
    loss_of = jax.jit(lambda *inputs: program(*inputs)[0])
    try:
        losses = [
            float(loss_of(*values, *(jnp.concatenate([jnp.asarray(each)] * times) for each in model.columns.values), *seed))
            for times in (1, 2, 3)
        ]
    except Exception:  # lowering finds out what is wrong
        return None
    return losses if np.isfinite(losses).all() else None
