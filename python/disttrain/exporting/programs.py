"""The programs of a model as plain functions of tensors: step, evaluate and predict.

Each function takes all variables in the sidecar's order (Variable.carried), and then its columns. It returns a list:

    step      [loss_sum, accumulators, gradient or new value of each variable that isn't frozen, in order]
    evaluate  [loss_sum, accumulators]
    predict   [outputs]

loss_sum is a float64 scalar, accumulators has the accumulators of all metrics one after the other (float64), gradients
and new values are of the variable's carried_dtype. The outputs are float32, with the shape [records, values].
"""

import torch

from disttrain.exporting import sidecar
from disttrain.exporting.batch import DTYPES
from disttrain.exporting.decisions import ValueLog
from disttrain.exporting.errors import ExportError, NamedErrors, NoGradientError, first_line
from disttrain.exporting.limits import LimitFinder
from disttrain.exporting.model import FROZEN, LARGEST_EXACT, LOSS, STATE, TRAINABLE
from disttrain.exporting.sums import is_sum
from disttrain.exporting.writes import WriteWatch, existing_tensors
from disttrain.metrics import Metric
from disttrain.wrapping import kind_of

MAX_METRICS = 64  # kMaxMetrics in common/model_metric.h


class Functions:
    def __init__(self, described, loss, batch, outputs, metrics, dtype):
        if dtype not in (None, torch.float32, torch.float16, torch.bfloat16):
            raise ExportError(f"export: dtype is {dtype!r}; expected torch.float16 or torch.bfloat16")
        if outputs is not None and not callable(outputs):
            raise ExportError(
                f"export: outputs is {kind_of(outputs)}; expected a function of what the model returned, such as "
                "lambda returned: returned.logits"
            )
        _check_metrics(metrics)
        if len(metrics) > MAX_METRICS:
            raise ExportError(f"export: {len(metrics)} metrics; expected at most {MAX_METRICS}")
        for name in metrics:
            problem = sidecar.problem_of_metric_name(name)
            if problem:
                raise ExportError(f"export: {problem}")
        self.described = described
        self.batch = batch
        self.metrics = metrics
        self._loss = loss
        self._pick_outputs = outputs or _usual_outputs
        self._autocast = None if dtype is torch.float32 else dtype
        self.columns = {column.name: column for column in batch.columns}
        self.written_columns = set()  # names. The model gets copies of these columns.
        self.watch = None  # a WriteWatch of the run of a program

    @property
    def rounding(self):
        """The unit in the last place of 1 in the least exact type that the model computes in."""
        tensors = [variable.tensor for variable in self.described.variables] + [column.example for column in self.batch.columns]
        dtypes = {tensor.dtype for tensor in tensors if tensor.is_floating_point()} | {self._autocast or torch.float32}
        return max(torch.finfo(dtype).eps for dtype in dtypes)

    def name_of_result(self, program, index):
        """Of the results of a program."""
        if program == "predict":
            return "the output"
        variables = [variable for variable in self.described.variables if variable.kind != FROZEN]
        names = ["the loss", "the metrics"] + [
            f'the gradient of "{each.name}"' if each.kind == TRAINABLE else f'the new value of buffer "{each.name}"'
            for each in variables
        ]
        return names[index]

    def columns_of(self, program):
        """The names of the columns that the program takes."""
        return self.batch.inputs if program == "predict" else list(self.columns)

    def observe(self):
        """Runs the model once as it is. Finds out which buffers are state, and returns the LimitFinder that has followed
        the columns. Errors of the user's code come up here, with their layer."""
        described = self.described
        values = {variable.name: variable.tensor.detach().clone() for variable in described.variables}
        versions = {name: value._version for name, value in values.items()}
        # The operator of batch norm and instance norm changes its statistics without a new version of the tensors, and
        # maybe to the same values. Compiled layers (ScriptModule) and calls of the operator aren't among the statistics.
        statistics = described.training_statistics()
        before = {variable.name: variable.tensor.detach().clone() for variable in described.of_kind(FROZEN)}
        columns = {name: column.example.clone() for name, column in self.columns.items()}
        finder, writes = LimitFinder(columns), WriteWatch(described, existing_tensors())
        writes.follow(values, columns)
        described.set_training(True)
        with torch.no_grad(), described.with_values(values) as value_of, NamedErrors(described.layers, "runs"):
            with finder, writes:
                loss, outputs = self.forward(columns)
            # The first run may write what no later one does, as a layer that begins with the statistics of its first batch.
            writes.check_values(value_of)
            if writes.problem:
                raise ExportError(f"export: {writes.problem}")
            self.accumulate(outputs, columns)
            for variable in described.of_kind(FROZEN):
                if variable.name.startswith(LOSS) or variable.tensor.requires_grad:
                    continue
                value = value_of(variable.name)
                if (
                    value is not values[variable.name]
                    or value._version != versions[variable.name]
                    or variable.name in statistics
                    or not torch.equal(value, before[variable.name])
                ):
                    self._make_state(variable)
        if loss.numel() != 1 and tuple(loss.shape) != (self.batch.examples,):
            raise ExportError(
                f"export: the loss has the shape {list(loss.shape)}; expected one number, the mean over the batch, or "
                f"one for each of the {self.batch.examples} records"
            )
        if not torch.isfinite(loss).all():
            raise ExportError("export: the loss of example_batch is NaN or infinite; check the batch and the model")
        return finder

    def refuse_sum(self):
        """Fails if the loss is a sum over the batch. The loss also grows like a sum if the model takes a sum over the batch
        into Python. The error then names that line, and not the loss."""
        log = ValueLog(self.described.layers)
        losses = self._losses_of_repeats(log) if self.batch.dynamic else None
        if losses is None or not is_sum(losses):
            return
        log.check_equal(
            f"the loss grows with the number of records: it is {losses[0]:.6g} for example_batch, and {losses[1]:.6g} if each "
            "record comes twice"
        )
        raise ExportError(
            f"export: the loss of example_batch is {losses[0]:.6g}, and {losses[1]:.6g} if each record comes twice; expected "
            'the mean over the batch, which stays the same. Use reduction="mean", or return one value per record '
            '(reduction="none")'
        )

    def _losses_of_repeats(self, log):
        """The losses of example_batch, and of its records twice and three times. None if it can't be computed, or has one
        value for each record. The model runs in evaluation mode, in which batch norm and dropout treat each record by
        itself."""
        described = self.described
        values = {variable.name: variable.tensor.detach().clone() for variable in described.variables}
        described.set_training(False)
        losses = []
        for times in (1, 2, 3):
            columns = {name: torch.cat([column.example] * times) for name, column in self.columns.items()}
            try:
                with torch.no_grad(), torch.random.fork_rng(devices=[]), described.with_values(values):
                    torch.manual_seed(1)
                    with described.layers.watch(), log.run():
                        loss, _ = self.forward(columns)
            except Exception:  # tracing finds out what is wrong
                return None
            if loss.numel() != 1:
                return None
            losses.append(float(loss))
        return losses

    def step(self, *arguments):
        described = self.described
        values, columns, leaves = self._bind(arguments, "step", trains=True)
        described.set_training(True)
        with torch.enable_grad(), described.with_values(values) as value_of:
            loss, outputs = self.forward(columns)
            if not loss.requires_grad:
                raise NoGradientError("export: the loss doesn't depend on any trainable parameter")
            gradients = torch.autograd.grad(loss.mean(), list(leaves.values()), materialize_grads=True)
            state = {variable.name: value_of(variable.name) for variable in described.of_kind(STATE)}
            self._check_values(value_of)
        of_leaf = dict(zip(leaves, gradients))
        for name, gradient in of_leaf.items():
            if gradient.layout != torch.strided:
                raise ExportError(
                    f'export: the gradient of parameter "{name}" is sparse, which a program can\'t return; use sparse=False'
                )
        results = [self._loss_sum(loss, columns), self.accumulate(outputs, columns)]
        for variable in described.variables:
            if variable.kind == TRAINABLE:
                results.append(of_leaf[variable.name].detach())
            elif variable.kind == STATE:
                results.append(state[variable.name].detach().to(variable.carried_dtype))
        return results

    def evaluate(self, *arguments):
        values, columns, _ = self._bind(arguments, "evaluate")
        self.described.set_training(False)
        with torch.no_grad(), self.described.with_values(values) as value_of:
            loss, outputs = self.forward(columns)
            self._check_values(value_of)
        return [self._loss_sum(loss, columns), self.accumulate(outputs, columns)]

    def predict(self, *arguments):
        values, columns, _ = self._bind(arguments, "predict")
        self.described.set_training(False)
        with torch.no_grad(), self.described.with_values(values) as value_of:
            outputs = self.outputs_of(self.run_model(columns))
            self._check_values(value_of)
            return [as_rows(outputs)]

    def _check_values(self, value_of):
        if self.watch is not None:
            self.watch.check_values(value_of)

    def example_arguments(self, program):
        return [variable.carried for variable in self.described.variables] + [
            self.columns[name].example for name in self.columns_of(program)
        ]

    def _make_state(self, variable):
        if not variable.persistent:
            raise ExportError(
                f'export: a training step changes buffer "{variable.name}", which state_dict() doesn\'t have; register '
                "it with persistent=True, so that checkpoints keep it"
            )
        if not torch.isfinite(variable.tensor).all():
            raise ExportError(
                f'export: a training step changes buffer "{variable.name}", which has an infinity; expected finite values in a '
                "buffer that changes: let it begin with the largest finite number"
            )
        if not variable.tensor.is_floating_point() and int(variable.tensor.abs().max()) > LARGEST_EXACT:
            raise ExportError(
                f'export: buffer "{variable.name}" has integers above {LARGEST_EXACT}, which float32 doesn\'t hold '
                "exactly; set it to 0"
            )
        variable.kind = STATE

    def _bind(self, arguments, program, trains=False):
        """Values by name in the model's own dtypes, columns by name, and the leaves that gradients are taken of."""
        variables = self.described.variables
        values, leaves = {}, {}
        for variable, argument in zip(variables, arguments):
            if variable.kind == TRAINABLE:
                leaf = argument.detach().requires_grad_(trains)
                leaves[variable.name] = leaf
                values[variable.name] = leaf.to(variable.tensor.dtype)
            elif variable.kind == STATE:
                # Workers' integers are averaged, so they are rounded back.
                whole = argument if variable.tensor.is_floating_point() else argument.round()
                # The program changes the copy, and not its argument.
                values[variable.name] = whole.to(variable.tensor.dtype, copy=True)
            else:
                values[variable.name] = argument
        columns = dict(zip(self.columns_of(program), arguments[len(variables) :]))
        if self.watch is not None:
            self.watch.follow(values, columns)
        return values, columns, leaves

    def run_model(self, columns):
        with self._computing():
            inputs = {
                name: columns[name].clone() if name in self.written_columns else columns[name] for name in self.batch.inputs
            }
            model = self.described.model
            return model(**inputs) if self.batch.inputs_by_name else model(*inputs.values())

    def forward(self, columns):
        """The loss as float32 or float64, and the tensor that metrics take, detached."""
        returned = self.run_model(columns)
        labels = {
            name: columns[name].clone() if name in self.written_columns else columns[name] for name in self.batch.labels
        }
        if not self.batch.labels_as_dict:
            labels = next(iter(labels.values()), None)
        with self._computing():
            loss = self._loss(returned) if labels is None else self._loss(returned, labels)
        if not isinstance(loss, torch.Tensor) or not loss.is_floating_point():
            raise ExportError(f"export: the loss returned {_kind_of(loss)}; expected a tensor of floating-point numbers")
        outputs = self.outputs_of(returned).detach() if self.metrics else None
        return loss if loss.dtype in (torch.float32, torch.float64) else loss.to(torch.float32), outputs

    def _computing(self):
        return torch.autocast("cpu", dtype=self._autocast, enabled=self._autocast is not None, cache_enabled=False)

    def outputs_of(self, returned):
        outputs = self._pick_outputs(returned)
        if not isinstance(outputs, torch.Tensor):
            raise ExportError(f"export: the model returned {_kind_of(outputs)}; say in outputs=... which tensor to use")
        return outputs

    def _loss_sum(self, loss, columns):
        examples = next(iter(columns.values())).shape[0]
        return loss.detach().to(torch.float64).mean() * examples

    def accumulate(self, outputs, columns):
        columns = {name: column.detach() for name, column in columns.items()}
        # The label column that export() was given stands in for a metric's own.
        batch = dict(columns)
        if self.batch.labels:
            batch.setdefault("labels", columns[self.batch.labels[0]])
        accumulators = []
        for name, metric in self.metrics.items():
            if metric.labels is not None and metric.labels not in batch:
                raise ExportError(
                    f'export: metric "{name}" takes its labels from the column "{metric.labels}", but the columns are '
                    f"{', '.join(columns)}"
                )
            try:
                accumulator = metric(outputs, batch)
            except Exception as error:
                labels = batch.get(metric.labels or "labels")
                shapes = "" if labels is None else f" and labels of the shape {list(labels.shape)}"
                needs = f"; {metric.needs}" if metric.needs else ""
                raise ExportError(
                    f'export: metric "{name}" ({type(metric).__name__}) fails with outputs of the shape '
                    f"{list(outputs.shape)}{shapes}: {first_line(error)}{needs}"
                ) from error
            if accumulator.shape != (metric.size,):
                raise ExportError(
                    f'export: metric "{name}" returned an accumulator with the shape {list(accumulator.shape)}; expected '
                    f"[{metric.size}]"
                )
            accumulators.append(accumulator.detach().to(torch.float64))
        return torch.cat(accumulators) if accumulators else torch.zeros(0, dtype=torch.float64)


def as_rows(outputs):
    """One row of float32 for each record."""
    return outputs.reshape(outputs.shape[0], -1).to(torch.float32)


def _check_metrics(metrics):
    example = 'such as {"accuracy": disttrain.metrics.Accuracy()}'
    if not isinstance(metrics, dict):
        raise ExportError(f"export: metrics is a {type(metrics).__name__}; expected a dict from names to metrics, {example}")
    for name, metric in metrics.items():
        if not isinstance(name, str):
            raise ExportError(f"export: a metric's name is {name!r}; expected a string, {example}")
        if not isinstance(metric, Metric):
            raise ExportError(
                f'export: metric "{name}" is {metric!r}; expected an object of a class of disttrain.metrics, {example}'
            )


def _usual_outputs(returned):
    if isinstance(returned, (tuple, list)) and returned:
        return returned[0]
    if isinstance(returned, dict):
        return returned.get("logits", returned)
    return getattr(returned, "logits", returned)


def _kind_of(value):
    if isinstance(value, torch.Tensor):
        return f"a tensor of {DTYPES.get(value.dtype, value.dtype)}"
    return f"a {type(value).__name__}"
