"""Finds random numbers, clocks and the like that a model takes from Python. A program would keep their values for ever."""

import datetime
import gc
import os
import pickle
import random
import sys
import types

import torch

from disttrain.exporting.places import is_users, line_of_user

_SEEDING = frozenset(("manual_seed", "seed", "set_state", "initial_seed"))


class RandomWatch:
    """While it is entered, the model runs as it is. `layers` is the LayerTracker that watches this run.

    problem: what a run has taken from Python that no other run takes again, as "LAYER reads the clock at FILE:LINE", with
        a hint; None if nothing.
    seeding: the same for a change of the seed of PyTorch's own generator. It matters if the run draws from this generator.
    """

    def __init__(self, layers):
        self._layers = layers
        self.problem = None
        self.seeding = None

    def __enter__(self):
        self._before = sys.getprofile()
        sys.setprofile(self._event)
        return self

    def __exit__(self, *error):
        sys.setprofile(self._before)

    def _event(self, frame, event, function):
        """Python calls this for each call of a function that is written in C, among others."""
        if event != "c_call":
            return
        owner, name = getattr(function, "__self__", None), function.__name__
        if isinstance(owner, types.ModuleType):
            what = _of_module(owner.__name__, name, frame)
        elif isinstance(owner, random.Random):
            what = _of_object(name, frame)
        elif isinstance(owner, torch._C.Generator):
            if name in _SEEDING and self.seeding is None:
                self.seeding = self._text(f"uses the seed of PyTorch's random numbers ({name})", frame)
            return
        elif isinstance(owner, type) and issubclass(owner, datetime.date) and name in ("now", "utcnow", "today"):
            what = f"reads the clock ({owner.__name__}.{name})" if is_users(frame) else None
        else:
            return
        if what is not None and self.problem is None:
            self.problem = self._text(what, frame)

    def _text(self, what, frame):
        return f"{self._layers.current() or 'the loss, the outputs or the metrics'} {what}{line_of_user(frame)}"


def _of_object(name, frame):
    """random.Random() and seed() without a seed take one of the operating system."""
    of_library = frame.f_code.co_filename == random.__file__
    by_chance = name == "seed" and of_library and frame.f_locals.get("a", 0) is None
    return "takes the seed of a random.Random from the operating system" if by_chance else None


def _of_module(module, name, frame):
    """What the function of a module takes that the next run doesn't take again."""
    if module == os.name and name in ("urandom", "getrandom"):
        return "draws random numbers of the operating system (os.urandom, which the module secrets uses, too)"
    if module == "_uuid":
        return "makes a random uuid"
    if not is_users(frame):
        return None
    if module == "time" and name != "sleep":
        return f"reads the clock (time.{name})"
    if module == "builtins" and name in ("hash", "id"):
        return f"uses {name}(), whose numbers differ from process to process,"
    return None


def _name_of(generator):
    if generator is random._inst:
        return "Python's module random"
    if isinstance(generator, random.Random):
        return "an object of random.Random"
    numpy = sys.modules["numpy.random"]
    return "numpy.random" if generator is numpy.mtrand._rand._bit_generator else "a generator of numpy.random of its own"


def existing_generators():
    """All generators of random numbers that Python has now, but for PyTorch's."""
    bit_generator = getattr(sys.modules.get("numpy.random"), "BitGenerator", None)
    kinds = (random.Random, bit_generator) if bit_generator else (random.Random,)
    return [each for each in gc.get_objects() if issubclass(type(each), kinds) and not isinstance(each, random.SystemRandom)]


class GeneratorStates:
    """The states that generators of random numbers have now."""

    def __init__(self, generators):
        self._generators = generators
        self._states = [state_of(each) for each in generators]

    def changed(self, later):
        """The first generator whose state is another one in `later`, which has the same generators; None if there is none."""
        for generator, state, other in zip(self._generators, self._states, later._states):
            if state != other:
                return generator
        return None


def state_of(generator):
    return generator.getstate() if isinstance(generator, random.Random) else pickle.dumps(generator.state)


class DrawFinder:
    """While it is entered, the model runs as it is. Then `text` is what drew random numbers of the generator, with its line.
    It looks at the generator at each line of the user's code, which takes long."""

    def __init__(self, layers, generator):
        self._layers = layers
        self._generator = generator
        self._state = state_of(generator)
        self._last = None  # what ran since the generator was looked at
        self.text = f"the model, the loss or a metric draws random numbers of {_name_of(generator)}"
        self._is_found = False

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._event)
        return self

    def __exit__(self, *error):
        sys.settrace(self._before)

    def _event(self, frame, event, argument):
        if not is_users(frame):
            return None
        if not self._is_found and self._last is not None and state_of(self._generator) != self._state:
            self._is_found = True
            layer, line = self._last
            self.text = f"{layer} draws random numbers of {_name_of(self._generator)}{line}"
        if not self._is_found:
            self._last = self._layers.current() or "the loss, the outputs or the metrics", line_of_user(frame)
        return self._event
