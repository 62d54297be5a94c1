"""Trains on a cluster what tests/data/parity/make.py has trained in plain PyTorch. The results must be equal: all
parameters, batch norm's statistics, and the loss of the evaluation."""
import json
import re
import signal
import subprocess
import sys
import unittest
import urllib.request
from pathlib import Path

from harness import BIN, ROOT, SystemTest

NUMBERS = ROOT / "tests/data/parity"
EXPECTED = json.loads((NUMBERS / "expected.json").read_text())
PACKAGE = BIN.parent / "tests/data/program/unpacked/batch_norm.pt"
PLAIN_SAFETENSORS = ROOT / "tests/common/checkpoint/plain_safetensors.py"
FROZEN = {"body.weight", "body.bias"}  # of the package
HAS_AVX2 = " avx2 " in Path("/proc/cpuinfo").read_text()

JOB = """
[job]
name = "{name}"
shards = 2
[model]
{model}
[data]
format = "npy"
path = "{numbers}"
files = "inputs.npy"
labels = "labels.npy"
shuffle = "none"
[train]
mode = "{mode}"
batch_size = {batch}
accumulate = {accumulate}
epochs = 2
state = "{state}"
optimizer = {optimizer}
{clip}
{schedule}
[checkpoint]
directory = "{folder}/checkpoints"
{init_from}
[evaluate]
files = "inputs.npy"
labels = "labels.npy"
average = {average}
"""


class ParityTest(SystemTest):
    def setUp(self):
        super().setUp()
        (self.folder / "checkpoints").mkdir()

    def write_job(self, name, init_from="", package=PACKAGE):
        case = EXPECTED[name]
        model = f'program = "{package}"'
        if case["model"] == "mlp":
            model, init_from = 'builtin = "mlp"\nlayers = [6, 8, 3]\nactivation = "tanh"', "mlp.safetensors"
        path = self.folder / "parity.toml"
        path.write_text(JOB.format(
            name=name.replace("_", "-"), model=model, numbers=NUMBERS, folder=self.folder, batch=case["batch"],
            optimizer=case["optimizer"], schedule=f'schedule = {case["schedule"]}' if "schedule" in case else "",
            mode=case.get("mode", "sync"), accumulate=case.get("accumulate", 1), state=case.get("state", "mean"), average=case.get("average", 0.0),
            clip=f'clip = {{ kind = "global_norm", value = {case["clip"]} }}' if "clip" in case else "",
            init_from=f'init_from = "{NUMBERS}/{init_from}"' if init_from else ""))
        return path

    def exported(self, name):
        """The values of the job's checkpoint, by variable."""
        out = self.folder / "exported.safetensors"
        outcome = self.run_program("disttrain", "checkpoint", "export", "--force",
                                   *(["--average"] if "average" in EXPECTED[name] else []),
                                   self.folder / "checkpoints" / name.replace("_", "-"), out)
        self.assertEqual(outcome.code, 0, str(outcome))
        read = subprocess.run([sys.executable, PLAIN_SAFETENSORS, "read", out], check=True, capture_output=True, text=True)
        return {name: tensor["values"] for name, tensor in json.loads(read.stdout)["tensors"].items()}

    def assert_near(self, found, expected, what):
        self.assertEqual(len(found), len(expected), what)
        for i, (ours, theirs) in enumerate(zip(found, expected)):
            self.assertLessEqual(abs(ours - theirs), 1e-5 * (1 + abs(theirs)), f"{what}, element {i}: {ours}, {theirs}")

    def assert_equals_pytorch(self, name, *arguments):
        case = EXPECTED[name]
        result = self.assert_finished(self.up(self.write_job(name, *arguments), ps=2, workers=case.get("workers", 1)))
        found = self.exported(name)
        for variable, values in case["values"].items():
            if variable in found or variable not in FROZEN:
                self.assert_near(found[variable], values, f"{name}: {variable}")
        self.assert_near([result["evaluation"]["loss"]], [case["loss"]], f"{name}: loss")
        return found

    def test_each_rule(self):
        for rule in ("sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "lamb", "ftrl"):
            with self.subTest(rule):
                self.assert_equals_pytorch(rule)

    def test_each_schedule(self):
        for schedule in ("step", "polynomial", "cosine"):
            with self.subTest(schedule):
                self.assert_equals_pytorch(schedule)

    def test_accumulated_batches_are_one_large_batch(self):
        parts = self.assert_equals_pytorch("accumulate")
        whole = self.assert_equals_pytorch("batch_32")
        for name, values in whole.items():
            self.assert_near(parts[name], values, name)

    def test_clipping_and_average(self):
        for name in ("clip", "average"):
            with self.subTest(name):
                self.assert_equals_pytorch(name)

    def test_batch_norm(self):
        for name in ("batch_norm", "batch_norm_mean", "batch_norm_lowest_rank", "batch_norm_accumulate",
                     "batch_norm_clip", "batch_norm_clip_async", "batch_norm_average"):
            with self.subTest(name):
                self.assert_equals_pytorch(name)

    def test_fine_tuning_begins_with_a_state_dict(self):
        self.assert_equals_pytorch("fine_tuned", "tuned.safetensors")

    @unittest.skipUnless(HAS_AVX2, "the processor has no AVX2, for which the package is compiled")
    def test_batch_norm_of_a_compiled_package(self):
        self.assert_equals_pytorch("batch_norm_mean", "", PACKAGE.with_suffix(".pt2"))

    def test_frozen_parameters_are_not_sent(self):
        values = EXPECTED["batch_norm"]["values"]
        sent = 4 * sum(len(numbers) for name, numbers in values.items() if name not in FROZEN)
        process = self.start_up(self.write_job("batch_norm"), "--set", "train.epochs=1000000", "--set", "job.shards=1")
        status = self.until_steps(50)
        address = next(task["metrics"] for task in status["tasks"] if task["task"] == "ps/0")

        def metric(name):
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as page:
                found = re.search(rf"^disttrain_{name}{{.*}} (\S+)$", page.read().decode(), re.MULTILINE)
            return float(found[1]) if found else 0
        self.assertEqual(metric("ps_parameters_bytes"), sent)
        pushed = self.until("the shard to report its pushes", lambda: metric("ps_push_bytes_total"))
        self.assertEqual(pushed % sent, 0, f"{pushed} bytes pushed, {sent} bytes in a push")
        process.send_signal(signal.SIGINT)
        self.finish(process)


if __name__ == "__main__":
    unittest.main()
