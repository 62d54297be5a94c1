"""The wheel of the Python package: its files and metadata, and a script that uses it from an empty venv.

WHEEL and VERSION (environment) are the file and the version of the project.
"""

import email
import os
import pathlib
import subprocess
import tempfile
import unittest
import zipfile

from fake_worker import PACKAGE, require_python

WHEEL = pathlib.Path(os.environ.get("WHEEL", "none"))
VERSION = os.environ.get("VERSION")

# y = 3 x - 1 by least squares, as a user would write it.
SCRIPT = """
import disttrain, numpy as np
x = np.linspace(-1, 1, 64, dtype=np.float32)
job = disttrain.init(metrics=["error"], alone=disttrain.Alone(learning_rate=0.2, batch_size=16, epochs=30))
job.wrap({"w": np.zeros(1), "b": np.zeros(1)})
for batch in job.batches([(value, 3 * value - 1) for value in x]):
    inputs, targets = batch.x, batch.y
    w, b = job.variables["w"], job.variables["b"]
    error = w * inputs + b - targets
    job.push_pull({"w": np.mean(2 * error * inputs, keepdims=True), "b": np.mean(2 * error, keepdims=True)},
                  loss=np.mean(error**2), error=np.mean(np.abs(error)))
print("package", disttrain.__version__, disttrain.__file__)
print("result", *job.variables["w"], *job.variables["b"])
"""


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not WHEEL.exists():
            raise unittest.SkipTest("the wheel isn't built: install python3-setuptools and python3-wheel")

    def test_wheel_holds_the_modules_and_the_licence(self):
        modules = {str(file.relative_to(PACKAGE)) for file in (PACKAGE / "disttrain").rglob("*.py")}
        with zipfile.ZipFile(WHEEL) as wheel:
            names = set(wheel.namelist())
        about = f"disttrain-{VERSION}.dist-info/"
        self.assertEqual({name for name in names if not name.startswith(about)}, modules)
        self.assertLessEqual({about + name for name in ("METADATA", "WHEEL", "RECORD", "LICENSE")}, names)

    def test_metadata_says_what_it_needs(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            metadata = email.message_from_bytes(wheel.read(f"disttrain-{VERSION}.dist-info/METADATA"))
        self.assertEqual((metadata["Name"], metadata["Version"]), ("disttrain", VERSION))
        self.assertEqual((metadata["License"], metadata["Requires-Python"]), ("Apache-2.0", ">=3.10"))
        self.assertEqual([need.split()[0].split(">")[0] for need in metadata.get_all("Requires-Dist")], ["numpy"])

    def test_script_trains_with_the_installed_wheel(self):
        python = require_python("numpy")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

            def run(*command):
                done = subprocess.run(command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
                self.assertEqual(done.returncode, 0, done.stdout)
                return done.stdout

            run(python, "-m", "venv", "venv")
            inside = str(folder / "venv/bin/python")
            site = run(inside, "-c", "import site; print(site.getsitepackages()[0])").strip()
            # Lends NumPy to the venv, because there is no internet here.
            numpy = run(python, "-c", "import numpy; print(numpy.__file__)").strip()
            (pathlib.Path(site) / "numpy.pth").write_text(f"{pathlib.Path(numpy).parents[1]}\n")
            run(inside, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", str(WHEEL))
            (folder / "train.py").write_text(SCRIPT)
            lines = run(inside, "train.py").splitlines()
            package = next(line for line in lines if line.startswith("package")).split()
            self.assertEqual(package[1:], [VERSION, f"{site}/disttrain/__init__.py"])
            w, b = map(float, next(line for line in lines if line.startswith("result")).split()[1:])
            self.assertAlmostEqual(w, 3.0, delta=1e-3)
            self.assertAlmostEqual(b, -1.0, delta=1e-3)


if __name__ == "__main__":
    unittest.main()
