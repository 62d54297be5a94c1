#!/usr/bin/env python3
"""Only the program that computes links libtorch and the engines. ldd lists the shared libraries of a program, with those
that they need themselves. nm lists the functions that the program has of disttrain's namespaces."""

import os
import re
import subprocess
import unittest
from pathlib import Path

BIN = Path(os.environ["BIN"])
# What comes with libtorch or serves it: its own libraries, and those for threads, linear algebra and GPUs.
COMPUTING = re.compile(r"lib(torch|c10|gomp|iomp|mkl|cuda|cudart|cudnn|cublas|cupti|nccl|nvrtc)", re.IGNORECASE)
# `disttrain bench ps` exchanges gradients as a worker does, and `disttrain bench scale` simulates workers. So the command
# line has the exchange and the rules of a worker, which compute nothing.
ENGINES = re.compile(r"\bdisttrain::(input::|workerd::\w*(Engine|JobRunner|StepThread))")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def computing_libraries(program):
    return sorted({name for name in re.findall(r"^\s*(\S+)", output_of("ldd", program), re.MULTILINE)
                   if COMPUTING.match(Path(name).name)})


def engine_functions(program):
    return [line for line in output_of("nm", "--demangle", "--defined-only", program).splitlines() if ENGINES.search(line)]


class LinkingTest(unittest.TestCase):
    def test_programs_that_do_not_compute_link_nothing_that_does(self):
        for name in ("chiefd", "psd", "disttrain"):
            with self.subTest(name):
                self.assertEqual(computing_libraries(BIN / name), [])
                self.assertEqual(engine_functions(BIN / name)[:3], [])

    def test_the_worker_links_them(self):
        """Without this, a change of the names would let the other test pass for ever."""
        self.assertIn("libtorch_cpu.so", computing_libraries(BIN / "workerd"))
        self.assertTrue(engine_functions(BIN / "workerd"))


if __name__ == "__main__":
    unittest.main()
