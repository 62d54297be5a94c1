"""Draws batches on which programs are compared with the model.

The example's own values may hide a difference, or make one: of an example of zeros all inputs of a max pooling are equal, so
its gradient may go to any of them, and a batch norm divides by almost 0. So the columns are drawn at random. Floats lie
within the example's range. Integers, and floats that are whole numbers, are values that the example has, because they may be
classes or indices. If all values of a column are the same, other values near them are drawn, as far as the limit of the
column allows.
"""

import torch

# Of a column whose values are all the same and that has no limit: the relative range of the numbers that are drawn.
_SPREAD = 0.5


def draws(functions, program, records, count):
    """Yields `count` lists of columns of so many records for a program. The model takes each of them, and returns finite
    numbers if it does so for the example."""
    columns = [functions.columns[name] for name in functions.columns_of(program)]
    for seed in range(1, count + 1):
        generator = torch.Generator().manual_seed(seed)
        for draw in (_draw, _resample):
            drawn = [draw(column, records, generator) for column in columns]
            if _takes(functions, program, drawn):
                yield drawn
                break
        else:
            yield [_repeated(column.example, records) for column in columns]


def _takes(functions, program, columns):
    variables = [variable.carried.clone() for variable in functions.described.variables]
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            results = getattr(functions, program)(*variables, *[column.clone() for column in columns])
    except Exception:  # whatever an operator raises for values that the model doesn't take
        return False
    return all(bool(torch.isfinite(result).all()) for result in results)


def _draw(column, records, generator):
    example = column.example
    shape = (records, *example.shape[1:])
    if example.is_floating_point():
        values = example.double()
        finite = values[values.isfinite()]
        if not finite.numel():
            return _repeated(example, records)
        low, high = float(finite.min()), float(finite.max())
        if low < high and bool((finite == finite.round()).all()):
            return _choice(finite.unique(), shape, generator).to(example.dtype)
        if low == high:
            # 0 and 1 may be a mask or a probability.
            low, high = (0.0, 1.0) if low in (0, 1) else sorted((low * (1 - _SPREAD), low * (1 + _SPREAD)))
        drawn = low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
        return torch.where(_repeated(values, records).isfinite(), drawn, _repeated(values, records)).to(example.dtype)
    values = example.unique()
    if len(values) == 1 and column.limit:
        values = torch.arange(column.limit)
    elif len(values) == 1 and example.dtype == torch.uint8:
        values = torch.arange(256)
    return _choice(values, shape, generator).to(example.dtype)


def _resample(column, records, generator):
    """Each place of a record gets values that the example has at this place."""
    example = column.example
    chosen = torch.randint(len(example), (records, *example.shape[1:]), generator=generator)
    return example.gather(0, chosen)


def _choice(values, shape, generator):
    return values[torch.randint(len(values), shape, generator=generator)]


def _repeated(tensor, records):
    return tensor[torch.arange(records) % len(tensor)]
