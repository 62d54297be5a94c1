"""Scripts that use the package disttrain under a worker."""

import array
import unittest

from fake_worker import FakeWorker, run_code
from linear_job import PYTHON, LinearJobTest, linear


class JobTest(LinearJobTest):
    def test_the_model_is_described_by_the_names_of_the_tree(self):
        with FakeWorker(PYTHON, linear(init="metrics=['accuracy']")) as worker:
            self.assertEqual(worker.hello["protocol"], 1)
            worker.open()
            self.assertEqual(
                worker.model,
                {
                    "type": "describe",
                    "variables": [
                        ["layer/w", [2, 2], "trainable", "float32"],
                        ["layer/b", [1], "trainable", "float32"],
                        ["seen", [1], "state", "float32"],
                    ],
                    "metrics": ["accuracy"],
                    "records": 10,
                    "evaluation_records": 0,
                    "evaluates": False,
                    "predicts": False,
                    "clears_ahead": False,
                },
            )
            self.assertEqual(worker.initial(), {"layer/w": [1, 1, 1, 1], "layer/b": [0], "seen": [0]})

    def test_arrays_of_float64_stay_float64(self):
        script = """
import disttrain, numpy as np
job = disttrain.init(metrics=[])
job.wrap({"wide": np.full(2, 0.1), "narrow": np.full(3, 0.1, "f4")}, state={"seen": np.zeros(1)})
for batch in job.batches(range(10)):
    print(job.variables["wide"].dtype, job.variables["narrow"].dtype, job.state["seen"].dtype)
    gradients = {"wide": job.variables["wide"] / 3, "narrow": job.variables["narrow"] / 3}
    job.push_pull(gradients, loss=0, state={"seen": job.state["seen"] + 0.1})
"""
        with FakeWorker(PYTHON, script) as worker:
            worker.open()
            self.assertEqual([dtype for *_, dtype in worker.model["variables"]], ["float64", "float32", "float64"])
            self.assertEqual((worker.words, worker.begins), (9, [2, 6, 0]))
            initial = worker.initial()
            self.assertEqual(initial["wide"], [0.1, 0.1])
            self.assertNotEqual(initial["narrow"], [0.1, 0.1, 0.1])
            parameters, gradients = worker.new_block(36), worker.new_block(36)
            worker.fill(parameters, {"wide": [0.1, 0.7], "narrow": [1, 2, 3], "seen": [0.2]})
            worker.start(parameters, gradients, [1])
            self.assertEqual(worker.receive()["type"], "finished")
            given = worker.values(gradients)
            self.assertEqual((given["wide"], given["seen"]), ([0.1 / 3, 0.7 / 3], [0.2 + 0.1]))
            worker.end()
            _, output = worker.finish()
            self.assertIn("float64 float32 float64", output)

    def test_steps(self):
        script = linear(
            init="metrics=['m']",
            show="batch.x.tolist(), job.step_number, job.rank, job.size, job.seed",
            metrics=", m=0.5",
            after="print('after the loop')",
        )
        answers, gradients, output = self.run_steps(script, [1, 2], [3])
        self.assertEqual([answer["loss_sum"] for answer in answers], [6, 3])
        self.assertEqual([answer["metrics"] for answer in answers], [[1, 2], [0.5, 1]])
        self.assertEqual(gradients, {"layer/w": [3, 3, 3, 3], "layer/b": [1], "seen": [1]})
        self.assertEqual(output, ["batch [1, 2] 1 1 3 7", "batch [3] 1 1 3 7", "after the loop"])

    def test_gradients_can_be_written_into_the_shared_memory(self):
        script = """
import disttrain, numpy as np
job = disttrain.init()
job.wrap({"layer": {"w": np.ones((2, 2), "f4"), "b": np.zeros(1)}}, state={"seen": np.zeros(1, "f4")})
for batch in job.batches(range(10)):
    gradients = job.gradients
    gradients["layer"]["w"][...] = float(np.sum(batch.x))
    gradients["layer"]["b"][...] = 0.1
    print(np.shares_memory(gradients["layer"]["w"], job.gradients["layer"]["w"]))
    job.push_pull(gradients, loss=0, state={"seen": job.state["seen"] + 1})
"""
        _, gradients, output = self.run_steps(script, [1, 2], [3])
        self.assertEqual(gradients, {"layer/w": [3, 3, 3, 3], "layer/b": [0.1], "seen": [1]})
        self.assertEqual(output, ["False", "True", "True"])  # the rehearsal has no shared memory

    def test_variables_and_state_are_read_only(self):
        script = linear(
            init="",
            before="""
def write(array):
    try:
        array += 1
    except ValueError as error:
        return str(error)
print(write(job.variables["layer"]["w"]), write(job.state["seen"]))
""",
            show="job.step_number, write(job.variables['layer']['b']), write(job.state['seen']), write(job.gradients['layer']['b'])",
        )
        _, gradients, output = self.run_steps(script, [3])
        refused = "output array is read-only"
        self.assertEqual(output[0], f"{refused} {refused}")
        self.assertEqual(output[1:], [f"batch {step} {refused} {refused} None" for step in (0, 1)])
        self.assertEqual(gradients["seen"], [1])

    def test_the_seed_is_known_before_the_first_step(self):
        _, _, output = self.run_steps(linear(before="print(job.seed)"), [3])
        self.assertEqual(output[0], "5")

    def test_step_returns_with_the_new_parameters(self):
        script = linear(show="float(job.variables['layer']['b'][0]), open('/proc/self/maps').read().count('memfd')")
        with FakeWorker(PYTHON, script) as worker:
            worker.open()
            # Two pairs of arrays alternate, as with train.pipeline = 1. Then one pair is released.
            pairs = [[worker.new_block(4 * worker.words) for _ in range(2)] for _ in range(3)]
            for i, pair in enumerate((0, 1, 0, 1, 2)):
                values = {"layer/w": [0] * 4, "layer/b": [10 + i], "seen": [i]}
                worker.fill(pairs[pair][0], values)
                worker.start(*pairs[pair], [1], drop=pairs[0] if pair == 2 else ())
                worker.receive()
                self.assertEqual(worker.values(pairs[pair][1])["seen"], [i + 1])
            worker.end()
            code, output = worker.finish()
            self.assertEqual(code, 0, output)
            lines = [line.split() for line in output.splitlines()]
            self.assertEqual([line[:2] for line in lines], [["batch", str(10.0 + i)] for i in range(5)])
            # Each batch brings a block. The first two steps and the last one bring two arrays, and the last one also
            # drops two.
            blocks = [int(line[2]) for line in lines]
            self.assertEqual([blocks[i] - blocks[0] for i in range(5)], [0, 3, 4, 5, 6])

    def test_without_metrics_the_loop_is_rehearsed_first(self):
        script = linear(
            init="",
            before="""
import random
random.seed(1); np.random.seed(1)
job.on_evaluate(lambda batch: {"loss": 0.0, "b": 1.0, "c": 1.0})
""",
            show="batch.x.tolist(), random.random(), np.random.rand()",
            metrics=", a=1, b=2",
        )
        answers, _, output = self.run_steps(script, [7])
        self.assertEqual(answers[0]["metrics"], [1, 1, 2, 1, 0, 0])  # a, b, c; a step doesn't give c
        self.assertEqual(len(output), 2)
        self.assertTrue(output[0].startswith("batch [0, 1, 2, 3] "), output)
        self.assertEqual(output[0].split("] ")[1], output[1].split("] ")[1], "the random numbers differ")

    def test_numpys_generator_may_be_of_another_kind(self):
        code = """
import warnings
warnings.simplefilter("error")
import numpy as np
from disttrain.random_states import OwnRandomNumbers, RandomStates
for kind in ("MT19937", "PCG64", "Philox"):
    np.random.set_bit_generator(getattr(np.random, kind)(1))
    np.random.randn()  # NumPy keeps a second one for the next call
    noted, own = RandomStates(), OwnRandomNumbers()
    before = np.random.randn(3)
    noted.restore()
    for _ in range(2):
        with own:
            np.random.randn(5)
    print(kind, bool((np.random.randn(3) == before).all()))
    np.random.set_bit_generator(np.random.SFC64(1))
    noted.restore()
    with own:
        pass
    print(np.random.get_bit_generator().state["bit_generator"])
"""
        done = run_code(PYTHON, code)
        self.assertEqual(done.stdout.split(), "MT19937 True SFC64 PCG64 True SFC64 Philox True SFC64".split(), done.stderr)

    def test_columns_of_the_jobs_own_data(self):
        columns = [
            {"name": "pixels", "dtype": "uint8", "shape": [2, 2], "ragged": False, "pad": 0, "parts": []},
            {"name": "words", "dtype": "int32", "shape": [5], "ragged": True, "pad": -1, "parts": []},
            {"name": "text", "dtype": "bytes", "shape": [100], "ragged": True, "pad": 0, "parts": []},
        ]
        show = "batch['pixels'].tolist(), batch.words.tolist(), batch.text, batch.y is batch.words"
        for init, lines in (("metrics=[]", 1), ("", 2)):  # the second script rehearses, with zeros
            with FakeWorker(PYTHON, linear(init=init, data="", show=show), columns, batch_size=2) as worker:
                worker.open()
                self.assertEqual(worker.model["records"], 0)
                parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
                data = [
                    (bytes(range(8)),),
                    (array.array("i", [5, 6, 7]).tobytes(), array.array("Q", [2, 3]).tobytes()),
                    (b"helloyou", array.array("Q", [5, 8]).tobytes()),
                ]
                worker.start(parameters, gradients, columns=data, examples=2)
                self.assertEqual(worker.receive()["loss_sum"], 2 * 28)
                worker.end()
                code, output = worker.finish()
                self.assertEqual(code, 0, output)
                expected = "batch [[[0, 1], [2, 3]], [[4, 5], [6, 7]]] [[5, 6], [7, -1]] [b'hello', b'you'] True"
                self.assertEqual(output.splitlines()[-1], expected)
                self.assertEqual(len(output.splitlines()), lines)

    def test_columns_of_job_toml_are_views_by_their_names(self):
        columns = [
            {
                "name": "inputs",
                "dtype": "uint8",
                "shape": [5],
                "ragged": False,
                "pad": 0,
                "parts": [["age", 0, []], ["pixels", 1, [2, 2]]],
            },
            {"name": "labels", "dtype": "int64", "shape": [], "ragged": False, "pad": 0, "parts": [["clicked", 0, []]]},
        ]
        show = (
            "batch['age'].tolist(), batch.pixels.tolist(), batch.clicked.tolist(), "
            "np.shares_memory(batch.pixels, batch.inputs), len(batch), batch.keys()"
        )
        with FakeWorker(PYTHON, linear(init="metrics=[]", data="", show=show), columns, batch_size=2) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            data = [(bytes(range(10)),), (array.array("q", [1, 0]).tobytes(),)]
            worker.start(parameters, gradients, columns=data, examples=2)
            worker.receive()
            worker.end()
            code, output = worker.finish()
        self.assertEqual(code, 0, output)
        self.assertEqual(
            output.splitlines()[-1],
            "batch [0, 5] [[[1, 2], [3, 4]], [[6, 7], [8, 9]]] [1, 0] True 2 ['inputs', 'labels']",
        )
        with FakeWorker(PYTHON, linear(init="metrics=[]", data="", show="batch.town"), columns, batch_size=2) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            worker.start(parameters, gradients, columns=data, examples=2)
            _, output = worker.finish()
        self.assertIn("no field town; its fields are ['inputs', 'labels', 'age', 'pixels', 'clicked']", output)

    def test_samples_of_every_kind(self):
        for data, show, expected in (
            ("[(i, -i) for i in range(9)]", "[part.tolist() for part in batch]", "[[1, 2], [-1, -2]]"),
            ("[{'x': 0.5, 'n': i} for i in range(9)]", "batch.keys(), batch['n'].tolist()", "['x', 'n'] [1, 2]"),
            ("[(np.full(2, i), 'a') for i in range(9)]", "batch.x.tolist(), batch.y", "[[1, 1], [2, 2]] ['a', 'a']"),
            ("range(9), lambda some: type('B', (), {'x': some})", "batch.x", "[1, 2]"),
        ):
            _, _, output = self.run_steps(linear(data=data, show=show), [1, 2])
            self.assertEqual(output, ["batch " + expected])

    def test_evaluation_and_prediction(self):
        script = linear(
            init="metrics=['m']",
            before="""
job.on_predict(lambda batch: batch.x[:, None] * np.float64([1, 2]))
@job.on_evaluate(dataset=[100, 200])
def evaluate(batch):
    return {"loss": batch.x.mean(), "m": job.variables["layer"]["b"][0]}
""",
        )
        with FakeWorker(PYTHON, script) as worker:
            worker.open()
            found = [worker.model[key] for key in ("evaluation_records", "evaluates", "predicts")]
            self.assertEqual(found, [2, True, True])
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            worker.fill(parameters, {"layer/w": [0] * 4, "layer/b": [5], "seen": [0]})
            worker.start(parameters, gradients, [0, 1], program="evaluate")
            answer = worker.receive()
            self.assertEqual((answer["loss_sum"], answer["metrics"]), (300, [10, 2]))
            worker.start(parameters, gradients, [1], program="predict")
            self.assertEqual(worker.receive()["payload"], [200, 400])
            worker.start(parameters, gradients, [3])
            self.assertEqual(worker.receive()["loss_sum"], 3)

    def test_a_loss_that_isnt_finite_is_sent(self):
        for value, text in (("nan", "nan"), ("inf", "inf"), ("-inf", "-inf")):
            script = linear(metrics="").replace("loss=np.sum(batch.x)", f"loss=float('{value}')")
            self.assertEqual(self.run_steps(script, [1])[0][0]["loss_sum"], text)

    def test_checkpoints_are_asked_for(self):
        with FakeWorker(PYTHON, linear(init="", before="", show="job.checkpoint()")) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            worker.start(parameters, gradients, [1])
            self.assertEqual(worker.receive(), {"type": "checkpoint"})  # the rehearsal asked for none
            self.assertEqual(worker.receive()["type"], "finished")

    def test_a_program_that_the_script_starts_doesnt_get_the_socket(self):
        script = linear(
            before="import os, subprocess\nprint(os.environ.keys())\n"
            "subprocess.run(['ls', '-l', '/proc/self/fd'], close_fds=False)"
        )
        _, _, output = self.run_steps(script, [1])
        self.assertNotIn("socket:", "\n".join(output))
        self.assertNotIn("DISTTRAIN_TRAINER", "\n".join(output))


if __name__ == "__main__":
    unittest.main()
