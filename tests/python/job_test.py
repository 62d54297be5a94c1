"""Scripts that use the package disttrain, under a worker and alone."""

import array
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from fake_worker import PACKAGE, FakeWorker, require_python, run_code

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


class JobTest(unittest.TestCase):
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

    def test_wrong_uses_are_told_to_the_worker(self):
        step = "job.push_pull({'layer': {'w': np.zeros((2, 2)), 'b': np.zeros(1)}}, loss=0)"
        for expected, script in {
            "init() was called twice": linear(before="disttrain.init()"),
            "job.on_predict() was called after job.batches()": linear(show="job.on_predict(len)"),
            "got a Loader, which has no len(dataset) or no dataset[i]: pass the loader's data set": linear(
                before="class Loader: dataset = collate_fn = __iter__ = __len__ = None", data="Loader()"
            ),
            "got a list_iterator, which has no len(dataset)": linear(data="iter([1])"),
            "the tree of gradients isn't like": linear(init="").replace('"b": np.ones(1)}}', '"c": np.ones(1)}}'),
            "has no model yet": "import disttrain\njob = disttrain.init()\njob.batches([1])",
            "got no data set": linear(data=""),
            "is empty": linear(data="[]"),
            "was called twice; a job has one model": linear(before="job.wrap({'w': np.zeros(1)})"),
            "was called twice; a job has one loop": linear(show="job.batches([1])"),
            "without a batch, or twice for one": linear(show=step + " and " + step),
            'the value of "b" is an object of the class list; expected one real number': linear(metrics=", b=[1, 2]"),
            "is a tree of arrays: call job.push_pull": linear(show="job.step(loss=1)"),
            "didn't call job.step()": "import disttrain, numpy as np\njob = disttrain.init()\n"
            "job.wrap({'w': np.ones(4)})\nfor batch in job.batches([1]): pass",
            "job.wrap() got one array (ndarray) with the shape [20]": "import disttrain, numpy as np\n"
            "disttrain.init().wrap(np.zeros(20))",
            'the array "layer/b" without elements (shape [0])': linear().replace("np.zeros(1", "np.zeros(0"),
            "expected floats": linear(before="").replace('np.ones((2, 2), "f4")', "np.ones((2, 2), int)"),
            'job.on_evaluate() returned None; expected a dict with the mean "loss"': linear(
                init="", before="job.on_evaluate(lambda batch: None)"
            ),
            'without a "loss"': linear(init="", before="job.on_evaluate(lambda batch: {'accuracy': 1})"),
            "can't be stacked": linear(init="", data="[np.zeros(1), np.zeros(2)]"),
            'the new value of "seen" has the shape [2]; expected [1]': linear(show="").replace(
                'job.state["seen"] + 1', "np.zeros(2)"
            ),
        }.items():
            with self.subTest(expected):
                self.assertIn(expected, self.error_of(script))
        column = {"name": "x", "dtype": "uint8", "shape": [], "ragged": False, "pad": 0, "parts": []}
        self.assertIn("has a section [data]", self.error_of(linear(), [column]))

    def test_metrics_that_init_doesnt_name(self):
        evaluate = "job.on_evaluate(lambda batch: {{'loss': 0, {}}}, dataset=range(5))"
        for expected, script, start in (
            (
                'the step got the metric b, which disttrain.init(metrics=["a"]) doesn\'t name; write '
                'disttrain.init(metrics=["a", "b"])',
                linear(init="metrics=['a']", metrics=", b=1"),
                {},
            ),
            (
                "the step got the metrics b, c, which the rehearsal of the loop's body didn't have; write "
                'disttrain.init(metrics=["a", "b", "c"])',
                linear(init="", metrics=", **({'a': 1} if job.step_number == 0 else {'a': 1, 'b': 1, 'c': 1})"),
                {},
            ),
            (
                'the function of job.on_evaluate() returned the metric top_5, which disttrain.init(metrics=["größe"]) doesn\'t '
                'name; write disttrain.init(metrics=["größe", "top_5"])',
                linear(init="metrics=['größe']", before=evaluate.format("'top_5': 1")),
                {"program": "evaluate"},
            ),
            (
                "the function of job.on_evaluate() returned the metrics [1]; expected texts as names",
                linear(before=evaluate.format("1: 1")),
                {"program": "evaluate"},
            ),
        ):
            with self.subTest(expected):
                self.assertEqual(self.error_of(script, **start), expected)

    def test_names_of_metrics_that_arent_names(self):
        for names, error in {
            "'accuracy'": 'disttrain.init(metrics="accuracy") got a text; write disttrain.init(metrics=["accuracy"])',
            "['a', 1]": "disttrain.init(metrics=['a', 1]) got a name that isn't a text; expected names of metrics",
        }.items():
            done = run_code(PYTHON, linear(init=f"metrics={names}"))
            self.assertEqual(done.stderr.splitlines()[-1], "disttrain.errors.DisttrainError: " + error)

    def test_values_that_arent_real_numbers_are_named(self):
        for value, what in {
            "1j": "complex; expected one real number",
            "np.complex64(1)": "complex; expected one real number",
            "np.zeros((), complex)": "complex; expected one real number",
            "np.zeros(2)": "one array (ndarray) with the shape [2]; expected one real number",
            "'0.5'": "an object of the class str; expected one real number",
            "None": "None; expected one real number",
            "10 ** 400": "larger than a float can be; expected a number of at most 1.8e308",
        }.items():
            with self.subTest(value):
                loss = linear().replace("loss=np.sum(batch.x)", f"loss={value}")
                self.assertEqual(self.error_of(loss), f'the value of "loss" is {what}')
                metric = linear(init="metrics=['m']", metrics=f", m={value}")
                self.assertEqual(self.error_of(metric), f'the value of "m" is {what}')
                evaluation = linear(before=f"job.on_evaluate(lambda batch: {{'loss': {value}}}, dataset=range(5))")
                self.assertEqual(self.error_of(evaluation, program="evaluate"), f'the value of "loss" is {what}')

    def test_gradients_and_state_that_arent_real_numbers_are_named(self):
        for value, what in {
            "np.ones(1, complex)": "has values of type complex128; expected real numbers, as the variable has",
            "'text'": "has values of type <U4; expected real numbers, as the variable has",
            "10 ** 400": "has values of type object; expected real numbers, as the variable has",
            "Unreadable()": "is an object of the class Unreadable, of which NumPy can't make an array (call cpu() first); "
            "expected an array of real numbers",
        }.items():
            unreadable = "class Unreadable:\n    def __array__(self, *a, **k): raise TypeError('call cpu() first')"
            for init in ("", "metrics=[]"):  # the first script has a rehearsal
                with self.subTest(value, init=init):
                    gradient = linear(init, unreadable).replace('"b": np.ones(1)}}', f'"b": {value}}}}}')
                    self.assertEqual(self.error_of(gradient), f'the gradient of "layer/b" {what}')
                    state = linear(init, unreadable).replace('job.state["seen"] + 1', value)
                    self.assertEqual(self.error_of(state), f'the new value of "seen" {what}')

    def test_outputs_that_arent_numbers_are_named(self):
        script = linear(before="job.on_predict(lambda batch: np.ones((1, 2), complex))")
        self.assertEqual(
            self.error_of(script, program="predict"),
            "the function of job.on_predict() returned complex numbers; expected real ones",
        )
        for outputs, kind in (("['a']", "list"), ("{'a': 1}", "dict"), ("[[1], [2, 3]]", "list")):
            script = linear(before=f"job.on_predict(lambda batch: {outputs})")
            error = self.error_of(script, program="predict")
            self.assertIn(f"job.on_predict() returned a {kind} that isn't an array of numbers (", error)
            self.assertIn("; expected [records, outputs]", error)

    def test_a_script_that_closes_its_socket_is_told(self):
        for close in (
            "os.closerange(3, 100)",
            "os.dup2(os.open('/dev/null', os.O_RDWR), job._connection._socket.fileno())",  # another file has its number
        ):
            for moment in ({"before": f"import os\n{close}"}, {"before": "import os", "show": close}):
                with self.subTest(close, **moment), FakeWorker(PYTHON, linear(**moment)) as worker:
                    message = worker.receive()
                    if message is not None:
                        worker.send({"type": "open", "begins": [0, 4, 5], "words": 6})
                        worker.start(worker.new_block(24), worker.new_block(24), [1])
                        message = worker.receive()
                    self.assertIsNone(message)
                    code, output = worker.finish()
                    self.assertEqual((code, output.count("Traceback")), (1, 1), output)
                    self.assertRegex(
                        output.splitlines()[-1],
                        r"DisttrainError: the script has closed descriptor \d+, its socket to the worker; expected that a ",
                    )

    def test_other_errors_are_only_printed(self):
        with FakeWorker(PYTHON, linear(init="", show="1 / 0")) as worker:
            self.assertIsNone(worker.receive())
            code, output = worker.finish()
            self.assertEqual(code, 1)
            self.assertIn("ZeroDivisionError", output.splitlines()[-1])

    def test_an_exception_group_ends_with_the_traceback_of_its_first_exception(self):
        before = """
def fail():
    try:
        raise ValueError("bad label 7")
    except ValueError as error:
        raise ExceptionGroup("tasks", [ExceptionGroup("of one", [error, KeyError(1)]), KeyError(2)])
"""
        with FakeWorker(PYTHON, linear(before=before, data="[fail()]")) as worker:
            self.assertIsNone(worker.receive())
            code, output = worker.finish()
        self.assertEqual(code, 1)
        *_, title, head, place, line, error = output.splitlines()
        self.assertIn("  | ExceptionGroup: tasks (2 sub-exceptions)", output)
        self.assertEqual((title, head), ("disttrain: the first exception of the group, alone:", "Traceback (most recent call last):"))
        self.assertRegex(place, r'^  File "/\S+/train.py", line \d+, in fail$')
        self.assertEqual((line, error), ('    raise ValueError("bad label 7")', "ValueError: bad label 7"))

    def test_an_exception_of_a_group_that_was_never_raised_gets_the_place_of_its_group(self):
        with FakeWorker(PYTHON, linear(show='(_ for _ in ()).throw(ExceptionGroup("all", [KeyError(1)]))')) as worker:
            worker.open()
            worker.start(worker.new_block(24), worker.new_block(24), [1])
            worker.receive()
            output = worker.finish()[1]
        lines = output[output.index("alone:") :].splitlines()
        self.assertRegex(lines[2], r'^  File "/\S+/train.py", line \d+, in <module>$')
        self.assertEqual(lines[-1], "KeyError: 1")

    def test_a_wrong_use_in_a_group_is_told_to_the_worker(self):
        before = """
def fail():
    try:
        job.wrap({})
    except disttrain.DisttrainError as error:
        raise ExceptionGroup("tasks", [error])
"""
        self.assertIn("a job has one model", self.error_of(linear(before=before, data="[fail()]")))

    def test_a_program_that_the_script_starts_doesnt_get_the_socket(self):
        script = linear(
            before="import os, subprocess\nprint(os.environ.keys())\n"
            "subprocess.run(['ls', '-l', '/proc/self/fd'], close_fds=False)"
        )
        _, _, output = self.run_steps(script, [1])
        self.assertNotIn("socket:", "\n".join(output))
        self.assertNotIn("DISTTRAIN_TRAINER", "\n".join(output))


