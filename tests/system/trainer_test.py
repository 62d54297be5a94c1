"""Jobs with trainers under kill -9: of the trainer, of its worker, of a ps and of the chief. The job finishes, each
record of each epoch counts once, and no process is left."""
import os
import shutil
import signal
import sys
import unittest

from harness import PATIENCE, ROOT, SystemTest, alive

sys.path[:0] = [str(ROOT / "tools/bench"), str(ROOT / "tests/python")]
from fake_worker import PACKAGE, require_python  # noqa: E402
from visited_history import VisitedHistory  # noqa: E402

# A linear classifier of synthetic records, with as many lines for disttrain as examples/gpt2/train.py has. While the
# file "hold" exists, its steps take so long that the job outlasts the kills.
SCRIPT = """
import os, signal, time
import disttrain
import numpy as np

random = np.random.default_rng(1)
inputs = random.normal(size=({records}, 8)).astype(np.float32)
labels = inputs[:, 0] > 0
job = disttrain.init(metrics=["accuracy"])
job.wrap({{"w": np.zeros(8)}}, state={{"seen": np.zeros(1)}})
dataset = [(x, float(y)) for x, y in zip(inputs, labels)]

def die_if_told(word):
    if os.path.exists(word):
        os.unlink(word)
        os.kill(os.getpid(), signal.SIGKILL)

def forward(batch):
    p = 1 / (1 + np.exp(-batch.x @ job.variables["w"]))
    return p, {{"loss": -np.log(np.where(batch.y > 0.5, p, 1 - p)).mean(), "accuracy": ((p > 0.5) == batch.y).mean()}}

@job.on_evaluate(dataset=dataset[:100])
def evaluate(batch):
    die_if_told("kill the evaluator")
    return forward(batch)[1]

@job.on_predict
def predict(batch):
    die_if_told("kill the predictor")
    if os.path.exists("fail in the predictor"):
        os.unlink("fail in the predictor")
        raise SystemExit("no such model")
    return np.stack([forward(batch)[0], batch.y], axis=1)

for batch in job.batches(dataset):
    p, metrics = forward(batch)
    if os.path.exists("hold"):
        time.sleep(0.05)
    job.push_pull({{"w": batch.x.T @ (p - batch.y) / len(p)}}, state={{"seen": job.state["seen"] + 1}}, **metrics)
"""
JOB = """
[job]
name = "trainer"
shards = 2
[model]
trainer = ["{python}", "train.py"{arguments}]
[train]
mode = "{mode}"
batch_size = {batch_size}
epochs = {epochs}
[checkpoint]
directory = "{folder}"
every_steps = {every_steps}
"""


class TrainerTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.environment |= {"PYTHONPATH": str(PACKAGE), "DISTTRAIN_VISITED_LOG": str(self.folder),
                             "PYTHONDONTWRITEBYTECODE": "1"}
        (self.folder / "checkpoints").mkdir()

    def write_job(self, python, arguments="", **settings):
        path = self.folder / "job.toml"
        path.write_text(JOB.format(python=python, arguments=arguments, folder=self.folder / "checkpoints", **settings))
        return path

    def trainer_of(self, status, worker):
        """The pid of the worker's trainer."""
        parent = self.pid_of(status, worker)
        for pid in self.processes_of_this_test():
            try:
                with open(f"/proc/{pid}/stat") as stat:
                    if int(stat.read().rsplit(")", 1)[1].split()[1]) == parent:
                        return pid
            except (FileNotFoundError, ProcessLookupError):
                continue
        return None

    def after(self, before, victim, patience):
        """Waits until the job trains on after the loss of `victim`. Returns the new status."""
        def came():
            now = self.status()
            if not now or now["state"] != "running" or now["global_step"] <= before["global_step"]:
                return None
            workers = [task for task in now["tasks"] if task["task"].startswith("worker/")]
            all_back = all(self.trainer_of(now, task["task"]) and task["step"] for task in workers)
            return now if all_back and now["checkpoint"] else None
        return self.until(f"the job to go on without {victim}", came, patience)

    def kill_in_turn(self, process, patience=PATIENCE):
        """Kills one process after the other; each time the job must go on with all of its tasks. Returns the process
        that prints the job's events, and the status."""
        status = self.after({"global_step": 0}, "anybody", patience)
        story = self.start("disttrain", "events", "-f", "--json")
        for victim in ["trainer", "worker/1", "ps/0", "chief/0"]:
            pid = self.trainer_of(status, "worker/0") if victim == "trainer" else self.pid_of(status, victim)
            os.kill(pid, signal.SIGKILL)
            self.until(f"the end of {victim}", lambda: not alive(pid))
            status = self.after(self.until_status(), victim, patience)
            self.assertIsNone(process.poll())
        return story, status

    def until_status(self):
        return self.until("a status", self.status)

    def check_records(self, outcome, epochs, records):
        result = self.assert_finished(outcome)
        self.assertEqual(self.processes_of_this_test(), [])
        self.assertEqual(result["examples"], epochs * records)
        history = VisitedHistory(self.folder / "job-1.jsonl")
        self.assertEqual(history.check(epochs, records), epochs * records)
        self.assertEqual(history.problems, [])
        self.assertEqual(result["global_step"], history.last_step)
        return result


