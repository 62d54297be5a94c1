"""A script that trains a linear model with a tree of arrays, and a fixture that runs it under a worker."""

import unittest

from fake_worker import FakeWorker, require_python

PYTHON = require_python("numpy")

# The gradient of w is the sum of the records; that of b is 1.
LINEAR = """
import disttrain, numpy as np
job = disttrain.init({init})
job.wrap({{"layer": {{"w": np.ones((2, 2), "f4"), "b": np.zeros(1, "f4")}}}}, state={{"seen": np.zeros(1, "f4")}})
{before}
for batch in job.batches({data}):
    print("batch", {show})
    gradients = {{"layer": {{"w": np.full((2, 2), float(np.sum(batch.x))), "b": np.ones(1)}}}}
    job.push_pull(gradients, loss=np.sum(batch.x), state={{"seen": job.state["seen"] + 1}}{metrics})
{after}
"""


def linear(init="metrics=[]", before="", data="range(10)", show="batch.x.tolist()", metrics="", after=""):
    return LINEAR.format(init=init, before=before, data=data, show=show, metrics=metrics, after=after)


class LinearJobTest(unittest.TestCase):
    def run_steps(self, script, *records, **worker):
        """Opens the job and runs one step for each list of records. Returns the answers, the values of the gradients
        and what the script printed."""
        with FakeWorker(PYTHON, script, **worker) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            answers = []
            for batch in records:
                worker.start(parameters, gradients, batch)
                answers.append(worker.receive())
            worker.end()
            code, output = worker.finish()
            self.assertEqual(code, 0, output)
            return answers, worker.values(gradients), output.splitlines()

    def error_of(self, script, columns=(), **start):
        """Runs a script that makes a mistake. Returns the sentence that it sends to the worker."""
        with FakeWorker(PYTHON, script, columns) as worker:
            worker.model = worker.receive()
            if worker.model is not None and worker.model["type"] == "failed":
                self.assertEqual(worker.finish()[0], 1)
                return worker.model["message"]
            self.assertIsNotNone(worker.model, "no message; see the output")
            worker.send({"type": "open", "begins": [0, 4, 5], "words": 6})
            parameters, gradients = worker.new_block(24), worker.new_block(24)
            worker.start(parameters, gradients, [1], **start)
            message = worker.receive()
            if message is not None and message["type"] == "finished":
                worker.start(parameters, gradients, [1], **start)
                message = worker.receive()
            code, output = worker.finish()
            self.assertEqual(code, 1, output)
            self.assertIn("DisttrainError", output)
            self.assertIsNotNone(message, output)
            return message["message"]
