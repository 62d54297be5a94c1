"""A job without a cluster: the script was started by hand. It trains in one process, for debugging."""

import dataclasses
import sys
import time

import numpy as np

from disttrain.errors import DisttrainError
from disttrain.job import NO_STEP, Job, as_float
from disttrain.variable import split
from disttrain.wrapping import kind_of


@dataclasses.dataclass
class Alone:
    """What a script that runs alone does. On a cluster, job.toml says this instead."""

    learning_rate: float = 0.01  # of plain SGD
    optimizer: object = None  # an optimizer of torch.optim on the module's parameters, instead of SGD
    batch_size: int = 32
    epochs: int = 1
    seed: int = 1  # of the order of the records


class AloneJob(Job):
    _is_alone = True

    def __init__(self, settings, metrics):
        super().__init__(metrics, settings.optimizer)
        if settings.optimizer is not None and not callable(getattr(settings.optimizer, "step", None)):
            raise DisttrainError(
                f"disttrain.Alone(optimizer=...) got {kind_of(settings.optimizer)}; expected an optimizer of torch.optim on the "
                "module's parameters, such as torch.optim.Adam(model.parameters())"
            )
        self._settings = settings
        self.seed = settings.seed
        self._examples = 0  # of the batch under way; 0: none is
        self._is_last = False  # the step is the loop's last one
        self._values = []
        self._gradients = []
        self._shown = 0.0
        rule = "the script's optimizer" if settings.optimizer is not None else f"SGD({settings.learning_rate})"
        self._say(
            f"no worker has started this script, so it trains alone: {rule}, batches of {settings.batch_size} records, "
            f"epochs: {settings.epochs} (disttrain.init(alone=disttrain.Alone(...)) changes this)"
        )

    def _check_source(self, dataset):
        if dataset is None:
            raise DisttrainError(
                "a script that runs alone has no [data] of a job.toml: pass a data set to job.batches()"
            )

    def checkpoint(self):
        self._say("job.checkpoint() was called: without a cluster there are no checkpoints")

    def _loop(self):
        dataset, collate = self._dataset, self._collate
        self._make_arrays()
        size = self._settings.batch_size
        for epoch in range(self._settings.epochs):
            order = np.random.default_rng([self.seed, epoch]).permutation(len(dataset))
            for begin in range(0, len(order), size):
                records = order[begin : begin + size].tolist()
                self._model.begin_step()
                self._examples = len(records)
                self._is_last = epoch + 1 == self._settings.epochs and begin + size >= len(order)
                self.step_number += 1
                batch = self._samples(dataset, records, collate)
                self._model.begin_batch()
                yield batch
                self._own_process.check("the next batch of job.batches()")
                if self._examples > 0:
                    raise DisttrainError(NO_STEP)
                self._model.check_values()
            with self._evaluation_randoms:
                self._evaluate_all(epoch, collate)
        self._model.end_loop()

    def _make_arrays(self):
        variables = self._model.variables
        begins = [0] * len(variables)
        words = 0
        # float64 first, as in a layout: a double must begin at a multiple of 8 bytes
        for i in sorted(range(len(variables)), key=lambda i: variables[i].dtype == "float32"):
            begins[i] = words
            words += variables[i].words
        values, gradients = (np.zeros(words, np.float32) for _ in range(2))
        self._values = split(values, begins, variables)
        self._gradients = split(gradients, begins, variables)
        for to, value in zip(self._values, self._model.initial()):
            to[...] = value
        self._model.lay_out(begins)
        self._model.bind("alone", lambda: (values, gradients))

    def _finish_step(self, loss, metrics, write_gradients):
        if self._examples == 0:
            self._refuse_step()
        if self._metrics is not None:
            self._check_metrics(metrics, "the step got")
        values = {"loss": as_float("loss", loss), **{name: as_float(name, value) for name, value in metrics.items()}}
        write_gradients()
        self._update()
        self._examples = 0
        if time.monotonic() - self._shown >= 1.0 or self.step_number <= 3:
            self._shown = time.monotonic()
            self._show(f"step {self.step_number}", values)

    def _update(self):
        for variable, value, gradient in zip(self._model.variables, self._values, self._gradients):
            if variable.kind == "state":
                value[...] = gradient
            elif self._settings.optimizer is None:
                value -= self._settings.learning_rate * gradient
        if self._settings.optimizer is not None:
            self._settings.optimizer.step()
            self._model.store()
        for variable, value in zip(self._model.variables, self._values):
            if variable.bounds is not None:
                np.clip(value, *variable.bounds, out=value)
        self._model.load()
        self._model.note_values(self._is_last)

    def _evaluate_all(self, epoch, collate):
        data = self._evaluation_data
        if self._evaluate is None or data is None:
            return
        sums = {}
        for begin in range(0, len(data), self._settings.batch_size):
            records = list(range(begin, min(begin + self._settings.batch_size, len(data))))
            loss, metrics = self._run_evaluate(self._samples(data, records, self._evaluation_collate or collate))
            for name, value in {"loss": loss, **metrics}.items():
                sums[name] = sums.get(name, 0.0) + value * len(records)
        self._show(f"evaluation after epoch {epoch}", {name: value / len(data) for name, value in sums.items()})

    def _show(self, what, values):
        self._say(what + ": " + ", ".join(f"{name} {value:.6g}" for name, value in values.items()))

    def _say(self, text):
        print(f"disttrain: {text}", file=sys.stderr)
