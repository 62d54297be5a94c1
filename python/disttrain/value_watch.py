"""Finds out whether a script has changed values in the worker's memory that only the cluster may change.

It compares bits. Each step it compares so many words whole, and a sample of all others. So a model of up to 256 KiB is
compared whole in each step, and one of 80 MB within 306 steps. The steps that WholeSchedule chooses compare all values, by
checksums, because copies would take as much memory as the values. So only a change that the script makes once, to a few
values of a large model, may stay unseen. docs/trainer.md has the time that this takes.

A hash of everything would read 80 MB twice in each step. A trainer doesn't know when a checkpoint is taken, so it can't
compare more then.
"""

import bisect
import contextlib
import itertools
import time
import zlib

import numpy as np

_WORDS = 64 * 1024  # that are compared whole in one step
_SAMPLES = 1024
_FIRST = 2  # so many steps at the beginning compare all values: most scripts change values in each step
_SHARE = 0.01  # of the loop's time: so much may the comparisons of all values take later
# Seconds that the comparison after the last step may take. The worker gives the script 5 s (end_timeout) for all that it
# does then.
_AT_END = 0.5


class WholeSchedule:
    """Decides which steps compare all values: the first ones, and later ones as long as all of these comparisons together
    take less than 1 % of the loop's time. At the end of the loop there is one more, unless an earlier one took too long. A
    model has one schedule for all of its arrays."""

    def __init__(self, clock=time.perf_counter):
        self._clock = clock
        self._left = _FIRST
        self._began = None  # when the loop began
        self._spent = 0.0  # seconds
        self._of_last = 0.0  # of these, in the last comparison
        self._longest = 0.0  # of these, in one comparison

    def is_due(self, is_step=True, is_last=False):
        """Whether to compare all values in the step that begins now, in an evaluation, or after the last step."""
        is_due = self._longest <= _AT_END if is_last else self._is_due(is_step)
        if is_due:
            self._of_last = 0.0
        return is_due

    def _is_due(self, is_step):
        now = self._clock()
        if self._began is None:
            self._began = now
        if is_step and self._left > 0:
            self._left -= 1
            return True
        return self._spent < _SHARE * (now - self._began)

    @contextlib.contextmanager
    def timed(self):
        """Around each part of such a comparison."""
        begin = self._clock()
        try:
            yield
        finally:
            took = self._clock() - begin
            self._spent += took
            self._of_last += took
            self._longest = max(self._longest, self._of_last)


class ValueWatch:
    def __init__(self, flat, begins, variables, schedule):
        """`flat`: the array of words with the values of all variables. Those of state may change."""
        words = flat.view(np.uint32)
        order = sorted(range(len(variables)), key=begins.__getitem__)
        self._order = [(begins[i], variables[i].name) for i in order]
        self._schedule = schedule
        trained = [i for i in order if variables[i].kind == "trainable"]
        ranges = []
        for i in trained:
            begin, end = begins[i], begins[i] + variables[i].words
            if ranges and ranges[-1][1] == begin:
                ranges[-1][1] = end
            else:
                ranges.append([begin, end])
        self._pieces = [
            (at, 1, words[at : min(end, at + _WORDS)]) for begin, end in ranges for at in range(begin, end, _WORDS)
        ]
        total = sum(end - begin for begin, end in ranges)
        self._copy = np.empty(min(_WORDS, total), np.uint32)
        self._next = 0  # the first of the pieces to compare in the next step
        self._noted = []  # (first word, distance of the words, the words, their copies)
        self._samples = []
        self._whole = []  # (name, words) of each variable, if a step can't compare all of them by copies
        self._sums = None  # their checksums, if this step compares all values
        if total > _WORDS:
            stride = -(-total // _SAMPLES)
            for begin, end in ranges:
                samples = words[begin:end:stride]
                self._samples.append((begin, stride, samples, np.empty(len(samples), np.uint32)))
            self._whole = [(variables[i].name, words[begins[i] : begins[i] + variables[i].words]) for i in trained]

    def note(self, is_whole=False):
        """The present values are the right ones. `is_whole`: changed() will compare all of them."""
        self._noted.clear()
        used = 0
        for _ in self._pieces:
            begin, stride, words = self._pieces[self._next]
            end = used + len(words)
            if end > len(self._copy):
                break
            self._noted.append((begin, stride, words, self._copy[used:end]))
            used = end
            self._next = (self._next + 1) % len(self._pieces)
        for *_, words, copy in itertools.chain(self._samples, self._noted):
            np.copyto(copy, words)
        self._sums = None
        if is_whole and self._whole:
            with self._schedule.timed():
                self._sums = [zlib.crc32(words) for _, words in self._whole]

    def changed(self):
        """The name of a variable that has other values than note() found; None: found no such variable."""
        for begin, stride, words, copy in itertools.chain(self._samples, self._noted):
            if not np.array_equal(words, copy):
                word = begin + stride * int(np.flatnonzero(words != copy)[0])
                return self._order[bisect.bisect_right(self._order, word, key=lambda each: each[0]) - 1][1]
        if self._sums is None:
            return None
        with self._schedule.timed():
            return next((name for (name, words), noted in zip(self._whole, self._sums) if zlib.crc32(words) != noted), None)


def changed_in_place(what, who="the loop"):
    """The error about a script that has changed values. `what`: 'the parameter "w"'."""
    return (
        f"{who} changed {what} in place. Such a change stays in this process: the parameter servers hold the values, and "
        "their update rule alone (job.toml's train.optimizer) changes them. Take out the line that changes it; if it keeps "
        "values within bounds, as clamp_() does, write job.wrap(model, constraint=function)"
    )
