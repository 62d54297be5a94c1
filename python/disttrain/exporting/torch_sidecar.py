"""The sidecar of a model of PyTorch."""

import torch

from disttrain.exporting import sidecar
from disttrain.exporting.model import STATE_DTYPES


def torch_version():
    """"2.11.0" of "2.11.0+cpu": builds for other devices have the same interface."""
    return torch.__version__.split("+")[0]


def encode(functions, kind, cpu, programs, stages=None):
    """The bytes of disttrain.json and of disttrain.safetensors."""
    described = functions.described
    text = sidecar.encode_json(
        kind=kind,
        library="torch",
        library_version=torch_version(),
        cpu=cpu,
        batch=None if functions.batch.dynamic else functions.batch.examples,
        variables=[variable.described() for variable in described.variables],
        aliases=described.aliases,
        columns=[column.described() for column in functions.batch.columns],
        metrics={name: metric.kind for name, metric in functions.metrics.items()},
        programs={program: functions.columns_of(program) for program in programs},
        stages=stages,
    )
    return text, sidecar.encode_values([_tensor(variable) for variable in described.variables])


def _tensor(variable):
    value = variable.carried
    content = value.reshape(-1).view(torch.uint8).numpy().tobytes()
    return variable.name, STATE_DTYPES[value.dtype], value.shape, content
