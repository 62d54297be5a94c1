"""The random numbers that a script draws without naming a generator: those of Python, of NumPy and of PyTorch."""

import random
import sys

import numpy as np


class RandomStates:
    """The states that these generators have now. PyTorch has one for the CPU, and one for each other device in use."""

    def __init__(self):
        self._states = [(write, read()) for read, write in _generators()]

    def restore(self):
        for write, state in self._states:
            write(state)


class OwnRandomNumbers:
    """While it is entered, these generators go on from where they were when it was left last. So evaluations draw other
    numbers in each batch, and training draws those that it would draw without them."""

    def __init__(self):
        self._own = None

    def __enter__(self):
        self._before = RandomStates()
        if self._own is not None:
            self._own.restore()

    def __exit__(self, kind, *error):
        if kind is None:  # an error ends the script, and a device may not answer then
            self._own = RandomStates()
            self._before.restore()


def _generators():
    """Yields a function that reads states, and one that writes them."""
    yield random.getstate, random.setstate
    yield _numpys_state, _set_numpys_state
    torch = sys.modules.get("torch")
    if torch is None:
        return
    yield torch.get_rng_state, torch.set_rng_state
    for name in ("cuda", "xpu"):
        device = getattr(torch, name, None)  # PyTorch has xpu since 2.3
        # To ask a device that isn't in use would take memory there.
        if device is not None and device.is_initialized():
            yield device.get_rng_state_all, device.set_rng_state_all
    if torch.backends.mps.is_available():
        yield torch.mps.get_rng_state, torch.mps.set_rng_state


def _numpys_state():
    return np.random.get_state(legacy=False)  # the other form has the state of MT19937 alone


def _set_numpys_state(state):
    """Does nothing if the script has chosen another kind of generator since (np.random.set_bit_generator)."""
    if _numpys_state()["bit_generator"] == state["bit_generator"]:
        np.random.set_state(state)
