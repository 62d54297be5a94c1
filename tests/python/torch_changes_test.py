"""What a script may do to a torch module within the loop: it works as in PyTorch, or an error says which line to change.
It needs a Python with PyTorch."""

import unittest

from fake_worker import FakeWorker, require_python, run_code

PYTHON = require_python("torch")

# Each function is a case. It prints the error that it causes, or what it returns. All cases run in one process, because
# the import of torch takes seconds.
CASES = """
import contextlib, copy, dataclasses, io, warnings
import numpy as np, torch
from disttrain import DisttrainError
from disttrain.array_model import ArrayModel
from disttrain.batch import collate
from disttrain.constraint import Constraint, call_with_array
from disttrain import torch_model
from disttrain.torch_arrays import PART
from disttrain.torch_changes import sum_of_words
from disttrain.torch_model import TorchModel
from disttrain.value_watch import WholeSchedule
from disttrain.variable import Variable
from torch.utils._python_dispatch import TorchDispatchMode
warnings.simplefilter("ignore")
nn = torch.nn

class Run:
    "A module with its model, in flat arrays of its own, in its first step."
    def __init__(self, net=None, **options):
        self.net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)) if net is None else net
        self.model = TorchModel(self.net, options.pop("overlap", False), **options)
        self.model.begin_loop()
        begins, words = [], 0
        for variable in self.model.variables:
            begins.append(words)
            words += variable.words
        self.parameters, self.gradients = np.zeros(words, np.float32), np.zeros(words, np.float32)
        for begin, variable, value in zip(begins, self.model.variables, self.model.initial()):
            self.parameters[begin : begin + variable.words] = value.reshape(-1).view(np.float32)
        self.model.lay_out(begins)
        self.model.bind("arrays", lambda: (self.parameters, self.gradients))
        self.begin()
    def begin(self):
        self.model.load()
        self.model.begin_step(lambda end: None)
    def backward(self, scale=1.0):
        x = torch.ones(3, 2, dtype=next(self.net.parameters()).dtype)
        (self.net(x).sum() * scale).backward()
    def end(self):
        self.model.end_step()
        return "taken"
    def step(self):
        self.backward(), self.end(), self.begin()
    def after(self, change):
        "A change in the body of the second step, before its backward pass."
        self.step()
        change()
        self.backward()
        return self.end()

def in_place(change, parameters):
    with torch.no_grad():
        for parameter in parameters:
            change(parameter)

# ---- changes of values ----
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
class Calls(TorchDispatchMode):
    "The functions of PyTorch that run in it."
    def __init__(self):
        super().__init__()
        self.calls = []  # (name, elements of the first argument)
    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if arguments and isinstance(arguments[0], torch.Tensor):
            self.calls.append((function.overloadpacket.__name__, arguments[0].numel()))
        return function(*arguments, **(options or {}))
def sums_of_words():
    found = []
    for size in (0, 1, PART, 3 * PART + 5):
        words = (torch.arange(size) % 251 - 120).to(torch.int8)
        with Calls() as noted:
            total = sum_of_words(words)
        most = max(elements for name, elements in noted.calls if name == "sum")
        found.append((total == words.long().sum().item(), most <= PART))
    return found
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
def with_frozen_column():
    net = nn.Sequential(nn.Linear(2, 1))
    net.mean = nn.Parameter(torch.rand(5000, 2)[:, 0], requires_grad=False)
    net.same = nn.Parameter(torch.ones(1).expand(3), requires_grad=False)
    return Run(net)
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
def frozen_parameters_that_are_not_dense():
    return with_frozen_column().after(lambda: None)
def a_frozen_column_changed():
    run = with_frozen_column()
    run.net.mean.data[4999] += 1
    run.step()
def a_tree_whose_array_became_writable():
    model = ArrayModel({"w": np.ones(3, np.float32)})
    flat = np.ones(3, np.float32), np.zeros(3, np.float32)
    model.lay_out([0])
    model.bind("arrays", lambda: flat)
    model.begin_step()
    flat[0][1] = 2
    model.write_gradients({"w": np.ones(3)})

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

# ---- gradients ----
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
def a_scale_of_one():
    run = Run()
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    run.model.begin_loop()
    scaler.scale(run.net(torch.ones(3, 2)).sum()).backward()
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
    run, head, forgotten = Run(), nn.Linear(1, 1, bias=False), nn.Linear(1, 1)
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
def a_scaled_loss_of_an_evaluation():
    run, probe = Run(), nn.Linear(1, 1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    run.model.begin_loop()
    with run.model.evaluating():
        scaler.scale(torch.ones(1))
    run.begin()
    return run.after(lambda: None)
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

# ---- members ----
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
def layers_of_a_recurrent_network():
    return len(TorchModel(nn.LSTM(2, 2, 2), False).variables)
class Target(nn.Module):
    "With a frozen copy, as BYOL has it, and a flag."
    def __init__(self):
        super().__init__()
        self.online = nn.Linear(2, 1)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.register_buffer("is_ready", torch.tensor(False))
    def forward(self, x):
        return self.online(x) + self.target(x)
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

# ---- constraints ----
def bounds_of(constraint, net=None):
    return {v.name: v.bounds for v in TorchModel(nn.Linear(1, 1) if net is None else net, False, constraint).variables}
def half_of_a_tenth():
    return float(np.float32(0.05))
def a_clamp():
    return bounds_of(lambda value: value.clamp(-half_of_a_tenth(), half_of_a_tenth()))
def a_clamp_in_place():
    return bounds_of(lambda value: value.clamp_(min=0) and None if value.numel() == 0 else (value.clamp_(min=0), None)[1])
def a_clamp_of_one_parameter():
    return bounds_of(lambda name, value: value.clamp(max=0.5) if name == "weight" else value)
def a_clamp_of_a_double():
    return bounds_of(lambda value: value.clamp(-0.1, 0.1), nn.Linear(1, 1, bias=False).double())
def initial_values_within_the_bounds():
    run = Run(constraint=lambda value: value.clamp(0.0, 0.125))
    return bool((run.parameters >= 0).all() and (run.parameters <= 0.125).all() and run.parameters.any())
def a_longest_norm():
    bounds_of(lambda value: value / max(1.0, float(value.norm())), nn.Linear(3, 3))
def rounded_values():
    bounds_of(lambda value: value.round(decimals=1))
def absolute_values():
    bounds_of(lambda value: value.abs())
def bounds_by_element():
    bounds_of(lambda value: torch.minimum(value, torch.arange(value.numel()).reshape(value.shape)), nn.Linear(3, 3))
def a_constraint_that_changes_nothing():
    bounds_of(lambda value: value)
def a_constraint_that_returns_another_shape():
    bounds_of(lambda value: value.sum())
def a_constraint_that_returns_a_number():
    bounds_of(lambda value: 0.1)
def a_constraint_that_is_no_function():
    bounds_of(0.01)
def a_constraint_of_three_arguments():
    bounds_of(lambda module, name, value: value.clamp(0, 1))
def a_constraint_that_changes_with_time():
    width = [1.0]
    run = Run(constraint=lambda value: value.clamp(-width[0], width[0]))
    width[0] = 0.0
    run.begin()
def a_constraint_of_arrays():
    model = ArrayModel({"a": np.full(2, 3.0), "b": np.zeros(())}, None, lambda value: np.clip(value, -1, 1))
    return [v.bounds for v in model.variables], model.initial()[0].tolist()
class Large:
    "A parameter of ten times as many elements as are verified in a step, and a small one."
    def __init__(self, function):
        self.calls = []
        def noted(value):
            self.calls.append(value.size)
            return function(value)
        self.constraint = Constraint(noted, call_with_array)
        self.variables = [Variable("large", (640, 1024), "trainable"), Variable("small", (3,), "trainable")]
        bounds = self.constraint.bounds_of(self.variables)
        self.variables = [dataclasses.replace(v, bounds=b) for v, b in zip(self.variables, bounds)]
    def steps(self, count):
        self.calls.clear()
        for _ in range(count):
            self.constraint.verify(self.variables, [np.ones(v.shape, v.dtype) for v in self.variables])
def calls_with_a_large_parameter():
    large = Large(lambda value: np.clip(value, -1, 1))
    at_wrap = large.calls.count(655360)
    large.steps(9)
    first = large.calls.copy()
    large.steps(91)
    return [v.bounds for v in large.variables], at_wrap <= 7, first, large.calls.count(655360) in (8, 9, 10), 3 in large.calls
def a_constraint_of_a_large_parameter_that_changes_with_time():
    width = [1.0]
    large = Large(lambda value: np.clip(value, -width[0], width[0]))
    width[0] = 0.5
    large.steps(10)
def a_constraint_that_begins_with_time():
    "The function changes nothing of the large parameter at job.wrap()."
    begun = [False]
    large = Large(lambda value: np.clip(value, -0.5, 0.5) if begun[0] else np.clip(value, -1, 1) if value.size == 3 else value)
    begun[0] = True
    large.variables = large.variables[:1]
    large.steps(10)
def a_constraint_of_a_function_of_large_values(function):
    "The error for a function that works on the large parameter alone."
    try:
        Large(lambda value: np.clip(value, -1, 1) if value.size == 3 else function(value).astype(value.dtype))
    except DisttrainError as error:
        return "doesn't keep each element" in str(error)
def functions_of_small_norms():
    length = lambda value: float(np.linalg.norm(value)) or 1.0
    spread = lambda value: float(np.sqrt(np.mean(np.square(value)))) or 1.0
    return [a_constraint_of_a_function_of_large_values(function) for function in (
        lambda value: value / min(1.0, length(value)),
        lambda value: value * max(1.0, 1e-3 / spread(value)),
        lambda value: value - value.mean() if spread(value) < 0.1 else value,
        lambda value: value / 2 if length(value) < 10 else value,
        lambda value: value / 2 if 0.1 < spread(value) < 10 else value,
    )]
def a_longest_row():
    Large(lambda value: value / np.maximum(1, np.linalg.norm(value, axis=-1, keepdims=True)).astype(value.dtype))
def a_longest_column():
    Large(lambda value: value / np.maximum(1, np.linalg.norm(value, axis=0, keepdims=True)).astype(value.dtype))
def a_shortest_row():
    Large(lambda value: value / np.minimum(1, np.linalg.norm(value, axis=-1, keepdims=True)).astype(value.dtype))

for name, case in list(globals().items()):
    if getattr(case, "__module__", "") == "__main__" and not isinstance(case, type) and not case.__code__.co_argcount:
        try:
            print(f"{name}: {case()}", flush=True)
        except DisttrainError as error:
            print(f"{name}: {error}", flush=True)
"""


