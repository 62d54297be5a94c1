"""The trainers of trainer_bench.

    trainer_step.py torch|numpy ARRAYS ELEMENTS

has a model whose gradients cost nothing, so that a step costs only what disttrain adds.

    trainer_step.py gpt2

trains the GPT-2 of examples/gpt2. After each 20 steps it computes 20 steps with a copy of the model that disttrain
doesn't know. Their median time, in us, is the metric "plain_us" of the steps after them. It is 0 for steps that aren't
to be compared, because they begin with cold caches.
"""

import statistics
import sys
import time

import disttrain
import numpy as np

BLOCK = 20


def train_arrays(size, arrays):
    gradients = {str(i): np.ones(size, np.float32) for i in range(arrays)}
    job = disttrain.init(metrics=[])
    job.wrap({str(i): np.zeros(size, np.float32) for i in range(arrays)})
    for _ in job.batches(range(1_000_000)):
        job.push_pull(gradients, loss=1.0)


def train_tensors(size, arrays):
    import torch

    torch.set_num_threads(1)
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(size)) for _ in range(arrays)])
    job = disttrain.init(metrics=[])
    job.wrap(model)
    first = next(model.parameters())
    loss = torch.tensor(1.0)
    for _ in job.batches(range(1_000_000)):
        first.grad += 1  # stands for backward(), which adds to the gradients
        job.step(loss=loss)


def train_gpt2():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.set_num_threads(1)
    sizes = {"vocab_size": 256, "n_positions": 64, "n_embd": 128, "n_layer": 4, "n_head": 4}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = GPT2Config(**sizes, **dropout, bos_token_id=None, eos_token_id=None)
    model, twin = GPT2LMHeadModel(config), GPT2LMHeadModel(config)
    records = torch.randint(0, 256, (1000, 64))
    job = disttrain.init(metrics=["plain_us"])
    job.wrap(model)

    def compute(net, tokens):
        loss = net(input_ids=tokens, labels=tokens).loss
        loss.backward()
        return loss

    def time_plain_step(tokens):
        begin = time.perf_counter()
        twin.zero_grad()
        float(compute(twin, tokens).detach())
        return 1e6 * (time.perf_counter() - begin)

    plain = 0.0
    for number, batch in enumerate(job.batches(records)):
        if number % BLOCK == 0:
            plain = statistics.median([time_plain_step(batch.x) for _ in range(BLOCK)][2:])
        job.step(loss=compute(model, batch.x), plain_us=plain if number % BLOCK > 1 else 0.0)


if sys.argv[1] == "gpt2":
    train_gpt2()
else:
    train = train_tensors if sys.argv[1] == "torch" else train_arrays
    train(int(sys.argv[3]) // int(sys.argv[2]), int(sys.argv[2]))
