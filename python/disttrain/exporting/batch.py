"""The columns of a batch: what the model, the loss and the metrics take."""

import dataclasses
import inspect
import numbers

import torch

from disttrain.exporting.errors import ExportError
from disttrain.wrapping import kind_of

DTYPES = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.uint8: "uint8",
}


@dataclasses.dataclass
class Column:
    name: str
    example: torch.Tensor
    limit: int = 0  # 0: none
    ignored: int | None = None  # a value that labels may have, too, because the loss leaves it out

    def described(self):
        """As the sidecar has it; ColumnSpec in common/model.h."""
        described = {
            "name": self.name,
            "dtype": DTYPES[self.example.dtype],
            "shape": list(self.example.shape[1:]),
            "limit": self.limit,
        }
        return described if self.ignored is None else {**described, "ignored": self.ignored}


@dataclasses.dataclass
class BatchDescription:
    columns: list
    inputs: list  # names
    labels: list  # names; empty: the loss takes the outputs alone
    labels_as_dict: bool
    dynamic: bool
    inputs_by_name: bool  # the model gets the inputs as keyword arguments

    @property
    def examples(self):
        return len(self.columns[0].example)

    def set_limits(self, finder, given):
        """`finder`: the LimitFinder, after a run of the model; `given`: the user's limits, which win."""
        if not isinstance(given, dict):
            raise ExportError(f"export: limits is {kind_of(given)}; expected a dict from names of columns to numbers of values")
        seen = {name: limit for name, limit in finder.limits.items() if name not in finder.unknown}
        by_name = {column.name: column for column in self.columns}
        for name in given:
            if name not in by_name:
                raise ExportError(f'export: limits has "{name}", but the columns are {", ".join(by_name)}')
        for name, column in by_name.items():
            if column.example.is_floating_point():
                if name in finder.limits or given.get(name) is not None:
                    raise ExportError(
                        f'export: column "{name}" has dtype {DTYPES[column.example.dtype]}, but '
                        f'{"limits names it" if name in given else "the model uses it as an index"}; expected integers, '
                        "whose limit workerd checks: make it int64, int32 or uint8 in example_batch and in the data"
                    )
                continue
            if name in given:
                column.limit = _limit(name, given[name])
            elif name in seen:
                column.limit = seen[name]
            elif column.example.dtype != torch.uint8 or name in finder.widened | finder.unknown:
                raise ExportError(
                    f'export: how large may the integers of column "{name}" be? An index out of range would end the '
                    f"worker's process, so workerd checks it. Give limits={{\"{name}\": N}} for values 0 to N - 1, or "
                    f'limits={{"{name}": None}} if the column isn\'t used as an index'
                )
            # A use that isn't known may take the value that the others leave out as an index.
            column.ignored = finder.ignored.get(name) if column.limit and name not in finder.unknown else None
            used = column.example.long()
            used = used if column.ignored is None else used[used != column.ignored]
            low, high = (int(used.min()), int(used.max())) if used.numel() > 0 else (0, 0)
            if column.limit and not 0 <= low <= high < column.limit:
                raise ExportError(
                    f'export: column "{name}" of example_batch has values from {low} to {high}; its limit is '
                    f"{column.limit}, so expected 0 to {column.limit - 1}"
                )


def _limit(name, given):
    if given is None:
        return 0
    if isinstance(given, bool) or not isinstance(given, numbers.Integral) or given < 1:
        raise ExportError(
            f'export: limits has {given!r} for column "{name}"; expected the number of values that are allowed, at least '
            "1, or None if the column isn't used as an index"
        )
    return int(given)


def _check_names(what, names):
    if names is not None and not (isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)):
        raise ExportError(f"export: {what} is {names!r}; expected a list of names of columns")


def describe_batch(example_batch, inputs, labels, dynamic, model):
    _check_names("inputs", inputs)
    _check_names("labels", [labels] if isinstance(labels, str) else labels)
    if isinstance(example_batch, (tuple, list)):
        if len(example_batch) != 2:
            raise ExportError(
                f"export: example_batch is a tuple of {len(example_batch)}; expected (inputs, labels), or a dict from "
                "column names to tensors"
            )
        label = "labels" if labels is None else labels if isinstance(labels, str) else labels[0]
        example_batch = {"inputs": example_batch[0], label: example_batch[1]}
    if not isinstance(example_batch, dict) or not example_batch:
        empty = example_batch == {}
        raise ExportError(
            f"export: example_batch is {'an empty dict' if empty else kind_of(example_batch)}; expected a tuple (inputs, labels), "
            "or a dict from column names to tensors"
        )
    columns = [Column(name, _tensor(name, value)) for name, value in example_batch.items()]
    sizes = {column.name: len(column.example) for column in columns}
    if len(set(sizes.values())) != 1:
        raise ExportError(f"export: the columns of example_batch have different numbers of records: {sizes}")
    if dynamic and next(iter(sizes.values())) < 2:
        raise ExportError("export: example_batch has 1 record; expected at least 2, or dynamic_batch=False")
    names = list(sizes)
    label_names = [] if labels is None else [labels] if isinstance(labels, str) else list(labels)
    input_names = [name for name in names if name not in label_names] if inputs is None else list(inputs)
    for what, wanted in (("labels", label_names), ("inputs", input_names)):
        for name in wanted:
            if name not in sizes:
                raise ExportError(f'export: {what} names column "{name}", but example_batch has {", ".join(names)}')
    if not input_names:
        raise ExportError("export: the model gets no column; name some in inputs=[...]")
    labels_as_dict = not (labels is None or isinstance(labels, str))
    by_name = inputs is None and set(input_names) <= _parameters_of(model)
    return BatchDescription(columns, input_names, label_names, labels_as_dict, dynamic, by_name)


def _parameters_of(model):
    """The names by which the model takes arguments."""
    try:
        parameters = inspect.signature(getattr(model, "forward", model)).parameters.values()
    except (TypeError, ValueError):  # of a compiled layer
        return set()
    return {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}


def _tensor(name, value):
    try:
        tensor = torch.as_tensor(value).detach()
    except (TypeError, ValueError, RuntimeError) as error:  # as torch finds it
        raise ExportError(
            f'export: column "{name}" of example_batch is {kind_of(value)}, which torch.as_tensor() doesn\'t take; expected '
            'one tensor or array: for several inputs pass a dict with a column for each, such as {"left": a, "right": b, '
            '"labels": y}'
        ) from error
    if tensor.dtype not in DTYPES:
        raise ExportError(
            f'export: column "{name}" has dtype {tensor.dtype}; expected one of {", ".join(DTYPES.values())}'
        )
    if tensor.dim() == 0:
        raise ExportError(f'export: column "{name}" has no dimension; its first dimension must be the batch\'s')
    if tensor.numel() == 0:
        raise ExportError(f'export: column "{name}" of example_batch has no values')
    return tensor.contiguous()
