"""Buffers and frozen parameters of a torch module, which steps and evaluations change, or may not change."""

import unittest

from torch_cases import TorchCases, changed

CASES = """
import copy

class Target(nn.Module):
    "With a frozen copy, as BYOL has it, and a flag."
    def __init__(self):
        super().__init__()
        self.online = nn.Linear(2, 1)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.register_buffer("is_ready", torch.tensor(False))
    def forward(self, x):
        return self.online(x) + self.target(x)

# ---- evaluations ----
def a_cache_that_an_evaluation_grows():
    net = nn.Linear(2, 1)
    net.register_buffer("cache", torch.zeros(2), persistent=False)
    run = Run(net)
    with run.model.evaluating():
        net.cache = torch.zeros(5)
    with run.model.evaluating():
        net.cache.resize_(7)
    return len(net.cache), run.after(lambda: None)
def a_buffer_that_an_evaluation_replaces():
    net = nn.Linear(2, 1)
    net.register_buffer("seen", torch.zeros(1))
    run = Run(net)
    with run.model.evaluating():
        net.seen = net.seen + 1
    return float(net.seen), run.after(lambda: None)
def a_nan_in_an_evaluation():
    net = nn.Linear(2, 1)
    net.register_buffer("same", torch.full((1,), torch.nan).expand(3))
    net.register_buffer("seen", torch.tensor([torch.nan, 1.0]))
    model = TorchModel(net, False)
    model.begin_loop()
    with Calls() as noted, model.evaluating():
        net.seen += 1
    # What didn't change may be memory that can't be written.
    return net.seen.tolist(), [elements for name, elements in noted.calls if name == "copy_"]
def an_evaluation_that_fails_and_cant_be_undone():
    run = Run()
    run.model.end_evaluation = lambda: 1 / 0
    with run.model.evaluating():
        raise DisttrainError("the function's own")
def a_flag_that_an_evaluation_sets():
    run = Run(Target())
    with run.model.evaluating():
        run.net.is_ready.fill_(True)
def a_flag_set_before_an_evaluation():
    run = Run(Target())
    run.step()
    run.net.is_ready.fill_(True)
    with run.model.evaluating():
        pass
def buffers_that_an_evaluation_leaves():
    net = nn.Linear(2, 1)
    net.register_buffer("same", torch.ones(1).expand(3), persistent=False)
    net.register_buffer("sparse", torch.eye(2).to_sparse(), persistent=False)
    with torch.inference_mode():
        net.register_buffer("table", torch.ones(2), persistent=False)
    run = Run(net)
    with run.model.evaluating(), torch.inference_mode():
        net.table += 1
    return net.table.tolist(), run.after(lambda: None)

# ---- frozen parameters and flags ----
def with_frozen_column():
    net = nn.Sequential(nn.Linear(2, 1))
    net.mean = nn.Parameter(torch.rand(5000, 2)[:, 0], requires_grad=False)
    net.same = nn.Parameter(torch.ones(1).expand(3), requires_grad=False)
    return Run(net)
def frozen_parameters_that_are_not_dense():
    return with_frozen_column().after(lambda: None)
def a_frozen_column_changed():
    run = with_frozen_column()
    run.net.mean.data[4999] += 1
    run.step()
def a_frozen_parameter_changed_in_place():
    run = Run(Target())
    return run.after(lambda: in_place(lambda p: p.mul_(0.9), run.net.target.parameters()))
def a_frozen_parameter_changed_by_data():
    run = Run(Target())
    for _ in range(4):
        run.step()
        run.net.target.bias.data *= 0.9
def a_frozen_parameter_with_other_data():
    run = Run(Target())
    return run.after(lambda: setattr(run.net.target.weight, "data", run.net.target.weight.data * 0.9))
def a_flag_set():
    run = Run(Target())
    return run.after(lambda: run.net.is_ready.fill_(True))
def a_flag_set_by_data():
    run = Run(Target())
    return run.after(lambda: run.net.is_ready.data.fill_(True))
def a_flag_with_other_data():
    run = Run(Target())
    return run.after(lambda: setattr(run.net.is_ready, "data", torch.tensor(True)))
def with_masks():
    net = nn.Linear(2, 1)
    net.register_buffer("other", torch.full((3,), -torch.inf))
    net.register_buffer("mask", torch.zeros(300, 300).fill_diagonal_(-torch.inf))
    net.register_buffer("same", torch.tensor([-torch.inf]).expand(300))
    net.register_buffer("sparse", torch.ones(2, dtype=torch.bool).to_sparse())
    return Run(net)
def a_mask_changed_by_data():
    "All of its rows, within two steps."
    run = with_masks()
    for _ in range(5):
        run.step()
    run.net.mask.data.fill_(0)
    for _ in range(4):
        run.step()
def one_value_of_a_mask_changed_by_data():
    "In the first step, which compares all values."
    run = with_masks()
    run.net.mask.data[299, 298] = 1
    run.step()
def change_one_value(run):
    run.net.mask.data[299, 298] = 1
def with_comparisons_of_all_values():
    "They take no time, so later ones are due, too."
    from disttrain import torch_model, value_watch
    torch_model.WholeSchedule = lambda: value_watch.WholeSchedule(lambda: now[0])
    now = [0.0]
    try:
        run = with_masks()
    finally:
        torch_model.WholeSchedule = value_watch.WholeSchedule
    for _ in range(5):
        run.step()
    now[0] = 1.0
    return run
def one_value_of_a_mask_changed_by_data_after_the_last_step():
    run = with_comparisons_of_all_values()
    run.model.note_values(is_last=True), change_one_value(run), run.model.check_values()
def one_value_of_a_mask_changed_by_data_in_an_evaluation():
    run = with_comparisons_of_all_values()
    with run.model.evaluating():
        change_one_value(run)
def one_value_of_a_mask_changed_by_data_before_an_evaluation():
    run = with_comparisons_of_all_values()
    change_one_value(run)
    with run.model.evaluating():
        pass
def masks_that_nobody_changes():
    run = with_masks()
    for _ in range(5):
        run.step()
    return run.after(lambda: None)

# ---- types that PyTorch can hardly compute with ----
class Frozen(nn.Module):
    "With a frozen parameter and a buffer that PyTorch can't compute with."
    def __init__(self, value=None, **buffers):
        super().__init__()
        self.layer, self.other = nn.Linear(2, 1), nn.Module()
        self.other.frozen = None if value is None else nn.Parameter(value, requires_grad=False)
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)
    def forward(self, x):
        return self.layer(x)
FLOATS_OF_8_BITS = [getattr(torch, name) for name in dir(torch) if name.startswith("float8_")]
def rare_tensors(size):
    return [
        *(torch.ones(size).to(dtype) for dtype in FLOATS_OF_8_BITS),
        torch.ones(size, dtype=torch.complex32), torch.ones(size, dtype=torch.complex128),
        torch.ones(size, dtype=torch.complex64).conj(), torch.ones(size, dtype=torch.complex64).conj().imag,
    ]
def rare_frozen_parameters():
    others = [
        torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), torch.ones(0),
    ]
    found = []
    for value in (*rare_tensors(5000), *others):
        run = Run(Frozen(value))
        run.step(), run.model.load(), run.model.note_values(is_last=True)
        found.append(run.model.check_values())
    return set(found)
def rare_frozen_parameters_that_change():
    "The last value, once, in the first step."
    found = set()
    for value in rare_tensors(5000):
        run = Run(Frozen(value))
        run.net.other.frozen.data[4999:].copy_(torch.zeros(1))
        try:
            found.add(run.after(lambda: None))
        except DisttrainError as error:
            found.add(str(error).split(",")[0])
    return found
def buffers_of_8_bits():
    "A step and an evaluation change them."
    found = []
    for dtype in FLOATS_OF_8_BITS:
        net = Frozen(seen=torch.ones(2).to(dtype), mask=torch.ones(2).to(dtype))
        run = Run(net)
        run.backward(), net.seen.copy_(torch.tensor([2.0, 4.0])), run.end()
        place = [variable.name for variable in run.model.variables].index("seen")
        found.append((len(run.model.variables), run.gradients[2 * place : 2 * place + 2].tolist()))
        run.parameters[2 * place] = 2
        run.begin()
        with run.model.evaluating():
            net.seen.copy_(torch.tensor([8.0, 8.0]))
        found.append(net.seen.float().tolist())
    return found == [(4, [2.0, 4.0]), [2.0, 1.0]] * len(FLOATS_OF_8_BITS) or found
def a_parameter_of_8_bits():
    net = Frozen()
    net.other.scale = nn.Parameter(torch.ones(3).to(torch.float8_e4m3fn))
    run = Run(net)
    (net.other.scale.float().sum() + net(torch.ones(1, 2)).sum()).backward()
    print("a_parameter_of_8_bits_that_nobody_changes:", run.end())
    run.model.note_values(is_last=True), net.other.scale.data[1:].copy_(torch.zeros(2)), run.model.check_values()
def a_buffer_of_4_bits():
    Run(Frozen(seen=torch.ones(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)))
def a_quantized_buffer():
    Run(Frozen(seen=torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)))
def a_nested_buffer():
    Run(Frozen(seen=torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])))
def a_negative_view_as_buffer():
    run = Run(Frozen(seen=torch.tensor([1 + 2j]).conj().imag))
    return run.model.initial()[0].tolist(), run.after(lambda: None)

# ---- whole numbers ----
def counted(dtype, begin, change):
    "A buffer of whole numbers that a step changes by `change`."
    net = nn.Linear(2, 1)
    net.register_buffer("few", torch.zeros(3, dtype=torch.int32))
    net.register_buffer("seen", torch.tensor([0, begin]).to(dtype))
    run = Run(net)
    return run.after(lambda: net.seen.copy_(net.seen.long() + change))
def a_count_that_stays_exact():
    return [counted(dtype, 2**24 - 2, 2) for dtype in (torch.int32, torch.int64, torch.uint32, torch.uint64)]
def a_count_that_grows_too_large():
    return counted(torch.int64, 2**24 - 2, 3)
def a_negative_count_that_grows_too_large():
    return counted(torch.int32, 3, -2**24 - 4)
def an_unsigned_count_that_grows_too_large():
    return counted(torch.uint32, 2**24 - 2, 3)
def an_unsigned_long_count_that_grows_too_large():
    return counted(torch.uint64, 2**24 - 2, 3)
def a_count_that_grows_too_large_in_the_rehearsal():
    net = nn.Linear(2, 1)
    net.register_buffer("seen", torch.zeros(1, dtype=torch.int64))
    model = TorchModel(net, False)
    model.begin_loop(), model.begin_rehearsal()
    net.seen += 2**24 + 1
    net(torch.ones(1, 2)).sum().backward(), model.end_step()
def batches_of_a_batch_norm(momentum):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, momentum=momentum))
    run = Run(net)
    return run.after(lambda: net[1].num_batches_tracked.fill_(2**24))
def many_batches_that_a_batch_norm_counts():
    return batches_of_a_batch_norm(0.1)
def counted_before(momentum):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, momentum=momentum))
    net[1].num_batches_tracked.fill_(2**24 + 6)
    run = Run(net)
    found = [variable.name for variable in run.model.variables][2]
    place = np.flatnonzero(run.parameters == 2**24 + 6).item() if momentum else 0
    for _ in range(3):
        run.backward(), run.end()
        run.parameters[place] = run.gradients[place]
        run.begin()
    return found, net[1].num_batches_tracked.item() - 2**24
def batches_that_a_batch_norm_has_counted_before():
    return counted_before(0.1)
def batches_that_a_batch_norm_has_counted_before_and_reads():
    counted_before(None)
def many_batches_that_a_batch_norm_reads():
    batches_of_a_batch_norm(None)
def a_double_count():
    net = nn.Linear(2, 1).double()
    net.register_buffer("seen", torch.zeros(1, dtype=torch.float64))
    run = Run(net)
    return run.after(lambda: net.seen.add_(2**24 + 1)), run.model.named_views()["seen"].item()
def large_unsigned_numbers():
    net = nn.Linear(2, 1)
    net.register_buffer("offsets", torch.tensor([0, 2**24 + 1]).to(torch.uint32))
    return [variable.name for variable in Run(net).model.variables]
"""
FROZEN = "the loop changed the frozen parameter \"target.{}\", but the cluster doesn't keep"
NOT_DENSE = '"seen" is {} and layout torch.strided; expected a dense tensor of real numbers, or a buffer with persistent=False'
LARGE = (
    'the buffer "seen" has got whole numbers above 16777216 since job.wrap(), which the cluster can\'t keep exactly: let it be a '
    "buffer of float64, or one with persistent=False"
)
SENTENCES = {
    "a_frozen_parameter_changed_in_place": FROZEN.format("weight"),
    "a_frozen_parameter_changed_by_data": FROZEN.format("bias"),
    "a_frozen_parameter_with_other_data": FROZEN.format("weight"),
    "a_flag_set": 'the step changed the buffer "is_ready", which has flags (bool) at job.wrap()',
    "a_flag_that_an_evaluation_sets": "the function of job.on_evaluate() or job.on_predict() changed the buffer \"is_ready\", which has",
    "an_evaluation_that_fails_and_cant_be_undone": "the function's own",
    "a_frozen_column_changed": FROZEN.format("mean").replace("target.", ""),
    "a_flag_set_by_data": 'the step changed the buffer "is_ready", which has flags (bool) at job.wrap()',
    "a_flag_with_other_data": 'the step changed the buffer "is_ready", which has flags (bool) at job.wrap()',
    "a_mask_changed_by_data": 'the step changed the buffer "mask", which had an infinity at job.wrap()',
    "one_value_of_a_mask_changed_by_data": 'the step changed the buffer "mask", which had an infinity at job.wrap()',
    "one_value_of_a_mask_changed_by_data_after_the_last_step": 'the step changed the buffer "mask", which had an infinity',
    "one_value_of_a_mask_changed_by_data_in_an_evaluation": 'the function of job.on_evaluate() or job.on_predict() changed the '
    'buffer "mask", which had an infinity at job.wrap()',
    "one_value_of_a_mask_changed_by_data_before_an_evaluation": 'the step changed the buffer "mask", which had an infinity',
    "a_flag_set_before_an_evaluation": 'the step changed the buffer "is_ready", which has flags (bool) at job.wrap()',
    "a_parameter_of_8_bits": changed("other.scale"),
    "a_buffer_of_4_bits": NOT_DENSE.format("of type torch.float4_e2m1fn_x2"),
    "a_quantized_buffer": NOT_DENSE.format("of type torch.quint8"),
    "a_nested_buffer": NOT_DENSE.format("nested, of type torch.float32"),
    "batches_that_a_batch_norm_has_counted_before_and_reads": 'the step changed the buffer "1.num_batches_tracked", which had whole '
    "numbers above 16777216 at job.wrap()",
    "a_count_that_grows_too_large": LARGE,
    "a_negative_count_that_grows_too_large": LARGE,
    "an_unsigned_count_that_grows_too_large": LARGE,
    "an_unsigned_long_count_that_grows_too_large": LARGE,
    "a_count_that_grows_too_large_in_the_rehearsal": LARGE,
    "many_batches_that_a_batch_norm_reads": LARGE.replace("seen", "1.num_batches_tracked"),
}
VALUES = {
    "masks_that_nobody_changes": "taken",
    "rare_frozen_parameters": {None},
    "rare_frozen_parameters_that_change": {'the loop changed the frozen parameter "other.frozen"'},
    "buffers_of_8_bits": True,
    "a_parameter_of_8_bits_that_nobody_changes": "taken",
    "a_negative_view_as_buffer": ([-2.0], "taken"),
    "batches_that_a_batch_norm_has_counted_before": ("1.num_batches_tracked", 8),
    "a_cache_that_an_evaluation_grows": (7, "taken"),
    "a_buffer_that_an_evaluation_replaces": (0.0, "taken"),
    "a_nan_in_an_evaluation": ([float("nan"), 1.0], [2]),
    "buffers_that_an_evaluation_leaves": ([2.0, 2.0], "taken"),
    "frozen_parameters_that_are_not_dense": "taken",
    "a_count_that_stays_exact": ["taken"] * 4,
    "many_batches_that_a_batch_norm_counts": "taken",
    "a_double_count": ("taken", 2.0**24 + 1),
    "large_unsigned_numbers": ["weight", "bias"],
}


class TorchStateTest(TorchCases, unittest.TestCase):
    cases, sentences, values = CASES, SENTENCES, VALUES


if __name__ == "__main__":
    unittest.main()
