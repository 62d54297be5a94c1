"""The Pythons that tools/setup installs for tests, each in a venv of its own. Tests use only these, so that their results
don't depend on what else the machine has.

It needs no package but Python's own.
"""

import os
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "disttrain"


def _venvs():
    """The folders of the venvs: {name: path}, as tools/setup names them (torch_python, jax, ...)."""
    text = (ROOT / "tools/setup").read_text()
    versions = dict(re.findall(r"^(\w+)_version=([\d.]+)$", text, re.MULTILINE))
    folders = re.findall(r'^(\w+)="\$cache/([\w-]+)-\$(\w+)_version"$', text, re.MULTILINE)
    return {name: CACHE / f"{folder}-{versions[version]}" for name, folder, version in folders}


VENVS = _venvs()


def _has(venv, module):
    packages = venv.glob("lib/python3*/site-packages")
    return any((folder / module).is_dir() or (folder / f"{module}.py").is_file() for folder in packages)


def find_python(modules):
    """The Python that has all of these modules and NumPy, for example find_python("torch, transformers"). None if
    tools/setup hasn't installed it."""
    needed = {"numpy", *re.split(r", *", modules)}
    # The smallest venv comes first: it has no other module that could make a difference.
    names = ["safetensors", "tensorboard", "jax", "torch_python"]
    if "DISTTRAIN_WITHOUT_TORCH" in os.environ:  # tools/test --without-torch
        names.remove("torch_python")
    for name in names:
        if (VENVS[name] / "bin/python3").exists() and all(_has(VENVS[name], module) for module in needed):
            return str(VENVS[name] / "bin/python3")
    return None


def require_python(modules):
    """As find_python(), but without such a Python the test that calls this is skipped; outside a test, its file is."""
    python = find_python(modules)
    if python is None:
        raise unittest.SkipTest(f"no Python with {modules}: run tools/setup")
    return python


def run_in_python_with(modules, arguments):
    """Goes on if this process runs in the Python of require_python(). Otherwise starts that Python in place of this one,
    with these arguments."""
    python = require_python(modules)
    if not os.path.samefile(sys.prefix, Path(python).parents[1]):
        sys.stdout.flush()
        os.execv(python, [python, *map(str, arguments)])


def require_pjrt_plugin():
    """The PJRT plugin for the CPU. Without it the test that calls this is skipped; outside a test, its file is."""
    plugin = next(VENVS["pjrt_plugin"].glob("lib/python3*/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"), None)
    if plugin is None:
        raise unittest.SkipTest("no PJRT plugin: run tools/setup")
    return plugin
