"""Trees of arrays: dicts, lists and tuples whose leaves are arrays of NumPy or JAX."""

import numbers

from disttrain.errors import DisttrainError


def flatten(tree, what):
    """Returns a dict: name of a leaf, as in "layer0/weight" -> leaf. Dicts are in their own order. A leaf may be any
    object, except None, which is left out. `what` begins the sentence of an error."""
    leaves = {}
    _collect(_plain(tree), "", leaves, what)
    return leaves


def is_tree(value):
    return _children(_plain(value)) is not None


def is_array(value):
    """Whether a leaf is an array, or a number, which counts as an array without dimensions."""
    return isinstance(value, numbers.Number) or (hasattr(value, "shape") and hasattr(value, "dtype"))


def build(tree, leaves):
    """Returns a tree like `tree`, with the leaves of the dict."""
    return _build(tree, "", leaves)


def _children(tree):
    if isinstance(tree, dict):
        return tree.items()
    if isinstance(tree, (list, tuple)):
        return enumerate(tree)
    return None


def _collect(tree, name, leaves, what):
    children = _children(tree)
    if children is None:
        if tree is None:
            return
        if name in leaves:
            raise DisttrainError(f'{what} got two arrays with the name "{name}"; expected keys that give different names')
        leaves[name] = tree
        return
    for key, child in children:
        if "/" in str(key):
            raise DisttrainError(f'{what} got the key "{key}"; expected keys without "/"')
        child_name = f"{name}/{key}" if name else str(key)
        if hasattr(child, "shape") and child_name not in leaves:
            leaves[child_name] = child
        else:
            _collect(_plain(child), child_name, leaves, what)


def _build(tree, name, leaves):
    tree = _plain(tree)
    if isinstance(tree, dict):
        return {key: _build(child, f"{name}/{key}" if name else str(key), leaves) for key, child in tree.items()}
    if isinstance(tree, (list, tuple)):
        items = [_build(child, f"{name}/{i}" if name else str(i), leaves) for i, child in enumerate(tree)]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return None if tree is None else leaves[name]


def _plain(tree):
    # flax's FrozenDict and similar classes are mappings, but no dicts.
    if not isinstance(tree, (dict, type)) and hasattr(tree, "items") and hasattr(tree, "keys"):
        return dict(tree.items())
    return tree
