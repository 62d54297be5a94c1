"""Which buffers of a torch module are state: variables that the workers average. The others are constants."""

import torch

from disttrain.errors import DisttrainError

LARGEST_EXACT = 2**24  # float32 has all whole numbers up to this one


def is_state(name, buffer, saved):
    """`saved`: the names in state_dict(). A buffer that state_dict() leaves out, one of flags, one with infinities, such as
    a mask of attention, and one with large whole numbers, such as the offsets of a large embedding, are constants: each
    script makes them by itself, and the cluster doesn't know them."""
    return name in saved and buffer.dtype != torch.bool and not _is_infinite(buffer) and not has_large_integers(buffer)


def has_large_integers(buffer):
    """Whether float32, as which the cluster keeps a buffer, may not have these whole numbers."""
    if not _has_values(buffer) or buffer.dtype not in (torch.int32, torch.int64):
        return False
    return bool((buffer > LARGEST_EXACT).any() or (buffer < -LARGEST_EXACT).any())


class Constants:
    """The buffers in state_dict() that are constants, because of their values or as flags. A step may not change
    them: each worker would then have values of its own."""

    def __init__(self, module, saved):
        self._buffers = []  # (the layer's buffers, the name there, the whole name, the tensor)
        for layer_name, layer in module.named_modules():
            for name, buffer in layer._buffers.items():
                whole = f"{layer_name}.{name}" if layer_name else name
                if buffer is not None and whole in saved and not is_state(whole, buffer, saved):
                    self._buffers.append((layer._buffers, name, whole, buffer))
        self._versions = []

    def note_values(self):
        """From now on they may not change."""
        self._versions = [buffer._version for *_, buffer in self._buffers]

    def check(self):
        for (holder, name, whole, buffer), version in zip(self._buffers, self._versions):
            if holder.get(name) is not buffer or buffer._version != version:
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
                    f'the step changed the buffer "{whole}", which {reason} at job.wrap(), so the job took it as a constant; '
                    f"expected {advice}"
                )


def _has_values(buffer):
    return not torch.nn.parameter.is_lazy(buffer) and not buffer.is_meta and buffer.layout == torch.strided


def _is_infinite(buffer):
    if not _has_values(buffer):
        return False
    return bool(torch.isinf(buffer).any()) and not bool(torch.isnan(buffer).any())
