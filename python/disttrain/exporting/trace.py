"""Traces a program to a graph whose batch dimension is free, by make_fx and torch.export.

torch.export can't trace a backward pass. So make_fx traces the forward pass, loss, gradients and metrics into one
graph, and torch.export takes this graph. Frozen parameters are inputs of the programs and not constants, so that the
three programs share one copy of them.
"""

import logging
import sys
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from disttrain.exporting.comparing import compare_trace
from disttrain.exporting.cropping import decompositions
from disttrain.exporting.errors import ExportError, FixedBatchError, NamedErrors, first_line
from disttrain.exporting.places import line_of_user

# Sizes of batches with which the conditions that a model makes about its batch are tried.
TRIED_SIZES = [*range(2, 130), 200, 255, 256, 257, 500, 511, 512, 1000, 1024, 4096, 10000, 65536]


def trace(functions, program, watch):
    """Returns the ExportedProgram of "step", "evaluate" or "predict". `watch` is a SymbolWatch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with watch.naming(program):
            graph = _graph(functions, program, watch)
            exported = _exported(functions, program, graph)
            module = exported.module()
        _compare(functions, program, module)
        return exported


def _graph(functions, program, watch):
    """The function as a graph of ATen operators, with the backward pass in it. torch.export can't trace a backward pass
    itself, but it takes this graph."""
    batch = functions.batch
    arguments = functions.example_arguments(program)
    free = len(functions.described.variables)  # the arguments from here on are columns
    environment = _Environment()
    fake_mode = FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True)
    fakes = []
    for index, argument in enumerate(arguments):
        is_free = index >= free and batch.dynamic
        sizes = [DimDynamic.STATIC] * argument.dim()
        if is_free:
            sizes[0] = DimDynamic.DYNAMIC
        fakes.append(
            fake_mode.from_tensor(argument, symbolic_context=StatelessSymbolicContext(dynamic_sizes=sizes))
        )
    watched = _BatchWatch(environment, fakes[free].shape[0])
    doing = f"is traced for its program {program}"
    named = NamedErrors(functions.described.layers, doing, watched.layer_paused, hint="; try to export to a .pt file")
    # With oneDNN, a recurrent layer becomes one operator, whose backward pass fails in compiled programs.
    with named, functions.described.unchanged_attributes(), torch.backends.mkldnn.flags(enabled=False), watch:
        graph = make_fx(getattr(functions, program), decompositions(), tracing_mode="symbolic")(*fakes)
    if batch.dynamic:
        watched.check()
    # torch.export fails at a constant that no operator takes, such as torch.tensor(2.0).item() leaves. A new module has
    # only the constants that its graph takes.
    graph.graph.eliminate_dead_code()
    return torch.fx.GraphModule(graph, graph.graph)


class _BatchWatch:
    """Finds the layer after which the batch's dimension isn't free any more."""

    def __init__(self, environment, size):
        self._environment = environment
        self._size = size
        self._guards = 0
        self._fixed_in = None

    def layer_paused(self, name):
        if self._fixed_in is None and self._problem():
            self._fixed_in = name

    def check(self):
        problem = self._problem()
        if problem:
            raise FixedBatchError(
                f"export: {self._fixed_in or 'the loss, the metrics or the backward pass'} fixes the batch's dimension "
                f"({problem}). Write the batch's size as x.shape[0] or -1 there, or export with dynamic_batch=False"
            )

    def _problem(self):
        """Why the size isn't free; None if it is."""
        if not isinstance(self._size, torch.SymInt):
            return "it was traced with a fixed size"
        fixed = self._size.node.maybe_as_int()
        if fixed is not None:
            return f"only batches of {fixed} records fit"
        symbol = self._size.node.expr
        for index in range(self._guards, len(self._environment.guards)):
            guard = self._environment.guards[index]
            if guard.expr.free_symbols <= {symbol} and index not in self._environment.of_operators:
                bad = [size for size in TRIED_SIZES if not bool(guard.expr.xreplace({symbol: size}))]
                if bad:
                    condition = str(guard.expr).replace(str(symbol), "batch")
                    return f"it needs {condition}{self._environment.lines[index]}, which {bad[0]} records don't fit"
            self._guards += 1
        return None


class _Environment(ShapeEnv):
    """Knows which of its guards an operator made for itself: a convolution picks its algorithm by the size of the batch.
    The graph has the same operator for all sizes, so these guards don't matter."""

    def __init__(self):
        super().__init__()
        self.of_operators = set()
        self.lines = {}  # index of a guard -> " at FILE:LINE (TEXT)" of the model's code, or ""

    def evaluate_expr(self, *arguments, **keywords):
        before = len(self.guards)
        result = super().evaluate_expr(*arguments, **keywords)
        added = range(before, len(self.guards))
        if added:
            self.lines.update(dict.fromkeys(added, line_of_user(sys._getframe())))
            if _is_in_operator():
                self.of_operators.update(added)
        return result


def _is_in_operator():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith("_subclasses/fake_tensor.py"):
            return True
        frame = frame.f_back
    return False


class _Graph(torch.nn.Module):
    def __init__(self, graph):
        super().__init__()
        # Not `graph`: torch.export makes a GraphModule of this module, whose attribute `graph` hides a member of that name,
        # and with it the member's constants.
        self.traced = graph

    def forward(self, *arguments):
        return self.traced(*arguments)


def _exported(functions, program, graph):
    arguments = tuple(functions.example_arguments(program))
    free = len(functions.described.variables)
    shapes = None
    if functions.batch.dynamic:
        size = torch.export.Dim("batch", min=1)
        shapes = (tuple({0: size} if index >= free else None for index in range(len(arguments))),)
    logging.getLogger("torch.fx.experimental.symbolic_shapes").setLevel(logging.ERROR)
    try:
        with torch.no_grad():
            return torch.export.export(_Graph(graph), arguments, dynamic_shapes=shapes, strict=False)
    except Exception as error:  # torch raises errors of many classes here
        raise ExportError(f"export: torch.export doesn't take the program {program}: {first_line(error)}") from error


def _compare(functions, program, traced):
    of_model, variables = getattr(functions, program), functions.example_arguments(program)[: len(functions.described.variables)]
    compare_trace(
        program,
        functions,
        lambda columns: of_model(*variables, *columns),
        lambda columns: traced(*variables, *columns),
    )
