"""Cuts a training step of JAX into stages (exporting/stage_ends.py).

The step is traced to a jaxpr, JAX's list of equations. Nested jits are opened, because a user's jit around the whole
loss would leave nothing to cut. Each stage is a function that evaluates some of the equations.

Without stages no gradient could leave early: XLA's CPU client makes all results of a program ready at once, so ready
events of single buffers would gain nothing.
"""

import jax
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from disttrain.exporting.stage_ends import Stage, ends_of_stages, is_worth_cutting

_SCORES = 2  # the results begin with the loss and the accumulators
_JITS = ("jit", "pjit")


def cut(function, shapes_by_size, model):
    """The stages of Model.step() by the batch's size. Empty if the step is too small to be cut, or if it has other
    stages for another size. shapes_by_size: the shapes of the step's inputs. Stage.module is a function of the values
    that the stage takes; its `shapes` are theirs. The numbers are those of StableHloStage in
    engine/pjrt/stablehlo_model.h."""
    trainable = len(model.trainable)
    cuts = {}
    for size, shapes in shapes_by_size.items():
        if not is_worth_cutting(_bytes(shape) for shape in shapes[:trainable]):
            return {}
        jaxpr = _flat(function, shapes)
        outputs = jaxpr.jaxpr.outvars
        scores = 2 if model.metrics else 1
        results = dict(enumerate(outputs[:scores])) | dict(enumerate(outputs[scores:], _SCORES))  # by their numbers
        cuts[size] = _Cutter(jaxpr, results, trainable).stages()
    first, *others = ([(stage.takes, stage.gives) for stage in stages] for stages in cuts.values())
    return cuts if first and all(each == first for each in others) else {}


def _bytes(shape):
    return shape.size * shape.dtype.itemsize


def _flat(function, shapes):
    closed = jax.make_jaxpr(function)(*shapes)
    return jax.make_jaxpr(lambda *inputs: _evaluate(closed.jaxpr, closed.consts, inputs))(*shapes)


def _evaluate(jaxpr, consts, inputs):
    values = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, inputs))
    for equation in jaxpr.eqns:
        _run(equation, jaxpr, values)
    return [_read(atom, values) for atom in jaxpr.outvars]


def _run(equation, jaxpr, values):
    """Evaluates an equation of the jaxpr."""
    if equation.primitive.name in _JITS:
        inner = equation.params["jaxpr"]
        results = _evaluate(inner.jaxpr, inner.consts, [_read(atom, values) for atom in equation.invars])
    else:
        variables = list(dict.fromkeys(atom for atom in equation.invars if not isinstance(atom, Literal)))
        one = jaxpr.replace(constvars=(), invars=variables, outvars=equation.outvars, eqns=[equation],
                            effects=equation.effects, debug_info=jaxpr.debug_info.with_unknown_names())
        results = jaxpr_as_fun(ClosedJaxpr(one, ()))(*(values[each] for each in variables))
    values.update(zip(equation.outvars, results))


def _read(atom, values):
    return atom.val if isinstance(atom, Literal) else values[atom]


class _StageFunction:
    def __init__(self, jaxpr, equations, consts, takes, gives):
        self._jaxpr, self._equations, self._consts = jaxpr, equations, consts
        self._takes, self._gives = takes, gives
        self.shapes = [jax.ShapeDtypeStruct(each.aval.shape, each.aval.dtype) for each in takes]

    def __call__(self, *arguments):
        values = self._consts | dict(zip(self._takes, arguments))
        for equation in self._equations:
            _run(equation, self._jaxpr, values)
        return [_read(atom, values) for atom in self._gives]


class _Cutter:
    def __init__(self, closed, results, trainable):
        self._jaxpr = closed.jaxpr
        self._equations = closed.jaxpr.eqns
        self._inputs = closed.jaxpr.invars
        self._consts = dict(zip(closed.jaxpr.constvars, closed.consts))
        self._results = results
        self._made_by = {out: place for place, each in enumerate(self._equations) for out in each.outvars}
        gradients = [results[_SCORES + variable] for variable in range(trainable)]
        places = [(self._place_of(atom), _bytes(atom.aval)) for atom in gradients]
        self._ends = ends_of_stages(places)
        self._stage_of = []  # of each equation

    def stages(self):
        if not self._ends:
            return []
        self._assign()
        self._number()
        return [self._stage(index) for index in range(len(self._ends))]

    def _place_of(self, atom):
        return 0 if isinstance(atom, Literal) else self._made_by.get(atom, 0)

    def _assign(self):
        """What follows after the last gradient, such as new values of state and the metrics, belongs to the first stage
        that has what it takes: a state variable that isn't final would hold up the gradients behind it."""
        stage = 0
        for place, equation in enumerate(self._equations):
            if place > self._ends[-1]:
                stage = max((self._stage_of[self._made_by[each]] for each in equation.invars if self._is_made(each)),
                            default=0)
            self._stage_of.append(stage)
            if place < self._ends[-1] and place == self._ends[stage]:
                stage += 1

    def _is_made(self, atom):
        return not isinstance(atom, Literal) and atom in self._made_by

    def _is_repeated(self, atom):
        """Whether each stage that needs the value computes it itself. A key of random numbers can't be passed on."""
        return jax.dtypes.issubdtype(atom.aval.dtype, jax.dtypes.extended)

    def _needs(self, equation, stage):
        """The values that a stage takes for the equation, and the equations of other stages that it repeats."""
        taken, repeated = [], []
        for atom in equation.invars:
            if isinstance(atom, Literal) or atom in self._consts:
                continue
            place = self._made_by.get(atom)
            if place is None:
                taken.append(atom)
            elif self._stage_of[place] != stage:
                if self._is_repeated(atom):
                    of_maker, further = self._needs(self._equations[place], stage)
                    taken += of_maker
                    repeated += [*further, place]
                else:
                    taken.append(atom)
        return taken, repeated

    def _number(self):
        """Numbers the inputs, the results, and what later stages take."""
        self._numbers = {each: number for number, each in enumerate(self._inputs)}
        for number, atom in self._results.items():
            if self._is_made(atom):
                self._numbers.setdefault(atom, len(self._inputs) + number)
        self._passed = [[] for _ in self._ends]  # by the stage that makes them
        count = len(self._inputs) + max(self._results) + 1
        for place, equation in enumerate(self._equations):
            for atom in self._needs(equation, self._stage_of[place])[0]:
                if atom not in self._numbers:
                    self._numbers[atom] = count
                    self._passed[self._stage_of[self._made_by[atom]]].append(atom)
                    count += 1

    def _stage(self, index):
        given = [(len(self._inputs) + number, atom) for number, atom in self._results.items()
                 if (self._stage_of[self._made_by[atom]] if self._is_made(atom) else 0) == index]
        given += [(self._numbers[atom], atom) for atom in self._passed[index]]
        places = {place for place, stage in enumerate(self._stage_of) if stage == index}
        taken = {atom for _, atom in given if not isinstance(atom, Literal) and atom in self._inputs}
        for place in sorted(places):
            of_equation, repeated = self._needs(self._equations[place], index)
            taken |= set(of_equation)
            places |= set(repeated)
        takes = sorted(taken, key=self._numbers.get)
        function = _StageFunction(self._jaxpr, [self._equations[place] for place in sorted(places)], self._consts, takes,
                                  [atom for _, atom in given])
        return Stage(function, [self._numbers[each] for each in takes], [number for number, _ in given])
