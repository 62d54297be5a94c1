"""Compares the stages of an export with each other: the model, its trace, and the compiled program.

A trace keeps Python's numbers and branches as they were for the example, so it is compared on a batch of another size.
Most of what goes wrong raises an error while tracing or compiling; these comparisons find the rest. The batches are drawn
at random (drawing.py), because an example of zeros would show nothing.

A gradient may jump where an activation such as ReLU is almost 0: rounding alone then changes it by some percent. So the
model is also run with inputs that differ in their sixth digit. The results may differ by a few times what that changes.
A compiled program whose results differ by more has an error only if the model in float64 shows that. If the model in
float64 is as far from the model, nobody can tell which result is right, and another batch is drawn. If an operator doesn't
take float64, the two results are all that is known: the export fails, but the message blames neither.

The tolerance is four times what the noise changes, between 1 % and 30 %. A fixed tolerance of 1 % refused resnet18:
rounding had moved one ReLU of layer4 across 0, which changed gradients by up to 7 %, and PyTorch's own float32
gradients differ from those in float64 as much. Norms instead of the largest difference would hide a wrong element at
the end of a loop.
"""

import torch

from disttrain.exporting.drawing import draws
from disttrain.exporting.errors import ExportError, NamedErrors, first_line, last_line
from disttrain.exporting.exact import run_exactly


def compare_trace(program, functions, of_model, of_trace):
    """of_model, of_trace: functions of a list of columns that return lists of tensors."""
    if not functions.batch.dynamic:
        return
    # Not a smaller batch, because batch norm doesn't take a single record.
    records = functions.batch.examples + 1
    sizes = f"on a batch of {records} records, but example_batch has {records - 1}"
    hint = "; write the batch's size as x.shape[0] or -1 there, or export with dynamic_batch=False"
    (columns,) = draws(functions, program, records, 1)
    with NamedErrors(functions.described.layers, f"runs {sizes}", hint=hint):
        expected, tolerance = _results_of(of_model, columns)
    found = _run(
        of_trace,
        columns,
        lambda error: f"the traced program {program} fails {sizes}: the model or the loss fixes the batch's dimension. "
        f"Write its size as x.shape[0] or -1, or export with dynamic_batch=False ({first_line(error)})",
    )
    # A trace draws its random numbers in the same order as the model.
    if not _agree(expected, found, tolerance):
        raise ExportError(
            f"export: the traced program {program} has another result than the model {sizes}. The model or the loss "
            "computes with the batch's size or with values of the batch in Python; write it with tensors, or export with "
            "dynamic_batch=False"
        )


def compare_gradients(functions, of_model, of_trace, names):
    """of_model, of_trace: functions of a list of columns that return the gradients of the parameters `names`. A trace of
    TorchScript has the operators of the forward pass alone, so it loses what the model does to the gradients."""
    (columns,) = draws(functions, "step", functions.batch.examples, 1)
    with NamedErrors(functions.described.layers, "runs"):
        expected, tolerance = _results_of(of_model, columns)
    found = _run(
        of_trace,
        columns,
        lambda error: f"the backward pass of the traced program step fails: {last_line(error)}; {_TO_PT2}",
    )
    for name, difference in zip(names, _differences(expected, found)):
        if difference > tolerance:
            raise ExportError(
                f'export: the gradient of parameter "{name}" in the traced program step differs from the model\'s: a '
                f"TorchScript file keeps neither torch.no_grad() nor hooks of the forward pass; {_TO_PT2}, or use detach() "
                "in place of torch.no_grad()"
            )


_TO_PT2 = "export to a .pt2 file"


def compare_compiled(program, functions, traced, of_library, variables):
    """traced: the GraphModule. of_library: the compiled program, a function of a list of tensors. variables: the first
    arguments of both. A compiled program adds in another order and rounds fewer results in between."""
    rounding = functions.rounding

    def of_trace(arguments):
        return traced(*arguments)

    uncertain = 0.0
    for columns in draws(functions, program, functions.batch.examples, _DRAWS):
        arguments = [*variables, *columns]
        expected, tolerance = _results_of(of_trace, arguments, rounding)
        found = _run(
            of_library,
            arguments,
            lambda error: f"the compiled program {program} fails: {first_line(error)}; {_INSTEAD}",
        )
        # Compiled programs with dropout draw their random numbers in another order.
        is_random = _difference(expected, _seeded(of_trace, arguments, 2)) > 0
        if _agree(expected, found, None if is_random else tolerance, rounding):
            return
        if [tensor.shape for tensor in expected] != [tensor.shape for tensor in found]:
            raise ExportError(f"export: the compiled program {program} has results of other shapes than the model; {_BLAME}")
        uncertain = max(uncertain, _judge(program, functions, traced, arguments, expected, found, tolerance))
    raise ExportError(
        f"export: the compiled program {program} can't be compared with the model, because rounding alone changes the model's "
        f"results by up to {uncertain:.0%}: its values grow from layer to layer, or it divides by almost 0. Give it other "
        "initial values, or export to a .pt file, which computes with PyTorch's own operators"
    )


