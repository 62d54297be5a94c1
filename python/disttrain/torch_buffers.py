"""Which buffers of a torch module are state: variables that the workers average. The others are constants."""

import torch

from disttrain.errors import DisttrainError


def is_state(name, buffer, saved):
    """`saved`: the names in state_dict(). A buffer that state_dict() leaves out, one of flags, and one with infinities,
    such as a mask of attention, are constants: each script makes them by itself, and the cluster doesn't know them."""
    return name in saved and buffer.dtype != torch.bool and not _is_infinite(buffer)


class Constants:
    """The buffers in state_dict() that are constants, because they have infinities or are flags. A step may not change
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
                else:
                    reason, advice = "had an infinity", (
                        "finite values in a buffer that changes: let it begin with the largest finite number"
                    )
                raise DisttrainError(
                    f'the step changed the buffer "{whole}", which {reason} at job.wrap(), so the job took it as a constant; '
                    f"expected {advice}"
                )


def _is_infinite(buffer):
    if torch.nn.parameter.is_lazy(buffer) or buffer.is_meta or buffer.layout != torch.strided:
        return False
    return bool(torch.isinf(buffer).any()) and not bool(torch.isnan(buffer).any())
