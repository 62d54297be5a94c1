"""Says what is wrong with an object that job.wrap() got as a model or as state."""

import inspect
import sys

from disttrain import tree
from disttrain.errors import DisttrainError

_ARRAYS = 'a dict, list or tuple of arrays of NumPy or JAX, such as {"weights": array}'
STATE = "job.wrap(state=...)"


def check_arrays(given, where):
    """Fails unless `given` is a dict, list or tuple of arrays (tree.py). `where` begins the sentence: "job.wrap()", or
    STATE."""
    if not tree.is_tree(given):
        expected = _ARRAYS if where == STATE else _expected_instead_of(given)
        raise DisttrainError(f"{where} got {kind_of(given)}; expected {expected}")
    for name, leaf in tree.flatten(given, where).items():
        expected = _expected_instead_of_tensors(leaf)
        if expected is None and tree.is_array(leaf):
            continue
        raise DisttrainError(
            f'{where} got {_a(type(given).__name__)} with {kind_of(leaf)} at "{name}"; '
            f"expected {expected or 'an array of floats there'}"
        )


def is_complex(value):
    """Whether a number, an array or a tensor is of a complex type, also if its imaginary part is 0."""
    return isinstance(value, complex) or "complex" in str(getattr(value, "dtype", ""))


def kind_of(value):
    """Names an object in a sentence: "the function relu"."""
    torch = sys.modules.get("torch")
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.ismodule(value):
        return f"the Python module {value.__name__}"
    if torch is not None and isinstance(value, torch.nn.Module):
        return f"a torch module ({type(value).__name__})"
    if torch is not None and isinstance(value, torch.Tensor):
        return f"a torch tensor with the shape {list(value.shape)}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    if tree.is_array(value) and hasattr(value, "shape"):
        return f"one array ({type(value).__name__}) with the shape {list(value.shape)}"
    return f"an object of the class {type(value).__name__}"


def _expected_instead_of(model):
    """`model` isn't a tree."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, type) and issubclass(model, torch.nn.Module):
        return f"an object of it: job.wrap({model.__name__}(...))"
    if torch is not None and isinstance(getattr(model, "__self__", None), torch.nn.Module):
        return "the module itself: job.wrap(model)"
    if torch is not None and inspect.isgenerator(model):
        return "the module itself, and not its parameters: job.wrap(model)"
    hint = ": does the function that makes the model return it?" if model is None else ""
    return f"a torch module, or {_ARRAYS}{hint}"


def _expected_instead_of_tensors(leaf):
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(leaf, torch.nn.Module):
        return "one module: torch.nn.ModuleList or torch.nn.ModuleDict makes one of several"
    if isinstance(leaf, torch.Tensor):
        return "the module that has the tensors: job.wrap(model)"
    return None


def _a(name):
    return ("an " if name[:1] in "AEIOUaeiou" else "a ") + name
