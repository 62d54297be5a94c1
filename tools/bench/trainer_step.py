"""The trainers of trainer_bench.

    trainer_step.py torch|numpy|numpy_in_place ARRAYS ELEMENTS

has a model whose gradients cost nothing, so that a step costs only what disttrain adds. "numpy" gives arrays of its own
to push_pull(), and "numpy_in_place" the arrays of job.gradients.

    trainer_step.py backward|backward_zeroing ARRAYS ELEMENTS
    trainer_step.py gpt2

train a model whose loss is a sum over each array, or the GPT-2 of examples/gpt2. After each 20 steps they compute 20
steps with a copy of the model that disttrain doesn't know. The copy drops its gradients before a step, as zero_grad()
does by default; in "backward_zeroing" it sets them to 0, as zero_grad(set_to_none=False) does. Their median time, in
us, is the metric "plain_us" of the steps after them. It is 0 for steps that aren't to be compared, because they begin
with cold caches.
"""

import statistics
import sys
import time

import disttrain
import numpy as np

BLOCK = 20


class Watch:
    """Measures the time that the package takes in the trainer: from the message with which the worker starts a step to
    the answer, without the body of the loop. The time of a step is the metric "sdk_us" of the next one."""

    def __init__(self, job):
        self.microseconds = 0.0
        self._job = job
        self._began = 0.0
        self._body = 0.0
        connection = job._connection
        receive, send = connection.receive, connection.send

        def timed_receive():
            message = receive()
            self._began = time.perf_counter()
            return message

        def timed_send(message, *payload):
            send(message, *payload)
            self.microseconds = 1e6 * (time.perf_counter() - self._began - self._body)

        connection.receive, connection.send = timed_receive, timed_send

    def batches(self):
        for batch in self._job.batches(range(1_000_000)):
            begin = time.perf_counter()
            yield batch, self._ends(begin)

    def _ends(self, begin):
        def body_ends():
            self._body = time.perf_counter() - begin
            return self.microseconds

        return body_ends


def train_arrays(size, arrays):
    gradients = {str(i): np.ones(size, np.float32) for i in range(arrays)}
    job = disttrain.init(metrics=["sdk_us"])
    job.wrap({str(i): np.zeros(size, np.float32) for i in range(arrays)})
    for _, body_ends in Watch(job).batches():
        job.push_pull(gradients, loss=1.0, sdk_us=body_ends())


def train_arrays_in_place(size, arrays):
    job = disttrain.init(metrics=["sdk_us"])
    job.wrap({str(i): np.zeros(size, np.float32) for i in range(arrays)})
    for _, body_ends in Watch(job).batches():
        job.push_pull(job.gradients, loss=1.0, sdk_us=body_ends())  # a script would write into the arrays before


def train_tensors(size, arrays):
    import torch

    torch.set_num_threads(1)
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(size)) for _ in range(arrays)])
    job = disttrain.init(metrics=["sdk_us"])
    job.wrap(model)
    first = next(model.parameters())
    loss = torch.tensor(1.0)
    for _, body_ends in Watch(job).batches():
        first.grad += 1  # stands for backward(), which adds to the gradients
        job.step(loss=loss, sdk_us=body_ends())


def train_gpt2():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.set_num_threads(1)
    sizes = {"vocab_size": 256, "n_positions": 64, "n_embd": 128, "n_layer": 4, "n_head": 4}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = GPT2Config(**sizes, **dropout, bos_token_id=None, eos_token_id=None)
    model, twin = GPT2LMHeadModel(config), GPT2LMHeadModel(config)
    records = torch.randint(0, 256, (1000, 64))
    train_compared(model, twin, lambda net, tokens: net(input_ids=tokens, labels=tokens).loss, records)


def train_backward(size, arrays, set_to_none):
    import torch

    torch.set_num_threads(1)
    model, twin = (
        torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(size)) for _ in range(arrays)]) for _ in range(2)
    )
    ones = torch.ones(size)
    records = torch.zeros(1000, 1)
    train_compared(model, twin, lambda net, _: sum(torch.dot(each, ones) for each in net), records, set_to_none)


def train_compared(model, twin, loss_of, records, set_to_none=True):
    job = disttrain.init(metrics=["plain_us"])
    job.wrap(model)

    def compute(net, inputs):
        loss = loss_of(net, inputs)
        loss.backward()
        return loss

    def time_plain_step(inputs):
        begin = time.perf_counter()
        twin.zero_grad(set_to_none)
        float(compute(twin, inputs).detach())
        return 1e6 * (time.perf_counter() - begin)

    plain = 0.0
    for number, batch in enumerate(job.batches(records)):
        if number % BLOCK == 0:
            plain = statistics.median([time_plain_step(batch.x) for _ in range(BLOCK)][2:])
        job.step(loss=compute(model, batch.x), plain_us=plain if number % BLOCK > 1 else 0.0)


if sys.argv[1] == "gpt2":
    train_gpt2()
else:
    count, elements = int(sys.argv[2]), int(sys.argv[3])
    if sys.argv[1].startswith("backward"):
        train_backward(elements // count, count, set_to_none=sys.argv[1] == "backward")
    else:
        kinds = {"torch": train_tensors, "numpy": train_arrays, "numpy_in_place": train_arrays_in_place}
        kinds[sys.argv[1]](elements // count, count)
