"""A job on a cluster: the script runs under a worker, which decides about every step.

The cluster must know the names of the metrics before the first step, but a script names them in its loop. So the
package runs the loop's body once on the first records and undoes its effects (the rehearsal), unless disttrain.init()
got the names.

The next batch of the script's own data set is read on the script's thread while the worker sends gradients. A thread
would run the data set's code beside the script's, and a process would have to copy the records.
"""

import builtins
import contextlib
import faulthandler
import signal
import sys
import traceback

import numpy as np

from disttrain import __version__
from disttrain.batch import Batch, Column
from disttrain.connection import PROTOCOL, Connection, number
from disttrain.constraint import description_of
from disttrain.errors import DisttrainError
from disttrain.job import NO_STEP, Job, as_float
from disttrain.random_states import RandomStates
from disttrain.variable import split
from disttrain.wrapping import is_complex


class ClusterJob(Job):
    def __init__(self, descriptor, metrics, optimizer):
        super().__init__(metrics, optimizer)
        self._connection = Connection(descriptor, self._own_process)
        self._report_errors()
        self._connection.send({"type": "hello", "protocol": PROTOCOL, "sdk": __version__})
        welcome = self._connection.receive()
        self._batch_size = welcome["batch_size"]
        self.seed = welcome["seed"]
        self._columns = [Column(column) for column in welcome["columns"]]
        self._rehearsal = None  # while it lasts: the values that the loop's body gives to step()
        self._start = None  # the message of the step that is due or under way
        self._is_under_way = False  # the script has the batch and hasn't called step() yet
        self._is_over = False
        self._failure = None  # an exception that _serve() raised
        self._upcoming = None  # the records of the next step, if the worker knows them
        self._fetched = None  # (records, their batch), read before the step that needs it
        self._begins = []
        self._words = 0

    def _check_source(self, dataset):
        if dataset is None and not self._columns:
            raise DisttrainError(
                "job.batches() got no data set, and job.toml has no section [data]: add one of the two"
            )
        if dataset is not None and self._columns:
            raise DisttrainError(
                "job.batches() got a data set, but job.toml has a section [data]: remove one of the two"
            )

    def checkpoint(self):
        self._own_process.check("job.checkpoint()")
        if self._rehearsal is None:
            self._connection.send({"type": "checkpoint"})

    # ---- the loop ----

    def _loop(self):
        if self._metrics is None:
            with self._rehearsing():
                yield self._rehearsal_batch(self._dataset, self._collate)
                self._own_process.check("the next batch of job.batches()")
                if not self._rehearsal:
                    raise DisttrainError("the loop's body didn't call job.step() or job.push_pull()")
                self._model.check_values()
                names = list(self._rehearsal[0])
                if self._evaluate is not None:
                    data = self._evaluation_data if self._evaluation_data is not None else self._dataset
                    batch = self._rehearsal_batch(data, self._evaluation_collate or self._collate)
                    names += self._run_evaluate(batch)[1]
            self._metrics = list(dict.fromkeys(names))
        self._describe()
        while True:
            if self._start is None and not self._is_over:
                self._wait()
            if self._is_over:
                self._model.check_values()
                self._model.end_loop()
                return
            self._is_under_way = True
            batch = self._training_batch()
            # A second array of gradients is there only if the worker adds up no parts of a step (train.accumulate).
            self._model.begin_batch(self._announce, is_only_read="spare" in self._start)
            yield batch
            self._own_process.check("the next batch of job.batches()")
            if self._is_under_way:
                raise DisttrainError(NO_STEP)

    def _finish_step(self, loss, metrics, write_gradients):
        loss = as_float("loss", loss)
        metrics = {name: as_float(name, value) for name, value in metrics.items()}
        if self._rehearsal is not None:
            write_gradients()
            self._rehearsal.append(metrics)
            return
        if not self._is_under_way:
            self._refuse_step()
        self._check_metrics(metrics, "the step got")
        write_gradients()
        answer = self._finished(loss, metrics, self._start)
        parameters, spare = self._start["parameters"], self._start.get("spare")
        self._is_under_way = False
        self._start = None
        self._connection.send(answer)
        if spare is not None:
            self._model.clear_ahead(str((parameters, spare)))
        self._fetch_next()
        self._wait()

    def _finished(self, loss, metrics, start):
        examples = start["examples"]
        accumulators = []
        for name in self._metrics:
            value = metrics.get(name)
            accumulators += (0.0, 0.0) if value is None else (number(value * examples), examples)
        loss_sum = number(loss * examples)
        return {"type": "finished", "number": start["number"], "loss_sum": loss_sum, "metrics": accumulators}

    def _wait(self):
        """Does what the worker asks for, until the next step's parameters and records are there."""
        # The worker waits for an answer that it won't get after an exception. So a loop that catches the exception gets it
        # once more.
        if self._failure is not None:
            raise self._failure
        try:
            self._serve()
        except BaseException as error:
            self._failure = error
            raise

    def _serve(self):
        while True:
            message = self._connection.receive()
            kind = message["type"]
            if kind == "open":
                self._open(message)
            elif kind == "values":
                self._give_values(message)
            elif kind == "end":
                self._is_over = True
                # A module in float16 or on a GPU has copies of the values, and gets the newest ones, too.
                self._model.load()
                self._model.note_values(is_last=True)
                return
            elif kind == "start":
                if "drop" in message:
                    self._model.forget()
                self.size = message["size"]
                self._bind(message)
                if message["program"] == "step":  # an evaluation has no rank and no seed
                    self.rank = message["rank"]
                    self.seed = message["seed"]
                    self.step_number = message["step"]
                    self._upcoming = self._records(message["next"]) if "next" in message else None
                    self._model.begin_step()
                    self._start = message
                    return
                with self._evaluation_randoms:
                    self._compute(message)

    def _compute(self, message):
        """Evaluates, or predicts."""
        data = self._evaluation_data if self._evaluation_data is not None else self._dataset
        batch = self._batch(message, data, self._evaluation_collate or self._collate)
        if message["program"] == "evaluate":
            loss, metrics = self._run_evaluate(batch)
            return self._connection.send(self._finished(loss, metrics, message))
        with self._model.evaluating():
            outputs = _array_of(self._predict(batch))
        if outputs.ndim == 0 or outputs.shape[0] != message["examples"] or outputs.size == 0:
            raise DisttrainError(
                f"the function of job.on_predict() returned the shape {list(outputs.shape)} for a batch of "
                f"{message['examples']} records; expected [records, outputs]"
            )
        return self._connection.send(
            {"type": "finished", "number": message["number"], "loss_sum": 0.0, "metrics": []}, outputs.reshape(-1)
        )

    # ---- the model in shared memory ----

    def _open(self, message):
        self._begins = message["begins"]
        self._words = message["words"]
        self._model.lay_out(self._begins)

    def _announce(self, end):
        self._connection.send({"type": "ready", "number": self._start["number"], "end": end})

    def _bind(self, message):
        places = message["parameters"], message["gradients"]
        # Two steps may use different arrays.
        self._model.bind(str(places), lambda: [self._connection.words(place, self._words) for place in places])
        self._model.load()

    def _give_values(self, message):
        flat = self._connection.words(message["into"], self._words)
        for view, value in zip(split(flat, self._begins, self._model.variables), self._model.initial()):
            view[...] = value
        self._connection.send({"type": "values"})

    # ---- batches ----

    def _batch(self, message, dataset, collate):
        if dataset is None:
            examples = message["examples"]
            columns = zip(self._columns, message["columns"])
            fields = [column.view(self._connection, part, examples) for column, part in columns]
            return self._named(fields, examples)
        return self._samples(dataset, self._records(message["columns"][0]), collate)

    def _records(self, part):
        return self._connection.bytes_at(*part).view(np.int64).tolist()

    def _training_batch(self):
        fetched, self._fetched = self._fetched, None
        if fetched is not None and fetched[0] == self._records(self._start["columns"][0]):
            return fetched[1]
        return self._batch(self._start, self._dataset, self._collate)

    def _fetch_next(self):
        """Reads the next batch while the worker sends this step's gradients."""
        if self._dataset is None or not self._prefetch or not self._upcoming:
            return
        self._fetched = self._upcoming, self._samples(self._dataset, self._upcoming, self._collate)

    # ---- before the job ----

    @contextlib.contextmanager
    def _rehearsing(self):
        randoms = RandomStates()
        self._model.begin_rehearsal()
        self._rehearsal = []
        yield
        self._rehearsal = None
        self._model.reset()
        randoms.restore()

    def _rehearsal_batch(self, dataset, collate):
        if dataset is not None:
            return self._samples(dataset, list(range(min(self._batch_size, len(dataset)))), collate)
        fields = [column.zeros(self._batch_size) for column in self._columns]
        return self._named(fields, self._batch_size)

    def _named(self, fields, examples):
        parts = {
            name: (number, first, tuple(shape))
            for number, column in enumerate(self._columns)
            for name, first, shape in column.parts
        }
        return self._as_tensors(Batch(fields, [column.name for column in self._columns], examples, parts))

    def _describe(self):
        self._connection.send(
            {
                "type": "describe",
                "variables": list(map(description_of, self._model.variables)),
                "metrics": self._metrics,
                "records": 0 if self._dataset is None else len(self._dataset),
                "evaluation_records": 0 if self._evaluation_data is None else len(self._evaluation_data),
                "evaluates": self._evaluate is not None,
                "predicts": self._predict is not None,
                "clears_ahead": self._model.is_torch,
            }
        )

    # ---- errors ----

    def _report_errors(self):
        # If the script doesn't answer, the worker sends this signal before it kills the script.
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        # A crash in native code ends the script without a traceback. Then Python prints where it was. The worker keeps only
        # the last lines, so only the thread that crashed prints them.
        if not faulthandler.is_enabled():
            faulthandler.enable(all_threads=False)
        print_error = sys.excepthook

        def report(kind, error, trace):
            print_error(kind, error, trace)
            first, trace = _first_of(error, trace)
            if first is not error:
                # The chief compares exceptions by their places, which it finds in an ordinary traceback at the end.
                print("disttrain: the first exception of the group, alone:", file=sys.stderr)
                traceback.print_exception(type(first), first, trace, chain=False)
            if isinstance(first, DisttrainError) and self._own_process.is_here():
                with contextlib.suppress(ConnectionError, DisttrainError):
                    self._connection.send({"type": "failed", "message": str(first)})

        sys.excepthook = report


def _array_of(outputs):
    """A copy of what the function of job.on_predict() returned, which may be a buffer."""
    if is_complex(outputs):
        raise DisttrainError("the function of job.on_predict() returned complex numbers; expected real ones")
    try:
        return np.ascontiguousarray(outputs.detach().cpu() if hasattr(outputs, "detach") else outputs, np.float32).copy()
    except (TypeError, ValueError, OverflowError) as error:
        raise DisttrainError(
            f"the function of job.on_predict() returned a {type(outputs).__name__} that isn't an array of numbers "
            f"({error}); expected [records, outputs]"
        ) from None


def _first_of(error, trace):
    """The first exception of a group, as asyncio.TaskGroup raises it, with its traceback; `error` and `trace` if it isn't a
    group. An exception that was never raised has no traceback, and gets its group's."""
    group = getattr(builtins, "BaseExceptionGroup", ())  # Python has it since 3.11
    while isinstance(error, group):
        error = error.exceptions[0]
        trace = error.__traceback__ or trace
    return error, trace
