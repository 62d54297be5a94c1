#!/usr/bin/env python3
"""Runs the checks of tools/check on small trees, good and bad, because a check that can't fail is a defect."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

CHECKS = pathlib.Path(__file__).resolve().parents[3] / "tools" / "check"


class Tree(unittest.TestCase):
    """A small tree of sources, made afresh for each test, outside of git."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="disttrain-checks-"))
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))

    def check(self, name, *arguments, environment=None):
        run = subprocess.run([sys.executable, str(CHECKS / name), *map(str, arguments)], capture_output=True, text=True,
                             env=environment)
        return run.returncode, run.stdout + run.stderr

    def assert_right(self, name, *arguments):
        code, output = self.check(name, *arguments)
        self.assertEqual(code, 0, output)

    def assert_problem(self, expected, name, *arguments):
        code, output = self.check(name, *arguments)
        self.assertEqual(code, 1, output)
        self.assertIn(expected, output)


class Circles(Tree):
    def test_ChainOfHeadersIsRight(self):
        self.write("psd/shard.h", '#include "psd/store.h"\nnamespace disttrain::psd {\nclass Shard {\n};\n}\n')
        self.write("psd/store.h", "namespace disttrain::psd {\nclass Store {\n};\n}\n")
        self.assert_right("circles", self.root)

    def test_CircleThatADeclarationHidesIsAProblem(self):
        self.write("psd/shard.h", '#include "psd/store.h"\nnamespace disttrain::psd {\nclass Shard {\n};\n}\n')
        self.write("psd/store.h", "namespace disttrain::psd {\nclass Shard;\nclass Store {\n};\n}\n")
        self.assert_problem("psd/shard.h:1: in a circle with psd/store.h", "circles", self.root)

    def test_CircleOfThreeIsAProblem(self):
        for one, other in (("A", "B"), ("B", "C"), ("C", "A")):
            self.write(f"psd/{one}.h", f"namespace disttrain::psd {{\nclass {other};\nstruct {one} final : Base {{\n}};\n}}\n")
        self.assert_problem("psd/A.h:1: in a circle with psd/B.h, psd/C.h", "circles", self.root)

    def test_ClassOfTheSameNameInAnotherNamespaceIsAnother(self):
        self.write("psd/shard.h", '#include "psd/store.h"\nnamespace disttrain::psd {\nclass Shard {\n};\n}\n')
        self.write("psd/store.h", "namespace disttrain::psd::abi {\nclass Shard;\nclass Store {\n};\n}\n")
        self.assert_right("circles", self.root)

    def test_TemplatesBelongToTheirHeader(self):
        self.write("psd/shard.h", '#include "psd/shard_inl.h"\n')
        self.write("psd/shard_inl.h", '#include "psd/shard.h"\n')
        self.assert_right("circles", self.root)

    def test_KnownCircleThatHasGoneIsAProblem(self):
        self.write("scale/surroundings.h", "\n")
        self.assert_problem("scale/surroundings.h:1: is in no circle any more", "circles", self.root)


