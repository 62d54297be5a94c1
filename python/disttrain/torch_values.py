"""Samples and checksums of tensors' values. They find changes that PyTorch doesn't count, such as those by tensor.data."""

import operator
import zlib

import torch

from disttrain.torch_sharing import span_of

PART = 1024 * 1024  # elements that are compared or added up at once, because this makes copies
_SAMPLES = 4096
_WORDS_OF = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # bytes -> whole numbers of this size
_version_of = operator.attrgetter("_version")  # of a tensor; each change of its values raises it
_place_of = torch.Tensor.data_ptr


class KeptValues:
    """Whether tensors still have their values. Each look compares the place and the version of all, and a sample of one of
    them, so a later look finds a change that stays. The steps that `schedule` (the module's WholeSchedule) chooses compare all
    values."""

    def __init__(self, tensors, schedule):
        # One without a memory of its own, such as a sparse tensor, isn't watched.
        self._watched = [i for i, tensor in enumerate(tensors) if span_of(tensor) is not None]
        self._tensors = [tensors[i] for i in self._watched]
        self._schedule = schedule
        self._marks = []
        self._views = []  # of the samples in the tensors; None of a tensor that must be copied for it
        self._samples = []
        self._sums = []
        self._next = 0

    def note(self):
        """The present values stay."""
        self._marks = self._marks_now()
        self._samples = list(map(samples_of, self._tensors))
        self._views = [_picked(each) if _has_view(each) else None for each in self._tensors]
        with self._schedule.timed():
            self._sums = list(map(sum_of, self._tensors))

    def changed(self, is_whole):
        """The index of a tensor that has changed since note(); None: found none, or note() wasn't called."""
        if not self._tensors or not self._marks:
            return None
        now = self._marks_now()
        if now != self._marks:
            differs = [a != b for a, b in zip(zip(*now), zip(*self._marks))]
            return self._watched[differs.index(True)]
        i = self._next = (self._next + 1) % len(self._tensors)
        view = self._views[i] if self._views[i] is not None else _picked(self._tensors[i])
        if not torch.equal(view, self._samples[i]):
            return self._watched[i]
        if is_whole:
            with self._schedule.timed():
                for i, (tensor, noted) in enumerate(zip(self._tensors, self._sums)):
                    if sum_of(tensor) != noted:
                        return self._watched[i]
        return None

    def _marks_now(self):
        return list(map(_version_of, self._tensors)), list(map(_place_of, self._tensors))


def without_repeats(tensor, like=None):
    """A view of the tensor's elements of which each is a place of its own. PyTorch refuses to write the others in place.
    `like`: the same elements as those of this tensor."""
    return tensor[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in (tensor if like is None else like).stride())]


def bits_of(tensor):
    """The tensor's values as whole numbers of the same bits. These can be compared: a NaN isn't the same as a NaN, and PyTorch
    can't compare floats of 8 bits."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.resolve_neg().view(_WORDS_OF[tensor.element_size()])


def samples_of(tensor):
    """Some of the values, as bits."""
    return _picked(tensor).clone()


def _has_view(tensor):
    """Whether bits_of() and reshape() of the tensor make no copy."""
    return without_repeats(tensor).is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def _picked(tensor):
    """Those of samples_of(), as a view if the tensor is contiguous."""
    flat = bits_of(without_repeats(tensor)).reshape(-1)
    return flat[:: max(1, -(-flat.numel() // _SAMPLES))]


def sum_of(tensor):
    """A checksum of all values."""
    flat = bits_of(without_repeats(tensor)).reshape(-1).contiguous()
    if tensor.device.type == "cpu":
        return zlib.crc32(flat.numpy())
    # Another device adds its bits up itself, in much less time than it takes to copy them.
    return sum_of_words(flat)


def sum_of_words(flat):
    """The sum of a flat tensor of whole numbers, as int64. PyTorch first makes a copy of this type, so it adds up one part
    after the other."""
    return int(torch.stack([part.sum(dtype=torch.int64) for part in flat.split(PART)]).sum())
