"""Finds random numbers, clocks and the like that a model takes from Python. A program would keep their values for ever.

It can't find all of them: not the order of a set of texts, which Python's hashes decide, nor an object's address in its repr(),
a method such as "text".__hash__(), what an environment variable, a file or the machine says, what code in C reads by itself, or
what a module has read at its import. Of these it finds what differs between two runs in one process (repeats.py).
"""

import bisect
import builtins
import datetime
import dis
import gc
import os
import pickle
import random
import sys
import threading
import time
import types
from threading import get_ident

import torch

from disttrain.exporting.places import is_users, line_at, line_of_user

_SEEDING = frozenset(("manual_seed", "seed", "set_state", "initial_seed"))
# Functions whose numbers differ from process to process: (module, function) -> their usual name.
_OF_PROCESS = {
    ("builtins", "hash"): "hash()",
    ("builtins", "id"): "id()",
    (os.name, "getpid"): "os.getpid()",
    (os.name, "getppid"): "os.getppid()",
    ("_thread", "get_ident"): "threading.get_ident()",
    ("_thread", "get_native_id"): "threading.get_native_id()",
}
# The same, written in Python.
_CODES_OF_PROCESS = {
    threading.Thread.ident.fget.__code__: "threading.Thread.ident",
    threading.Thread.native_id.fget.__code__: "threading.Thread.native_id",
}
_NEAR = 3  # instructions of Python between an argument and the function's name, or another argument
# Where models look these functions up, and the clocks. Not id(), because a call such as set(map(id, tensors)) is harmless.
_PATCHED = [(builtins, "hash"), (os, "getpid"), (os, "getppid"), (os, "times")]
_PATCHED += [(threading, "get_ident"), (threading, "get_native_id")]
_PATCHED += [(time, name) for name, each in vars(time).items() if isinstance(each, types.BuiltinFunctionType)]


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
        self._lines = {}  # code that has run -> {number of a line: what it takes from Python}
        self._patched = []  # (module, name, function)

    def __enter__(self):
        self._before = sys.getprofile(), sys.gettrace()
        # Python doesn't tell of the calls that functions in C make, such as map(hash, texts).
        for module, name in _PATCHED:
            function = getattr(module, name)
            if isinstance(function, types.BuiltinFunctionType):  # a test of the user's may have put another one there
                self._patched.append((module, name, function))
                setattr(module, name, self._telling(function))
        sys.setprofile(self._event)
        return self

    def __exit__(self, *error):
        sys.setprofile(self._before[0])
        if sys.gettrace() == self._trace_nothing:
            sys.settrace(self._before[1])
        while self._patched:
            setattr(*self._patched.pop())

    def _telling(self, function):
        """A function that does the same, and notes its calls in this thread."""
        owner, name, thread = function.__self__.__name__, function.__name__, get_ident()

        def call(*arguments, **keywords):
            if get_ident() == thread:
                frame = sys._getframe(1)
                self._note(_of_module(owner, name, frame), frame)
            return function(*arguments, **keywords)

        return call

    def _event(self, frame, event, function):
        """Python calls this for each call of a function, but not for those that a function in C makes."""
        if event == "call":
            self._enter_code(frame)
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
        self._note(what, frame)

    def _enter_code(self, frame):
        code = frame.f_code
        if code in _CODES_OF_PROCESS and frame.f_back is not None and is_users(frame.f_back):
            self._note(_differs(_CODES_OF_PROCESS[code]), frame)
        if code not in self._lines:
            # Python doesn't tell of a call of the class np.datetime64, nor of those of max(some, key=id).
            self._lines[code] = {**_numpys_clocks_in(code), **_keys_of_id_in(code)} if is_users(frame) else {}
        if self._lines[code] and self.problem is None:
            frame.f_trace = self._enter_line
            if sys.gettrace() in (None, self._before[1]):  # a DrawFinder may have its own
                sys.settrace(self._trace_nothing)

    def _trace_nothing(self, *_):
        """Python tells of lines only while it has a function for all calls."""

    def _enter_line(self, frame, event, _):
        what = self._lines[frame.f_code].get(frame.f_lineno) if event == "line" else None
        if what is not None and self.problem is None:
            self.problem = f"{self._layer()} {what}{line_at(frame.f_code.co_filename, frame.f_lineno)}"
        return self._enter_line

    def _note(self, what, frame):
        if what is not None and self.problem is None:
            self.problem = self._text(what, frame)

    def _text(self, what, frame):
        return f"{self._layer()} {what}{line_of_user(frame)}"

    def _layer(self):
        return self._layers.current() or "the loss, the outputs or the metrics"


def _numpys_clocks_in(code):
    """The lines with the word "now" or "today" beside a name of NumPy's type of dates."""
    found = {}
    if "now" in code.co_consts or "today" in code.co_consts:
        instructions = list(dis.get_instructions(code))
        for at, each in enumerate(instructions):
            if isinstance(each.argval, str) and each.argval in ("now", "today"):
                near = [other.argval for other in instructions[max(0, at - _NEAR) : at + _NEAR + 1]]
                if any(isinstance(name, str) and name.startswith(("datetime64", "M8", "<M8")) for name in near):
                    found[_line_of(code, each)] = f'reads the clock (np.datetime64("{each.argval}"))'
    return found


def _keys_of_id_in(code):
    """The lines with the argument key=id, as in max(some, key=id)."""
    found = {}
    if "id" in code.co_names:
        instructions = list(dis.get_instructions(code))
        for at, each in enumerate(instructions):
            near = [_value_of(code, other) for other in instructions[at + 1 : at + _NEAR + 1]]
            is_function = each.argval == "id" and each.opname in ("LOAD_GLOBAL", "LOAD_NAME")  # and no attribute
            if is_function and any(isinstance(names, tuple) and "key" in names for names in near):
                found[_line_of(code, each)] = _differs("id()")
    return found


def _value_of(code, instruction):
    # dis of Python 3.11 doesn't know the value of this one.
    return code.co_consts[instruction.arg] if instruction.opname == "KW_NAMES" else instruction.argval


def _line_of(code, instruction):
    starts = list(dis.findlinestarts(code))
    return starts[bisect.bisect_right(starts, instruction.offset, key=lambda start: start[0]) - 1][1]


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
    if module == os.name and name == "times":
        return "reads the clock (os.times)"
    if name == "hash" and frame.f_code.co_name == "__hash__":
        return None  # for a dict or a set, whose order doesn't follow from it
    return _differs(_OF_PROCESS.get((module, name)))


def _differs(name):
    return None if name is None else f"uses {name}, whose numbers differ from process to process,"


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
