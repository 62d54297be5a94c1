"""Exports models that are written in JAX: export_jax(step_fn, params, example_batch, "step.shlo").

The package that export_jax() writes is a zip file with StableHLO programs, a description of the model, and its initial
values. A worker compiles the programs by a PJRT plugin, which its operator names in cluster.toml, and runs them without
Python: [[worker]] device = "pjrt:/path/plugin.so".

PJRT compiles programs for fixed shapes only. So the package has each program for several batch sizes. A worker runs a
batch of another size as several parts, the largest first: 37 examples are parts of 32, 4 and 1. The gradient is the
mean of the parts' gradients, weighted by their examples; the loss and the metrics are added up likewise. This equals
the computation over the whole batch if the loss is a mean of losses of single examples. It doesn't if the examples
of a batch influence each other, as in batch normalization or a contrastive loss. For such a model let `batch_sizes`
name each size that occurs: the batch of each worker, and the smaller last batch of an epoch.
"""

import jax
import numpy as np

from disttrain.exporting import sidecar
from disttrain.exporting.errors import ExportError
from disttrain.jax_exporting import package
from disttrain.jax_exporting.arrays import (
    STATE_DTYPES,
    VARIABLE_DTYPES,
    check_names,
    check_target,
    describe_batch_sizes,
    describe_columns,
    describe_leaves,
    matches,
)
from disttrain.jax_exporting.losses import check_loss
from disttrain.jax_exporting.lowering import lower, naming
from disttrain.jax_exporting.programs import Model
from disttrain.jax_exporting.stages import cut
from disttrain.wrapping import kind_of

__all__ = ["ExportError", "export_jax"]


def export_jax(step_fn, params, example_batch, path, *, state=None, rng=False, evaluate_fn=None, predict_fn=None,
               batch_sizes=None, frozen=(), limits=None, platform="cpu"):
    """Writes a model as a package that disttrain trains: [model] program = "step.shlo" in job.toml.

    step_fn(params, batch) -> loss or (loss, metrics): the loss is the mean over the batch, a scalar. export_jax() makes
        its gradients. metrics is a dict: a scalar is a mean over the batch's examples, and the functions of
        disttrain.jax_metrics make the other kinds. With `state` the function is step_fn(params, batch, state) -> (loss,
        metrics, new state). With rng=True it gets a key of jax.random as its last argument.
    params: a pytree of arrays, such as a dict of dicts. Training begins with these values. A variable is named after
        its path: "layer0/weight". disttrain keeps float64 variables as they are, and all
        others as float32; the functions get the dtype given here.
    example_batch: a dict of arrays whose first dimension is the batch, such as {"image": ..., "label": ...}, or a pair
        (inputs, labels). The arrays are the columns of the data, in this order. Shapes and dtypes
        count; with the values the export tries whether the loss is a mean.
    path: the file to write. Its name ends in .shlo.
    state: a pytree of what a step changes without a gradient, such as batch normalization's statistics. disttrain
        averages it over the workers. Integers are exact up to 2**24.
    rng: whether step_fn needs random numbers.
    evaluate_fn(params, batch[, state]) -> loss or (loss, metrics), with step_fn's metrics. The default is step_fn. If
        step_fn needs random numbers and there is no evaluate_fn, the model can't be evaluated.
    predict_fn(params, batch[, state]) -> outputs, an array whose first dimension is the batch.
    batch_sizes: the sizes that the programs are made for, see the top of this module. The default is the size of
        example_batch, and all smaller powers of two.
    frozen: names of variables that training doesn't change. A name that ends in "/" stands for all variables below.
    limits: for columns of integers, the number of values that may occur: {"label": 10} for labels 0 to 9.
    platform: the platform for which JAX makes the program: "cpu", "cuda", "rocm" or "tpu". A program for "cpu" runs on
        most others too.
    """
    for name, function in {"step_fn": step_fn, "evaluate_fn": evaluate_fn, "predict_fn": predict_fn}.items():
        if isinstance(function, type) or not (callable(function) or function is None and name != "step_fn"):
            raise ExportError(f"export_jax: {name} is {kind_of(function)}; expected a function of params and a batch")
    check_target(path, platform)
    variables = describe_leaves(params, "params", VARIABLE_DTYPES, frozen)
    state_leaves = describe_leaves({} if state is None else state, "state", STATE_DTYPES)
    columns = describe_columns(example_batch)
    sizes = describe_batch_sizes(batch_sizes, columns.examples)
    check_names(variables.names, state_leaves.names, frozen, limits, columns)
    is_frozen = [matches(name, frozen) for name in variables.names]
    if all(is_frozen):
        raise ExportError("export_jax: no variable is left to train: params is empty, or frozen names all of it")

    model = Model(variables, state_leaves, columns, is_frozen, state is not None)
    programs = {"step": model.step(step_fn, rng)}
    if evaluate_fn is not None or not rng:
        programs["evaluate"] = model.evaluate(evaluate_fn or step_fn)
    if predict_fn is not None:
        programs["predict"] = model.predict(predict_fn)
    members = {}
    with naming("step", platform):
        check_loss(programs, model)
    with naming("step", platform):
        cuts = cut(programs["step"], {size: model.shapes(size, "step") for size in sizes}, model)
    for size, stages in cuts.items():
        for index, stage in enumerate(stages):
            members[f"stablehlo/step_{index}-{size}.mlirbc"] = lower(stage.module, stage.module.shapes, platform, "step")
    for name, function in programs.items():
        for size in sizes if name != "step" or not cuts else ():
            members[f"stablehlo/{name}-{size}.mlirbc"] = lower(function, model.shapes(size, name), platform, name)

    text = sidecar.encode_json(
        kind="stablehlo",
        library="jax",
        library_version=jax.__version__,
        cpu="",
        batch=None,
        variables=model.variable_specs(),
        aliases={},
        columns=model.column_specs(limits or {}),
        metrics=model.metrics,
        programs={name: columns.names for name in programs},
        stages={"step": cuts[sizes[0]]} if cuts else None,
    )
    values = sidecar.encode_values(model.values())
    package.write(path, {sidecar.JSON_NAME: text, sidecar.VALUES_NAME: values, **members})
