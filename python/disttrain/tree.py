"""Trees of arrays: dicts, lists and tuples whose leaves are arrays of NumPy or JAX."""

import sys

from disttrain.errors import DisttrainError


def flatten(tree):
    """Returns a dict: name of a leaf, as in "layer0/weight" -> leaf. Dicts are in their own order."""
    leaves = {}
    _collect(_plain(tree), "", leaves)
    return leaves


def build(tree, leaves):
    """Returns a tree like `tree`, with the leaves of the dict."""
    return _build(tree, "", leaves)


def _children(tree):
    if isinstance(tree, dict):
        return tree.items()
    if isinstance(tree, (list, tuple)):
        return enumerate(tree)
    return None


def _collect(tree, name, leaves):
    children = _children(tree)
    if children is None:
        if tree is None:
            return
        if name in leaves:
            raise DisttrainError(f'two arrays have the name "{name}"')
        leaves[name] = tree
        return
    for key, child in children:
        if "/" in str(key):
            raise DisttrainError(f'the key "{key}" of a tree of arrays has a "/"')
        child_name = f"{name}/{key}" if name else str(key)
        if hasattr(child, "shape") and child_name not in leaves:
            leaves[child_name] = child
        else:
            _collect(_plain(child), child_name, leaves)


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
    if not isinstance(tree, dict) and hasattr(tree, "items") and hasattr(tree, "keys"):
        return dict(tree.items())
    jax = sys.modules.get("jax")
    if jax is not None and _children(tree) is None and tree is not None and not hasattr(tree, "shape"):
        raise DisttrainError(
            f"a tree of arrays has a {type(tree).__name__}; expected dicts, lists and tuples of arrays"
        )
    return tree
