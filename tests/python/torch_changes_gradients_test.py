"""What a loop may do with gradients, optimizers, batches, and tensors outside the torch module."""

import unittest

from torch_cases import DROPPED, TorchCases

CASES = """
import contextlib, copy, io
from disttrain.batch import collate

# ---- optimizers and schedules ----
def an_optimizer():
    run = Run()
    optimizer = torch.optim.SGD(run.net.parameters(), lr=0.1)
    return run.after(optimizer.step)
def an_optimizer_before_the_loop():
    net = nn.Linear(2, 1)
    model = TorchModel(net, False)
    net(torch.ones(1, 2)).sum().backward()
    torch.optim.Adam(net.parameters()).step()
    return "taken"
def an_optimizer_of_another_module():
    run, other = Run(), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    return run.after(lambda: (other(torch.ones(1, 2)).sum().backward(), optimizer.step()))
def an_optimizer_after_the_loop():
    run = Run()
    run.step()
    run.model.end_loop()
    run.backward()
    torch.optim.SGD(run.net.parameters(), lr=0.1).step()
    return "taken"
def a_schedule():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    schedule = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(net.parameters(), lr=0.1), 1)
    run = Run(net)
    return run.after(schedule.step)
def a_schedule_of_another_module():
    other = nn.Linear(2, 1)
    schedule = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(other.parameters(), lr=0.1), 1)
    return Run().after(schedule.step)
def a_setting_changed(change, make=torch.optim.SGD, **options):
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    optimizer = make(net.parameters(), **{"lr": 0.1, **options})
    return Run(net).after(lambda: [change(group) for group in optimizer.param_groups])
def a_learning_rate_by_hand():
    return a_setting_changed(lambda group: group.update(lr=group["lr"] / 2))
def a_learning_rate_in_a_tensor():
    return a_setting_changed(lambda group: group["lr"].mul_(0.5), torch.optim.AdamW, lr=torch.tensor(0.1))
def a_weight_decay_by_hand():
    return a_setting_changed(lambda group: group.update(weight_decay=0.5))
def settings_that_are_read():
    return a_setting_changed(lambda group: group.update(lr=group["lr"], betas=(0.9, 0.999), seen=1), torch.optim.Adam)
def with_the_optimizer_of_a_run_alone(change):
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    run = Run(net)
    run.model.begin_loop(optimizer)
    run.begin()
    return run.after(lambda: change(optimizer, schedule))
def settings_of_the_optimizer_of_a_run_alone():
    return with_the_optimizer_of_a_run_alone(lambda optimizer, schedule: optimizer.param_groups[0].update(lr=0.5))
def a_schedule_of_the_optimizer_of_a_run_alone():
    return with_the_optimizer_of_a_run_alone(lambda optimizer, schedule: schedule.step())
def a_step_of_the_optimizer_of_a_run_alone():
    with_the_optimizer_of_a_run_alone(lambda optimizer, schedule: optimizer.step())
def a_learning_rate_of_another_module():
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    return Run().after(lambda: optimizer.param_groups[0].update(lr=0.5))

# ---- gradients ----
def gradients_clipped_by_data():
    run, found = Run(), []
    for _ in range(3):
        run.backward()
        for parameter in run.net.parameters():
            parameter.grad.data = parameter.grad.data.clamp(-0.5, 0.5)
        run.end()
        found.append((float(run.gradients[-1]), bool(run.gradients[:4].any()))), run.begin()
    return found
def a_gradient_of_another_shape():
    run = Run()
    run.backward()
    run.net[0].weight.grad.data = torch.ones(3)
    run.end()
def gradients_that_move_after_the_step():
    run = Run()
    run.backward(), run.end()
    gradient = run.net[1].bias.grad
    run.begin()
    gradient.data = torch.full((1,), 7.0)
    run.backward(), run.model.begin_batch(), run.backward(), run.end()
    return run.gradients[-1]
def gradients_that_the_script_keeps():
    "Of two losses, as methods that project one's gradients on the other's need them."
    run, found = Run(), []
    for _ in range(2):
        run.backward()
        kept = [parameter.grad for parameter in run.net.parameters()]
        run.model.clear_gradients()
        run.backward(2.0)
        for parameter, gradient in zip(run.net.parameters(), kept):
            parameter.grad -= 3 * gradient
        run.end(), found.append(float(run.gradients[-1])), run.begin()
    return found
def gradients_that_the_script_keeps_and_sets_to_0():
    run = Run()
    run.backward()
    kept = run.net[1].bias.grad
    run.model.clear_gradients(set_to_none=False)
    run.backward(), run.end()
    return kept is run.net[1].bias.grad, float(run.gradients[-1])
def a_backward_pass_after_the_step():
    "In the rest of the loop's body, such as for a log, also with a zero_grad() or a gradient of its own."
    found = []
    for overlap in (False, True):
        for before in (lambda run: None, lambda run: run.net.zero_grad(), lambda run: setattr(run.net[1].bias, "grad", torch.ones(1))):
            run = Run(overlap=overlap)
            for _ in range(2):
                run.backward(), run.end(), run.model.begin_step()
                before(run), run.backward(), run.model.begin_batch(lambda end: None)
            run.backward(), run.end()
            found.append(float(run.gradients[-1]))
    return found
def what_a_backward_pass_after_the_step_prints():
    "Once, but not for zero_grad() alone, nor for a backward pass of an evaluation or the rehearsal."
    found = []
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        run = Run(rehearse=True)
        run.step(), run.backward(), run.model.begin_loop(), run.begin()  # a backward pass before the loop
    assert not printed.getvalue(), printed.getvalue()
    def evaluate(run):
        with run.model.evaluating(), torch.enable_grad():
            run.backward()
    for is_alone in (False, True):
        for after in (lambda run: run.net.zero_grad(set_to_none=False), evaluate, lambda run: run.backward()):
            run = Run()
            with contextlib.redirect_stderr(io.StringIO()) as printed:
                for _ in range(3):
                    run.backward(), run.end()
                    if is_alone or after is evaluate:
                        after(run), run.model.begin_step()
                    else:
                        run.model.begin_step(), after(run)
                    run.model.begin_batch()
            found.append(printed.getvalue())
    assert found[:3] == found[3:], found
    assert found[0] == found[1] == "", found
    return found[2]
def changed_with_overlap(change, steps=0, net=None):
    run = Run(net, overlap=True)
    for _ in range(steps):
        run.step()
    run.backward()
    for parameter in run.net.parameters():
        change(parameter)
    return run.end()
def gradients_clipped_by_data_with_overlap():
    changed_with_overlap(lambda parameter: setattr(parameter.grad, "data", parameter.grad.data.clamp(-0.5, 0.5)))
def gradients_clipped_in_place_by_data_with_overlap():
    changed_with_overlap(lambda parameter: parameter.grad.data.clamp_(-0.5, 0.5))
def gradients_of_a_later_step_clipped_in_place_by_data_with_overlap():
    changed_with_overlap(lambda parameter: parameter.grad.data.clamp_(-0.5, 0.5), 5)
def gradients_of_half_clipped_by_data_with_overlap():
    changed_with_overlap(lambda parameter: parameter.grad.data.clamp_(-0.5, 0.5), 0, nn.Linear(2, 1).half())
def gradients_with_overlap():
    found = []
    for net in (None, nn.Linear(2, 1).half(), nn.Linear(2, 1).double()):
        found.append([changed_with_overlap(lambda parameter: None, steps, net) for steps in (0, 5)])
    return found
def no_backward_pass_but_one_after_the_step():
    run = Run()
    run.backward(), run.end(), run.model.begin_step()
    run.backward(), run.model.begin_batch(), run.end()
def zero_grad_after_the_backward_pass():
    run = Run()
    run.backward(), run.net.zero_grad()
    run.end()
def zero_grad_to_zeros_after_the_backward_pass():
    run = Run()
    run.backward(), run.net.zero_grad(set_to_none=False)
    run.end()
def zero_grad_of_an_optimizer_after_the_backward_pass():
    run = Run()
    optimizer = torch.optim.SGD(run.net.parameters(), lr=0.1)
    run.step()
    run.backward(), optimizer.zero_grad()
    run.end()
def zero_grad_of_wrap_after_the_backward_pass():
    run = Run()
    run.backward(), run.model.clear_gradients()
    run.end()
def zero_grad_of_half_after_the_backward_pass():
    run = Run(nn.Linear(2, 1).half())
    run.backward(), run.net.zero_grad()
    run.end()
def zero_grad_before_the_backward_pass():
    run = Run()
    return [run.after(lambda: run.net.zero_grad(set_to_none=to_none)) for to_none in (True, False)]
def zero_grad_of_one_layer():
    run = Run()
    run.backward(), run.net[0].zero_grad()
    first = run.end()
    return first, run.gradients[:6].tolist(), bool(run.gradients[6:].any())
def gradients_of_zero_that_are_clipped():
    run = Run()
    run.step()
    run.backward(0.0), run.backward(0.0)
    nn.utils.clip_grad_norm_(run.net.parameters(), 1.0)
    return run.end()
def gradients_that_are_set_to_none():
    run = Run()
    run.backward()
    run.net[0].weight.grad = None
    return run.end(), run.gradients[:4].tolist()
def gradients_scaled_by_hand():
    run = Run()
    run.backward()
    before = run.gradients.copy()
    for parameter in run.net.parameters():
        parameter.grad /= 2
    run.end()
    return np.array_equal(run.gradients, before / 2)
def a_graph_that_is_kept_within_a_step():
    run = Run()
    loss = run.net(torch.ones(1, 2)).sum()
    loss.backward(retain_graph=True), loss.backward()
    run.end()
    return run.gradients[-1]
def a_graph_that_is_kept_over_a_step():
    run = Run()
    loss = run.net(torch.ones(1, 2)).sum()
    loss.backward(retain_graph=True), run.end(), run.begin()
    try:
        loss.backward()
    except RuntimeError as error:
        return "RuntimeError: " + str(error)
def frozen_within_the_loop():
    run = Run()
    return run.after(lambda: run.net[0].weight.requires_grad_(False))
def frozen_for_a_part_of_a_step():
    run = Run()
    run.step()
    run.backward(), run.net.requires_grad_(False), run.end()
    run.net.requires_grad_(True), run.begin(), run.backward()
    return run.end()

# ---- tensors outside the module ----
def a_second_module():
    run, head = Run(), nn.Linear(1, 1, bias=False)
    run.model.begin_loop()
    head(run.net(torch.ones(3, 2))).sum().backward()
    run.end()
def a_second_module_made_in_the_loop():
    run = Run()
    run.step()
    head = nn.Linear(1, 1, bias=False)
    head(run.net(torch.ones(3, 2))).sum().backward()
    run.end()
def layers_in_a_list():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.others = nn.Linear(2, 2), [nn.Linear(2, 2, bias=False)]
        def forward(self, x):
            return self.others[0](self.first(x))
    run = Run(Layers())
    run.backward(), run.end()
def a_parameter_of_no_module():
    scale = nn.Parameter(torch.ones(1))
    run = Run()
    (run.net(torch.ones(3, 2)) * scale).sum().backward()
    run.end()
def a_tensor_that_needs_a_gradient():
    scale = torch.ones(1, requires_grad=True)
    run = Run()
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        for _ in range(2):
            (run.net(torch.ones(3, 2)) * scale).sum().backward()
            run.end(), run.begin()
    return len(printed.getvalue().splitlines()), printed.getvalue().strip()
def a_second_module_with_an_optimizer():
    run, head = Run(), nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    run.model.begin_loop()
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        head(run.net(torch.ones(3, 2))).sum().backward()
        optimizer.step(), run.end()
    return printed.getvalue().strip()
def a_second_module_beside_one_with_an_optimizer():
    "The line about the first one must not silence the error about the other."
    run, head, forgotten = Run(), nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    run.model.begin_loop()
    with contextlib.redirect_stderr(io.StringIO()):
        head(run.net(torch.ones(3, 2))).sum().backward()
        run.end(), run.begin()
        forgotten(head(run.net(torch.ones(3, 2)))).sum().backward(), run.end()
def train_a_probe(run, probe):
    with torch.enable_grad():
        probe(run.net(torch.ones(3, 2)).detach()).sum().backward()
def a_probe_that_an_evaluation_trains():
    "One made before the loop and one in the evaluation, by hand and by an optimizer."
    run, before = Run(), nn.Linear(1, 1)
    run.model.begin_loop()
    found = []
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        for probe in (before, None):
            with run.model.evaluating():
                probe = probe or nn.Linear(1, 1)
                train_a_probe(run, probe)
            run.begin()
            found.append(run.after(lambda: None))
            with run.model.evaluating():
                train_a_probe(run, probe), torch.optim.SGD(probe.parameters(), lr=0.1).step()
            run.begin()
            found.append(run.after(lambda: None))
    return found, printed.getvalue()
def a_probe_and_then_a_second_module():
    run, probe, head = Run(), nn.Linear(1, 1), nn.Linear(1, 1, bias=False)
    run.model.begin_loop()
    with run.model.evaluating():
        train_a_probe(run, probe)
    run.begin(), head(run.net(torch.ones(3, 2))).sum().backward(), run.end()
def modules_that_get_no_gradient():
    "One trained before, a moving average, and one without gradients."
    before, frozen = nn.Linear(2, 1), nn.Linear(1, 1).requires_grad_(False)
    before(torch.ones(3, 2)).sum().backward()
    run = Run()
    average = copy.deepcopy(run.net)
    run.model.begin_loop()
    x = torch.ones(3, 2, requires_grad=True)
    (frozen(run.net(x)) - average(x).detach() - before(x).detach()).sum().backward()
    return run.end()

# ---- batches ----
def tensors_of_different_sizes():
    collate([(torch.ones(3), 0), (torch.ones(5), 1)])
def tensors_of_different_types():
    collate([torch.ones(3), np.ones(3)])
def bare_tensors():
    batch = collate([torch.ones(3), torch.ones(3)])
    return batch.keys(), list(batch.x.shape)
"""
OUTSIDE = "the backward pass gave a gradient to {}, which isn't in the module that job.wrap() got"
NOTED = "disttrain: "
CHANGED_LATE = "was changed after loss.backward(), but with job.wrap(overlap=True) it has been sent already; leave overlap out"
SENTENCES = {
    "an_optimizer": "the loop called step() of a torch.optim.SGD on parameters of the module that job.wrap() got: take this",
    "a_schedule": "the loop called step() of a torch.optim.lr_scheduler.StepLR, but the learning rate is job.toml's",
    "a_learning_rate_by_hand": "the loop changed the lr of a torch.optim.SGD, but the learning rate is job.toml's: take this line "
    "out, and write the schedule into train.schedule",
    "a_learning_rate_in_a_tensor": "the loop changed the lr of a torch.optim.AdamW, but the learning rate is job.toml's",
    "a_weight_decay_by_hand": "the loop changed the weight_decay of a torch.optim.SGD, but the update rule is job.toml's",
    "a_gradient_of_another_shape": 'the gradient of "0.weight" has got the shape [3] by grad.data = ...; expected that of the',
    "gradients_clipped_by_data_with_overlap": CHANGED_LATE,
    "gradients_clipped_in_place_by_data_with_overlap": CHANGED_LATE,
    "gradients_of_a_later_step_clipped_in_place_by_data_with_overlap": CHANGED_LATE,
    "gradients_of_half_clipped_by_data_with_overlap": CHANGED_LATE,
    "no_backward_pass_but_one_after_the_step": "job.step() found no gradient in any parameter of the module",
    "zero_grad_after_the_backward_pass": DROPPED,
    "zero_grad_to_zeros_after_the_backward_pass": DROPPED,
    "zero_grad_of_an_optimizer_after_the_backward_pass": DROPPED,
    "zero_grad_of_wrap_after_the_backward_pass": DROPPED,
    "zero_grad_of_half_after_the_backward_pass": "found no gradient in any parameter of the module: call loss.backward() before "
    "job.step(), and no zero_grad() between the two",
    "a_graph_that_is_kept_over_a_step": "RuntimeError: one of the variables needed for gradient computation has been modified",
    "frozen_within_the_loop": 'the loop froze the parameter "0.weight" (requires_grad = False), but the job trains it',
    "a_step_of_the_optimizer_of_a_run_alone": "the loop called step() of a torch.optim.SGD on parameters of the module",
    "what_a_backward_pass_after_the_step_prints": "disttrain: the gradients of a backward pass after job.step() are dropped",
    "a_second_module": OUTSIDE.format('the parameter "weight" of a Linear, with the shape [1, 1]'),
    "a_second_module_made_in_the_loop": OUTSIDE.format('the parameter "weight" of a Linear, with the shape [1, 1]'),
    "layers_in_a_list": OUTSIDE.format('the parameter "weight" of a Linear, with the shape [2, 2]'),
    "a_parameter_of_no_module": OUTSIDE.format("a Parameter with the shape [1]"),
    "a_second_module_with_an_optimizer": NOTED + OUTSIDE.format('the parameter "weight" of a Linear, with the shape [1, 1]'),
    "a_tensor_that_needs_a_gradient": "(1, \"" + NOTED + "the backward pass gave a gradient to a Tensor with the shape [1]",
    "tensors_of_different_sizes": "the samples' field \"x\" can't be stacked: a sample has the shape [3] and another one [5]; "
    "pass a function that makes a batch of a list of samples, job.batches(dataset, collate=function)",
    "tensors_of_different_types": "the samples' field \"x\" can't be stacked: expected Tensor as element 1",
    "a_second_module_beside_one_with_an_optimizer": OUTSIDE.format('the parameter "weight" of a Linear, with the shape [1, 1]'),
    "a_probe_and_then_a_second_module": OUTSIDE.format('the parameter "weight" of a Linear, with the shape [1, 1]'),
}
VALUES = {
    "settings_that_are_read": "taken",
    "a_learning_rate_of_another_module": "taken",
    "gradients_clipped_by_data": [(0.5, True)] * 3,
    "gradients_that_move_after_the_step": 3.0,
    "gradients_that_the_script_keeps": [-3.0, -3.0],
    "gradients_that_the_script_keeps_and_sets_to_0": (True, 3.0),
    "a_backward_pass_after_the_step": [3.0] * 6,
    "settings_of_the_optimizer_of_a_run_alone": "taken",
    "a_schedule_of_the_optimizer_of_a_run_alone": "taken",
    "gradients_with_overlap": [["taken"] * 2] * 3,
    "a_probe_that_an_evaluation_trains": (["taken"] * 4, ""),
    "an_optimizer_before_the_loop": "taken",
    "an_optimizer_of_another_module": "taken",
    "an_optimizer_after_the_loop": "taken",
    "a_schedule_of_another_module": "taken",
    "zero_grad_before_the_backward_pass": ["taken", "taken"],
    "zero_grad_of_one_layer": ("taken", [0.0] * 6, True),
    "gradients_of_zero_that_are_clipped": "taken",
    "gradients_that_are_set_to_none": ("taken", [0.0] * 4),
    "gradients_scaled_by_hand": True,
    "a_graph_that_is_kept_within_a_step": 2.0,
    "frozen_for_a_part_of_a_step": "taken",
    "modules_that_get_no_gradient": "taken",
    "bare_tensors": (["x"], [2, 3]),
}


class TorchGradientsTest(TorchCases, unittest.TestCase):
    cases, sentences, values = CASES, SENTENCES, VALUES


if __name__ == "__main__":
    unittest.main()
