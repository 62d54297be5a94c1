"""A step that takes long: what the status shows meanwhile."""
import sys
import unittest

from harness import ROOT, SystemTest

sys.path.insert(0, str(ROOT / "tests/python"))
from fake_worker import PACKAGE, require_python  # noqa: E402

PYTHON = require_python("numpy")

# The third step ends when the test has made a file.
SCRIPT = """
import os, time
import disttrain, numpy as np
job = disttrain.init(metrics=["mae"])
job.wrap({"w": np.zeros(4)})
for step, batch in enumerate(job.batches(range(32))):
    while step == 2 and not os.path.exists("go_on"):
        time.sleep(0.02)
    job.push_pull({"w": np.ones(4)}, loss=1, mae=0.25)
"""
JOB = """
[job]
name = "slow"
[model]
trainer = ["{python}", "train.py"]
[train]
mode = "sync"
batch_size = 4
epochs = 1
"""


class SlowStepsTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.environment["PYTHONPATH"] = str(PACKAGE)
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        (self.folder / "train.py").write_text(SCRIPT)

    def test_metrics_stay_while_a_step_takes_long(self):
        job = self.folder / "slow.toml"
        job.write_text(JOB.format(python=PYTHON))
        process = self.start_up(job)

        def status_of_a_long_step():
            status = self.status()
            workers = [task for task in status["tasks"] if task["task"] == "worker/0"] if status else []
            # Meanwhile the worker has sent several heartbeats.
            return status if any(task["phase"] == "compute" and task["phase_seconds"] > 3 for task in workers) else None
        self.assertEqual(self.until("a step that takes 3 seconds", status_of_a_long_step)["metrics"]["mae"], 0.25)
        (self.folder / "go_on").touch()
        self.assertEqual(self.assert_finished(self.finish(process))["metrics"]["mae"], 0.25)


if __name__ == "__main__":
    unittest.main()
