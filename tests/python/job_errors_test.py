"""Errors of scripts that use the package disttrain under a worker: the sentence for each wrong use, and what the script
prints of other errors."""

import unittest

from fake_worker import FakeWorker, run_code
from linear_job import PYTHON, LinearJobTest, linear


class JobErrorsTest(LinearJobTest):
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

    def test_an_error_of_an_evaluation_that_the_loop_catches_ends_the_script(self):
        """The worker waits for the answer, and the script must not wait for the worker."""
        script = """
import disttrain, numpy as np
job = disttrain.init(metrics=[])
job.wrap({"w": np.ones(1, np.float32)})
job.on_evaluate(lambda batch: {"loss": 1 / 0})
for batch in job.batches(range(10)):
    try:
        job.push_pull({"w": np.ones(1)}, loss=0)
    except ZeroDivisionError:
        print("caught")
"""
        with FakeWorker(PYTHON, script) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4), worker.new_block(4)
            worker.start(parameters, gradients, [1])
            self.assertEqual(worker.receive()["type"], "finished")
            worker.start(parameters, gradients, [1], program="evaluate")
            code, output = worker.finish()
            self.assertEqual((code, output.splitlines()[0]), (1, "caught"), output)
            self.assertEqual(output.splitlines()[-1], "ZeroDivisionError: division by zero")

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


if __name__ == "__main__":
    unittest.main()
