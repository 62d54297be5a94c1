"""What a model of JAX consists of: its variables, its state, and the columns of its batches."""

import dataclasses
import numbers

import jax
import numpy as np

from disttrain.exporting.errors import ExportError, check_folder, first_line
from disttrain.wrapping import kind_of

VARIABLE_DTYPES = ("float32", "float64", "float16", "bfloat16")
STATE_DTYPES = VARIABLE_DTYPES + ("int32", "int64", "uint8", "bool")
COLUMN_DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8")
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
PAIR_NAMES = ("inputs", "labels")  # the columns of a batch that is a pair


@dataclasses.dataclass
class Leaves:
    """The arrays of a pytree, in its order, with their names."""

    names: list
    arrays: list
    tree: jax.tree_util.PyTreeDef


@dataclasses.dataclass
class Columns:
    """The arrays of a batch, in the order in which the user named them. So they match the columns of the data."""

    names: list
    arrays: list  # jax.ShapeDtypeStruct
    values: list  # as the user gave them
    is_dict: bool

    @property
    def examples(self):
        return self.arrays[0].shape[0]

    def batch(self, arrays):
        """A batch as the user's functions get it."""
        return dict(zip(self.names, arrays)) if self.is_dict else tuple(arrays)


def carried_dtype(array):
    """The dtype in which an array that isn't frozen enters a program: the cluster keeps float64 as it is, and all other
    types as float32."""
    return np.dtype(np.float64 if array.dtype == np.float64 else np.float32)


def _path_name(path, what):
    return jax.tree_util.keystr(path, simple=True, separator="/") or what


def describe_leaves(tree, what, dtypes, frozen=()):
    """The arrays of params or state. Refuses what disttrain can't keep, and numbers that aren't finite. Arrays whose names
    match `frozen` may be infinite, as a mask of attention is."""
    try:
        flat, structure = jax.tree_util.tree_flatten_with_path(tree)
    except (TypeError, ValueError) as error:  # the keys of a dict have several types
        raise ExportError(f"{what} isn't a tree of arrays: {first_line(error)}; expected texts as keys") from error
    leaves = Leaves([], [], structure)
    for path, leaf in flat:
        name = _path_name(path, what)
        array = np.asarray(leaf)
        array = array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)
        if array.dtype.name not in dtypes:
            raise ExportError(f'{what}: "{name}" has dtype {array.dtype}; expected one of {", ".join(dtypes)}')
        if array.size == 0:
            raise ExportError(f'{what}: "{name}" has shape {array.shape}; expected at least one element')
        carried = array.astype(carried_dtype(array))
        is_mask = matches(name, frozen) and not np.isnan(carried).any()
        if not is_mask and not np.isfinite(carried).all():
            raise ExportError(f'{what}: "{name}" has a value that is NaN, infinite, or too large for float32; export '
                              "the model with finite values")
        leaves.names.append(name)
        leaves.arrays.append(array)
    return leaves


def describe_columns(example_batch):
    """The columns of a batch. JAX without jax_enable_x64 takes int64 as int32, and float64 as float32."""
    if isinstance(example_batch, (tuple, list)) and len(example_batch) == 2:
        named = dict(zip(PAIR_NAMES, example_batch))
    elif isinstance(example_batch, dict) and example_batch:
        named = example_batch
    else:
        raise ExportError("example_batch is neither a dict of arrays nor a pair (inputs, labels)")
    columns = Columns(list(named), [], list(named.values()), isinstance(example_batch, dict))
    for name, array in named.items():
        shape = np.shape(array)
        dtype = jax.dtypes.canonicalize_dtype(getattr(array, "dtype", None) or np.asarray(array).dtype)
        if dtype.name not in COLUMN_DTYPES:
            raise ExportError(f'example_batch: column "{name}" has dtype {dtype}; expected one of '
                              f'{", ".join(COLUMN_DTYPES)}')
        if not shape or (columns.arrays and shape[0] != columns.examples):
            raise ExportError(f'example_batch: column "{name}" has shape {shape}; expected the number of examples as '
                              "first dimension, the same in all columns")
        if 0 in shape:
            raise ExportError(f'example_batch: column "{name}" has shape {shape}; expected at least one element')
        columns.arrays.append(jax.ShapeDtypeStruct(shape, dtype))
    return columns


def describe_batch_sizes(batch_sizes, example_size):
    if batch_sizes is None:
        return sorted({example_size, *(2**i for i in range(example_size.bit_length()))}, reverse=True)
    sizes = list(batch_sizes) if np.iterable(batch_sizes) and not isinstance(batch_sizes, str) else []
    if not sizes or not all(_is_count(size) for size in sizes):
        raise ExportError(f"batch_sizes is {batch_sizes!r}; expected a list of whole numbers, each at least 1, such as "
                          "[64, 32]")
    return sorted({int(size) for size in sizes}, reverse=True)


def _is_count(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and value >= 1


def matches(name, patterns):
    return any(name == pattern or (pattern.endswith("/") and name.startswith(pattern)) for pattern in patterns)


def check_target(path, platform):
    if platform not in PLATFORMS:
        raise ExportError(f"export_jax: platform is {platform!r}; expected one of {', '.join(PLATFORMS)}")
    if not str(path).endswith(".shlo"):
        raise ExportError(f'export_jax: the file name "{path}" doesn\'t end in .shlo; expected a name such as step.shlo')
    check_folder(str(path))


def check_names(variables, state, frozen, limits, columns):
    if isinstance(frozen, str):
        raise ExportError(f'frozen is the text "{frozen}"; expected a list of names, such as ["{frozen}"]')
    for name in variables + state:
        if (variables + state).count(name) > 1:
            raise ExportError(f'params and state have two arrays with the name "{name}"; rename one of them')
    for pattern in frozen:
        if not any(matches(name, [pattern]) for name in variables):
            raise ExportError(f'frozen: no variable is named "{pattern}"; the variables are {", ".join(variables)}')
    if not isinstance(limits, (dict, type(None))):
        raise ExportError(f'limits is {kind_of(limits)}; expected a dict of columns and numbers, such as {{"labels": 10}}')
    for name in limits or {}:
        if name not in columns.names:
            raise ExportError(f'limits: no column is named "{name}"; the columns are {", ".join(columns.names)}')
        dtype = columns.arrays[columns.names.index(name)].dtype
        if not _is_count(limits[name]) or not np.issubdtype(dtype, np.integer):
            raise ExportError(f'limits has {limits[name]!r} for column "{name}" of {dtype}; expected the number of values '
                              "that are allowed, at least 1, for a column of integers")
        values = np.asarray(columns.values[columns.names.index(name)])
        if values.min() < 0 or values.max() >= limits[name]:
            raise ExportError(f'column "{name}" of example_batch has values from {values.min()} to {values.max()}; its limit '
                              f"is {limits[name]}")