class NumpyTrainerTest(TrainerTest):
    RECORDS, EPOCHS = 1000, 200

    @classmethod
    def setUpClass(cls):
        cls.python = require_python("numpy")

    def start_job(self, mode, *arguments, epochs=EPOCHS):
        (self.folder / "train.py").write_text(SCRIPT.format(records=self.RECORDS))
        (self.folder / "hold").write_text("")
        job = self.write_job(self.python, mode=mode, batch_size=20, epochs=epochs, every_steps=20)
        return self.start_up(job, *arguments, ps=2, workers=2)

    def kill_all_in_turn(self, mode):
        process = self.start_job(mode)
        story, status = self.kill_in_turn(process)
        self.assertEqual(status["recoveries"], 1)  # that of the ps
        os.unlink(self.folder / "hold")
        outcome = self.finish(process, 3 * PATIENCE)
        self.assertIn("the trainer was killed by signal 9", self.finish(story).out)
        result = self.check_records(outcome, self.EPOCHS, self.RECORDS)
        self.assertGreater(result["evaluation"]["accuracy"], 0.9)

    def test_killed_trainer_worker_ps_and_chief_in_turn_async(self):
        self.kill_all_in_turn("async")

    def test_killed_trainer_worker_ps_and_chief_in_turn_sync(self):
        self.kill_all_in_turn("sync")

    def test_trainer_that_is_killed_while_it_evaluates(self):
        process = self.start_job("async", "--set", "evaluate.every_steps=200", epochs=20)
        (self.folder / "kill the evaluator").write_text("")
        os.unlink(self.folder / "hold")
        result = self.check_records(self.finish(process), 20, self.RECORDS)
        self.assertFalse((self.folder / "kill the evaluator").exists())
        self.assertGreater(result["evaluation"]["accuracy"], 0.9)

    def test_predictions_from_a_checkpoint(self):
        process = self.start_job("async", epochs=20)
        os.unlink(self.folder / "hold")
        result = self.check_records(self.finish(process), 20, self.RECORDS)
        predict = ["disttrain", "predict", self.folder / "checkpoints/trainer", self.folder / "outputs.csv"]
        (self.folder / "kill the predictor").write_text("")
        self.assert_refused(self.run_program(*predict), 69, "the trainer was killed by signal 9", "while it predicted")
        self.assertFalse((self.folder / "outputs.csv").exists())
        (self.folder / "fail in the predictor").write_text("")
        outcome = self.run_program(*predict)
        self.assert_refused(outcome, 69, "the trainer ended with exit code 1 (while it predicted); its output is above")
        self.assertEqual(outcome.err.count("no such model"), 1, outcome.err)
        outcome = self.run_program(*predict)
        self.assertEqual(outcome.code, 0, str(outcome))
        rows = [map(float, line.split(",")) for line in (self.folder / "outputs.csv").read_text().splitlines()[1:]]
        right = [(p > 0.5) == (label > 0.5) for p, label in rows]
        self.assertEqual(len(right), 100)
        self.assertAlmostEqual(sum(right) / 100, result["evaluation"]["accuracy"], places=6)
        for options, name in ((["--files", "*.npy"], "--files"), (["--data", "/none", "--files", "*.npy"], "--data")):
            outcome = self.run_program(*predict, *options)
            self.assert_refused(outcome, 78, f"{name} can't choose the records to predict", "has no section [data]")


class Gpt2Test(TrainerTest):
    """The example that users copy, on a text that is always there."""
    EPOCHS = 25

    @classmethod
    def setUpClass(cls):
        cls.python = require_python("torch, transformers")

    def test_killed_trainer_worker_ps_and_chief_in_turn(self):
        shutil.copy(ROOT / "examples/gpt2/train.py", self.folder)
        text = (ROOT / "ARCHITECTURE.md").read_bytes()
        (self.folder / "input.txt").write_bytes(text)
        records = (len(text) * 9 // 10) // 64
        job = self.write_job(self.python, ', "input.txt"', mode="sync", batch_size=6, epochs=self.EPOCHS, every_steps=20)
        process = self.start_up(job, ps=2, workers=2)
        story, _ = self.kill_in_turn(process, 5 * PATIENCE)
        outcome = self.finish(process, 20 * PATIENCE)
        self.finish(story)
        result = self.check_records(outcome, self.EPOCHS, records)
        self.assertLess(result["evaluation"]["loss"], 3.5)  # the loss of equally likely bytes is 5.5


if __name__ == "__main__":
    unittest.main()
