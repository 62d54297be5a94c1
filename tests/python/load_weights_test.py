"""disttrain.load_weights: an export of a checkpoint comes into a torch module. It needs a Python with PyTorch."""

import unittest

from fake_worker import require_python, run_code

PYTHON = require_python("torch")

# Each function is a case. It prints the error that it causes, or values.
CASES = """
import json, pathlib, struct, tempfile
import disttrain, torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 2, bias=False)
        self.tied = torch.nn.Linear(2, 2, bias=False)
        self.tied.weight = self.a.weight
        self.frozen = torch.nn.Parameter(torch.full((1,), 7.0), requires_grad=False)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mask", torch.ones(2, dtype=torch.bool))
        self.register_buffer("added_mask", torch.tensor([0.0, -torch.inf]))

FOLDER = pathlib.Path(tempfile.mkdtemp())
GOOD = {"a.weight": ("F32", [2, 2], struct.pack("<4f", 1, 2, 3, 4)), "count": ("F32", [], struct.pack("<f", 5))}

def write(tensors, name="w.safetensors"):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for key, (dtype, shape, content) in tensors.items():
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    (FOLDER / name).write_bytes(struct.pack("<Q", len(text)) + text + data)
    return FOLDER / name

def load(path):
    net = Net()
    disttrain.load_weights(net, path)
    return {name: value.flatten().tolist() for name, value in net.state_dict().items()}

def a_file():
    return load(write(GOOD))
def a_file_of_bfloat16():
    return load(write({**GOOD, "a.weight": ("BF16", [2, 2], struct.pack("<4H", 0x3F80, 0x4000, 0x4040, 0x4080))}))
def an_export_of_a_program():
    others = {"tied.weight": GOOD["a.weight"], "frozen": ("F32", [1], struct.pack("<f", 8)),
              "count": ("I64", [], struct.pack("<q", 6)), "mask": ("BOOL", [2], bytes([1, 0])),
              "added_mask": ("F32", [2], struct.pack("<2f", 0, -float("inf")))}
    return load(write({**GOOD, **others}))
def integers():
    net = torch.nn.Linear(1, 1)
    formats = {"uint8": ("U8", "B"), "int8": ("I8", "b"), "int16": ("I16", "h"), "int32": ("I32", "i")}
    for name in formats:
        net.register_buffer(name, torch.zeros((), dtype=getattr(torch, name)))
    tensors = {name: (dtype, [], struct.pack("<" + letter, 7)) for name, (dtype, letter) in formats.items()}
    weights = {"weight": ("F32", [1, 1], struct.pack("<f", 1)), "bias": ("F32", [1], struct.pack("<f", 1))}
    disttrain.load_weights(net, write({**weights, **tensors}))
    return [int(getattr(net, name)) for name in formats]
def a_count_that_was_large_before_the_job():
    net = torch.nn.BatchNorm1d(1)
    net.num_batches_tracked.fill_(2**24 + 2)
    weights = {name: ("F32", [1], struct.pack("<f", 1)) for name in ("weight", "bias", "running_mean", "running_var")}
    path = write({**weights, "num_batches_tracked": ("F32", [], struct.pack("<f", 2**24 + 4))}, "norm.safetensors")
    disttrain.load_weights(net, path)
    try:
        disttrain.load_weights(net, write(weights))
    except disttrain.DisttrainError as error:
        return int(net.num_batches_tracked) - 2**24, str(error).split(": ")[1]
def a_folder():
    folder = FOLDER / "folder"
    folder.mkdir()
    for i, name in enumerate(GOOD):
        write({name: GOOD[name]}, f"folder/{i}.safetensors")
    return load(folder)
def a_missing_variable():
    load(write({"count": GOOD["count"]}))
def an_unknown_variable():
    load(write({**GOOD, "b": GOOD["count"]}))
def another_shape():
    load(write({**GOOD, "a.weight": ("F32", [4], GOOD["a.weight"][2])}))
def no_safetensors():
    (FOLDER / "text").write_bytes(b"not a file of weights at all")
    load(FOLDER / "text")
def a_header_that_is_a_list():
    (FOLDER / "list").write_bytes(struct.pack("<Q", 2) + b"[]")
    load(FOLDER / "list")
def an_unknown_dtype():
    load(write({"count": ("C64", [], b"12345678")}))
def a_class():
    disttrain.load_weights(Net, write(GOOD))
def a_short_file():
    path = write(GOOD)
    path.write_bytes(path.read_bytes()[:-6])
    load(path)
def an_empty_file():
    (FOLDER / "empty").write_bytes(b"")
    load(FOLDER / "empty")
def no_file():
    load(FOLDER / "none")

for name, case in list(globals().items()):
    if getattr(case, "__module__", "") == "__main__" and not isinstance(case, type) and name not in ("write", "load"):
        try:
            print(f"{name}: {case()}", flush=True)
        except disttrain.DisttrainError as error:
            print(f"{name}: {error}", flush=True)
"""
LOADED = str({
    "frozen": [7.0], "count": [5], "mask": [True, True], "added_mask": [0.0, float("-inf")], "a.weight": [1.0, 2.0, 3.0, 4.0],
    "tied.weight": [1.0, 2.0, 3.0, 4.0],
})
EXPECTED = {
    "a_file": LOADED,
    "a_file_of_bfloat16": LOADED,
    "an_export_of_a_program": str({
        "frozen": [8.0], "count": [6], "mask": [True, False], "added_mask": [0.0, float("-inf")],
        "a.weight": [1.0, 2.0, 3.0, 4.0], "tied.weight": [1.0, 2.0, 3.0, 4.0],
    }),
    "integers": "[7, 7, 7, 7]",
    "a_count_that_was_large_before_the_job": str((4, 'the file has no "num_batches_tracked"')),
    "a_folder": LOADED,
    "a_missing_variable": 'the file has no "a.weight"',
    "an_unknown_variable": 'the module has no "b"',
    "another_shape": '"a.weight" has the shape [4] in the file and [2, 2] in the module',
    "no_safetensors": "it isn't a file of safetensors (ValueError: its header would have 7594793423135338350 bytes, but the "
    "file has 28); expected what `disttrain checkpoint export` writes",
    "a_header_that_is_a_list": "it isn't a file of safetensors (AttributeError: ",
    "an_unknown_dtype": "it isn't a file of safetensors (KeyError: 'C64'); expected",
    "a_class": "disttrain.load_weights() got the class Net; expected a torch module",
    "a_short_file": "can't read the weights at",
    "an_empty_file": "can't read the weights at",
    "no_file": "none: No such file or directory; expected what `disttrain checkpoint export` writes",
}


class LoadWeightsTest(unittest.TestCase):
    def test_each_case(self):
        done = run_code(PYTHON, CASES)
        found = dict(line.split(": ", 1) for line in done.stdout.splitlines())
        for name, expected in EXPECTED.items():
            with self.subTest(name):
                self.assertIn(expected, found.get(name, done.stdout + done.stderr))

    def test_an_error_is_one_traceback(self):
        for case in ("'/nowhere'", "'/dev/null'"):
            done = run_code(PYTHON, f"import disttrain, torch\ndisttrain.load_weights(torch.nn.Linear(1, 1), {case})")
            self.assertEqual(done.stderr.count("Traceback"), 1, done.stderr)
            self.assertRegex(done.stderr.splitlines()[-1], r"DisttrainError: can't read the weights at /\w+")


if __name__ == "__main__":
    unittest.main()
