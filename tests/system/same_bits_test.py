"""Two runs of a synchronous job give the same bits, with every engine that promises it (engine/engine.h). Each
test trains twice with two workers and compares the checkpoints."""
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import DIGITS, ROOT, SystemTest
from ports import free_ports

sys.path.insert(0, str(ROOT / "tests/python"))
from pythons import require_pjrt_plugin, require_python  # noqa: E402

PROGRAMS = Path(os.environ.get("DISTTRAIN_PROGRAMS", ROOT / "build/release/tests/data/program/unpacked"))
HAS_AVX2 = " avx2 " in Path("/proc/cpuinfo").read_text()

JOB = """
[job]
name = "twice"
seed = 5
[model]
{model}
[data]
{data}
[train]
mode = "sync"
batch_size = 6
steps = {steps}
{train}
[checkpoint]
directory = "{folder}"
"""
DIGITS_DATA = f'path = "{DIGITS}"\nfiles = "train-images-idx3-ubyte.gz"\nscale = 0.00392156862745098'
ADAM = 'optimizer = { rule = "adam", learning_rate = 0.001 }'
CLUSTER = """
[cluster]
name = "twice"
[chief]
address = "127.0.0.1:{}"
state_directory = "{folder}/chief"
[metrics]
listen = "127.0.0.1:0"
[[ps]]
address = "127.0.0.1:{}"
[[worker]]
address = "127.0.0.1:{}"
device = "pjrt:{plugin}"
[[worker]]
address = "127.0.0.1:{}"
device = "pjrt:{plugin}"
"""
EXPORT_JAX = """
import sys
import jax, jax.numpy as jnp, numpy as np
import disttrain

def step(params, batch):
    logits = jnp.tanh(batch["inputs"] @ params["first"]) @ params["last"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), batch["labels"][:, None], axis=1)), {}

random = np.random.default_rng(1)
params = {"first": random.normal(0, 0.3, (6, 64)).astype(np.float32),
          "last": random.normal(0, 0.3, (64, 3)).astype(np.float32)}
batch = {"inputs": np.zeros((8, 6), np.float32), "labels": np.zeros(8, np.int64)}
disttrain.export_jax(step, params, batch, sys.argv[1], limits={"labels": 3})
"""
NUMPY_TRAINER = """
import disttrain, numpy as np
random = np.random.default_rng(0)
data = [(random.normal(size=40).astype(np.float32), random.normal()) for _ in range(500)]
job = disttrain.init(metrics=[])
job.wrap({"weight": np.zeros(40, np.float32)})
for batch in job.batches(data):
    error = batch.x @ job.variables["weight"] - batch.y
    job.push_pull({"weight": batch.x.T @ error / len(error)}, loss=float(np.mean(error ** 2)))
"""
TORCH_TRAINER = """
import disttrain, torch
torch.manual_seed(1)
torch.set_num_threads(1)
inputs, labels = torch.randn(500, 40), torch.randint(0, 4, (500,))
data = list(zip(inputs, labels))
job = disttrain.init(metrics=[])
model = torch.nn.Sequential(torch.nn.Linear(40, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
job.wrap(model)
for batch in job.batches(data):
    loss = torch.nn.functional.cross_entropy(model(batch.x), batch.y)
    loss.backward()
    job.step(loss=loss)
"""


