"""Exports torchvision's resnet18 for ten classes: export.py [FILE] writes the package. The default is step.pt2."""

import sys

import disttrain
import torch
import torchvision
from disttrain import metrics

torch.manual_seed(1)
model = torchvision.models.resnet18(num_classes=10)  # weights=... and another model.fc fine-tune trained weights
# Only the shapes and types of the example count. Batches may have any size.
images, labels = torch.rand(32, 3, 32, 32), torch.randint(0, 10, (32,))
disttrain.export(model, torch.nn.CrossEntropyLoss(), (images, labels), sys.argv[1] if len(sys.argv) > 1 else "step.pt2",
                 metrics={"accuracy": metrics.Accuracy()})
