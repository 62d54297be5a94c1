"""Cuts a training step of PyTorch into stages (stage_ends.py).

All values of a step have numbers, in this order: its variables, its columns, its results (programs.py), and then the
tensors that one stage passes to later ones.
"""

import operator
import warnings

import torch

from disttrain.exporting.model import FROZEN, TRAINABLE
from disttrain.exporting.stage_ends import Stage, ends_of_stages, is_worth_cutting


def cut(program, functions):
    """The stages of an ExportedProgram of the function step. Empty if it is too small to be cut."""
    described = functions.described
    sizes = {  # by the place among the results of variables
        place: variable.carried.numel() * variable.carried.element_size()
        for place, variable in enumerate(each for each in described.variables if each.kind != FROZEN)
        if variable.kind == TRAINABLE
    }
    if not is_worth_cutting(sizes.values()):
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Without operators that change their arguments, any cut between two nodes is right.
        graph = _Graph(program.run_decompositions({}).module(check_guards=False))
    gradients = [(graph.order.get(graph.results[2 + place], 0), size) for place, size in sizes.items()]
    ends = ends_of_stages(gradients)
    if not ends:
        return []
    graph.assign(ends)
    always = len(described.variables) if functions.batch.dynamic else None
    return [graph.stage(index, always) for index in range(len(ends))]


def run_stages(stages, functions, arguments):
    """Runs a function for each stage. Returns all values of the step by their numbers. arguments: its variables and
    columns."""
    values = dict(enumerate(arguments))
    with torch.no_grad():
        for stage, function in zip(stages, functions):
            values.update(zip(stage.gives, function(*(values[number] for number in stage.takes))))
    return values


class _Graph:
    def __init__(self, module):
        self._module = module
        nodes = list(module.graph.nodes)
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        self._nodes = [node for node in nodes if node.op == "call_function"]
        self.order = {node: place for place, node in enumerate(self._nodes)}
        (returned,) = next(node for node in nodes if node.op == "output").args
        self.results = [_without_detach(node) for node in returned]
        self._stage_of = {}

    def assign(self, ends):
        """Gives each node its stage. What follows after the last gradient, such as new values of state and the
        metrics, belongs to the first stage that has what it takes: a state variable that isn't final would hold up the
        gradients behind it."""
        stage = 0
        for node in self._nodes:
            if node.target is operator.getitem:
                self._stage_of[node] = self._stage_of[node.args[0]]
            elif self.order[node] > ends[-1]:
                self._stage_of[node] = max((self._stage_of.get(each, 0) for each in node.all_input_nodes), default=0)
            else:
                self._stage_of[node] = stage
            if stage + 1 < len(ends) and self.order[node] == ends[stage]:
                stage += 1
        self._number()

    def _number(self):
        """Numbers the inputs, the results, and what later stages take."""
        self._numbers = {node: number for number, node in enumerate(self._inputs)}
        for number, node in enumerate(self.results):
            self._numbers.setdefault(node, len(self._inputs) + number)
        self._passed = {node: set() for node in self._nodes}
        count = len(self._inputs) + len(self.results)
        for node in self._nodes:
            for taken in self._taken(node, self._stage_of[node]):
                if taken in self._passed:
                    self._passed[taken].add(self._stage_of[node])
                    if taken not in self._numbers:
                        self._numbers[taken] = count
                        count += 1

    def _is_repeated(self, node):
        """Whether each stage that needs this node computes it itself: a view, a size, or a constant."""
        if node.op == "get_attr":
            return True
        if node.op != "call_function":
            return False
        value = node.meta.get("val")
        return getattr(node.target, "is_view", False) or not isinstance(value, (torch.Tensor, list, tuple))

    def _taken(self, node, stage):
        """What the stage must take for this node: inputs of the step, and nodes of earlier stages."""
        taken = []
        for each in node.all_input_nodes:
            if each.op == "placeholder":
                taken.append(each)
            elif self._is_repeated(each):
                taken += self._taken(each, stage)
            elif self._stage_of[each] != stage:
                taken.append(each)
        return taken

    def stage(self, index, always):
        """always: an input that the stage takes in any case. The compiler learns the batch's size from it."""
        own = [node for node in self._nodes if self._stage_of[node] == index]
        taken = {each for node in own for each in self._taken(node, index)}
        if always is not None:
            taken.add(self._inputs[always])
        given = [
            (len(self._inputs) + number, node)
            for number, node in enumerate(self.results)
            if self._stage_of.get(node, 0) == index
        ]
        first_result, results = len(self._inputs), len(self.results)
        passed = [
            (self._numbers[node], node)
            for node in own
            if self._passed[node] and self._numbers[node] >= first_result + results
        ]
        graph, copies = torch.fx.Graph(), {}
        takes = sorted(taken | {node for _, node in given if node.op == "placeholder"}, key=self._numbers.get)
        for node in takes:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = dict(node.meta)

        def copy_of(node):
            if node not in copies:
                for each in node.all_input_nodes:
                    copy_of(each)
                copies[node] = graph.node_copy(node, copies.__getitem__)
            return copies[node]

        for node in own:
            copy_of(node)
        outputs = given + sorted(passed, key=lambda each: each[0])
        graph.output([copy_of(node) for _, node in outputs])
        graph.eliminate_dead_code()
        module = torch.fx.GraphModule(self._module, graph)
        return Stage(module, [self._numbers[node] for node in takes], [number for number, _ in outputs])


def _without_detach(node):
    while node.op == "call_function" and node.target in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
        node = node.args[0]
    return node