class SameBitsTest(SystemTest):
    def train(self, model, data, train=ADAM, steps=40, cluster=None):
        """Returns the folder of the job's checkpoints."""
        checkpoints = Path(tempfile.mkdtemp(dir=self.folder))
        job = self.folder / "twice.toml"
        job.write_text(JOB.format(model=model, data=data, train=train, steps=steps, folder=checkpoints))
        if cluster is None:
            outcome = self.up(job)
        else:
            outcome = self.run_program("disttrain", "up", cluster, "--job", job, "--json")
        self.assertEqual(self.assert_finished(outcome)["global_step"], steps)
        return checkpoints / "twice"

    def assert_same_bits(self, *arguments, **options):
        first, second = self.train(*arguments, **options), self.train(*arguments, **options)
        outcome = self.run_program("disttrain", "checkpoint", "diff", first, second, "--json")
        self.assertEqual(outcome.code, 0, str(outcome))
        variables = outcome.json["variables"]
        self.assertTrue(variables)
        self.assertEqual([variable for variable in variables if variable["differing"] > 0], [])

    def table(self):
        """Records of 6 numbers and one of 3 labels."""
        numbers = random.Random(3)
        with open(self.folder / "table.csv", "w") as file:
            for _ in range(500):
                file.write(",".join(f"{numbers.gauss(0, 1):.4f}" for _ in range(6)) + f",{numbers.randrange(3)}\n")
        return f'format = "csv"\npath = "{self.folder}"\nfiles = "table.csv"'

    def test_comparison_sees_the_smallest_difference(self):
        model = 'builtin = "mlp"\nlayers = [784, 16, 10]'
        first = self.train(model, DIGITS_DATA, steps=1)
        second = self.train(model, DIGITS_DATA, train=ADAM.replace("0.001", "0.0010001"), steps=1)
        self.assertEqual(self.run_program("disttrain", "checkpoint", "diff", first, second).code, 1)

    def test_mlp(self):
        self.assert_same_bits('builtin = "mlp"\nlayers = [784, 64, 10]', DIGITS_DATA)

    def test_cnn_with_dropout(self):
        self.assert_same_bits('builtin = "cnn"', DIGITS_DATA, steps=10)

    def test_autograd_with_dropout_and_label_smoothing(self):
        model = 'builtin = "mlp"\nlayers = [784, 64, 10]\ndropout = 0.5\nlabel_smoothing = 0.1'
        self.assert_same_bits(model, DIGITS_DATA)

    def test_resnet_with_batch_norm(self):
        model = 'builtin = "resnet"\n[model.resnet]\nimage = [1, 28, 28]'
        self.assert_same_bits(model, DIGITS_DATA, steps=3)

    def test_transformer(self):
        text = random.Random(4)
        (self.folder / "train.txt").write_text("".join(text.choice("abcdefgh ") for _ in range(5000)))
        model = 'builtin = "transformer"\ndropout = 0.1\n[model.transformer]\nblocks = 2\nheads = 2\nwidth = 32\ncontext = 16'
        data = f'format = "text"\npath = "{self.folder}"\nfiles = "train.txt"\nwindow = 17'
        self.assert_same_bits(model, data, train=ADAM + '\nclip = { kind = "global_norm", value = 1.0 }')

    @unittest.skipUnless(HAS_AVX2, "the package needs AVX2")
    def test_package_of_aotinductor(self):
        for name in ("batch_norm", "dropout"):
            self.assert_same_bits(f'program = "{PROGRAMS}/{name}.pt2"', self.table())

    def test_package_of_torchscript(self):
        for name in ("batch_norm", "dropout"):
            self.assert_same_bits(f'program = "{PROGRAMS}/{name}.pt"', self.table())

    def test_package_of_jax_on_the_cpu(self):
        jax, plugin = require_python("jax"), require_pjrt_plugin()
        package = self.folder / "step.shlo"
        subprocess.run([jax, "-c", EXPORT_JAX, package], check=True, capture_output=True,
                       env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        cluster = self.folder / "cluster.toml"
        cluster.write_text(CLUSTER.format(*free_ports(4), folder=self.folder, plugin=plugin))
        self.assert_same_bits(f'program = "{package}"', self.table(), cluster=cluster)

    def trainer(self, module, script):
        python = require_python(module)
        (self.folder / "train.py").write_text(script)
        self.environment["PYTHONPATH"] = str(ROOT / "python")
        return f'trainer = ["{python}", "train.py"]'

    def test_trainer_with_numpy(self):
        self.assert_same_bits(self.trainer("numpy", NUMPY_TRAINER), "")

    def test_trainer_with_pytorch(self):
        self.assert_same_bits(self.trainer("torch", TORCH_TRAINER), "")


if __name__ == "__main__":
    unittest.main()
