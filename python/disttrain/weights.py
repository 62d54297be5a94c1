"""Takes the weights of a checkpoint into a torch module (disttrain.load_weights).

A checkpoint of a trainer's job has no frozen parameters and no second names of tied ones. The script that loads an
export has built the module and so has both. load_weights() checks all the others.
"""

import json
import pathlib
import struct

import torch

from disttrain.errors import DisttrainError
from disttrain.torch_buffers import is_state, unused_counts
from disttrain.wrapping import kind_of

# All types that a model's tensors may have in an export (STATE_DTYPES in exporting/model.py).
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_LONGEST_HEADER = 100_000_000  # as the package safetensors allows


def load_weights(module, path):
    """Loads what `disttrain checkpoint export CHECKPOINT PATH` wrote for a job with a trainer.

    A checkpoint of such a job has the parameters that were trained, and the buffers that are state (torch_buffers.py).
    All of them must be in the module, and all such tensors of the module in the file, with the same shapes. Frozen
    parameters and constants keep the values that they have in the module, and two names of one parameter get the same
    values. The export of a job with a program has these tensors, too, and they are loaded as well.
    """
    if not isinstance(module, torch.nn.Module):
        raise DisttrainError(f"disttrain.load_weights() got {kind_of(module)}; expected a torch module")
    found = _read(pathlib.Path(path))
    known, unused = module.state_dict(), unused_counts(module)
    wanted = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    wanted |= {name for name, buffer in module.named_buffers() if is_state(name, buffer, known, unused)}
    problems = [f'the file has no "{name}"' for name in sorted(wanted - found.keys())]
    problems += [f'the module has no "{name}"' for name in sorted(found.keys() - known.keys())]
    problems += [
        f'"{name}" has the shape {list(value.shape)} in the file and {list(known[name].shape)} in the module'
        for name, value in found.items()
        if name in known and value.shape != known[name].shape
    ]
    if problems:
        more = f"; and {len(problems) - 5} more problems" if len(problems) > 5 else ""
        raise DisttrainError(f"can't load {path} into the module: " + "; ".join(problems[:5]) + more)
    # The cluster keeps whole numbers as float32, and a mean of several workers' may lie beside one.
    whole = {name for name, value in known.items() if not value.is_floating_point() and not value.is_complex()}
    found = {name: value.round() if name in whole and value.is_floating_point() else value for name, value in found.items()}
    module.load_state_dict(found, strict=False)


def _read(path):
    """The tensors of a file or of a folder of files, by their names."""
    try:
        files = [path] if not path.is_dir() else sorted(path.glob("*.safetensors"))
        tensors = {}
        for file in files:
            tensors |= _read_file(file)
    except OSError as error:
        raise DisttrainError(
            f"can't read the weights at {error.filename or path}: {error.strerror}; expected what `disttrain checkpoint export` "
            "writes"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, RuntimeError) as error:
        raise DisttrainError(
            f"can't read the weights at {path}: it isn't a file of safetensors ({type(error).__name__}: {error}); expected what "
            "`disttrain checkpoint export` writes"
        ) from None
    if not tensors:
        raise DisttrainError(f"can't read the weights at {path}: it has no tensors")
    return tensors


def _read_file(file):
    data = bytearray(file.read_bytes())
    (size,) = struct.unpack_from("<Q", data)
    if size > min(_LONGEST_HEADER, len(data) - 8):
        raise ValueError(f"its header would have {size} bytes, but the file has {len(data)}")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = (
            torch.frombuffer(data, dtype=torch.uint8)[8 + size + begin : 8 + size + end]
            .clone()
            .view(_DTYPES[entry["dtype"]])
            .reshape(entry["shape"])
        )
    return tensors
