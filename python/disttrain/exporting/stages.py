"""Cuts a training step into stages: programs that run one after the other.

A compiled program returns all of its results at its end. So that a worker can send the first gradients while it still
computes the others, the step of a large model becomes several programs, cut where a share of the gradients is done.

All values of a step have numbers, in this order: its variables, its columns, its results (programs.py), and then the
tensors that one stage passes to later ones. Stage.takes and Stage.gives are such numbers, in the order of the stage's
arguments and results.
"""

import dataclasses
import operator
import warnings

import torch

from disttrain.exporting.model import FROZEN, TRAINABLE

MAX_STAGES = 5
# Of the gradients of one stage. A worker sends buckets of 1 MiB (kMaxBucketWords in common/layout.h).
LEAST_BYTES = 2 << 20


@dataclasses.dataclass
class Stage:
    module: torch.fx.GraphModule
    takes: list
    gives: list


def cut(program, functions):
    """The stages of an ExportedProgram of the function step. Empty if it is too small to be cut."""
    described = functions.described
    sizes = {  # by the place among the results of variables
        place: variable.carried.numel() * variable.carried.element_size()
        for place, variable in enumerate(each for each in described.variables if each.kind != FROZEN)
        if variable.kind == TRAINABLE
    }
    if sum(sizes.values()) < 2 * LEAST_BYTES:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Without operators that change their arguments, any cut between two nodes is right.
        graph = _Graph(program.run_decompositions({}).module(check_guards=False))
    gradients = [(graph.order.get(graph.results[2 + place], 0), size) for place, size in sizes.items()]
    ends = _ends(sorted(gradients))
    if len(ends) < 2:
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


def _ends(gradients):
    """For each stage the place of its last gradient. gradients: (place in the graph, bytes), ascending."""
    total = sum(size for _, size in gradients)
    share = max(total / MAX_STAGES, LEAST_BYTES)
    ends, done = [], 0
    for place, size in gradients:
        done += size
        if done >= share:
            ends.append(place)
            done = 0
    last = gradients[-1][0]
    return ends if ends and ends[-1] == last else [*ends, last]


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
