"""What an evaluation or the rehearsal may change in a torch module, to restore it."""

import contextlib

import torch

from disttrain.torch_buffers import member
from disttrain.torch_values import bits_of, without_repeats

_EVALUATION = "the function of job.on_evaluate() or job.on_predict()"


class SavedModule:
    """The values that the state of a module has now. Constants may be large, and other buffers belong to the script, which
    may keep notes about them in attributes."""

    def __init__(self, module, state):
        """`state`: the tensors that are state."""
        state = set(map(id, state))
        self._buffers = [  # (the layer's buffers, the name there, the tensor, its values)
            (layer._buffers, name, buffer, without_repeats(buffer.detach()).clone())
            for layer in module.modules()
            for name, buffer in layer._buffers.items()
            if id(buffer) in state
        ]

    @torch.no_grad()
    def restore(self):
        for holder, name, buffer, values in self._buffers:
            if member(holder, name) is not buffer:
                holder[name] = buffer
            # By `data`, because PyTorch counts no change then. What didn't change may be memory that can't be written.
            now = without_repeats(buffer.data)
            if now.shape == values.shape and not torch.equal(bits_of(now), bits_of(values)):
                now.copy_(values)


class SavedModes:
    """The modes that the layers of a module have now."""

    def __init__(self, module):
        # A layer of torch.jit.freeze() has none.
        self._modes = [(layer, layer.training) for layer in module.modules() if hasattr(layer, "training")]

    def restore(self):
        # Not train(), because it would switch layers that the script keeps in evaluation mode.
        for layer, mode in self._modes:
            layer.training = mode


class Evaluating:
    """While it is entered, the module is in evaluation mode, and computes no gradients. Afterwards its state and its modes
    are as before."""

    def __init__(self, model):
        self._model = model  # a TorchModel
        self._no_grad = torch.no_grad()

    def __enter__(self):
        self._model.begin_evaluation()
        self._saved = SavedModes(self._model.module), self._model.saved_state()
        self._model.module.eval()
        self._no_grad.__enter__()

    def __exit__(self, kind, *error):
        self._no_grad.__exit__(kind, *error)
        for restore in (*(each.restore for each in self._saved), self._model.end_evaluation):
            # The function's own error is the one to show. After some errors, such as those of CUDA, nothing else works.
            with contextlib.nullcontext() if kind is None else contextlib.suppress(Exception):
                restore()
        if kind is None:
            self._model.check_constants(_EVALUATION)
            # Other values would be those of this worker's next step.
            self._model.check_values_in_memory(_EVALUATION)