class Includes(Tree):
    def test_ArrowsAsDrawnAreRight(self):
        self.write("common/ids.h", "#include <cstdint>\n#include <chrono>\n")
        self.write("shards/core/shard.h", '#include "common/ids.h"\n')
        self.write("shards/thread.cc", '#include <asio/io_context.hpp>\n#include <thread>\n#include "shards/core/shard.h"\n')
        self.write("tests/shards/shard_test.cc", '#include <thread>\n#include "shards/core/shard.h"\n')
        self.assert_right("includes", self.root)

    def test_ArrowAgainstTheDrawingIsAProblem(self):
        self.write("shards/core/shard.h", "\n")
        self.write("common/ids.h", '\n#include "shards/core/shard.h"\n')
        self.assert_problem("common/ids.h:2: \"shards/core/shard.h\": no arrow goes from common to shards/core", "includes",
                            self.root)

    def test_CoreThatIncludesAnotherCoreIsAProblem(self):
        self.write("chiefd/core/job.h", "\n")
        self.write("shards/core/shard.h", '#include "chiefd/core/job.h"\n')
        self.assert_problem("no arrow goes from shards/core to chiefd/core", "includes", self.root)

    def test_ImpureHeadersInACoreAreProblems(self):
        for header in ("asio.hpp", "asio/post.hpp", "thread", "mutex", "fstream", "filesystem", "spdlog/spdlog.h",
                       "iostream", "random", "condition_variable", "sys/socket.h", "unistd.h", "ctime"):
            for room in ("shards/core", "chiefd/core", "workerd/core", "shards/store", "common"):
                with self.subTest(header=header, room=room):
                    self.write(f"{room}/bad.h", f"#include <{header}>\n")
                    self.assert_problem(f"{room}/bad.h:1: <{header}> in {room}, which is pure", "includes", self.root)
                    (self.root / room / "bad.h").unlink()

    def test_ImpureWordsInACoreAreProblems(self):
        for word in ("auto t = std::chrono::steady_clock::now();", "std::random_device device;", "Clock::now ()",
                     "std::cerr << 1;", "getenv(\"HOME\");", "printf(\"x\");"):
            with self.subTest(word=word):
                self.write("workerd/core/bad.cc", f"{word}\n")
                self.assert_problem("workerd/core/bad.cc:1:", "includes", self.root)

    def test_WordsInCommentsAndStringsAreRight(self):
        self.write("shards/core/good.cc", '// never calls steady_clock::now()\nconst char* text = "std::cout";\n')
        self.assert_right("includes", self.root)

    def test_LibraryOutsideOfItsDoorIsAProblem(self):
        for header, room in (("ATen/ATen.h", "workerd"), ("capnp/message.h", "chiefd"), ("toml++/toml.h", "psd"),
                             ("asio.hpp", "input")):
            with self.subTest(header=header):
                self.write(f"{room}/bad.cc", f"#include <{header}>\n")
                self.assert_problem(f"{room}/bad.cc:1: <{header}> in {room}; it stays in", "includes", self.root)
                (self.root / room / "bad.cc").unlink()

    def test_DecoderOutsideOfItsFileIsAProblem(self):
        for header, file in (("toml++/toml.h", "common/config/reader/bad.cc"), ("zlib.h", "input/bad.cc"),
                             ("capnp/serialize.h", "transport/wire/bad.cc"), ("simdjson.h", "input/bad.cc"),
                             ("protozero/pbf_reader.hpp", "input/tokens/bad.cc"),
                             ("torch/csrc/jit/serialization/import.h", "engine/program/bad.cc")):
            with self.subTest(header=header):
                self.write(file, f"#include <{header}>\n")
                self.assert_problem(f"{file}:1: <{header}> in", "includes", self.root)
                (self.root / file).unlink()

    def test_ParserWithoutBoundsIsAProblem(self):
        for call in ("const Json json = Json::parse(text);", "nlohmann::ordered_json::parse(text, nullptr, false)",
                     "Json::from_cbor(bytes)", "x = json::sax_parse (text, &sax);", "json::from_msgpack(bytes);"):
            with self.subTest(call=call):
                self.write("psd/bad.cc", f"{call}\n")
                self.assert_problem("psd/bad.cc:1: calls a parser that has no bounds", "includes", self.root)
        self.write("psd/bad.cc", "parse_bounded_json(text); // Json::parse(text)\n")
        self.assert_right("includes", self.root)

    def test_NameThatIsNotFromTheTopIsAProblem(self):
        self.write("shards/core/shard.h", "\n")
        self.write("shards/core/shard.cc", '#include "shard.h"\n')
        self.assert_problem('"shard.h" is not named from the top', "includes", self.root)

    def test_FileInNoRoomIsAProblem(self):
        self.write("misc/new.cc", "\n")
        self.assert_problem("misc/new.cc:1: lies in no room", "includes", self.root)

    def test_ProductThatIncludesTestsIsAProblem(self):
        self.write("tests/psd/fixture.h", "\n")
        self.write("psd/main.cc", '#include "tests/psd/fixture.h"\n')
        self.assert_problem("of the tests", "includes", self.root)

    def test_NothingToCheckIsAProblem(self):
        self.assert_problem("found nothing", "includes", self.root)


class Format(Tree):
    def setUp(self):
        super().setUp()
        shutil.copy(CHECKS.parents[1] / ".clang-format", self.root)
        code, output = self.check("format", self.root)
        if code == 77:
            self.skipTest(output)

    def test_FormattedSourceIsRight(self):
        self.write("common/good.cc", "int f(int a) {\n  return a;\n}\n")
        self.assert_right("format", self.root)

    def test_OtherFormatIsAProblemWithItsLine(self):
        self.write("common/good.cc", "int f(int a) {\n  return a;\n}\n")
        self.write("common/bad.cc", "int f(int a) {\n      return a;\n}\n")
        self.assert_problem("common/bad.cc:1:", "format", self.root)

    def test_WithoutClangFormatItIsSkippedOutLoud(self):
        self.write("common/good.cc", "int f;\n")
        code, output = self.check("format", self.root, environment={**os.environ, "PATH": "/nonexistent"})
        self.assertEqual(code, 77, output)
        self.assertIn("SKIPPED", output)


