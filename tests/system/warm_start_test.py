"""checkpoint.init_from: a job begins with the parameters of a checkpoint, or of a plain safetensors file."""
import json
import subprocess
import sys
import unittest

from harness import ROOT, SystemTest

PLAIN_SAFETENSORS = ROOT / "tests/common/checkpoint/plain_safetensors.py"
# The learning rate is so small that the step changes no parameter.
ONE_VOID_STEP = 'steps = 1\noptimizer = { rule = "sgd", learning_rate = 1e-30 }'


class WarmStartTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()
        trained = self.assert_finished(self.up(self.job(), "--set", f"checkpoint.directory={self.checkpoints}"))
        self.hash = trained["evaluation"]["parameters_hash"]
        self.exported = self.folder / "model.safetensors"
        outcome = self.run_program("disttrain", "checkpoint", "export", self.checkpoints / "quick", self.exported)
        self.assertEqual(outcome.code, 0, str(outcome))

    def renamed(self):
        """Writes the exported model with other names of variables. Returns (file, map from these names to ours)."""
        said = subprocess.run([sys.executable, PLAIN_SAFETENSORS, "read", self.exported], check=True,
                              capture_output=True, text=True)
        model = json.loads(said.stdout)
        names = {f"theirs.{name}": name for name in model["tensors"]}
        model["tensors"] = {theirs: model["tensors"][ours] for theirs, ours in names.items()}
        description, file = self.folder / "theirs.json", self.folder / "theirs.safetensors"
        description.write_text(json.dumps(model))
        subprocess.run([sys.executable, PLAIN_SAFETENSORS, "write", file, description], check=True)
        return file, names

    def warm(self, init_from, init_map=None):
        """The job's file and the settings for its warm start."""
        table = ", ".join(f'"{theirs}" = "{ours}"' for theirs, ours in (init_map or {}).items())
        settings = ["--set", f"checkpoint.init_from={init_from}"]
        if init_map:
            settings += ["--set", f"checkpoint.init_map={{ {table} }}"]
        return self.job(name="warm", train=ONE_VOID_STEP), *settings

    def test_parameters_are_those_of_the_checkpoint_its_job_and_its_export(self):
        newest = next(entry for entry in (self.checkpoints / "quick").iterdir() if entry.name.startswith("gen-"))
        for source in (newest, self.checkpoints / "quick", self.exported):
            for ps in (1, 2):
                with self.subTest(f"{source}, {ps} ps"):
                    result = self.assert_finished(self.up(*self.warm(source), ps=ps))
                    self.assertEqual(result["evaluation"]["parameters_hash"], self.hash)

    def test_names_of_others_are_mapped(self):
        file, names = self.renamed()
        result = self.assert_finished(self.up(*self.warm(file, names)))
        self.assertEqual(result["evaluation"]["parameters_hash"], self.hash)

    def test_names_that_do_not_fit_are_refused_by_plan_and_by_the_ps(self):
        file, names = self.renamed()
        wrong = {theirs: ours if i else ours + "x" for i, (theirs, ours) in enumerate(names.items())}
        for outcome in (self.run_program("disttrain", "plan", *self.warm(file, wrong)),
                        self.up(*self.warm(file, wrong))):
            self.assert_refused(outcome, 78, "init_map", "did you mean")

    def test_values_that_are_not_finite_are_refused(self):
        file = self.folder / "nan.safetensors"
        description = self.folder / "nan.json"
        description.write_text(json.dumps({"metadata": {}, "tensors": {
            "w": {"dtype": "F32", "shape": [32, 10], "values": [0.5] * 77 + [float("nan")] * 243},
            "layer0/weight": {"dtype": "F32", "shape": [784, 32], "values": [0.5] * 784 * 32},
            "layer0/bias": {"dtype": "F32", "shape": [32], "values": [0.5] * 32},
            "layer1/bias": {"dtype": "F32", "shape": [10], "values": [0.5] * 10}}}))
        subprocess.run([sys.executable, PLAIN_SAFETENSORS, "write", file, description], check=True)
        outcome = self.up(*self.warm(file, {"w": "layer1/weight"}))
        self.assert_refused(outcome, 65, "checkpoint.init_from: can't take the initial parameters from "
                            f"{file}: the file's w (for layer1/weight) has a value that is NaN or infinite as float32, at "
                            "index 77 of its 320 values in row-major order")
        self.assertEqual(outcome.err.count("NaN"), 1, outcome.err)

    def test_variables_that_the_job_ignores_are_told(self):
        said = subprocess.run([sys.executable, PLAIN_SAFETENSORS, "read", self.exported], check=True,
                              capture_output=True, text=True)
        model = json.loads(said.stdout)
        model["tensors"]["head/frozen"] = {"dtype": "F32", "shape": [2], "values": [1, 2]}
        description, file = self.folder / "more.json", self.folder / "more.safetensors"
        description.write_text(json.dumps(model))
        subprocess.run([sys.executable, PLAIN_SAFETENSORS, "write", file, description], check=True)
        told = f"1 variable of {file} is ignored, because the job trains no variable of this name: head/frozen"
        self.assertIn(told, self.run_program("disttrain", "plan", *self.warm(file)).out)
        result = self.assert_finished(self.up(*self.warm(file)))
        self.assertEqual([told in warning for warning in result["warnings"]], [True])
        self.assertEqual(self.assert_finished(self.up(*self.warm(self.exported)))["warnings"], [])

    def test_missing_file_is_no_input_and_plan_says_so(self):
        missing = self.folder / "nowhere.safetensors"
        self.assert_refused(self.up(*self.warm(missing)), 66, str(missing))
        outcome = self.run_program("disttrain", "plan", *self.warm(missing))
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertIn("init_from wasn't checked, because its file isn't on this host; the ps tasks need it: "
                      f"can't open {missing}", outcome.out)


if __name__ == "__main__":
    unittest.main()