def _judge(program, functions, traced, arguments, expected, found, tolerance):
    """Raises ExportError if the results differ by more than rounding explains. Returns by how much rounding may change them."""
    rounding = functions.rounding
    noise = max(
        _difference(expected, _seeded(lambda nudged: traced(*nudged), _nudged(arguments, seed, rounding), 1), rounding)
        for seed in range(3, 3 + _MORE_NUDGES)
    )
    tolerance = max(tolerance, 4 * noise)
    exact = run_exactly(traced, arguments)
    if exact is not None:
        noise = max(noise, _difference(exact, expected, rounding))
    differences = _differences(expected if exact is None else exact, found, rounding)
    worst = max(range(len(differences)), key=differences.__getitem__)
    if max(tolerance, 4 * noise) >= min(differences[worst], _MOST):
        return max(noise, _LEAST)
    if exact is not None:
        model, blame = f"differ by {noise:.1g} if the model computes in float64", _BLAME
    else:
        model = f"change by {noise:.1g} by rounding"
        blame = f"which of the two is right isn't known, because an operator of the model doesn't take float64. {_ELSE}"
    raise ExportError(
        f"export: the compiled program {program} has another result than the model: {functions.name_of_result(program, worst)} "
        f"differs by {differences[worst]:.2g} of its largest value, and the model's own results {model}; {blame}"
    )


_INSTEAD = "export to a .pt file instead"
_ELSE = _INSTEAD.capitalize()
_BLAME = f"AOTInductor has an error in one of the model's operators. {_ELSE}"
# Batches with which a compiled program is tried until one can be compared, and further changes of the inputs for each.
_DRAWS, _MORE_NUDGES = 4, 6


# Relative to the largest value of a tensor: what results may differ by at least and at most, and the change of inputs
# that shows how much more than the least it is.
_LEAST, _MOST, _NUDGE = 1e-2, 0.3, 1e-5
# Tensors with values up to this share of the results' largest value are noise.
_NEGLIGIBLE = 1e-6
# A model that computes in bfloat16 or float16 rounds more than these numbers are. Its change of inputs is half a unit in
# the last place, and its noise this share of a unit.
_NOISE = 1e-2


def _results_of(function, arguments, rounding=0.0):
    """The results, and by how much others with the same random numbers may differ. rounding: 0 if both are computed by the
    same operators, and so round in the same way."""
    results = _seeded(function, arguments, 1)
    nudged = max(
        _difference(results, _seeded(function, _nudged(arguments, seed, rounding), 1), rounding) for seed in (1, 2)
    )
    return results, min(max(_LEAST, 4 * nudged), _MOST)


def _run(function, arguments, failure):
    """The results of a traced or compiled program. failure: a function of the error that says what has failed."""
    try:
        return _seeded(function, arguments, 1)
    except Exception as error:  # whatever an operator raises
        raise ExportError(f"export: {failure(error)}") from error


def _nudged(arguments, seed, rounding):
    """The arguments with noise on the floating-point numbers."""
    generator = torch.Generator().manual_seed(seed)

    def nudge(tensor):
        if not tensor.is_floating_point() or not tensor.numel():
            return tensor
        scale = tensor.detach().abs().nan_to_num(0, 0, 0).max() * max(_NUDGE, rounding / 2)
        return tensor + scale * torch.randn(tensor.shape, generator=generator).to(tensor.dtype)

    return [nudge(argument) for argument in arguments]


def _agree(expected, found, tolerance, rounding=0.0):
    """tolerance: None if only the shapes matter."""
    return [tensor.shape for tensor in expected] == [tensor.shape for tensor in found] and (
        tolerance is None or _difference(expected, found, rounding) <= tolerance
    )


def _seeded(function, columns, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return [tensor.detach() for tensor in function(columns)]


def largest_difference(some, others):
    """Between two lists of tensors; infinite if their shapes differ."""
    same = [tensor.shape for tensor in some] == [tensor.shape for tensor in others]
    return _difference(some, others) if same else torch.inf


def _difference(some, others, rounding=0.0):
    return max(_differences(some, others, rounding), default=0.0)


def _differences(some, others, rounding=0.0):
    """For each two tensors the largest difference of two elements, relative to the largest value of the first tensor.
    Infinite if only one of two elements is finite."""
    pairs = [(one.double(), other.double()) for one, other in zip(some, others)]
    scales = [float(one.abs().nan_to_num(0, 0, 0).max()) if one.numel() else 0.0 for one, _ in pairs]
    # The gradient of a bias in front of a batch norm is 0 but for rounding, which isn't worth a comparison.
    least = max(scales, default=0.0) * max(_NEGLIGIBLE, rounding * _NOISE)
    found = []
    for (one, other), scale in zip(pairs, scales):
        differ = ~((one == other) | (one.isnan() & other.isnan()))
        difference = float((one - other)[differ].abs().nan_to_num(torch.inf).max()) if bool(differ.any()) else 0.0
        scale = max(scale, least)
        found.append(difference / scale if scale else torch.inf if difference else 0.0)
    return found