class Shell(Tree):
    def setUp(self):
        super().setUp()
        if shutil.which("shellcheck") is None:
            self.skipTest("no shellcheck here (Debian's package shellcheck)")

    def test_QuotedScriptIsRight(self):
        self.write("tools/run", '#!/usr/bin/env bash\nls "$1"\n')
        self.write("CMakeLists.txt", "# never sh -c here\nadd_custom_command(COMMAND tools/run a)\n")
        self.assert_right("shell", self.root)

    def test_WordThatASpaceSplitsIsAProblemWithItsLine(self):
        for first_line in ("#!/usr/bin/env bash", "#!/bin/sh", "# shellcheck shell=bash"):
            with self.subTest(first_line):
                self.write("tools/run", first_line + "\nls $1\n")
                self.assert_problem("tools/run:2:", "shell", self.root)

    def test_LineOfShellInABuildFileIsAProblem(self):
        self.write("tools/run", "#!/bin/sh\ntrue\n")
        for line in ('add_custom_command(COMMAND sh -c "a < b")', 'execute_process(COMMAND bash -ec "a")'):
            with self.subTest(line):
                self.write("man/CMakeLists.txt", f"\n{line}\n")
                self.assert_problem("man/CMakeLists.txt:2: holds a line of shell", "shell", self.root)

    def test_WithoutShellcheckItIsSkippedOutLoud(self):
        self.write("tools/run", "#!/bin/sh\n")
        code, output = self.check("shell", self.root, environment={**os.environ, "PATH": "/nonexistent"})
        self.assertEqual(code, 77, output)
        self.assertIn("SKIPPED", output)


class ConfigKeys(Tree):
    STRUCTS = """\
        struct TrainSection {
          std::uint64_t steps = 0;  // global
          OptimizerConfig optimizer;
        };

        struct OptimizerConfig {
          double rate = 0.01;
        };

        struct JobConfig {
          TrainSection train;
          std::vector<PsConfig> ps;
        };

        struct PsConfig {
          std::string address;
        };
        """
    USES = {
        "steps": "bool is_done(const JobConfig& job) { return job.train.steps == 0; }\n",
        "rate": "double rate_of(const OptimizerConfig& o) { return o.rate; }\n",
        "address": "std::string at(const JobConfig& job) { return job.ps[0].address; }\n",
    }

    def write_uses(self, *names):
        self.write("common/config/job_config.h", self.STRUCTS)
        self.write("chiefd/core/job.cc", "".join(self.USES[name] for name in names))

    def test_UsedKeysAreRight(self):
        self.write_uses("steps", "rate", "address")
        self.assert_right("config-keys", self.root)

    def test_KeyThatNothingUsesIsAProblem(self):
        for name, place in (("steps", "job_config.h:2: TrainSection.steps"), ("rate", "job_config.h:7: OptimizerConfig.rate"),
                            ("address", "job_config.h:16: PsConfig.address")):
            with self.subTest(name):
                self.write_uses(*(other for other in self.USES if other != name))
                self.assert_problem(place, "config-keys", self.root)

    def test_ReaderAndTestsAreNoUse(self):
        self.write_uses("rate", "address")
        for path in ("common/config/reader/job_keys.cc", "common/config/reader/job_rules.cc", "tests/common/config_test.cc"):
            self.write(path, self.USES["steps"])
        self.assert_problem("TrainSection.steps is read from a file and used by nothing", "config-keys", self.root)

    def test_FieldOfTheSameNameInAnotherStructIsNoUse(self):
        self.write_uses("rate", "address")
        self.write("psd/shard.cc", "int f(const Progress& progress) { return progress.steps; }\n")
        self.assert_problem("TrainSection.steps", "config-keys", self.root)


