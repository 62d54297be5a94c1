"""disttrain: train a model of PyTorch, JAX or NumPy on a disttrain cluster.

Importing this package imports neither torch nor jax.
"""

import importlib

__version__ = "0.1.0"


def __getattr__(name):
    if name == "export":
        from disttrain.exporting import export

        return export
    if name == "export_jax":
        from disttrain.jax_export import export_jax

        return export_jax
    if name in ("metrics", "jax_metrics"):
        return importlib.import_module(f"disttrain.{name}")
    raise AttributeError(f"module 'disttrain' has no attribute '{name}'")
