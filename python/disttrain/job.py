"""The job as a training script sees it. cluster_job.py and alone.py are its two kinds."""

import json
import os
import sys
from collections.abc import Mapping

from disttrain.batch import collate as collate_samples
from disttrain.connection import SOCKET_VARIABLE
from disttrain.errors import DisttrainError
from disttrain.own_process import OwnProcess, mark_children, refuse_child_of_trainer
from disttrain.random_states import OwnRandomNumbers
from disttrain.wrapping import is_complex, kind_of

_MISSING = object()  # a step without its loss
_initialized_in = None  # the process that called init(): this one, or the one that was forked


def init(metrics=None, alone=None):
    """Joins the job. Call it once, before anything else of this package.

    `metrics`: the names of the metrics that job.step() and the function of job.on_evaluate() return, besides the loss.
    If it isn't given, disttrain finds the names by a rehearsal: it runs the loop's body once before the job begins, on
    the first records, and then undoes what the body did to the model's state.

    Without a worker (the script was started by hand) the script trains by itself, in this process, for debugging:
    `alone` (disttrain.Alone) says how.
    """
    global _initialized_in
    if _initialized_in == os.getpid():
        raise DisttrainError("disttrain.init() was called twice; a script has one job")
    refuse_child_of_trainer()
    _initialized_in = os.getpid()
    if SOCKET_VARIABLE in os.environ:
        from disttrain.cluster_job import ClusterJob

        mark_children()
        return ClusterJob(int(os.environ.pop(SOCKET_VARIABLE)), metrics, getattr(alone, "optimizer", None))
    from disttrain.alone import Alone, AloneJob

    return AloneJob(alone or Alone(), metrics)


