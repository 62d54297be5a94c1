"""Changes of a torch module's parameters within the loop. Each is found, also that of one value of a large model."""

import unittest

from torch_cases import TorchCases, changed

CASES = """
from disttrain import torch_model
from disttrain.array_model import ArrayModel
from disttrain.torch_values import PART, sum_of_words
from disttrain.value_watch import WholeSchedule

def clamped():
    run = Run()
    return run.after(lambda: in_place(lambda p: p.clamp_(-0.01, 0.01), run.net.parameters()))
def clamped_after_the_backward_pass():
    run = Run()
    run.backward()
    in_place(lambda p: p.clamp_(-0.01, 0.01), run.net.parameters())
    run.end()
def clamped_by_data():
    run = Run()
    return run.after(lambda: [p.data.clamp_(-0.01, 0.01) for p in run.net.parameters()])
def one_value_by_numpy():
    run = Run()
    return run.after(lambda: np.put(run.net[1].weight.detach().numpy(), 1, 7.0))
def clamped_after_the_last_step():
    run = Run()
    run.step()
    run.net[0].bias.data += 1
    run.model.check_values()
def a_set_sign_of_zero():
    run = Run()
    run.net[0].bias.data.zero_(), run.begin(), run.net[0].bias.data.neg_()
    run.backward(), run.end()
def an_embedding_with_a_longest_norm():
    net = nn.Embedding(3, 2, max_norm=0.1)
    run = Run(net)
    net(torch.tensor([1])).sum().backward()
    run.end()
def loaded_weights():
    run = Run()
    weights = {name: value + 1 for name, value in run.net.state_dict().items()}
    return run.after(lambda: run.net.load_state_dict(weights))
def a_vector_of_parameters():
    run = Run()
    vector = nn.utils.parameters_to_vector(run.net.parameters()).detach()
    return run.after(lambda: nn.utils.vector_to_parameters(vector, run.net.parameters()))

# ---- large models ----
def one_value_of_a_large_model():
    net = nn.Sequential(nn.Linear(2, 2), nn.Embedding(1000, 2000))
    run = Run(net)
    for step in range(40):
        net[0](torch.ones(1, 2)).sum().backward()
        net[1].weight.data[900, 1001] += 1
        run.end(), run.begin()
def many_values_of_a_large_model():
    net = nn.Sequential(nn.Linear(2, 2), nn.Embedding(1000, 2000))
    run = Run(net)
    net[1].weight.data[500:].clamp_(-0.01, 0.01)  # once, and not in the part that this step compares
    net[0](torch.ones(1, 2)).sum().backward(), run.end()
def a_large_model_that_nobody_changes():
    net = nn.Sequential(nn.Linear(2, 2), nn.Embedding(1000, 2000), nn.BatchNorm1d(2))
    run = Run(net)
    for step in range(20):
        net[2](net[0](torch.ones(2, 2))).sum().backward(), run.end()
        run.parameters += 1  # the cluster's new values
        run.begin()
    return "taken"
def one_value_once(change, net=None, prepare=lambda run: None):
    "A large model. `change` changes one value of the embedding or of the run's arrays, once, far from all samples."
    run = Run(nn.Sequential(nn.Linear(2, 2), nn.Embedding(1000, 2000)) if net is None else net)
    prepare(run)
    change(run)
    run.net[0](torch.ones(1, 2, dtype=run.net[0].weight.dtype)).sum().backward(), run.end()
    return run
def add_by_data(run):
    run.net[1].weight.data[900, 1001] += 1
def one_value_of_a_large_model_once_in_the_first_step():
    one_value_once(add_by_data)
def a_step_before(run):
    run.net[0](torch.ones(1, 2, dtype=run.net[0].weight.dtype)).sum().backward(), run.end(), run.begin()
def one_value_of_a_large_model_once_in_the_second_step():
    one_value_once(add_by_data, prepare=a_step_before)
def one_value_of_a_large_model_after_the_last_step():
    run = one_value_once(lambda run: None)
    run.model.note_values(is_last=True), add_by_data(run), run.model.check_values()
def one_value_of_a_large_half_model_once():
    one_value_once(add_by_data, nn.Sequential(nn.Linear(2, 2), nn.Embedding(1000, 2000)).bfloat16())
def one_value_of_a_large_half_model_after_the_last_step():
    run = one_value_once(lambda run: None, nn.Sequential(nn.Linear(2, 2), nn.Embedding(1000, 2000)).half())
    run.model.note_values(is_last=True), add_by_data(run), run.model.check_values()
def one_value_of_a_large_frozen_parameter_once():
    one_value_once(add_by_data, nn.Sequential(nn.Linear(2, 2), nn.Embedding(1000, 2000).requires_grad_(False)))
def one_value_of_a_large_tree_once():
    model = ArrayModel({"small": np.ones(3, np.float32), "large": np.ones(2_000_000, np.float32)})
    flat = np.ones(2_000_003, np.float32), np.zeros(2_000_003, np.float32)
    model.lay_out([0, 3])
    model.bind("arrays", lambda: flat)
    model.begin_step()
    flat[0][1_801_002] = 2
    model.write_gradients({"small": np.ones(3), "large": np.ones(2_000_000)})
def a_large_model_with_whole_comparisons_that_nobody_changes():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        run = one_value_once(lambda run: None, nn.Sequential(nn.Linear(2, 2), nn.Embedding(1000, 2000)).to(dtype))
        run.parameters[-1] = np.nan
        run.begin(), a_step_before(run)
        run.model.load(), run.model.note_values(is_last=True), run.model.check_values()
    return "taken"
def the_schedule_of_whole_comparisons():
    "Steps of 1 s. A whole comparison takes 0.5 s, so there is one in 50 steps after the first two."
    now = [0.0]
    schedule, due = WholeSchedule(lambda: now[0]), []
    for step in range(300):
        if schedule.is_due():
            due.append(step)
            with schedule.timed():
                now[0] += 0.5
        now[0] += 1.0
    distances = {later - earlier for earlier, later in zip(due[2:], due[3:])}
    return due[:2], due[2] in (99, 100), distances <= {49, 50}, WholeSchedule().is_due(is_step=False)
def a_schedule_whose_comparisons_take(seconds):
    "Each takes so long, in two parts. Returns whether the one at the end is due, before and after the first step's."
    now = [0.0]
    schedule = WholeSchedule(lambda: now[0])
    def is_last_due():
        return schedule.is_due(is_step=False, is_last=True)
    due = [is_last_due()]
    for step in range(3):
        if schedule.is_due():
            for part in range(2):
                with schedule.timed():
                    now[0] += seconds / 2
    return [*due, is_last_due()]
def the_whole_comparison_at_the_end():
    return [a_schedule_whose_comparisons_take(seconds) for seconds in (0.1, 0.4, 0.6, 100)]
def after_the_last_step_of_a_model_that_takes_long(change):
    "Between any two looks at the clock a second passes, so nothing compares all values at the end."
    ticks = iter(range(10**9))
    torch_model.WholeSchedule = lambda: WholeSchedule(lambda: next(ticks))
    try:
        run = one_value_once(lambda run: None)
    finally:
        torch_model.WholeSchedule = WholeSchedule
    run.model.note_values(is_last=True), change(run), run.model.check_values()
    return "taken"
def one_value_after_the_last_step_of_a_model_that_takes_long():
    return after_the_last_step_of_a_model_that_takes_long(add_by_data)
def many_values_after_the_last_step_of_a_model_that_takes_long():
    after_the_last_step_of_a_model_that_takes_long(lambda run: run.net[1].weight.data.add_(1))
def sums_of_words():
    found = []
    for size in (0, 1, PART, 3 * PART + 5):
        words = (torch.arange(size) % 251 - 120).to(torch.int8)
        with Calls() as noted:
            total = sum_of_words(words)
        most = max(elements for name, elements in noted.calls if name == "sum")
        found.append((total == words.long().sum().item(), most <= PART))
    return found

# ---- other types, and trees of arrays ----
def half_by_data():
    run = Run(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)).to(torch.bfloat16))
    for step in range(4):
        run.net[1].weight.data += 1
        run.step()
def half_in_place():
    run = Run(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)).half())
    return run.after(lambda: in_place(lambda p: p.mul_(2), run.net.parameters()))
def half_that_nobody_changes():
    run = Run(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)).half())
    for step in range(6):
        run.step()
        run.parameters += 0.1
        run.begin()
    return "taken"
def a_nan_that_nobody_changes():
    run = Run()
    run.parameters[0] = np.nan
    run.begin()
    return run.after(lambda: None)
def converted_in_the_loop():
    run = Run()
    return run.after(run.net.half)
def a_tree_whose_array_became_writable():
    model = ArrayModel({"w": np.ones(3, np.float32)})
    flat = np.ones(3, np.float32), np.zeros(3, np.float32)
    model.lay_out([0])
    model.bind("arrays", lambda: flat)
    model.begin_step()
    flat[0][1] = 2
    model.write_gradients({"w": np.ones(3)})

# ---- overlap and evaluations ----
def clamped_with_overlap():
    run = Run(overlap=True)
    return run.after(lambda: in_place(lambda p: p.clamp_(-0.01, 0.01), run.net.parameters()))
def clamped_in_an_evaluation():
    run = Run()
    with run.model.evaluating():
        run.net[0].weight.clamp_(-0.01, 0.01)
def other_values_for_an_evaluation_alone():
    run = Run()
    with run.model.evaluating():
        kept = run.net[0].weight.clone()
        run.net[0].weight.zero_()
        run.net[0].weight.copy_(kept)
    run.begin()
    return run.after(lambda: None)
"""
SENTENCES = {
    "clamped": changed("0.weight"),
    "clamped_after_the_backward_pass": changed("0.weight"),
    "clamped_by_data": changed("0.weight"),
    "one_value_by_numpy": changed("1.weight"),
    "clamped_after_the_last_step": changed("0.bias"),
    "a_set_sign_of_zero": changed("0.bias"),
    "an_embedding_with_a_longest_norm": 'the layer of the parameter "weight" changed it in place, because it has max_norm=...',
    "loaded_weights": changed("0.weight"),
    "a_vector_of_parameters": "\"0.weight\" isn't in the worker's memory any more",
    "one_value_of_a_large_model": changed("1.weight"),
    "many_values_of_a_large_model": changed("1.weight"),
    "one_value_of_a_large_model_once_in_the_first_step": changed("1.weight"),
    "one_value_of_a_large_model_once_in_the_second_step": changed("1.weight"),
    "one_value_of_a_large_model_after_the_last_step": changed("1.weight"),
    "one_value_of_a_large_half_model_once": changed("1.weight"),
    "one_value_of_a_large_half_model_after_the_last_step": changed("1.weight"),
    "one_value_of_a_large_frozen_parameter_once": 'the loop changed the frozen parameter "1.weight"',
    "one_value_of_a_large_tree_once": changed("large"),
    "half_by_data": changed("1.weight"),
    "half_in_place": changed("0.weight"),
    "converted_in_the_loop": "\"0.weight\" isn't in the worker's memory any more",
    "clamped_with_overlap": changed("0.weight"),
    "clamped_in_an_evaluation": 'the function of job.on_evaluate() or job.on_predict() changed the parameter "0.weight"',
    "a_tree_whose_array_became_writable": changed("w"),
    "many_values_after_the_last_step_of_a_model_that_takes_long": changed("1.weight"),
}
VALUES = {
    "a_large_model_that_nobody_changes": "taken",
    "half_that_nobody_changes": "taken",
    "a_large_model_with_whole_comparisons_that_nobody_changes": "taken",
    "the_schedule_of_whole_comparisons": ([0, 1], True, True, False),
    "the_whole_comparison_at_the_end": [[True, True], [True, True], [True, False], [True, False]],
    "one_value_after_the_last_step_of_a_model_that_takes_long": "taken",
    "sums_of_words": [(True, True)] * 4,
    "a_nan_that_nobody_changes": "taken",
    "other_values_for_an_evaluation_alone": "taken",
}


class TorchValuesTest(TorchCases, unittest.TestCase):
    cases, sentences, values = CASES, SENTENCES, VALUES


if __name__ == "__main__":
    unittest.main()
