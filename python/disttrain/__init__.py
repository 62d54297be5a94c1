"""disttrain: train a model of PyTorch, JAX or NumPy on a disttrain cluster.

A training script becomes a trainer (model.trainer in job.toml) by a few lines:

    import disttrain
    job = disttrain.init()
    model = Net()
    job.wrap(model)                              # its parameters become the cluster's
    for batch in job.batches(dataset):           # each record once an epoch, on whichever worker
        loss = criterion(model(batch.x), batch.y)
        loss.backward()
        job.step(loss=loss)                      # sends the gradients, and waits for the new parameters

Other models are exported once, and workers compute them without Python: disttrain.export() for PyTorch,
disttrain.export_jax() for JAX.

Importing this package imports neither torch nor jax.
"""

import importlib

from disttrain.alone import Alone
from disttrain.errors import DisttrainError
from disttrain.job import Job, init

__version__ = "0.1.0"
__all__ = ["Alone", "DisttrainError", "ExportError", "Job", "export", "export_jax", "init", "load_weights"]


# These functions need torch or jax, so they are imported when they are first used.
def __getattr__(name):
    if name in ("export", "ExportError"):
        return getattr(importlib.import_module("disttrain.exporting"), name)
    if name == "load_weights":
        return importlib.import_module("disttrain.weights").load_weights
    if name == "export_jax":
        return importlib.import_module("disttrain.jax_export").export_jax
    if name in ("metrics", "jax_metrics"):
        return importlib.import_module(f"disttrain.{name}")
    raise AttributeError(f"module 'disttrain' has no attribute '{name}'")
