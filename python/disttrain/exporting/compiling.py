"""Compiles a traced program to a shared library by AOTInductor, and keeps the libraries in a cache."""

import contextlib
import hashlib
import operator
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import warnings

import torch

from disttrain.exporting.errors import ExportError, first_line

# A program's files: the library, what PyTorch's own loader wants to know of it, and a table of the operators that the
# library calls by name, if it calls any.
ENDINGS = (".so", "_metadata.json", ".json")
# The levels of the x86-64 ABI (its processor supplement, table 3.1): what /proc/cpuinfo must name, and the width of the
# vectors in bits.
CPU_LEVELS = {
    "x86-64-v4": ({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, 512),
    "x86-64-v3": ({"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"}, 256),
}


def pick_cpu(wanted):
    """The level to compile for: the wanted one, or the best that this machine has."""
    flags = _cpu_flags()
    levels = [level for level, (needed, _) in CPU_LEVELS.items() if needed <= flags]
    if "x86-64-v4" in levels and "x86-64-v3" not in levels:
        levels.remove("x86-64-v4")
    if wanted is None:
        if not levels:
            raise ExportError("export: this machine's processor has no AVX2; export to a .pt file instead of .pt2")
        return levels[0]
    if wanted not in CPU_LEVELS:
        raise ExportError(f'export: cpu is "{wanted}"; expected one of {", ".join(CPU_LEVELS)}')
    if wanted not in levels:
        raise ExportError(f"export: this machine's processor isn't an {wanted}, and the compiler tries its code here")
    return wanted


def compile_program(module, example, name, cpu, say):
    """Returns the paths of the program's files by their ENDINGS. module: a GraphModule that torch.export has made, or a
    part of one. example: tensors for its arguments."""
    folder = _cache_folder() / _key(module, cpu)
    kept = _kept(folder)
    if kept:
        say(f"export: {name}: compiled before, taken from {folder.parent}")
        return kept
    say(f"export: {name}: compiling {len(module.graph.nodes)} operations for {cpu}; this takes a minute or more")
    start = time.monotonic()
    try:
        with _settings(cpu, module), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            files = torch._inductor.aot_compile(module, tuple(example), options={"aot_inductor.package": True})
    except Exception as error:  # the compilers of torch raise errors of many classes
        raise ExportError(
            f"export: AOTInductor can't compile the program {name}: {first_line(error)}; export to a .pt file instead"
        ) from error
    by_ending = {}
    for file in files:
        for ending in ENDINGS:
            if isinstance(file, str) and file.endswith(".wrapper" + ending):
                by_ending[ending] = file
    if ".so" not in by_ending:
        raise ExportError(f"export: AOTInductor made no library of the program {name}, but {files}")
    _keep(by_ending, folder)
    say(f"export: {name}: compiled in {time.monotonic() - start:.0f} s")
    return _kept(folder)


def load(files):
    """The compiled program as a function of a list of tensors."""
    runner = torch._C._aoti.AOTIModelContainerRunnerCpu(str(files[".so"]), 1)
    return lambda tensors: runner.run(list(tensors))


def _key(module, cpu):
    """A hash of all that the library depends on. The names of a graph's values are the same in each run."""
    digest = hashlib.sha256()

    def add(*parts):
        digest.update(repr(parts).encode() + b"\n")

    add("6", torch.__version__, cpu, _compiler_version(), os.uname().machine)
    for node in module.graph.nodes:
        add(node.op, node.name, str(node.target), str(node.args), str(node.kwargs))
        for value in torch.utils._pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, torch.Tensor):
                add(str(value.dtype), [str(size) for size in value.shape], [str(size) for size in value.stride()])
            else:
                add(str(value))
        if node.op == "get_attr":
            constant = operator.attrgetter(node.target)(module)
            if isinstance(constant, torch.Tensor):
                add(constant.dtype, tuple(constant.shape))
                plain = constant.detach().resolve_conj().resolve_neg().reshape(-1).contiguous()
                digest.update(plain.view(torch.uint8).numpy().tobytes())
            else:
                add(str(constant.code))
    return digest.hexdigest()[:32]


def _compiler_version():
    compiler = torch._inductor.config.cpp.cxx
    compiler = compiler if isinstance(compiler, str) else compiler[1]
    try:
        return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError) as error:
        raise ExportError(f"export: the compiler {compiler} doesn't run ({error}); install g++ or set CXX") from None


def _cache_folder():
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(root) / "disttrain" / "export"


def _kept(folder):
    """The files of a program in the cache; empty if it isn't there."""
    found = {ending: folder / ("program" + ending) for ending in ENDINGS}
    return {ending: file for ending, file in found.items() if file.is_file()}


def _keep(files, folder):
    """Copies the files into the cache, all or none."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        whole = pathlib.Path(unfinished) / "whole"
        whole.mkdir()
        for ending, file in files.items():
            shutil.copyfile(file, whole / ("program" + ending))
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", str(whole / "program.so")], check=False)
        # The rename fails if another export has just compiled the same program. Its files serve as well.
        with contextlib.suppress(OSError):
            os.rename(whole, folder)


@contextlib.contextmanager
def _settings(cpu, module):
    """AOTInductor's options: the number of threads is workerd's choice, and the code runs on all processors of `cpu`."""
    import torch._inductor.config as config
    import torch._inductor.cpp_builder as builder
    import torch._inductor.cpu_vec_isa as vectors
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    # By default AOTInductor uses all that this machine has: -march=native, and of the vector extensions of one width the
    # newest one, such as AMX.
    flags_of = builder._get_optimization_cflags

    def for_level(*arguments, **keywords):
        compiling, linking = flags_of(*arguments, **keywords)
        compiling = [f"march={cpu}" if flag == "march=native" else flag for flag in compiling]
        # Paths of this machine in the texts of checks would be part of the package.
        known = {cache_dir(): "inductor", str(pathlib.Path(torch.__file__).parent): "torch"}
        return compiling + [f"ffile-prefix-map={path}={name}" for path, name in known.items()], linking

    valid_vectors = vectors.valid_vec_isa_list
    width = CPU_LEVELS[cpu][1]
    builder._get_optimization_cflags = for_level
    vectors.valid_vec_isa_list = lambda: [vectors.VecAVX512() if width == 512 else vectors.VecAVX2()]
    try:
        # By default AOTInductor changes the layout of images to channels_last around convolutions on a CPU. With the
        # backward pass in the same program, resnet18 was slower so: by a tenth for images of 32x32.
        options = {"cpp.dynamic_threads": True, "cpp.simdlen": width, "layout_optimization": False}
        # In PyTorch 2.11 the pattern for x[torch.randperm(n)], as mixup has it, fails if n isn't a fixed number.
        options["pattern_matcher"] = not _has_permutation(module)
        with config.patch(options):
            yield
    finally:
        builder._get_optimization_cflags = flags_of
        vectors.valid_vec_isa_list = valid_vectors


def _has_permutation(module):
    return any(node.target is torch.ops.aten.randperm.default for node in module.graph.nodes)


def _cpu_flags():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("flags"):
                    return set(line.split(":", 1)[1].split())
    except OSError:
        pass
    return set()
