"""Exports a net of PyTorch with one hidden layer, which reads digits: export.py [SEED [DEVIATION]] writes step.pt2.

DEVIATION is the standard deviation of the first weights. The default is 1 / sqrt(the layer's inputs).
"""

import sys

import disttrain
import torch
from disttrain import metrics

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
model = torch.nn.Sequential(torch.nn.Linear(784, 100), torch.nn.Sigmoid(), torch.nn.Linear(100, 10))
deviation = float(sys.argv[2]) if len(sys.argv) > 2 else None
for layer in (model[0], model[2]):
    torch.nn.init.normal_(layer.weight, std=deviation or layer.in_features**-0.5)
    torch.nn.init.zeros_(layer.bias)

# Only the shapes and types of the example count. Batches may have any size.
images, labels = torch.rand(100, 784), torch.randint(0, 10, (100,))
disttrain.export(model, torch.nn.CrossEntropyLoss(), (images, labels), "step.pt2",
                 metrics={"accuracy": metrics.Accuracy()})
