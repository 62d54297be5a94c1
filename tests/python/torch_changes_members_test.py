"""The members of a torch module: those that are added or replaced within the loop, and those that share memory."""

import unittest

from torch_cases import TorchCases

CASES = """
# ---- members that are added or replaced ----
def a_layer_added():
    run = Run()
    return run.after(lambda: run.net.append(nn.Linear(1, 1)))
def a_layer_added_in_a_submodule():
    run = Run(nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 1)))
    return run.after(lambda: run.net[0].append(nn.Linear(2, 2)))
def a_layer_without_parameters_added():
    run = Run()
    return run.after(lambda: run.net.append(nn.ReLU()))
def a_bias_added():
    run = Run(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1, bias=False)))
    return run.after(lambda: setattr(run.net[1], "bias", nn.Parameter(torch.zeros(1))))
def a_parameter_registered():
    run = Run()
    return run.after(lambda: run.net.register_parameter("scale", nn.Parameter(torch.zeros(1))))
def a_buffer_registered():
    run = Run()
    return run.after(lambda: run.net.register_buffer("seen", torch.zeros(1)))
def a_constant_registered():
    run = Run()
    return run.after(lambda: run.net.register_buffer("cache", torch.zeros(1), persistent=False))
def a_parameter_replaced():
    run = Run()
    return run.after(lambda: setattr(run.net[0], "weight", nn.Parameter(torch.ones(2, 2))))
def a_weight_tied_within_the_loop():
    run = Run(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
    return run.after(lambda: setattr(run.net[1], "weight", run.net[0].weight))
def tied_weights():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    return Run(net).after(lambda: None)

# ---- shared memory ----
def two_layers():
    return nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
def weights_tied_by_data():
    net = two_layers()
    net[1].weight.data = net[0].weight.data
    Run(net)
def weights_of_one_tensor():
    net, weight = two_layers(), torch.ones(2, 2)
    net[0].weight, net[1].weight = nn.Parameter(weight), nn.Parameter(weight)
    Run(net)
def weights_of_overlapping_columns():
    net, weight = two_layers(), torch.ones(2, 3)
    net[0].weight, net[1].weight = nn.Parameter(weight[:, :2]), nn.Parameter(weight[:, 1:])
    Run(net)
def weights_tied_by_data_after_wrap():
    net = two_layers()
    model = TorchModel(net, False)
    net[1].weight.data = net[0].weight.data
    model.begin_loop()
def a_frozen_weight_tied_by_data():
    net = two_layers()
    net[1].weight = nn.Parameter(net[0].weight.data, requires_grad=False)
    Run(net)
def a_buffer_tied_by_data():
    net = two_layers()
    net[1].register_buffer("copied", net[0].weight.data[0])
    Run(net)
def with_buffers(**buffers):
    net = nn.Linear(2, 1)
    for name, buffer in buffers.items():
        net.register_buffer(name, buffer)
    return net
def a_buffer_that_is_a_row_of_another():
    stats = torch.zeros(2, 2)
    Run(with_buffers(stats=stats, mean=stats[0]))
def a_buffer_that_is_one_row_of_another_again_and_again():
    stats = torch.zeros(2, 2)
    Run(with_buffers(stats=stats, mean=stats[0].expand(3, 2)))
def a_buffer_that_is_a_frozen_parameter():
    net = two_layers()
    net[0].weight.requires_grad_(False)
    net.register_buffer("average", net[0].weight.data)
    Run(net)
def a_buffer_that_is_a_constant():
    net = with_buffers(seen=torch.zeros(2))
    net.register_buffer("first", net.seen[:1], persistent=False)
    Run(net)
def a_buffer_of_overlapping_windows():
    Run(with_buffers(seen=torch.zeros(4).unfold(0, 2, 1)))
def a_parameter_of_one_value():
    net = two_layers()
    net.scale = nn.Parameter(torch.ones(1).expand(3))
    Run(net)
def buffers_beside_each_other():
    "Rows of one tensor, two constants that are one tensor, and one buffer under two names."
    stats, table = torch.zeros(2, 2), torch.zeros(3)
    net = with_buffers(mean=stats[0], deviation=stats[1], again=stats[1])
    net.again = net.deviation
    net.register_buffer("table", table, persistent=False), net.register_buffer("head", table[:2], persistent=False)
    return Run(net).after(lambda: None)
def a_buffer_of_one_value():
    "A step changes one of its elements, which PyTorch changes in all of them, and an evaluation is undone."
    found = []
    for dtype in (torch.float32, torch.float16, torch.int64):
        net = nn.Linear(2, 1)
        net.register_buffer("same", torch.ones(1, dtype=dtype).expand(3))
        run = Run(net)
        run.backward(), net.same[0].add_(1), run.end()
        found.append(run.gradients[:3].tolist())
        run.parameters[:3] = 5
        run.begin()
        with run.model.evaluating():
            net.same[1].add_(7)
        found.append(net.same.tolist())
    return found == [[2] * 3, [5] * 3] * 3 or found
def slices_of_one_tensor():
    "One after the other, columns, and every second element. Frozen parameters may share their memory."
    found = []
    for first, second in (
        (lambda flat: flat[:4].view(2, 2), lambda flat: flat[4:8].view(2, 2)),
        (lambda flat: flat.view(2, 4)[:, :2], lambda flat: flat.view(2, 4)[:, 2:]),
        (lambda flat: flat[::2].view(2, 2), lambda flat: flat[1::2].view(2, 2)),
    ):
        net, flat = two_layers(), torch.ones(8)
        net[0].weight, net[1].weight = nn.Parameter(first(flat)), nn.Parameter(second(flat))
        net[0].frozen = nn.Parameter(torch.ones(2).expand(3, 2), requires_grad=False)
        net[1].frozen = nn.Parameter(net[0].frozen.data, requires_grad=False)
        found.append(Run(net).after(lambda: None))
    return found
class WithAttribute(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("mean", torch.zeros(3))
        self.kept = of(self)
    def forward(self, x):
        return self.layer(x)
def with_attribute(of):
    return Run(WithAttribute(of)).after(lambda: None)
def a_view_as_attribute():
    with_attribute(lambda net: net.layer.weight.t())
def a_view_by_data_in_a_list():
    Run(nn.Sequential(WithAttribute(lambda net: {"weights": [net.layer.weight.data]}))).after(lambda: None)
def a_view_of_a_buffer_as_attribute():
    run = Run(WithAttribute(lambda net: (net.mean[0],)))
    run.step()
    return run.after(lambda: run.net.mean.add_(1))
def a_view_of_a_buffer_that_nobody_changes():
    return with_attribute(lambda net: (net.mean[0],))
def a_view_that_the_rehearsal_leaves():
    class Cached(nn.Linear):
        wt = None
        def forward(self, x):
            if self.wt is None:
                self.wt = self.weight.t()
            return x @ self.wt + self.bias
    Run(Cached(2, 2), rehearse=True).step()
def a_view_of_a_layer_that_runs_later():
    "Such as the discriminator of a GAN. Its forward pass sets the view anew."
    class Later(WithAttribute):
        def forward(self, x):
            self.kept = self.layer.weight.t()
            return x @ self.kept
    net = nn.ModuleList([nn.Linear(2, 1), Later(lambda net: net.layer.weight.t())])
    run = Run(net)
    for layer in (net[0], net[0], net[1], net[0], net[1]):
        layer(torch.ones(3, 2)).sum().backward(), run.end(), run.begin()
    return "taken"
def attributes_that_are_no_views():
    found = []
    for of in (
        lambda net: net.layer.weight, lambda net: list(net.parameters()), lambda net: net.layer.weight.t().clone(),
        lambda net: torch.optim.Adam(net.parameters()), lambda net: nn.ParameterList([net.layer.weight]),
    ):
        found.append(with_attribute(of))
    found.append(Run(WithAttribute(lambda net: net.half() and net.layer.weight.t())).after(lambda: None))
    return set(found)
def attributes_that_each_forward_pass_computes():
    from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm
    layers = [each(nn.Linear(2, 2)) for each in (spectral_norm, weight_norm, parametrizations.spectral_norm, parametrizations.weight_norm)]
    layers.append(prune.l1_unstructured(nn.Linear(2, 2), "weight", 0.5))
    return {Run(nn.Sequential(layer)).after(lambda: None) for layer in layers}
class Recurrent(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.lstm = nn.LSTM(2, 2)
        change(self.lstm)
    def forward(self, x):
        return self.lstm(x)[0]
def drop_weights(lstm):
    "As WeightDrop of AWD-LSTM does."
    raw = nn.Parameter(lstm._parameters.pop("weight_hh_l0").data)
    lstm.register_parameter("weight_hh_l0_raw", raw)
    def renew(lstm, inputs):
        lstm.weight_hh_l0 = nn.functional.dropout(lstm.weight_hh_l0_raw, 0.5, True)
    lstm.register_forward_pre_hook(renew)
def changed_weights_of_a_recurrent_network():
    from torch.nn.utils import parametrizations, spectral_norm, weight_norm
    found = set()
    for change in (
        lambda lstm: parametrizations.weight_norm(lstm, "weight_hh_l0"), lambda lstm: spectral_norm(lstm, "weight_hh_l0"),
        lambda lstm: parametrizations.spectral_norm(lstm, "weight_hh_l0"), lambda lstm: weight_norm(lstm, "weight_hh_l0"),
        drop_weights,
    ):
        found.add(Run(Recurrent(change)).after(lambda: None))
    return found
class Flat(nn.Module):
    "One parameter with the weights of two layers, which each forward pass sets as attributes."
    def __init__(self):
        super().__init__()
        self.flat, self.layers = nn.Parameter(torch.ones(6)), nn.ModuleList([nn.Module(), nn.Module()])
    def forward(self, x):
        self.layers[0].weight, self.layers[1].weight = self.flat[:4].view(2, 2), self.flat[4:].view(2, 1)
        return x @ self.layers[0].weight @ self.layers[1].weight
def a_view_that_each_forward_pass_sets():
    "A pass for trial before the loop leaves such views."
    net = Flat()
    net(torch.ones(3, 2))
    return Run(net).after(lambda: None)
def layers_of_a_recurrent_network():
    return len(TorchModel(nn.LSTM(2, 2, 2), False).variables)

# ---- modules that PyTorch makes or wraps ----
def a_module_compiled_by_torch():
    net = nn.Linear(2, 1)
    run = Run(torch.compile(net, backend="eager"))
    compiled = torch.compile(net, backend="eager")
    for _ in range(3):
        compiled(torch.ones(1, 2)).sum().backward(), run.end(), run.begin()
    return [variable.name for variable in run.model.variables]
def a_module_made_in_inference_mode():
    with torch.inference_mode():
        net = nn.Linear(2, 1)
    TorchModel(net, False)
def a_frozen_parameter_made_in_inference_mode():
    net = nn.Sequential(nn.Linear(2, 2))
    with torch.inference_mode():
        net.append(nn.Linear(2, 1).requires_grad_(False))
    Run(net)
def a_mask_made_in_inference_mode():
    net = nn.Linear(2, 1)
    with torch.inference_mode():
        net.register_buffer("mask", torch.ones(2, dtype=torch.bool))
    Run(net)
def a_module_in_data_parallel():
    TorchModel(nn.DataParallel(nn.Linear(2, 1)), False)
def a_module_in_distributed_data_parallel():
    import tempfile, torch.distributed as distributed
    with tempfile.TemporaryDirectory() as folder:
        distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        try:
            TorchModel(nn.parallel.DistributedDataParallel(nn.Linear(2, 1)), False)
        finally:
            distributed.destroy_process_group()
"""
ADDED = 'since job.wrap() the parameter "{}" was added or unfrozen: do this before job.wrap()'
REPLACED = 'since job.wrap() the parameter "{}" was replaced by another tensor'
SHARED = 'the parameter "0.weight" and the {} share memory, but they are two tensors, so the job would change one of them'
SHARED_BUFFERS = '{} and the buffer "{}" share memory, but they are two tensors, so the job would change one of them'
REPEATED = "several elements of the {} share one place in memory, as expand() and unfold() make them, but the cluster changes each"
SENTENCES = {
    "a_layer_added": ADDED.format("2.weight"),
    "a_layer_added_in_a_submodule": ADDED.format("0.1.weight"),
    "a_bias_added": ADDED.format("1.bias"),
    "a_parameter_registered": ADDED.format("scale"),
    "a_buffer_registered": 'since job.wrap() the buffer "seen" was added',
    "a_parameter_replaced": REPLACED.format("0.weight"),
    "a_weight_tied_within_the_loop": REPLACED.format("1.weight"),
    "weights_tied_by_data": SHARED.format('parameter "1.weight"'),
    "weights_of_one_tensor": SHARED.format('parameter "1.weight"'),
    "weights_of_overlapping_columns": SHARED.format('parameter "1.weight"'),
    "weights_tied_by_data_after_wrap": SHARED.format('parameter "1.weight"'),
    "a_frozen_weight_tied_by_data": SHARED.format('frozen parameter "1.weight"'),
    "a_buffer_tied_by_data": 'the buffer "1.copied" and the parameter "0.weight" share memory, but they are two tensors',
    "a_buffer_that_is_a_row_of_another": SHARED_BUFFERS.format('the buffer "mean"', "stats") + " without the other: register one of "
    "them, and take the view of it in forward()",
    "a_buffer_that_is_one_row_of_another_again_and_again": SHARED_BUFFERS.format('the buffer "mean"', "stats"),
    "a_buffer_that_is_a_frozen_parameter": 'the buffer "average" and the frozen parameter "0.weight" share memory',
    "a_buffer_that_is_a_constant": SHARED_BUFFERS.format('the buffer "seen"', "first"),
    "a_view_as_attribute": 'the parameter "layer.weight" and the attribute "kept" of the module share memory, but they are two tensors, '
    "so the job would change one of them without the other: take the view in forward(), or delete the attribute before job.wrap()",
    "a_view_by_data_in_a_list": 'the parameter "0.layer.weight" and the attribute "kept" of "0" share memory',
    "a_view_of_a_buffer_as_attribute": 'the buffer "mean" and the attribute "kept" of the module share memory',
    "a_view_that_the_rehearsal_leaves": 'the parameter "weight" and the attribute "wt" of the module share memory',
    "a_buffer_of_overlapping_windows": REPEATED.format('buffer "seen"'),
    "a_parameter_of_one_value": REPEATED.format('parameter "scale"'),
    "a_frozen_parameter_made_in_inference_mode": 'job.wrap() got a module whose "1.weight" was made in torch.inference_mode()',
    "a_mask_made_in_inference_mode": 'job.wrap() got a module whose "mask" was made in torch.inference_mode(), so PyTorch can\'t',
    "a_module_made_in_inference_mode": 'job.wrap() got a module whose "weight" was made in torch.inference_mode()',
    "a_module_in_data_parallel": "job.wrap() got a DataParallel around a Linear; expected the module itself, without",
    "a_module_in_distributed_data_parallel": "job.wrap() got a DistributedDataParallel around a Linear; expected the module",
}
VALUES = {
    "attributes_that_are_no_views": {"taken"},
    "attributes_that_each_forward_pass_computes": {"taken"},
    "a_view_of_a_buffer_that_nobody_changes": "taken",
    "a_view_of_a_layer_that_runs_later": "taken",
    "changed_weights_of_a_recurrent_network": {"taken"},
    "a_view_that_each_forward_pass_sets": "taken",
    "buffers_beside_each_other": "taken",
    "a_buffer_of_one_value": True,
    "slices_of_one_tensor": ["taken"] * 3,
    "layers_of_a_recurrent_network": 8,
    "a_layer_without_parameters_added": "taken",
    "a_constant_registered": "taken",
    "tied_weights": "taken",
    "a_module_compiled_by_torch": ["weight", "bias"],
}


class TorchMembersTest(TorchCases, unittest.TestCase):
    cases, sentences, values = CASES, SENTENCES, VALUES


if __name__ == "__main__":
    unittest.main()