class Job:
    """Use it in the process and the thread that called init()."""

    # Of the step under way. Before the first step, and in the rehearsal, they have the values below.
    rank = 0  # the worker's index among the job's workers, and their number; both may change from step to step
    size = 1
    # In sync the job's step. In async and ssp it counts this worker's steps alone, from a number that the chief gives the
    # worker when it joins, so it may jump when the worker joins again. With train.accumulate it counts each part of a step.
    step_number = 0
    seed = 0  # of the job
    _is_alone = False

    def __init__(self, metrics, optimizer=None):
        """`optimizer`: that of a script that runs alone."""
        self._metrics = None if metrics is None else _names_of(metrics)
        self._is_rehearsed = metrics is None  # then the rehearsal finds their names
        self._model = None
        self._evaluate = None
        self._evaluation_data = None
        self._evaluation_collate = None
        self._predict = None
        self._dataset = None
        self._collate = None
        self._prefetch = True
        self._own_optimizer = optimizer
        self._has_loop = False  # batches() was called
        self._own_process = OwnProcess()
        self._evaluation_randoms = OwnRandomNumbers()
        _report_interrupts(self)

    # ---- before the loop ----

    def wrap(self, model, state=None, overlap=False, constraint=None):
        """Makes a model the job's. Its values become the cluster's: for a torch module those at job.batches().

        `model` is a torch module, or a tree (dicts, lists, tuples) of arrays of NumPy or JAX. `state` is a tree of
        arrays that have no gradient, such as running statistics; the buffers of a torch module are its state.
        `overlap` (torch modules only): the worker sends gradients while loss.backward() still computes others. So a
        step has one backward pass, and nothing changes gradients or reads parameters between it and job.step().
        `constraint`: a function of a parameter's value, or of its name and its value, that keeps each element within
        bounds, such as lambda value: value.clamp(-0.01, 0.01). It returns the new value or changes it in place. The
        parameter servers clip each new value to these bounds.
        For a torch module the result has the methods zero_grad() and step() of an optimizer. The update rule is
        job.toml's. For a tree the result is job.variables.
        """
        self._require_no_loop("job.wrap()")
        if self._model is not None:
            raise DisttrainError(
                "job.wrap() was called twice; a job has one model: make one of both, such as torch.nn.ModuleDict({...}) of two "
                "modules, and call job.wrap() once"
            )
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(model, torch.optim.Optimizer):
            raise DisttrainError("job.wrap() got an optimizer; expected the module: the update rule is job.toml's")
        if torch is not None and isinstance(model, torch.nn.Module):
            if state is not None:
                raise DisttrainError("a torch module's state is its buffers; call job.wrap(module) without state")
            from disttrain.torch_model import TorchModel

            self._model = TorchModel(model, overlap, constraint)
            return WrappedModule(self)
        if overlap:
            raise DisttrainError("job.wrap(overlap=True) is for torch modules; leave overlap out")
        from disttrain.array_model import ArrayModel

        self._model = ArrayModel(model, state, constraint)
        return self.variables

    def on_evaluate(self, function=None, *, dataset=None, collate=None):
        """`function(batch)` returns a dict with the mean "loss" of a batch, and its metrics. It may be a decorator.

        `dataset` are the records to evaluate on, if the training set is a data set of the script, too. A torch module
        is in evaluation mode during the call, and no gradients are computed. Afterwards its state and modes are as before.
        """
        if function is None:
            return lambda later: self.on_evaluate(later, dataset=dataset, collate=collate)
        _check_function("job.on_evaluate()", function)
        self._require_no_loop("job.on_evaluate()")
        self._evaluate = function
        self._evaluation_data = dataset
        self._evaluation_collate = collate
        return function

    def on_predict(self, function):
        """`function(batch)` returns the model's outputs, an array with the shape [records, outputs]."""
        _check_function("job.on_predict()", function)
        self._require_no_loop("job.on_predict()")
        self._predict = function
        return function

    # ---- the loop ----

    def batches(self, dataset=None, collate=None, prefetch=True):
        """Yields batches until job.toml's last step. After each batch, call job.step() or job.push_pull() once.

        `dataset`: any data set with len(dataset) and dataset[i]. The cluster decides which worker trains on which
        records, so that each record is visited once an epoch. Without it the batches are those of job.toml's [data].
        These are views of the worker's memory, and valid until job.step(); copy what you keep longer.
        `collate(samples)` makes a batch of a list of samples; without it, see disttrain.batch.Batch.
        `prefetch`: on a cluster, read the next batch of `dataset` while the gradients of this one are sent. The cluster
        doesn't always know the next batch by then. So a data set that draws numbers from a random generator of the
        whole script isn't repeatable, unless it is False.
        """
        self._own_process.check("job.batches()")
        self._require_model().check_unchanged()
        if self._has_loop:
            raise DisttrainError(
                "job.batches() was called twice; a job has one loop, which runs through all epochs of job.toml"
            )
        if dataset is not None:
            _check_dataset("job.batches()", dataset)
        if self._evaluation_data is not None:
            _check_dataset("job.on_evaluate()", self._evaluation_data)
        self._check_source(dataset)
        self._model.begin_loop(self._own_optimizer, self._is_alone)
        self._has_loop = True
        self._dataset = dataset
        self._collate = collate
        self._prefetch = prefetch
        return self._loop()

    def step(self, loss=_MISSING, **metrics):
        """Sends the gradients, and returns when the parameters are those of the next step.

        The loss and the metrics are means over the batch.
        """
        self._own_process.check("job.step()")
        if loss is _MISSING:
            raise DisttrainError("job.step() got no loss; write job.step(loss=loss), with the mean loss of the batch")
        self._finish_step(loss, metrics, self._require_model().end_step)

    def push_pull(self, gradients, loss, state=None, **metrics):
        """As step(), for a tree of arrays: `gradients` is a tree like the one that wrap() got. Returns job.variables.

        `state` is a tree of the new values of the state; without it the state keeps its values.
        """
        self._own_process.check("job.push_pull()")
        model = self._require_model()
        self._finish_step(loss, metrics, lambda: model.write_gradients(gradients, state))
        return self.variables

    def checkpoint(self):
        """Asks the cluster for a checkpoint. It is taken while training goes on."""
        raise NotImplementedError

    @property
    def variables(self):
        """The values of the parameters, as read-only NumPy views of the worker's memory: a tree like the one that wrap()
        got, or, for a torch module, a dict by names. Ask again after each step: the views may have moved."""
        model = self._require_model()
        return model.named_views() if model.is_torch else model.values()[0]

    @property
    def gradients(self):
        """A tree like the one that wrap() got, of NumPy arrays to write a step's gradients into. push_pull() doesn't copy
        these arrays. Their values are undefined at the beginning of a step. Ask again in each step: they may move."""
        self._own_process.check("job.gradients")
        model = self._require_model()
        if model.is_torch:
            raise DisttrainError("job.gradients is for a tree of arrays; the gradients of a torch module are parameter.grad")
        return model.gradients()

    @property
    def state(self):
        """As variables, for the state of a tree."""
        model = self._require_model()
        return model.named_views() if model.is_torch else model.values()[1]

    # ---- shared by both kinds ----

    def _check_source(self, dataset):
        """Fails if the job's records can't come from this data set (None: from job.toml's [data])."""
        raise NotImplementedError

    def _loop(self):
        """The generator that batches() returns."""
        raise NotImplementedError

    def _finish_step(self, loss, metrics, write_gradients):
        raise NotImplementedError

    def _refuse_step(self):
        if not self._has_loop:
            raise DisttrainError(
                "job.step() was called outside the loop over job.batches(); write `for batch in job.batches(dataset):` "
                "instead of a loop over epochs and a DataLoader"
            )
        raise DisttrainError("job.step() was called without a batch, or twice for one")

    def _check_metrics(self, metrics, where):
        """Fails if the cluster doesn't know one of the metrics. `where` begins the sentence: "the step got"."""
        unknown = [name for name in metrics if name not in self._metrics]
        if not unknown:
            return
        what = "the metric " + unknown[0] if len(unknown) == 1 else f"the metrics {', '.join(unknown)}"
        known = "the rehearsal of the loop's body didn't have" if self._is_rehearsed else f"{_init_with(self._metrics)} doesn't name"
        raise DisttrainError(f"{where} {what}, which {known}; write {_init_with([*self._metrics, *unknown])}")

    def _require_no_loop(self, what):
        self._own_process.check(what)
        if self._has_loop:
            raise DisttrainError(f"{what} was called after job.batches(): call it before")

    def _require_model(self):
        if self._model is None:
            raise DisttrainError("the job has no model yet: call job.wrap(model) first")
        return self._model

    def _samples(self, dataset, records, collate):
        if hasattr(dataset, "__getitems__"):
            samples = dataset.__getitems__(records)
        else:
            samples = [dataset[record] for record in records]
        if collate is not None:
            return collate(samples)
        return self._as_tensors(collate_samples(samples))

    def _as_tensors(self, batch):
        batch.map(self._model.to_tensor)
        return batch

    def _run_evaluate(self, batch):
        # The function may return a buffer, and evaluating() gives the buffer its former value at the end. So read it before.
        with self._model.evaluating():
            loss, metrics = _means_of(self._evaluate(batch))
        if self._metrics is not None:
            self._check_metrics(metrics, "the function of job.on_evaluate() returned")
        return loss, metrics


