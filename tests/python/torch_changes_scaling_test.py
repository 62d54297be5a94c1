"""Losses that a loop scales by torch.amp.GradScaler."""

import unittest

from torch_cases import TorchCases

CASES = """
def a_scaled_loss(prepare):
    run = Run()
    optimizer = torch.optim.SGD(run.net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    run.model.begin_loop()
    scaler.scale(run.net(torch.ones(3, 2)).sum()).backward()
    prepare(run, scaler, optimizer)
    return run.end()
def a_scaled_loss_that_stays_scaled():
    a_scaled_loss(lambda run, scaler, optimizer: None)
def a_scaled_loss_of_the_step_before():
    a_scaled_loss(lambda run, scaler, optimizer: scaler.unscale_(optimizer))
    run = Run()
    return run.after(lambda: None)
def a_scaled_loss_unscaled():
    return a_scaled_loss(lambda run, scaler, optimizer: (scaler.unscale_(optimizer), scaler.update()))
def a_scaled_loss_unscaled_by_hand():
    def unscale(run, scaler, optimizer):
        in_place(lambda gradient: gradient.div_(scaler.get_scale()), [p.grad for p in run.net.parameters()])
    return a_scaled_loss(unscale)
def a_scaled_loss_whose_scale_is_read():
    a_scaled_loss(lambda run, scaler, optimizer: scaler.get_scale())
def a_scaled_loss_unscaled_for_one_layer():
    def unscale(run, scaler, optimizer):
        scaler.unscale_(torch.optim.SGD(run.net[0].parameters(), lr=0.1))
    a_scaled_loss(unscale)
def a_scaled_loss_unscaled_by_two_optimizers():
    def unscale(run, scaler, optimizer):
        optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in run.net]
        list(map(scaler.unscale_, optimizers))
    return a_scaled_loss(unscale)
def two_scaled_losses(change):
    "Of a generator and a discriminator, in two steps."
    run = Run(nn.ModuleList([nn.Linear(2, 1), nn.Linear(2, 1)]))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in run.net]
    for _ in range(2):
        for layer, optimizer in zip(run.net, optimizers):
            scaler.scale(layer(torch.ones(3, 2)).sum()).backward()
            change(scaler, optimizer, layer is run.net[1])
        scaler.update(), run.end(), run.begin()
    return "taken"
def two_scaled_losses_unscaled():
    return two_scaled_losses(lambda scaler, optimizer, is_last: scaler.unscale_(optimizer))
def two_scaled_losses_of_which_one_is_unscaled():
    two_scaled_losses(lambda scaler, optimizer, is_last: is_last and scaler.unscale_(optimizer))
def a_scaled_loss_after_one_that_was_unscaled():
    def unscale(run, scaler, optimizer):
        scaler.unscale_(optimizer), scaler.scale(run.net(torch.ones(3, 2)).sum()).backward()
    a_scaled_loss(unscale)
def a_scaled_loss_of_one_layer():
    "The other one has no gradient, so nothing needs to be divided there."
    run = Run()
    scaler, optimizer = torch.amp.GradScaler("cpu", init_scale=1024.0), torch.optim.SGD(run.net[0].parameters(), lr=0.1)
    scaler.scale(run.net[0](torch.ones(3, 2)).sum()).backward()
    scaler.unscale_(optimizer)
    return run.end()
def a_scaled_loss_unscaled_by_data():
    def unscale(run, scaler, optimizer):
        for parameter in run.net.parameters():
            parameter.grad.data.mul_(1 / scaler.get_scale())
        nn.utils.clip_grad_norm_(run.net.parameters(), 0.1)
    return a_scaled_loss(unscale)
def a_scaled_loss_and_another(use):
    "`use(run, scaler)` uses the scaler, and then a backward pass of another loss follows."
    run = Run()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    use(run, scaler), run.backward()
    run.end()
    return float(run.gradients[-1])
def a_scaled_loss_of_another_module():
    other = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    def use(run, scaler):
        scaler.scale(other(torch.ones(3, 2)).sum()).backward()
        scaler.step(optimizer), scaler.update(), optimizer.zero_grad()
    return a_scaled_loss_and_another(use)
def a_scaled_penalty():
    def use(run, scaler):
        x = torch.ones(3, 2, requires_grad=True)
        gradient, = torch.autograd.grad(scaler.scale(run.net(x).square().sum()), x, create_graph=True)
        (gradient / scaler.get_scale()).square().sum().backward()
    return isinstance(a_scaled_loss_and_another(use), float)
def a_scaled_loss_with_copies_of_the_parameters():
    "An optimizer has them, as in training with parameters of 16 bits."
    run = Run()
    copies = [parameter.detach().clone() for parameter in run.net.parameters()]
    optimizer, scaler = torch.optim.SGD(copies, lr=0.1), torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(run.net(torch.ones(3, 2)).sum()).backward()
    for each, parameter in zip(copies, run.net.parameters()):
        each.grad = parameter.grad.clone()
    scaler.unscale_(optimizer)
    in_place(lambda pair: pair[1].grad.copy_(pair[0].grad), zip(copies, run.net.parameters()))
    return run.end()
def a_scaled_loss_whose_gradients_are_dropped():
    drops = (
        lambda run: run.net.zero_grad(), lambda run: run.net.zero_grad(set_to_none=False),
        lambda run: run.model.clear_gradients(),
    )
    found = []
    for drop in drops:
        def use(run, scaler):
            scaler.scale(run.net(torch.ones(3, 2)).sum()).backward(), drop(run)
        found.append(a_scaled_loss_and_another(use))
    return found
def a_scaled_loss_before_another_one():
    a_scaled_loss_and_another(lambda run, scaler: scaler.scale(run.net(torch.ones(3, 2)).sum()).backward())
def scaled_losses_in_a_list():
    a_scaled_loss_and_another(lambda run, scaler: sum(scaler.scale([run.net(torch.ones(3, 2)).sum()] * 2)).backward())
def a_scaled_loss_of_checkpointed_layers():
    "They run a backward pass within the backward pass."
    from torch.utils.checkpoint import checkpoint
    def use(run, scaler):
        x = torch.ones(3, 2, requires_grad=True)
        scaler.scale(checkpoint(run.net, x, use_reentrant=True).sum()).backward()
    a_scaled_loss_and_another(use)
def a_scaled_loss_with_hooks_that_divide():
    "Of the parameters, or one of the outputs that reads the scale."
    found = []
    for with_hook in (False, True):
        run = Run()
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        outputs = run.net(torch.ones(3, 2))
        if with_hook:
            outputs.register_hook(lambda gradient: gradient / scaler.get_scale())
        else:
            for parameter in run.net.parameters():
                parameter.register_hook(lambda gradient: gradient / 1024)
        scaler.scale(outputs.sum()).backward()
        run.end(), found.append(float(run.gradients[-1]))
    return found
def a_scaler_of_a_class_of_its_own():
    class Scaler(torch.amp.GradScaler):
        def scale(self, outputs):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale
    run = Run()
    scaler = Scaler("cpu", init_scale=1024.0)
    scaler.scale(run.net(torch.ones(3, 2)).sum()).backward()
    run.end()
def the_size_of_gradients():
    from disttrain.torch_scaling import _size_of
    values = [torch.tensor([-3.0, 4.0], dtype=dtype) for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)]
    with Calls() as calls:
        found = [float(_size_of(each)) for each in (*values, torch.zeros(0), torch.ones(2).to_sparse())]
    return found, [name for name, _ in calls.calls if name == "abs"]
def a_scaler_made_in_the_loop():
    run = Run()
    run.step()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(run.net(torch.ones(3, 2)).sum()).backward(), run.end()
def a_scaler_after_the_loop():
    run = Run()
    run.step(), run.model.end_loop(), run.backward()
    torch.amp.GradScaler("cpu", init_scale=1024.0).scale(torch.ones(1))
    return run.end()
def a_scale_of_one():
    run = Run()
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    run.model.begin_loop()
    scaler.scale(run.net(torch.ones(3, 2)).sum()).backward()
    return run.end()
def a_scaled_loss_of_an_evaluation():
    run, scaler = Run(), torch.amp.GradScaler("cpu", init_scale=1024.0)
    with run.model.evaluating(), torch.enable_grad():
        scaler.scale(run.net(torch.ones(3, 2)).sum()).backward()
    run.begin()
    return run.after(lambda: None)
"""
SENTENCES = {
    "a_scaled_loss_whose_scale_is_read": "the gradients are 1024 times too large, because the loop scaled the loss by a",
    "a_scaled_loss_unscaled_for_one_layer": 'the gradient of "1.weight" is 1024 times too large, because the loop scaled the loss by',
    "two_scaled_losses_of_which_one_is_unscaled": 'the gradient of "0.weight" is 1024 times too large',
    "a_scaled_loss_after_one_that_was_unscaled": "the gradients are 1024 times too large",
    "a_scaled_loss_before_another_one": "the gradients are 1024 times too large, because the loop scaled the loss by a",
    "a_scaled_loss_of_checkpointed_layers": "the gradients are 1024 times too large",
    "scaled_losses_in_a_list": "the gradients are 1024 times too large",
    "a_scaler_of_a_class_of_its_own": "the gradients are 1024 times too large",
    "a_scaler_made_in_the_loop": "the gradients are 1024 times too large, because the loop scaled the loss by a",
    "a_scaled_loss_that_stays_scaled": "the gradients are 1024 times too large, because the loop scaled the loss by a",
}
VALUES = {
    "a_scaled_loss_of_another_module": 3.0,
    "a_scaled_penalty": True,
    "a_scaled_loss_with_copies_of_the_parameters": "taken",
    "a_scaled_loss_whose_gradients_are_dropped": [3.0] * 3,
    "a_scaled_loss_with_hooks_that_divide": [3.0] * 2,
    "the_size_of_gradients": ([7.0, 7.0, 7.0, 7.0, 0.0, 2.0], []),
    "a_scaled_loss_unscaled_by_two_optimizers": "taken",
    "a_scaled_loss_of_one_layer": "taken",
    "two_scaled_losses_unscaled": "taken",
    "a_scaled_loss_unscaled_by_data": "taken",
    "a_scaler_after_the_loop": "taken",
    "a_scaled_loss_of_an_evaluation": "taken",
    "a_scaled_loss_of_the_step_before": "taken",
    "a_scaled_loss_unscaled": "taken",
    "a_scaled_loss_unscaled_by_hand": "taken",
    "a_scale_of_one": "taken",
}


class TorchScalingTest(TorchCases, unittest.TestCase):
    cases, sentences, values = CASES, SENTENCES, VALUES


if __name__ == "__main__":
    unittest.main()
