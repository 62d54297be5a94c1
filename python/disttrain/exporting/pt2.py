"""Writes a package of compiled programs: a .pt2 file, which torch and workerd can load."""

import os
import pathlib
import tempfile

from disttrain.exporting import compiling, sidecar, torch_sidecar
from disttrain.exporting.comparing import compare_compiled
from disttrain.exporting.decisions import SymbolWatch
from disttrain.exporting.errors import ExportError
from disttrain.exporting.stages import cut, run_stages
from disttrain.exporting.trace import trace

PROGRAMS = ("step", "evaluate", "predict")


def write(path, functions, cpu, say):
    cpu = compiling.pick_cpu(cpu)
    graphs = {}
    watches = {program: SymbolWatch(functions.described.layers) for program in PROGRAMS}
    for program in PROGRAMS:
        say(f"export: {program}: tracing")
        graphs[program] = trace(functions, program, watches[program])
    libraries, stages = {}, {}
    for program, graph in graphs.items():
        arguments = functions.example_arguments(program)
        cuts = cut(graph, functions) if program == "step" else []
        with watches[program].naming(program):
            if cuts:
                stages[program] = cuts
                results = len(graph.graph_signature.user_outputs)
                loaded = _compile_stages(program, cuts, arguments, results, cpu, say, libraries)
            else:
                module = graph.module(check_guards=False)
                libraries[program] = compiling.compile_program(module, arguments, program, cpu, say)
                loaded = compiling.load(libraries[program])
        variables = arguments[: len(functions.described.variables)]
        compare_compiled(program, functions, graph.module(check_guards=False), loaded, variables)
    text, values = torch_sidecar.encode(functions, "pt2", cpu, PROGRAMS, stages)
    # PyTorch's reader takes the members of the folder "extra" for texts.
    _write(path, libraries, {"extra/" + sidecar.JSON_NAME: text, "data/disttrain/" + sidecar.VALUES_NAME: values})
    say(f"export: wrote {path}: {os.path.getsize(path):,} bytes")


def _compile_stages(program, stages, arguments, results, cpu, say, libraries):
    """Adds the library of each stage to `libraries`. Returns the whole program, which has so many results, as a function
    of a list of tensors."""
    examples = run_stages(stages, [stage.module for stage in stages], arguments)
    loaded = []
    for index, stage in enumerate(stages):
        name = f"{program}_{index}"
        libraries[name] = compiling.compile_program(
            stage.module, [examples[number] for number in stage.takes], name, cpu, say
        )
        library = compiling.load(libraries[name])
        loaded.append(lambda *tensors, library=library: library(tensors))

    def whole(tensors):
        values = run_stages(stages, loaded, tensors)
        return [values[len(arguments) + result] for result in range(results)]

    return whole


def _write(path, libraries, sidecars):
    """torch's writer stores the members uncompressed, and aligns their bytes."""
    from torch.export.pt2_archive._package import PT2ArchiveWriter

    try:
        with tempfile.TemporaryDirectory(prefix=".disttrain-export-", dir=os.path.dirname(path) or ".") as folder:
            # The members' folder in the package gets the name of the file.
            unfinished = pathlib.Path(folder) / os.path.basename(path)
            with PT2ArchiveWriter(str(unfinished)) as archive:
                for program, files in libraries.items():
                    # PyTorch's loader finds the metadata by the name of the source, which it doesn't read.
                    archive.write_bytes(f"data/aotinductor/{program}/{program}.wrapper.cpp", b"// compiled\n")
                    for ending, file in files.items():
                        archive.write_file(f"data/aotinductor/{program}/{program}.wrapper{ending}", str(file))
                for name, content in sidecars.items():
                    archive.write_bytes(name, content)
            os.replace(unfinished, path)
    except OSError as error:
        raise ExportError(f"export: can't write {path}: {error.strerror}") from None
