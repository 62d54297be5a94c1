"""The error of an export, and the layer that it came from."""

import contextlib
import os


class ExportError(Exception):
    """The model can't be exported. The message says which layer, what was found, and what to do."""


class FixedBatchError(ExportError):
    """Something in the model fixes the batch's dimension."""


class NoGradientError(ExportError):
    """The loss depends on no trainable parameter."""


class LayerTracker:
    """Knows which layers of a model run now, and which one ran when an exception was raised.

    A layer is named as in named_modules(), such as "layer1.0.conv2", with its class.
    """

    def __init__(self, model):
        self._names = {module: name for name, module in model.named_modules()}
        self._running = []

    @contextlib.contextmanager
    def watch(self, on_pause=None):
        """on_pause(name): called when a layer has returned, or calls another one."""
        from torch.nn.modules import module as hooks

        def enter(module, arguments):
            if module in self._names:
                if on_pause and self._running:
                    on_pause(self._running[-1])
                self._running.append(self.name_of(module))

        def leave(module, arguments, result):
            if module in self._names:
                self._running.pop()
                if on_pause:
                    on_pause(self.name_of(module))

        self._running.clear()
        handles = [
            hooks.register_module_forward_pre_hook(enter),
            hooks.register_module_forward_hook(leave),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def name_of(self, module):
        name = self._names[module]
        kind = type(module).__name__
        return f'layer "{name}" ({kind})' if name else f"the model itself ({kind})"

    def current(self):
        """The innermost layer that hasn't returned; after an exception, the layer that raised it."""
        return self._running[-1] if self._running else None


_NO_SPARSE = "; programs have no sparse tensors, so use dense ones (to_dense()), or let workers run your script (model.trainer)"


class NamedErrors:
    """Turns an exception of the model into an ExportError that names the layer."""

    def __init__(self, layers, doing, on_pause=None, hint=""):
        self._layers = layers
        self._doing = doing
        self._hint = hint
        self._watch = layers.watch(on_pause)

    def __enter__(self):
        self._watch.__enter__()

    def __exit__(self, kind, error, trace):
        layer = self._layers.current()
        self._watch.__exit__(None, None, None)
        if error is None or isinstance(error, ExportError) or not isinstance(error, Exception):
            return False
        where = layer or "the loss, the metrics or the backward pass"
        found = first_line(error)
        hint = _NO_SPARSE if "sparse" in found.lower() else self._hint
        raise ExportError(f"export: {where} fails when the model {self._doing}: {found}{hint}") from error


def check_folder(path):
    """Compiling takes minutes, so an export looks first whether it can write its file."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise ExportError(f"export: can't write {path}: there is no folder {folder}; make it, or name another file")
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        why = "it is a folder" if os.path.isdir(path) else f"you may not write to the folder {folder}"
        raise ExportError(f"export: can't write {path}: {why}; name another file")


def first_line(error):
    return _line(error, 0)


def last_line(error):
    """TorchScript's interpreter puts the operator's own error behind its trace."""
    return _line(error, -1).rstrip(".")


def _line(error, index):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[index] if lines else type(error).__name__)[:500]