def _means_of(returned):
    """The loss and the metrics that the function of job.on_evaluate() returned, as floats."""
    if not isinstance(returned, Mapping):
        raise DisttrainError(
            f'the function of job.on_evaluate() returned {kind_of(returned)}; expected a dict with the mean "loss" and the '
            "metrics"
        )
    found = dict(returned)
    if "loss" not in found:
        raise DisttrainError(f'the function of job.on_evaluate() returned {list(found)}, without a "loss"')
    loss = as_float("loss", found.pop("loss"))
    if not all(isinstance(name, str) for name in found):
        raise DisttrainError(f"the function of job.on_evaluate() returned the metrics {list(found)}; expected texts as names")
    return loss, {name: as_float(name, value) for name, value in found.items()}


NO_STEP = (
    "the loop went on to the next batch without job.step() or job.push_pull() for this one; each batch needs one. To add "
    "up the gradients of several batches, set train.accumulate in job.toml"
)


class WrappedModule:
    """What wrap() returns for a torch module. PyTorch names this class where it wants an optimizer."""

    def __init__(self, job):
        self._job = job

    def zero_grad(self, set_to_none=True):
        """As that of torch.optim. It isn't needed: each batch begins with gradients of 0."""
        self._job._model.clear_gradients(set_to_none)

    def step(self, loss=_MISSING, **metrics):
        """As job.step()."""
        if loss is _MISSING:
            raise DisttrainError(
                "step() of what job.wrap() returned got no loss. One call does the whole step, job.step(loss=loss) or "
                "opt.step(loss=loss), and each batch begins with gradients of 0: leave one of the two, and take the lines "
                "opt.step() and opt.zero_grad() out"
            )
        if callable(loss) and not hasattr(loss, "detach"):
            raise DisttrainError(
                f"step() of what job.wrap() returned got {kind_of(loss)}; expected the loss: no update rule of job.toml "
                "computes a loss several times in a step, so call loss.backward() in the loop, and then job.step(loss=loss)"
            )
        self._job.step(loss, **metrics)

    def __getattr__(self, name):
        raise AttributeError(
            f'what job.wrap() returned is no optimizer of torch.optim and has no "{name}": the update rule, the learning rate '
            "and its schedule are job.toml's (train.optimizer, train.schedule), and checkpoints have the optimizer's state"
        )


