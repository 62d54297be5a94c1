"""The sidecar of a program: two members of the package that disttrain reads without libtorch.

disttrain.json says what the program needs and returns. common/program/sidecar.h has the meaning of each key.
disttrain.safetensors has the initial values of all variables. This module needs only numpy, for exports from other
libraries, too.
"""

import json
import re
import struct

FORMAT = 1
FORMAT_WITH_DOUBLES = 2  # a trainable or state variable is float64, and the programs take it as that
FORMAT_WITH_STAGES = 3  # as 2, and the step may have stages
JSON_NAME = "disttrain.json"
VALUES_NAME = "disttrain.safetensors"
# As is_metric_name in common/model_metric.h: a name's characters, and the names of a job's own figures.
METRIC_NAME = re.compile(r"[A-Za-z0-9_./-]{1,100}")
TAKEN_METRIC_NAMES = ("loss", "learning_rate", "steps_per_second", "examples_per_second")

SAFETENSORS_DTYPES = {
    "float32": "F32",
    "float64": "F64",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}


def problem_of_metric_name(name):
    """What is wrong with the name of a metric; None if nothing is."""
    if METRIC_NAME.fullmatch(name) and name not in TAKEN_METRIC_NAMES:
        return None
    return (
        f'metric name "{name}": expected 1 to 100 of the characters A-Z a-z 0-9 _ . / -, and none of the names of '
        f"a job's own figures: {', '.join(TAKEN_METRIC_NAMES)}"
    )


def encode_json(*, kind, library, library_version, cpu, batch, variables, aliases, columns, metrics, programs, stages=None):
    """The bytes of disttrain.json.

    kind: "pt2", "torchscript" or "stablehlo". library, library_version: what made it, such as "torch", "2.11.0".
    cpu: "", or the oldest processors that can run it. batch: the size of all batches, or None. variables: dicts with
    name, kind, shape, dtype, persistent. columns: dicts with name, dtype, shape, limit. metrics: {name: kind}.
    programs: {name: names of its columns}. stages: {name of a program: its stages}, objects with takes and gives.
    """
    has_doubles = any(each["dtype"] == "float64" and each["kind"] != "frozen" for each in variables)
    described = {
        "format": FORMAT_WITH_STAGES if stages else FORMAT_WITH_DOUBLES if has_doubles else FORMAT,
        "kind": kind,
        "library": library,
        "library_version": library_version,
        "cpu": cpu,
        "batch": batch,
        "variables": variables,
        "aliases": aliases,
        "columns": columns,
        "metrics": [{"name": name, "kind": metric} for name, metric in metrics.items()],
        "programs": {name: {"columns": names} for name, names in programs.items()},
    }
    for name, cuts in (stages or {}).items():
        described["programs"][name]["stages"] = [{"takes": stage.takes, "gives": stage.gives} for stage in cuts]
    return json.dumps(described, indent=1).encode()


def encode_values(tensors):
    """The bytes of a safetensors file. tensors: (name, dtype, shape, bytes) in the order of the file."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape, content in tensors:
        header[name] = {
            "dtype": SAFETENSORS_DTYPES[dtype],
            "shape": list(shape),
            "data_offsets": [at, at + len(content)],
        }
        at += len(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(content for _, _, _, content in tensors)
