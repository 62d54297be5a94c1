"""Child processes of a trainer that use the job. They have the trainer's socket and shared memory, too. It needs a Python
with PyTorch."""

import unittest

from fake_worker import FakeWorker, require_python, run_code
from linear_job import linear

PYTHON = require_python("torch")

FORKING = """
import os
def fork(call, step):
    if step == 0:  # the rehearsal
        return
    child = os.fork()
    if child == 0:
        try:
            call()
        except Exception as error:
            print("child:", type(error).__name__, error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
# Only a child process leaves the loop's body early.
LOST_CHILD = """
import disttrain, numpy as np, os
job = disttrain.init(metrics=[])
job.wrap({"w": np.ones(1, "f4")})
for batch in job.batches(range(10)):
    child = os.fork()
    if child == 0:
        continue
    print("the child ended with", os.waitpid(child, 0)[1], flush=True)
    job.push_pull({"w": np.ones(1)}, loss=0)
"""
SPAWNING = """
import multiprocessing
def nothing(): pass
process = multiprocessing.get_context("spawn").Process(target=nothing)
process.start()
process.join()
"""
LOADING = """
import disttrain, torch
class Data(torch.utils.data.Dataset):
    def __len__(self): return 10
    def __getitem__(self, i):
        job.checkpoint()
        return torch.ones(1)
model = torch.nn.Linear(1, 1)
job = disttrain.init(metrics=[])
job.wrap(model)
loader = torch.utils.data.DataLoader(Data(), num_workers=1)
for batch in job.batches(range(10)):
    for x in loader:
        model(x).sum().backward()
    job.step(loss=0)
"""
SENTENCE = "a child process of the trainer called {}; only the process that called disttrain.init() may"


class ChildProcessTest(unittest.TestCase):
    def step(self, script):
        """Runs one step. Returns what the script sends, its exit code, what it printed and the gradients."""
        with FakeWorker(PYTHON, script) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            worker.start(parameters, gradients, [1])
            message = worker.receive()
            code, output = worker.finish()
            return message, code, output, worker.values(gradients)

    def assert_told(self, name, message, code, output):
        self.assertEqual(message["type"], "failed", output)
        self.assertIn(SENTENCE.format(name), message["message"])
        self.assertEqual(code, 1, output)

    def test_child_changes_nothing_and_the_trainer_fails_at_its_next_call(self):
        nines = "{'layer': {'w': np.full((2, 2), 9.0), 'b': np.zeros(1)}}"
        for call, name in {
            f"job.push_pull({nines}, loss=0)": "job.push_pull()",
            "job.gradients": "job.gradients",
            "job.checkpoint()": "job.checkpoint()",
            "list(job.batches(range(10)))": "job.batches()",
            "job.on_predict(len)": "job.on_predict()",
        }.items():
            with self.subTest(call):
                script = linear(show=f"fork(lambda: {call}, job.step_number)", before=FORKING)
                message, code, output, gradients = self.step(script)
                self.assertIn("child: DisttrainError " + SENTENCE.format(name), output)
                self.assert_told(name, message, code, output)
                self.assertEqual(gradients["layer/w"], [0, 0, 0, 0])

    def test_child_that_goes_on_with_the_loop(self):
        message, code, output, _ = self.step(LOST_CHILD)
        self.assertIn("the child ended with 256", output)
        self.assert_told("the next batch of job.batches()", message, code, output)

    def test_text_of_a_child_with_any_letters_and_of_any_length_comes_back(self):
        code = """
import os
from disttrain.own_process import OwnProcess
for name in ("größe()", "x" + 1000 * "ß"):  # the second text is cut within a letter
    process = OwnProcess()
    if os.fork() == 0:
        try:
            process.require(name)
        finally:
            os._exit(0)
    os.wait()
    try:
        process.check("job.step()")
    except Exception as error:
        print(type(error).__name__, len(str(error).encode()), error)
"""
        first, second = run_code(PYTHON, code).stdout.splitlines()
        self.assertIn("DisttrainError", first)
        self.assertIn(SENTENCE.format("größe()"), first)
        self.assertRegex(second, "^DisttrainError 999 a child process of the trainer called xß+$")

    def test_worker_of_a_data_loader(self):
        message, code, output, _ = self.step(LOADING)
        self.assert_told("job.checkpoint()", message, code, output)

    def test_process_that_runs_the_script_again(self):
        with FakeWorker(PYTHON, linear(before=SPAWNING)) as worker:
            worker.open()
            worker.end()
            _, output = worker.finish()
            self.assertRegex(output, r"DisttrainError: disttrain.init\(\) was called in process \d+, which the trainer ")
            self.assertIn('below `if __name__ == "__main__":`', output)


if __name__ == "__main__":
    unittest.main()
