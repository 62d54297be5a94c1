"""The trainer of trainer_bench: a model whose gradients are there already, so that a step costs only what disttrain
adds: trainer_step.py torch|numpy ARRAYS ELEMENTS."""

import sys

import disttrain
import numpy as np

kind, arrays, elements = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
size = elements // arrays
records = range(1_000_000)
job = disttrain.init(metrics=["accuracy"])
if kind == "torch":
    import torch

    torch.set_num_threads(1)
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(size)) for _ in range(arrays)])
    gradients = [torch.ones(size) for _ in range(arrays)]
    job.wrap(model)
    parameters = list(model.parameters())
    loss, accuracy = torch.tensor(1.0), torch.tensor(0.5)
    for batch in job.batches(records):
        for parameter, gradient in zip(parameters, gradients):  # stands for backward(): it makes new gradients
            parameter.grad = gradient
        job.step(loss=loss, accuracy=accuracy)
else:
    gradients = {str(i): np.ones(size, np.float32) for i in range(arrays)}
    job.wrap({str(i): np.zeros(size, np.float32) for i in range(arrays)})
    for batch in job.batches(records):
        job.push_pull(gradients, loss=1.0, accuracy=0.5)