def changed(name):
    return f'the loop changed the parameter "{name}" in place. Such a change stays in this process'


DROPPED = "the gradients were dropped between loss.backward() and job.step(), as zero_grad() does: take this line out"
ADDED = 'since job.wrap() the parameter "{}" was added or unfrozen: do this before job.wrap()'
REPLACED = 'since job.wrap() the parameter "{}" was replaced by another tensor'
FROZEN = "the loop changed the frozen parameter \"target.{}\", but the cluster doesn't keep"
OUTSIDE = "the backward pass gave a gradient to {}, which isn't in the module that job.wrap() got"
NOTED = "disttrain: "
SHARED = 'the parameter "0.weight" and the {} share memory, but they are two tensors, so the job would change one of them'
SHARED_BUFFERS = '{} and the buffer "{}" share memory, but they are two tensors, so the job would change one of them'
REPEATED = "several elements of the {} share one place in memory, as expand() and unfold() make them, but the cluster changes each"
NOT_DENSE = '"seen" is {} and layout torch.strided; expected a dense tensor of real numbers, or a buffer with persistent=False'
LARGE = (
    'the buffer "seen" has got whole numbers above 16777216 since job.wrap(), which the cluster can\'t keep exactly: let it be a '
    "buffer of float64, or one with persistent=False"
)
NO_BOUNDS = "the function of job.wrap(constraint=...) doesn't keep each element of the parameter \"weight\" within bounds"
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
    "an_optimizer": "the loop called step() of a torch.optim.SGD on parameters of the module that job.wrap() got: take this",
    "a_schedule": "the loop called step() of a torch.optim.lr_scheduler.StepLR, but the learning rate is job.toml's",
    "zero_grad_after_the_backward_pass": DROPPED,
    "zero_grad_to_zeros_after_the_backward_pass": DROPPED,
    "zero_grad_of_an_optimizer_after_the_backward_pass": DROPPED,
    "zero_grad_of_wrap_after_the_backward_pass": DROPPED,
    "zero_grad_of_half_after_the_backward_pass": "found no gradient in any parameter of the module: call loss.backward() before "
    "job.step(), and no zero_grad() between the two",
    "a_graph_that_is_kept_over_a_step": "RuntimeError: one of the variables needed for gradient computation has been modified",
    "frozen_within_the_loop": 'the loop froze the parameter "0.weight" (requires_grad = False), but the job trains it',
    "a_scaled_loss_that_stays_scaled": "the gradients are 1024 times too large, because the loop scaled the loss by a",
    "a_second_module": OUTSIDE.format('the parameter "weight" of a Linear, with the shape [1, 1]'),
    "a_second_module_made_in_the_loop": OUTSIDE.format('the parameter "weight" of a Linear, with the shape [1, 1]'),
    "layers_in_a_list": OUTSIDE.format('the parameter "weight" of a Linear, with the shape [2, 2]'),
    "a_parameter_of_no_module": OUTSIDE.format("a Parameter with the shape [1]"),
    "a_second_module_with_an_optimizer": NOTED + OUTSIDE.format('the parameter "weight" of a Linear, with the shape [1, 1]'),
    "a_tensor_that_needs_a_gradient": "(1, \"" + NOTED + "the backward pass gave a gradient to a Tensor with the shape [1]",
    "tensors_of_different_sizes": "the samples' field \"x\" can't be stacked: a sample has the shape [3] and another one [5]; "
    "pass a function that makes a batch of a list of samples, job.batches(dataset, collate=function)",
    "tensors_of_different_types": "the samples' field \"x\" can't be stacked: expected Tensor as element 1",
    "a_layer_added": ADDED.format("2.weight"),
    "a_layer_added_in_a_submodule": ADDED.format("0.1.weight"),
    "a_bias_added": ADDED.format("1.bias"),
    "a_parameter_registered": ADDED.format("scale"),
    "a_buffer_registered": 'since job.wrap() the buffer "seen" was added',
    "a_parameter_replaced": REPLACED.format("0.weight"),
    "a_weight_tied_within_the_loop": REPLACED.format("1.weight"),
    "a_frozen_parameter_changed_in_place": FROZEN.format("weight"),
    "a_frozen_parameter_changed_by_data": FROZEN.format("bias"),
    "a_frozen_parameter_with_other_data": FROZEN.format("weight"),
    "a_flag_set": 'the step changed the buffer "is_ready", which has flags (bool) at job.wrap()',
    "a_flag_that_an_evaluation_sets": "the function of job.on_evaluate() or job.on_predict() changed the buffer \"is_ready\", which has",
    "an_evaluation_that_fails_and_cant_be_undone": "the function's own",
    "a_frozen_column_changed": FROZEN.format("mean").replace("target.", ""),
    "a_flag_set_before_an_evaluation": 'the step changed the buffer "is_ready", which has flags (bool) at job.wrap()',
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
    "a_buffer_of_overlapping_windows": REPEATED.format('buffer "seen"'),
    "a_parameter_of_one_value": REPEATED.format('parameter "scale"'),
    "a_parameter_of_8_bits": changed("other.scale"),
    "a_buffer_of_4_bits": NOT_DENSE.format("of type torch.float4_e2m1fn_x2"),
    "a_quantized_buffer": NOT_DENSE.format("of type torch.quint8"),
    "a_nested_buffer": NOT_DENSE.format("nested, of type torch.float32"),
    "many_values_after_the_last_step_of_a_model_that_takes_long": changed("1.weight"),
    "a_second_module_beside_one_with_an_optimizer": OUTSIDE.format('the parameter "weight" of a Linear, with the shape [1, 1]'),
    "a_probe_and_then_a_second_module": OUTSIDE.format('the parameter "weight" of a Linear, with the shape [1, 1]'),
    "batches_that_a_batch_norm_has_counted_before_and_reads": 'the step changed the buffer "1.num_batches_tracked", which had whole '
    "numbers above 16777216 at job.wrap()",
    "a_count_that_grows_too_large": LARGE,
    "a_negative_count_that_grows_too_large": LARGE,
    "an_unsigned_count_that_grows_too_large": LARGE,
    "an_unsigned_long_count_that_grows_too_large": LARGE,
    "a_count_that_grows_too_large_in_the_rehearsal": LARGE,
    "many_batches_that_a_batch_norm_reads": LARGE.replace("seen", "1.num_batches_tracked"),
    "a_frozen_parameter_made_in_inference_mode": 'job.wrap() got a module whose "1.weight" was made in torch.inference_mode()',
    "a_mask_made_in_inference_mode": 'job.wrap() got a module whose "mask" was made in torch.inference_mode(), so PyTorch can\'t',
    "a_module_made_in_inference_mode": 'job.wrap() got a module whose "weight" was made in torch.inference_mode()',
    "a_module_in_data_parallel": "job.wrap() got a DataParallel around a Linear; expected the module itself, without",
    "a_module_in_distributed_data_parallel": "job.wrap() got a DistributedDataParallel around a Linear; expected the module",
    "a_longest_norm": NO_BOUNDS,
    "rounded_values": NO_BOUNDS,
    "absolute_values": NO_BOUNDS,
    "bounds_by_element": NO_BOUNDS,
    "a_constraint_that_changes_nothing": "job.wrap() got a constraint that changes no parameter",
    "a_constraint_that_returns_another_shape": "returned the shape [] and type float32 for the parameter \"weight\"; expected",
    "a_constraint_that_returns_a_number": "returned an object of the class float for the parameter",
    "a_constraint_that_is_no_function": "job.wrap(constraint=...) got an object of the class float; expected a function",
    "a_constraint_of_three_arguments": "got a function with 3 parameters; expected function(value) or function(name, value)",
    "a_constraint_that_changes_with_time": 'changes new values of the parameter "0.weight", for which job.wrap() found the '
    "bounds [-1.0, 1.0]; expected a function that always gives the same result",
    "a_constraint_of_a_large_parameter_that_changes_with_time": 'changes new values of the parameter "large", for which',
    "a_constraint_that_begins_with_time": 'changes new values of the parameter "large", for which job.wrap() found no bounds',
    "a_longest_row": NO_BOUNDS.replace("weight", "large"),
    "a_longest_column": NO_BOUNDS.replace("weight", "large"),
    "a_shortest_row": NO_BOUNDS.replace("weight", "large"),
}
SMALL = 0.05000000074505806  # of float32
VALUES = {
    "a_large_model_that_nobody_changes": "taken",
    "half_that_nobody_changes": "taken",
    "a_large_model_with_whole_comparisons_that_nobody_changes": "taken",
    "the_schedule_of_whole_comparisons": ([0, 1], True, True, False),
    "the_whole_comparison_at_the_end": [[True, True], [True, True], [True, False], [True, False]],
    "one_value_after_the_last_step_of_a_model_that_takes_long": "taken",
    "sums_of_words": [(True, True)] * 4,
    "rare_frozen_parameters": {None},
    "rare_frozen_parameters_that_change": {'the loop changed the frozen parameter "other.frozen"'},
    "buffers_of_8_bits": True,
    "a_parameter_of_8_bits_that_nobody_changes": "taken",
    "a_negative_view_as_buffer": ([-2.0], "taken"),
    "a_probe_that_an_evaluation_trains": (["taken"] * 4, ""),
    "a_scaled_loss_of_an_evaluation": "taken",
    "buffers_beside_each_other": "taken",
    "a_buffer_of_one_value": True,
    "batches_that_a_batch_norm_has_counted_before": ("1.num_batches_tracked", 8),
    "a_cache_that_an_evaluation_grows": (7, "taken"),
    "a_buffer_that_an_evaluation_replaces": (0.0, "taken"),
    "a_nan_in_an_evaluation": ([float("nan"), 1.0], [2]),
    "buffers_that_an_evaluation_leaves": ([2.0, 2.0], "taken"),
    "frozen_parameters_that_are_not_dense": "taken",
    "slices_of_one_tensor": ["taken"] * 3,
    "layers_of_a_recurrent_network": 8,
    "a_count_that_stays_exact": ["taken"] * 4,
    "many_batches_that_a_batch_norm_counts": "taken",
    "a_double_count": ("taken", 2.0**24 + 1),
    "large_unsigned_numbers": ["weight", "bias"],
    "a_nan_that_nobody_changes": "taken",
    "other_values_for_an_evaluation_alone": "taken",
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
    "a_scaled_loss_of_the_step_before": "taken",
    "a_scaled_loss_unscaled": "taken",
    "a_scaled_loss_unscaled_by_hand": "taken",
    "a_scale_of_one": "taken",
    "modules_that_get_no_gradient": "taken",
    "bare_tensors": (["x"], [2, 3]),
    "a_layer_without_parameters_added": "taken",
    "a_constant_registered": "taken",
    "tied_weights": "taken",
    "a_module_compiled_by_torch": ["weight", "bias"],
    "a_clamp": {"weight": (-SMALL, SMALL), "bias": (-SMALL, SMALL)},
    "a_clamp_in_place": {"weight": (0.0, float("inf")), "bias": (0.0, float("inf"))},
    "a_clamp_of_one_parameter": {"weight": (-float("inf"), 0.5), "bias": None},
    "a_clamp_of_a_double": {"weight": (-0.1, 0.1)},
    "initial_values_within_the_bounds": True,
    "calls_with_a_large_parameter": ([(-1.0, 1.0), (-1.0, 1.0)], True, [], True, True),
    "functions_of_small_norms": [True] * 5,
    "a_constraint_of_arrays": ([(-1.0, 1.0), (-1.0, 1.0)], [1.0, 1.0]),
}