class ListedTests(Tree):
    """Configures a small CMake project, so that the check sees the files that a real one has."""

    def configure(self, lines):
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\nproject(sample CXX)\nenable_testing()\n"
                   "set(CMAKE_EXPORT_COMPILE_COMMANDS ON)\n" + lines)
        build = self.root / "build"
        run = subprocess.run(["cmake", "-S", str(self.root), "-B", str(build), "-G", "Ninja", "-DCMAKE_CXX_COMPILER_WORKS=1"],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return build

    def setUp(self):
        super().setUp()
        self.write("tests/a_test.cc", "int main() {}\n")

    def test_CompiledAndRegisteredIsRight(self):
        build = self.configure("add_executable(a_test tests/a_test.cc)\nadd_test(NAME a_test COMMAND a_test)\n")
        self.assert_right("listed-tests", build, self.root)

    def test_FileOfAUnityBuildIsCompiled(self):
        self.write("tests/b_test.cc", "\n")
        build = self.configure("set(CMAKE_UNITY_BUILD ON)\nadd_executable(a_test tests/a_test.cc tests/b_test.cc)\n"
                               "add_test(NAME a_test COMMAND a_test)\n")
        self.assert_right("listed-tests", build, self.root)

    def test_FileThatIsNotCompiledIsAProblem(self):
        self.write("tests/deep/b_test.cc", "int main() {}\n")
        build = self.configure("add_executable(a_test tests/a_test.cc)\nadd_test(NAME a_test COMMAND a_test)\n")
        self.assert_problem("tests/deep/b_test.cc:1: isn't compiled", "listed-tests", build, self.root)

    def test_ProgramThatCtestDoesNotRunIsAProblem(self):
        build = self.configure("add_executable(a_test tests/a_test.cc)\n")
        self.assert_problem("tests/a_test.cc:1: is compiled into a_test, which ctest doesn't run", "listed-tests",
                            build, self.root)

    def test_ScriptThatCtestDoesNotRunIsAProblem(self):
        self.write("tests/c_test.py", "\n")
        build = self.configure("add_executable(a_test tests/a_test.cc)\nadd_test(NAME a_test COMMAND a_test)\n")
        self.assert_problem("tests/c_test.py:1: ctest doesn't run it", "listed-tests", build, self.root)

    def test_ScriptInACommandIsRight(self):
        self.write("tests/c_test.py", "\n")
        build = self.configure("add_executable(a_test tests/a_test.cc)\nadd_test(NAME a_test COMMAND a_test)\n"
                               "add_test(NAME c COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/c_test.py)\n")
        self.assert_right("listed-tests", build, self.root)


class References(Tree):
    def setUp(self):
        super().setUp()
        self.write("docs/invariants.md", "| I1 | one |\n| I3 to I5, L2 | more |\n")
        self.write("ARCHITECTURE.md", "# Map\n\n## Rooms\n\n**Bits.** As they are.\n")

    def test_WhatIsThereIsRight(self):
        self.write("README.md", "[map](ARCHITECTURE.md#rooms), [here](#now), [far](https://a.b/c.md)\n\n# Now\n")
        self.write("psd/shard.h", '// docs/invariants.md: I1, I4, L2. See "Bits", See "Rooms".\nint I9;\n')
        self.assert_right("references", self.root)

    def test_LinkThatLeadsNowhereIsAProblem(self):
        self.write("README.md", "[map](docs/map.md)\n")
        self.assert_problem("README.md:1: the link docs/map.md leads to no file", "references", self.root)

    def test_AnchorWithoutAHeadingIsAProblem(self):
        self.write("docs/a.md", "[map](../ARCHITECTURE.md#doors)\n")
        self.assert_problem("docs/a.md:1: the link ../ARCHITECTURE.md#doors leads to no heading", "references", self.root)

    def test_FileThatIsNotThereIsAProblem(self):
        for path, text in (("psd/a.h", "// shards/core/b.h has it"), ("psd/CMakeLists.txt", "# RULES.md, section 2"),
                           ("docs/c.md", "in `shards/core/b.h`")):
            with self.subTest(path=path):
                self.write(path, text + "\n")
                self.assert_problem(f"{path}:1: there is no", "references", self.root)
                (self.root / path).unlink()

    def test_UnknownInvariantIsAProblem(self):
        self.write("psd/a.cc", "int x;  // I2\n")
        self.assert_problem("psd/a.cc:1: I2 has no row in docs/invariants.md", "references", self.root)

    def test_UnknownNoteIsAProblem(self):
        self.write("psd/a.h", '// See "Doors".\n')
        self.assert_problem('psd/a.h:1: ARCHITECTURE.md has no note "Doors"', "references", self.root)


if __name__ == "__main__":
    unittest.main()
