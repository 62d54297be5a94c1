"""Batches: the records of one computation."""

import numpy as np

from disttrain.errors import DisttrainError


class Batch:
    """The fields of a batch, each an array with the batch's dimension first.

    `x, y = batch`, `batch[0]`, `batch.x` (the first field), `batch.y` (the second field), and by name:
    `batch["labels"]`, `batch.labels`, `model(**batch)`. The fields of a tuple have no names but x and y.

    With [data.columns] in job.toml, `batch["age"]` and `batch.age` are the column "age", a view of its field. An array's
    name ("inputs", "categories", "labels") comes before a column's.
    """

    def __init__(self, fields, names, examples, parts=None):
        self._fields = fields
        self._names = names
        self._parts = parts or {}  # by name: (number of the field, first value, shape)
        self.examples = examples

    def __getitem__(self, key):
        if not isinstance(key, str):
            return self._fields[key]
        if key in self._names:
            return self._fields[self._names.index(key)]
        if key in self._parts:
            return self._part(*self._parts[key])
        raise KeyError(self._unknown(key))

    def _part(self, number, first, shape):
        field = self._fields[number]
        if len(field.shape) > 1:
            end = first + int(np.prod(shape, dtype=np.int64))
            field = field[:, first:end]
        return field.reshape((field.shape[0], *shape))

    def _unknown(self, name):
        return f"the batch has no field {name}; its fields are {[*self._names, *self._parts]}"

    def __iter__(self):
        return iter(self._fields)

    def __len__(self):
        return len(self._fields)

    def map(self, function):
        """Replaces each field by function(field)."""
        self._fields = [function(field) for field in self._fields]

    def keys(self):
        return list(self._names)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._names or name in self._parts:
            return self[name]
        if name in ("x", "y"):
            index = 0 if name == "x" else 1
            if index < len(self._fields):
                return self._fields[index]
        raise AttributeError(self._unknown(name))


def collate(samples):
    """Makes a batch of a list of samples: tuples, dicts, or single values."""
    first = samples[0]
    if isinstance(first, dict):
        names = list(first)
        columns = [[sample[name] for sample in samples] for name in names]
    elif isinstance(first, (tuple, list)):
        names = ["x", "y"][: len(first)] + [str(i) for i in range(2, len(first))]
        columns = [[sample[i] for sample in samples] for i in range(len(first))]
    else:
        names = ["x"]
        columns = [samples]
    return Batch([_stack(name, column) for name, column in zip(names, columns)], names, len(samples))


def _stack(name, values):
    first = values[0]
    if hasattr(first, "detach"):  # a tensor of torch
        import torch

        try:
            return torch.stack(values)
        except (RuntimeError, TypeError) as error:
            raise _cant_stack(name, values, error) from None
    if isinstance(first, (str, bytes)):
        return values
    try:
        stacked = np.stack([np.asarray(value) for value in values])
    except ValueError as error:
        raise _cant_stack(name, values, error) from None
    if isinstance(first, float):
        return stacked.astype(np.float32)
    return stacked


def _cant_stack(name, values, error):
    shapes = [list(value.shape) for value in values if hasattr(value, "shape")]
    other = next((shape for shape in shapes if shape != shapes[0]), None)
    what = f"a sample has the shape {shapes[0]} and another one {other}" if other is not None else str(error)
    return DisttrainError(
        f'the samples\' field "{name}" can\'t be stacked: {what}; pass a function that makes a batch of a list of samples, '
        "job.batches(dataset, collate=function), such as one that pads them (torch.nn.utils.rnn.pad_sequence). "
        "job.on_evaluate() takes one, too"
    )


class Column:
    """A column of disttrain's own data, as the worker describes it."""

    def __init__(self, description):
        self.name = description["name"]
        self.is_bytes = description["dtype"] == "bytes"
        self.shape = tuple(description["shape"])
        self.is_ragged = description["ragged"]
        self.pad = description["pad"]  # stands behind shorter records of a ragged column
        self.parts = description["parts"]  # [name, first value, shape] of each of [data.columns]
        if description["dtype"] == "bfloat16":
            raise DisttrainError(f'the column "{self.name}" has values of type bfloat16, which NumPy doesn\'t have')
        self.dtype = np.dtype("u1" if self.is_bytes else description["dtype"])

    def view(self, connection, part, examples):
        """The values of a batch: an array, padded to the longest record if their lengths differ, or a list of bytes."""
        values = connection.bytes_at(*part[:3]).view(self.dtype)
        if not self.is_bytes and not self.is_ragged:
            return values.reshape((examples, *self.shape))
        ends = connection.bytes_at(*part[3:6]).view(np.uint64) if len(part) > 3 else np.zeros(0, np.uint64)
        if self.is_bytes:
            content, ends = memoryview(values), ends.tolist()
            return [bytes(content[begin:end]) for begin, end in zip([0, *ends], ends)]
        lengths = np.diff(ends.astype(np.int64), prepend=0)
        return self._padded(values, lengths // int(np.prod(self.shape[1:], dtype=np.int64)))

    def _padded(self, values, lengths):
        longest = max(1, int(lengths.max(initial=1)))
        padded = np.full((len(lengths), longest, *self.shape[1:]), self.pad, self.dtype)
        padded[np.arange(longest) < lengths[:, None]] = values.reshape((-1, *self.shape[1:]))
        return padded

    def zeros(self, examples):
        if self.is_bytes:
            return [b""] * examples
        return np.zeros((examples, *self.shape), self.dtype)