# Takes lines for before the loop, for its body before job.step() and after it, and for after the loop.
SCRIPT = """
import disttrain, torch
job = disttrain.init(metrics=[])
model = torch.nn.Linear(1, 1, bias=False){dtype}
opt = job.wrap(model{wrap})
for batch in job.batches([torch.tensor([1.0]){dtype}] * 10):
    loss = model(batch.x).sum()
    loss.backward()
    {step}
    {after}
print(model.weight.item())
"""


class TorchChangesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = run_code(PYTHON, CASES)
        cls.output = done.stdout + done.stderr
        cls.found = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)

    def test_what_a_loop_may_not_do_is_one_sentence(self):
        for name, sentence in SENTENCES.items():
            with self.subTest(name):
                self.assertIn(sentence, self.found.get(name, self.output))

    def test_what_a_loop_may_do_works(self):
        for name, expected in VALUES.items():
            with self.subTest(name):
                self.assertEqual(self.found.get(name, self.output), str(expected))

    def run_steps(self, steps, dtype="", wrap="", step="job.step(loss=loss)", after="pass"):
        """Gives the weight the values 1, 2, 3 ... in the steps, and one more at the end. Returns the first message that
        isn't the end of a step, and what the script printed."""
        with FakeWorker(PYTHON, SCRIPT.format(dtype=dtype, wrap=wrap, step=step, after=after)) as worker:
            worker.open()
            parameters, gradients = worker.new_block(4 * worker.words), worker.new_block(4 * worker.words)
            message = None
            for i in range(steps):
                worker.fill(parameters, {"weight": [i + 1]})
                worker.start(parameters, gradients, [i])
                message = worker.receive()
                if message is None or message["type"] != "finished":
                    return message, worker.finish()[1]
            worker.fill(parameters, {"weight": [steps + 1]})
            worker.end()
            code, output = worker.finish()
            if code != 0:
                message = worker.receive()
            return message, output

    def test_after_the_loop_a_module_has_the_newest_values(self):
        for dtype in ("", ".half()", ".bfloat16()", ".double()"):
            self.assertEqual(self.run_steps(2, dtype=dtype)[1], "3.0\n", dtype)

    def test_a_change_after_the_last_step_is_an_error(self):
        for dtype in ("", ".half()"):
            message, _ = self.run_steps(1, dtype=dtype, after="model.weight.data.clamp_(0, 0.5)")
            self.assertIn(changed("weight"), message.get("message", ""))

    def test_a_script_that_runs_alone_gets_the_same_errors(self):
        for step, after, expected in (
            ("job.step(loss=loss)", "pass", None),
            ("job.step(loss=loss)", "model.weight.data += 1", changed("weight")),
            ("model.zero_grad(); job.step(loss=loss)", "pass", DROPPED),
        ):
            done = run_code(PYTHON, SCRIPT.format(dtype="", wrap="", step=step, after=after))
            self.assertEqual(done.returncode, 0 if expected is None else 1, done.stderr)
            self.assertIn(expected or "", done.stderr)
        optimizer = "alone=disttrain.Alone(optimizer=torch.optim.SGD(model.parameters(), lr=0.5))"
        script = SCRIPT.format(dtype="", wrap="", step="job.step(loss=loss)", after="pass")
        made, joined = "job = disttrain.init(metrics=[])\n", "model = torch.nn.Linear(1, 1, bias=False)\n"
        script = script.replace(made, "").replace(joined, joined + made.replace("metrics=[]", "metrics=[], " + optimizer))
        done = run_code(PYTHON, script)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_lines_of_an_optimizer_that_were_left_in_the_script(self):
        no_loss = "got no loss. One call does the whole step, job.step(loss=loss) or opt.step(loss=loss)"
        for step, expected in {
            "opt.step(); opt.zero_grad()": no_loss,
            "job.step(loss=loss); opt.step(); opt.zero_grad()": no_loss,
            "job.step()": "job.step() got no loss; write job.step(loss=loss)",
            "opt.zero_grad(); job.step(loss=loss)": DROPPED,
            "opt.step(lambda: loss)": "got the function <lambda>; expected the loss: no update rule of job.toml computes a",
            "continue": "set train.accumulate in job.toml",
            "job.step(loss=loss); job.step(loss=loss)": "job.step() was called without a batch, or twice for one",
            "job.wrap(model)": "job.wrap() was called",
            "torch.optim.lr_scheduler.StepLR(opt, 1)": "WrappedModule is not an Optimizer",
        }.items():
            with self.subTest(step):
                # The error may come after the end of the step.
                message, output = self.run_steps(2, step=step)
                self.assertIn(expected, output)
        _, output = self.run_steps(1, step="opt.param_groups[0]['lr'] = 0.1")
        self.assertIn("AttributeError: what job.wrap() returned is no optimizer of torch.optim and has no \"param_groups\"", output)

        message, _ = self.run_steps(1, step="opt.zero_grad(set_to_none=True)\n    model(batch.x).sum().backward()\n    job.step(loss=loss)")
        self.assertEqual(message["type"], "finished")

    def test_a_loop_that_is_not_the_jobs(self):
        loop = "for batch in job.batches([torch.tensor([1.0]){dtype}] * 10):"
        script = SCRIPT.replace(loop, "from types import SimpleNamespace\nfor batch in [SimpleNamespace(x=torch.ones(1))]:")
        done = run_code(PYTHON, script.format(dtype="", wrap="", step="job.step(loss=loss)", after="pass"))
        self.assertIn("job.step() was called outside the loop over job.batches(); write `for batch in", done.stderr)
        done = run_code(PYTHON, "import disttrain, torch\njob = disttrain.init()\n" + 2 * "job.wrap(torch.nn.Linear(1, 1))\n")
        self.assertIn("a job has one model: make one of both, such as torch.nn.ModuleDict({...})", done.stderr)

    def test_the_worker_gets_the_bounds(self):
        script = SCRIPT.format(dtype="", wrap=", constraint=lambda value: value.clamp(min=-0.5)", step="pass", after="pass")
        with FakeWorker(PYTHON, script) as worker:
            worker.open()
            self.assertEqual(worker.model["variables"], [["weight", [1, 1], "trainable", "float32", -0.5, "inf"]])
            self.assertGreaterEqual(worker.initial()["weight"][0], -0.5)


if __name__ == "__main__":
    unittest.main()
