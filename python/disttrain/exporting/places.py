"""Places in the user's code and in memory."""

import linecache
import os
import sysconfig

import numpy as np
import torch

_LIBRARIES = tuple(
    os.path.join(path, "")
    for path in (
        sysconfig.get_path("stdlib"),
        os.path.dirname(torch.__file__),
        os.path.dirname(np.__file__),
        os.path.dirname(os.path.dirname(__file__)),
    )
)
# Packages that are installed may lie within Python's library.
_INSTALLED = (os.path.join("", "site-packages", ""), os.path.join("", "dist-packages", ""))


def is_users(frame):
    """Whether a frame runs code of the user, and not of Python's library, torch, NumPy or this package."""
    file = frame.f_code.co_filename
    # A method that dataclasses made. The program of `python -c` has this name, too, but is no file.
    if file == "<string>" and "__file__" in frame.f_globals:
        return False
    if file.startswith("<frozen ") or file.startswith(_LIBRARIES[1:]):
        return False
    return not file.startswith(_LIBRARIES[0]) or any(part in file for part in _INSTALLED)


def place_of(tensor):
    """Where the numbers of a tensor and of its views lie; None if it has none, or no storage, as a sparse tensor."""
    try:
        with torch._C.DisableTorchFunction():
            return tensor.untyped_storage().data_ptr() or None
    except (NotImplementedError, RuntimeError):
        return None


def line_of_user(frame):
    """" at FILE:LINE (TEXT)" of the innermost frame that is the user's; empty if there is none."""
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return "" if frame is None else line_at(frame.f_code.co_filename, frame.f_lineno)


def line_at(file, number):
    text = linecache.getline(file, number).strip()
    return f" at {file}:{number}" + (f" ({text})" if text else "")