class AloneTest(unittest.TestCase):
    def run_script(self, script):
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("DISTTRAIN_TRAINER", None)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "train.py"
            path.write_text(script)
            return subprocess.run([PYTHON, str(path)], env=environment, capture_output=True, text=True, timeout=60)

    def test_the_same_script_trains_alone(self):
        script = linear(
            init="alone=disttrain.Alone(learning_rate=0.5, batch_size=4, epochs=2)",
            before="job.on_evaluate(lambda batch: {'loss': 7.0}, dataset=range(3))",
            show="sorted(batch.x.tolist()), job.rank, job.size",
            after="print(job.variables['layer']['b'], job.state['seen'], job.variables['layer']['w'][0, 0])",
        )
        done = self.run_script(script)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 7)
        # Two epochs of 10 records in batches of 4: 6 steps, and each record is visited twice.
        self.assertEqual(lines[-1], f"[-3.] [6.] {1 - 0.5 * 2 * 45}")
        self.assertIn("so it trains alone: SGD(0.5), batches of 4 records", done.stderr)
        self.assertIn("evaluation after epoch 1: loss 7", done.stderr)

    def test_ctrl_c_is_one_line(self):
        done = self.run_script(linear(show="os.kill(os.getpid(), signal.SIGINT)", before="import os, signal"))
        self.assertEqual(done.returncode, -signal.SIGINT)
        self.assertEqual(done.stderr.splitlines()[-1], "disttrain: interrupted in step 1")
        self.assertNotIn("Traceback", done.stderr)

    def test_alone_metrics_that_init_doesnt_name_are_found_too(self):
        evaluate = "job.on_evaluate(lambda batch: {'loss': 0, 'm': 1}, dataset=range(3))"
        for script, where in (
            (linear(metrics=", m=1"), "the step got"),
            (linear(before=evaluate), "the function of job.on_evaluate() returned"),
        ):
            done = self.run_script(script)
            self.assertIn(f'{where} the metric m, which disttrain.init(metrics=[]) doesn\'t name; write ', done.stderr)

    def test_alone_an_optimizer_that_is_none_is_refused(self):
        done = self.run_script(linear(init="alone=disttrain.Alone(optimizer=lambda parameters: 1)"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("disttrain.Alone(optimizer=...) got the function <lambda>; expected an optimizer of torch.optim", done.stderr)

    def test_alone_a_data_set_is_required(self):
        done = self.run_script(linear(data=""))
        self.assertEqual(done.returncode, 1)
        self.assertIn("alone has no [data] of a job.toml", done.stderr)


if __name__ == "__main__":
    unittest.main()
