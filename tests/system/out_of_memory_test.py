"""The kernel kills a trainer that takes more memory than its cgroup has. The worker goes on."""
import sys
import unittest
from pathlib import Path

from harness import BIN, ROOT, SystemTest

sys.path.insert(0, str(ROOT / "tests/python"))
from fake_worker import PACKAGE, require_python  # noqa: E402

LIMIT = 1 << 30
PYTHON = require_python("numpy")

# In its third step, the first trainer takes memory until the kernel kills it. The others do the same if the file
# "greedy" exists.
SCRIPT = f"""
import os
import disttrain, numpy as np
job = disttrain.init(metrics=[])
job.wrap({{"w": np.zeros(4)}})
for step, batch in enumerate(job.batches(range(64))):
    if step == 2:
        try:
            open("tried", "x").close()
            is_first = True
        except FileExistsError:
            is_first = False
        if is_first or os.path.exists("greedy"):
            taken = [np.ones(1 << 21) for _ in range({LIMIT >> 24})]
    job.push_pull({{"w": np.ones(4)}}, loss=1)
"""
JOB = """
[job]
name = "greedy"
max_restarts = {restarts}
[model]
trainer = ["{python}", "train.py"]
[train]
mode = "sync"
batch_size = 4
epochs = 1
"""


class Cgroup:
    """A cgroup with a limit of memory. The kernel has version 1 or 2 of them."""

    def __init__(self, name):
        for folder, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            self.path = Path(folder) / name
            try:
                self.path.mkdir()
            except OSError:
                continue
            try:
                (self.path / limit).write_text(str(LIMIT))
                return
            except OSError:
                self.path.rmdir()
        raise unittest.SkipTest("this process can't make a cgroup with a limit of memory")


class OutOfMemoryTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.environment["PYTHONPATH"] = str(PACKAGE)
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        (self.folder / "train.py").write_text(SCRIPT)
        self.cgroup = Cgroup(self.folder.name)
        self.addCleanup(self.cgroup.path.rmdir)

    def train(self, restarts):
        """Trains in the cgroup. Returns the outcome of `disttrain up`."""
        job = self.folder / "greedy.toml"
        job.write_text(JOB.format(python=PYTHON, restarts=restarts))
        return self.finish(self.start_command("sh", "-c", f'echo $$ >{self.cgroup.path}/cgroup.procs; exec "$@"', "sh",
                                              BIN / "disttrain", "up", "--job", job, "--workers", 2, "--json"))

    def test_trainer_killed_for_memory_is_started_again(self):
        outcome = self.train(restarts=3)
        result = self.assert_finished(outcome)
        self.assertEqual(result["examples"], 64)
        self.assertIn("while the kernel killed for memory", " ".join(result["warnings"]))

    def test_job_whose_trainers_always_take_too_much_fails(self):
        (self.folder / "greedy").touch()
        outcome = self.train(restarts=2)
        self.assertNotEqual(outcome.code, 0)
        self.assertIn("killed by signal 9 (SIGKILL) while the kernel killed for memory", outcome.err)
        self.assertIn("while the kernel killed for memory", outcome.json["root_cause"]["reason"])


if __name__ == "__main__":
    unittest.main()
