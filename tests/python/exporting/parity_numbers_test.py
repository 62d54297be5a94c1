"""tests/data/parity has the numbers that PyTorch computes."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import in_torch  # noqa: E402

in_torch.run(__file__)

NUMBERS = in_torch.ROOT / "tests" / "data" / "parity"


class ParityNumbersTest(unittest.TestCase):
    def test_script_makes_the_numbers_again(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            done = subprocess.run([sys.executable, str(NUMBERS / "make.py"), str(folder)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for file in ("inputs.npy", "labels.npy", "mlp.safetensors", "tuned.safetensors"):
                self.assertEqual((folder / file).read_bytes(), (NUMBERS / file).read_bytes(), file)
            made, kept = (json.loads((place / "expected.json").read_text()) for place in (folder, NUMBERS))
            self.assertEqual(made.keys(), kept.keys())
            for name, case in kept.items():
                for variable, values in case.pop("values").items():
                    for a, b in zip(made[name]["values"][variable], values, strict=True):
                        self.assertAlmostEqual(a, b, delta=2e-6 * (1 + abs(b)), msg=f"{name}: {variable}")
                self.assertAlmostEqual(made[name].pop("loss"), case.pop("loss"), delta=2e-6, msg=name)
                del made[name]["values"]
                self.assertEqual(made[name], case)


if __name__ == "__main__":
    unittest.main()