def _names_of(metrics):
    if isinstance(metrics, str):
        raise DisttrainError(f'disttrain.init(metrics="{metrics}") got a text; write {_init_with([metrics])}')
    names = list(metrics)
    if not all(isinstance(name, str) for name in names):
        raise DisttrainError(f"disttrain.init(metrics={names}) got a name that isn't a text; expected names of metrics")
    return names


def _init_with(names):
    return f"disttrain.init(metrics={json.dumps(names, ensure_ascii=False)})"


def _check_function(where, function):
    if not callable(function):
        raise DisttrainError(f"{where} got {kind_of(function)}; expected a function of a batch")


def _check_dataset(where, dataset):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dataset, torch.utils.data.IterableDataset):
        raise DisttrainError(
            f"{where} got a {type(dataset).__name__}, an IterableDataset; expected a map-style data set, with len(dataset) "
            "and dataset[i]: the cluster decides which worker reads which record"
        )
    if not hasattr(dataset, "__len__") or not (hasattr(dataset, "__getitem__") or hasattr(dataset, "__getitems__")):
        loader = hasattr(dataset, "dataset") and hasattr(dataset, "collate_fn")
        raise DisttrainError(
            f"{where} got a {type(dataset).__name__}, which has no len(dataset) or no dataset[i]: "
            + ("pass the loader's data set instead" if loader else "pass a data set whose records have numbers")
        )
    if len(dataset) == 0:
        raise DisttrainError(f"{where} got a data set that is empty")


def _report_interrupts(job):
    """Ctrl-C ends a script with one line instead of a traceback."""
    print_error = sys.excepthook

    def report(kind, error, trace):
        if issubclass(kind, KeyboardInterrupt):
            print(f"disttrain: interrupted in step {job.step_number}", file=sys.stderr)
        else:
            print_error(kind, error, trace)

    sys.excepthook = report


def as_float(name, value):
    try:
        # A text counts for float(), and of a complex number NumPy would take the real part alone.
        if not isinstance(value, (str, bytes)) and not is_complex(value):
            return float(value.detach() if hasattr(value, "detach") else value)
    except OverflowError:
        raise DisttrainError(
            f'the value of "{name}" is larger than a float can be; expected a number of at most 1.8e308'
        ) from None
    except (TypeError, ValueError, RuntimeError):
        pass
    what = "complex" if is_complex(value) else kind_of(value)
    raise DisttrainError(f'the value of "{name}" is {what}; expected one real number')
