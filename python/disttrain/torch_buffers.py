"""Which buffers of a torch module are state: variables that the workers average. The others are constants.

Buffers with infinities that never change are masks of attention. They can't be state, because a push with an infinity
is skipped. So they are constants, and a step that changes one is refused. To take all buffers that never change for
constants isn't possible: a trainer describes its model before the first step. A trainer can't drop a state that isn't
finite, as a program does for a batch of one record: a module changes its buffers in place, in the memory that it shares
with the worker. The skipped step's answer brings the old values back.
"""

import torch

from disttrain.errors import DisttrainError
from disttrain.torch_values import KeptValues

LARGEST_EXACT = 2**24  # float32 has all whole numbers up to this one
# The types of whole numbers above it. PyTorch has the unsigned ones since 2.3.
_LARGE = {getattr(torch, name, None) for name in ("int32", "int64", "uint32", "uint64")}


def is_state(name, buffer, saved, unused):
    """`saved`: the names in state_dict(). `unused`: unused_counts(). A buffer that state_dict() leaves out, one of flags, one
    with infinities, such as a mask of attention, and one with large whole numbers, such as the offsets of a large embedding,
    are constants: each script makes them by itself, and the cluster doesn't know them."""
    if name not in saved or buffer.dtype == torch.bool or _is_infinite(buffer):
        return False
    return name in unused or not has_large_integers(buffer)


def may_be_large(buffer):
    """Whether the buffer's type has whole numbers that float32, as which the cluster keeps a buffer, doesn't have."""
    return buffer.dtype in _LARGE


def has_large_integers(buffer):
    """Whether the buffer has whole numbers that float32 may not have."""
    if not may_be_large(buffer) or not _has_values(buffer):
        return False
    if buffer.numel() == 0:
        return False
    if buffer.dtype.is_signed:
        return any(abs(int(each)) > LARGEST_EXACT for each in torch.aminmax(buffer.detach()))
    return int(buffer.detach().cpu().numpy().max()) > LARGEST_EXACT  # PyTorch can't compare unsigned numbers


def unused_counts(module):
    """The names of batch norms' counts of batches that nobody reads. PyTorch reads such a count only if momentum=None. A job
    of 2^24 steps must not fail for the others, which then stay at this number, or at a larger one with which they began."""
    return {
        f"{name}.num_batches_tracked" if name else "num_batches_tracked"
        for name, layer in module.named_modules()
        if isinstance(layer, torch.nn.modules.batchnorm._NormBase) and layer.momentum is not None
    }


class Constants:
    """The buffers in state_dict() that are constants, because of their values or as flags. Neither a step nor an
    evaluation may change them: each worker would then have values of its own."""

    def __init__(self, module, saved, unused, schedule):
        """`schedule`: the module's WholeSchedule."""
        self._buffers = []  # (the layer's buffers, the name there, the whole name, the tensor)
        for layer_name, layer in module.named_modules():
            for name, buffer in layer._buffers.items():
                whole = f"{layer_name}.{name}" if layer_name else name
                if buffer is not None and whole in saved and not is_state(whole, buffer, saved, unused):
                    refuse_inference(whole, buffer)
                    self._buffers.append((layer._buffers, name, whole, buffer))
        self._versions = []
        self._values = KeptValues([buffer for *_, buffer in self._buffers], schedule)

    def note_values(self):
        """From now on they may not change."""
        self._versions = [buffer._version for *_, buffer in self._buffers]
        self._values.note()

    def check(self, who="the step", is_whole=False):
        """`is_whole`: compares all values. Otherwise a change that PyTorch doesn't count may be found by a later call."""
        changed = self._values.changed(is_whole)
        for i, ((holder, name, whole, buffer), version) in enumerate(zip(self._buffers, self._versions)):
            if i == changed or member(holder, name) is not buffer or buffer._version != version:
                if buffer.dtype == torch.bool:
                    reason, advice = "has flags (bool)", "numbers in a buffer that changes: let it begin as torch.zeros(...)"
                elif not buffer.is_floating_point():
                    reason, advice = f"had whole numbers above {LARGEST_EXACT}", (
                        "smaller ones in a buffer that changes, or one of float64"
                    )
                else:
                    reason, advice = "had an infinity", (
                        "finite values in a buffer that changes: let it begin with the largest finite number"
                    )
                raise DisttrainError(
                    f'{who} changed the buffer "{whole}", which {reason} at job.wrap(), so the job took it as a constant; '
                    f"expected {advice}"
                )


def refuse_inference(name, tensor):
    """Fails if the tensor was made in torch.inference_mode(). PyTorch computes no gradients with it, and doesn't count its
    changes."""
    if tensor.is_inference():
        raise DisttrainError(
            f'job.wrap() got a module whose "{name}" was made in torch.inference_mode(), so PyTorch can\'t train with it; make '
            "the module outside of it"
        )


def member(holder, name):
    """holder.get(name), which the buffers of a module of torch.jit don't have."""
    return holder[name] if name in holder else None


def is_dense(tensor):
    """Whether the tensor's elements are numbers in its memory, one by one."""
    return tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_quantized


def _has_values(buffer):
    return not torch.nn.parameter.is_lazy(buffer) and not buffer.is_meta and is_dense(buffer)


def _is_infinite(buffer):
    if not _has_values(buffer):
        return False
    try:
        is_infinite = torch.isinf(buffer)
    except NotImplementedError:  # of a type that has no infinity, such as torch.float8_e4m3fn
        return False
    return bool(is_infinite.any()) and not bool(torch.isnan(buffer).any())
