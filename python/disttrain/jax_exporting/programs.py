"""The programs of a model of JAX: step, evaluate and predict as functions of flat lists of arrays."""

import jax
import jax.numpy as jnp
import numpy as np

from disttrain import jax_metrics
from disttrain.exporting import sidecar
from disttrain.exporting.errors import ExportError
from disttrain.jax_exporting.arrays import carried_dtype

MAX_METRICS = 64


class Model:
    """The programs of a model as functions of flat lists of arrays, in the order of the package's description.

    Inputs: the trainable variables and the state in their carried_dtype(), the frozen variables in their own dtypes,
    the columns, and for a step the seed of its random numbers, uint32[2]. Outputs of a step: the loss, the accumulators
    of all metrics (left out if there are none), the gradients of the trainable variables, the new state. Of an
    evaluation: the loss and the accumulators. Of a prediction: the outputs. Gradients and new state are of the
    variable's carried_dtype(), and all other outputs are float32. StableHloProgram in
    engine/pjrt/stablehlo_model.h says the same.
    """

    def __init__(self, variables, state, columns, is_frozen, has_state):
        self.variables, self.state, self.columns = variables, state, columns
        self.trainable = [i for i, frozen in enumerate(is_frozen) if not frozen]
        self.frozen = [i for i, frozen in enumerate(is_frozen) if frozen]
        self.has_state = has_state
        self.metrics = None  # kinds by name; known once a step was traced

    def step(self, step_fn, rng):
        def function(*inputs):
            trainable, state, frozen, columns, seed = self._split(inputs)
            state_argument = (self._state(state),) if self.has_state else ()
            key = (jax.random.wrap_key_data(seed[0], impl="threefry2x32"),) if rng else ()

            def loss_of(trainable):
                result = step_fn(self._params(trainable, frozen), self.columns.batch(columns), *state_argument, *key)
                loss, metrics, new_state = self._parts(result, "step_fn", self.has_state)
                return loss, (self._accumulators(metrics, columns, "step_fn"), self._new_state(new_state))

            (loss, (accumulators, new_state)), gradients = jax.value_and_grad(loss_of, has_aux=True)(trainable)
            return [loss, *accumulators, *gradients, *new_state]

        return function

    def evaluate(self, evaluate_fn):
        def function(*inputs):
            trainable, state, frozen, columns, _ = self._split(inputs)
            arguments = (self._state(state),) if self.has_state else ()
            result = evaluate_fn(self._params(trainable, frozen), self.columns.batch(columns), *arguments)
            loss, metrics, _ = self._parts(result, "evaluate_fn", False)
            return [loss, *self._accumulators(metrics, columns, "evaluate_fn")]

        return function

    def predict(self, predict_fn):
        def function(*inputs):
            trainable, state, frozen, columns, _ = self._split(inputs)
            arguments = (self._state(state),) if self.has_state else ()
            outputs = jnp.asarray(predict_fn(self._params(trainable, frozen), self.columns.batch(columns), *arguments))
            examples = columns[0].shape[0]
            if outputs.ndim == 0 or outputs.shape[0] != examples:
                raise ExportError(f"predict_fn returned shape {outputs.shape} for {examples} examples; expected the "
                                  "examples as first dimension")
            return [outputs.astype(jnp.float32)]

        return function

    def shapes(self, examples, program):
        """The shapes and dtypes of a program's inputs."""
        shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for _, _, array in self.stored()]
        shapes += [jax.ShapeDtypeStruct((examples, *each.shape[1:]), each.dtype) for each in self.columns.arrays]
        return shapes + ([jax.ShapeDtypeStruct((2,), jnp.uint32)] if program == "step" else [])

    def variable_specs(self):
        return [{"name": name, "kind": kind, "shape": list(array.shape), "dtype": self._dtypes()[name],
                 "persistent": True} for name, kind, array in self.stored()]

    def values(self):
        """The initial values, as sidecar.encode_values() takes them."""
        return [(name, array.dtype.name, array.shape, array.tobytes()) for name, _, array in self.stored()]

    def column_specs(self, limits):
        return [{"name": name, "dtype": array.dtype.name, "shape": list(array.shape[1:]),
                 "limit": int(limits.get(name, 0))} for name, array in zip(self.columns.names, self.columns.arrays)]

    def stored(self):
        """(name, kind, array) of all variables, in the order and with the dtypes in which a program takes them."""
        names, arrays = self.variables.names, self.variables.arrays
        state = zip(self.state.names, self.state.arrays)
        return ([(names[i], "trainable", arrays[i].astype(carried_dtype(arrays[i]))) for i in self.trainable] +
                [(name, "state", array.astype(carried_dtype(array))) for name, array in state] +
                [(names[i], "frozen", arrays[i]) for i in self.frozen])

    def _dtypes(self):
        """The dtypes that the user's functions get."""
        return {name: array.dtype.name for leaves in (self.variables, self.state)
                for name, array in zip(leaves.names, leaves.arrays)}

    def _split(self, inputs):
        inputs = list(inputs)
        counts = (len(self.trainable), len(self.state.names), len(self.frozen), len(self.columns.names))
        groups = []
        for count in counts:
            groups.append(inputs[:count])
            inputs = inputs[count:]
        return (*groups, inputs)

    def _params(self, trainable, frozen):
        arrays = [None] * len(self.variables.names)
        for i, array in zip(self.trainable + self.frozen, [*trainable, *frozen]):
            arrays[i] = array.astype(self.variables.arrays[i].dtype)
        return jax.tree.unflatten(self.variables.tree, arrays)

    def _state(self, arrays):
        arrays = [array.astype(example.dtype) for array, example in zip(arrays, self.state.arrays)]
        return jax.tree.unflatten(self.state.tree, arrays)

    def _new_state(self, new_state):
        if not self.has_state:
            return []
        arrays, tree = jax.tree.flatten(new_state)
        if tree != self.state.tree:
            raise ExportError(f"step_fn returned a state of the structure {tree}; expected {self.state.tree}, as given")
        for name, array, example in zip(self.state.names, arrays, self.state.arrays):
            if jnp.shape(array) != example.shape:
                raise ExportError(f'step_fn returned state "{name}" with shape {jnp.shape(array)}; expected '
                                  f"{example.shape}, as given")
            if hasattr(array, "dtype") and array.dtype != example.dtype:
                raise ExportError(f'step_fn returned state "{name}" of {array.dtype}; expected {example.dtype}, as given: '
                                  "convert it in step_fn, or export with a state of that dtype")
        return [jnp.asarray(array).astype(carried_dtype(example))
                for array, example in zip(arrays, self.state.arrays)]

    def _parts(self, result, function, with_state):
        """Splits what the user's function returned into the loss, the metrics and the new state."""
        parts = result if isinstance(result, tuple) else (result,)
        if with_state and len(parts) != 3:
            raise ExportError(f"{function} returned {len(parts)} values; expected (loss, metrics, new state)")
        if not 1 <= len(parts) <= 3:
            raise ExportError(f"{function} returned {len(parts)} values; expected a loss, or (loss, metrics)")
        loss, metrics, new_state = (*parts, None, None)[:3]
        loss = jnp.asarray(loss)
        if loss.shape != () or not jnp.issubdtype(loss.dtype, jnp.floating):
            raise ExportError(f"{function} returned a loss of {loss.dtype}{list(loss.shape)}; expected a "
                              "floating-point scalar, the mean over the batch")
        if not isinstance(metrics, (dict, type(None))) or not all(isinstance(name, str) for name in metrics or {}):
            raise ExportError(f"{function} returned the metrics {metrics!r}; expected a dict with texts as keys, such as "
                              '{"accuracy": ...}')
        return loss.astype(jnp.float32), metrics or {}, new_state

    def _accumulators(self, metrics, columns, function):
        """The accumulators of all metrics as one array in a list. The first call says which metrics there are."""
        examples = columns[0].shape[0]
        kinds = {}
        values = []
        for name, metric in sorted(metrics.items()):
            if not isinstance(metric, jax_metrics.Accumulator):
                metric = jnp.asarray(metric)
                if metric.shape != ():
                    raise ExportError(f'{function}: metric "{name}" has shape {metric.shape}; expected a scalar, or an '
                                      "accumulator that a function of disttrain.jax_metrics makes")
                metric = jax_metrics.Accumulator(jnp.stack([metric.astype(jnp.float32) * examples,
                                                            jnp.float32(examples)]), "mean")
            problem = sidecar.problem_of_metric_name(name)
            if problem:
                raise ExportError(f"{function}: {problem}")
            if metric.values.shape != (jax_metrics.size_of(metric.kind),):
                raise ExportError(f'{function}: the accumulator of metric "{name}" has shape {metric.values.shape}; '
                                  f"{metric.kind} needs {jax_metrics.size_of(metric.kind)} numbers")
            kinds[name] = metric.kind
            values.append(metric.values.astype(jnp.float32))
        if self.metrics is None and len(kinds) <= MAX_METRICS:
            self.metrics = kinds
        if kinds != self.metrics:
            raise ExportError(f"{function} returned the metrics {kinds}; expected those of step_fn, at most "
                              f"{MAX_METRICS}: {self.metrics}")
        return [jnp.concatenate(values)] if values else []
