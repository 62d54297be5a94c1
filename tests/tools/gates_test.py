#!/usr/bin/env python3
"""tools/test, .ci/run and tools/nightly, in a small tree with stand-ins for all that they call: which parts they run, what
becomes of a failure or a skipped test, and what their last line says. One test runs the real simulator."""
import importlib.machinery
import importlib.util
import os
import select
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
REAL = ("tools/test", "tools/shell.sh", "tools/nightly", "tools/check/skips", "tests/may_skip.toml", ".ci/run")
STAND_INS = ("tools/setup", "tools/simulate", "tools/quickstart", "tools/sanitized", "tools/fuzz")
LEFT_OUT = "; the tests with the labels machine, rdma and kinds were left out, which take minutes each"
PASSED = '<testsuite><testcase name="a" status="run"/></testsuite>'
SKIPPED = """<testsuite><testcase name="system_trainer" status="notrun"><skipped message="x"/>
<system-out>SKIPPED: Gpt2Test: no torch</system-out></testcase></testsuite>"""


class SmallTree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="disttrain-gates-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "tree"
        self.calls = Path(folder.name) / "calls"
        self.results = Path(folder.name) / "results.xml"
        self.results.write_text(PASSED)
        for name in REAL:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        for name in STAND_INS:
            self.stand_in(name)
        self.stand_in("bin/cmake")
        self.stand_in("bin/ctest", f"""
            while [ $# -gt 0 ]; do if [ "$1" = --output-junit ]; then cp {self.results} "$2"; fi; shift; done
            echo '100% tests passed, 0 tests failed out of 1'""")
        self.stand_in("CMakeLists.txt", "find_package(One)")
        self.stand_in("tests/fuzz/csv_fuzz.cc")
        self.stand_in("tests/fuzz/idx_fuzz.cc")
        (self.root / "tests/systemd").mkdir()
        (self.root / "tests/systemd/bare_root_test.py").write_text("")
        self.bare_root("OK", 0)
        for words in (["init", "--quiet"], ["add", "."]):
            subprocess.run(["git", *words], cwd=self.root, check=True)
        self.environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": folder.name}
        (Path(folder.name) / "disttrain").mkdir()

    def stand_in(self, name, body=""):
        """A program that records its call and then runs `body`."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "{path.name} $*" >>{self.calls}\n{body}\n')
        path.chmod(0o755)

    def bare_root(self, output, code):
        (self.root / "tests/run_unittest.py").write_text(
            f"import sys\nopen('{self.calls}', 'a').write('bare root\\n')\nprint('{output}')\nsys.exit({code})\n")

    def run_tool(self, *words):
        """Returns the exit code, the lines of the output, and the names of the programs that were called."""
        self.calls.write_text("")
        done = subprocess.run([str(self.root / words[0]), *words[1:]], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
        return done.returncode, done.stdout.splitlines(), self.calls.read_text().splitlines()


class TestTest(SmallTree):
    def test_the_last_line_says_that_nothing_was_skipped(self):
        code, lines, calls = self.run_tool("tools/test")
        self.assertEqual((code, lines[-1]), (0, "== no test failed, none was skipped" + LEFT_OUT))
        self.assertEqual(calls[0], "setup ")

    def test_the_last_line_counts_what_was_skipped(self):
        self.results.write_text(SKIPPED)
        code, lines, _ = self.run_tool("tools/test")
        self.assertEqual((code, lines[-1]), (0, "== no test failed; 1 skipped in 1 tests (above)" + LEFT_OUT))
        self.assertEqual(self.run_tool("tools/test", "--strict")[0], 1)

    def test_without_torch_nothing_of_it_is_installed_or_used_and_the_last_line_says_so(self):
        self.results.write_text(SKIPPED)
        self.stand_in("bin/ctest", f"""
            echo "without: $DISTTRAIN_WITHOUT_TORCH"
            while [ $# -gt 0 ]; do if [ "$1" = --output-junit ]; then cp {self.results} "$2"; fi; shift; done""")
        for words in (("--strict", "--without-torch"), ("--without-torch", "--strict", "release", "-R", "x")):
            code, lines, calls = self.run_tool("tools/test", *words)
            self.assertEqual((code, lines[-1]), (0, "== no test failed; 1 skipped in 1 tests (above)" + LEFT_OUT +
                                              "; PyTorch for Python was left out (--without-torch)"))
            self.assertIn("without: yes", lines)
            self.assertEqual(calls[0], "setup --without-torch")

    def test_the_rest_of_the_arguments_is_for_ctest(self):
        _, _, calls = self.run_tool("tools/test", "asan", "-R", "name")
        self.assertIn("/build/asan ", next(call for call in calls if call.startswith("ctest")))
        self.assertTrue(next(call for call in calls if call.startswith("ctest")).endswith(" -R name"))

    def test_tests_that_take_long_are_left_out_unless_their_label_is_given(self):
        for words, leaves_out in {
            (): True,
            ("release", "-R", "kinds_of"): True,
            ("release", "-R", "kinds"): True,
            ("release", "-L", "sanitized", "-R", "rdma"): True,
            ("release", "-L", "kinds"): False,
            ("release", "-L", "kinds|machine"): False,
            ("release", "-R", "x", "-L", "^rdma$"): False,
            ("release", "-Lmachine"): False,
            ("release", "--label-regex", "rdma"): False,
            ("release", "--label-regex=rdma"): False,
        }.items():
            _, _, calls = self.run_tool("tools/test", *words)
            (call,) = [call for call in calls if call.startswith("ctest")]
            self.assertEqual("--label-exclude machine|rdma|kinds" in call, leaves_out, call)
        for preset, leaves_out in {"release": False, "asan": True, "tsan": True}.items():
            _, lines, calls = self.run_tool("tools/test", preset)
            (call,) = [call for call in calls if call.startswith("ctest")]
            self.assertEqual("kinds|no-program" in call, leaves_out, call)
            self.assertEqual("run no program of the build were left out" in "".join(lines), leaves_out, lines)

    def test_no_test_is_a_failure_unless_tests_are_only_listed(self):
        (self.root / "bin/ctest").unlink()  # the real one runs
        (self.root / "build/release").mkdir(parents=True)
        (self.root / "build/release/CTestTestfile.cmake").write_text("")
        code, lines, _ = self.run_tool("tools/test", "release", "-R", "no_such_test")
        self.assertNotEqual(code, 0, lines)
        self.assertIn("test: tests failed (above)", lines[-1])
        for words in (("-N",), ("--show-only=json-v1",), ("--print-labels",)):
            code, lines, _ = self.run_tool("tools/test", "release", *words)
            self.assertEqual(code, 0, lines)

    def test_a_failure_of_ctest_is_a_failure(self):
        self.stand_in("bin/ctest", "exit 8")
        self.assertEqual(self.run_tool("tools/test")[0], 8)


class CiTest(SmallTree):
    def parts(self, *words):
        code, lines, calls = self.run_tool(".ci/run", *words)
        return code, lines, [call.split()[0] for call in calls if call.split()[0] in (
            "ctest", "simulate", "bare", "quickstart", "sanitized")]

    def test_fresh_seeds_run_in_each_run(self):
        code, lines, calls = self.run_tool(".ci/run")
        self.assertEqual(code, 0, lines)
        self.assertIn("simulate --fresh 10000", calls)
        self.assertRegex(lines[-1], r"^\.ci/run: tests passed \(\d+ s\); 10000 fresh seeds passed \(\d+ s\); .*"
                         r"half of the tests with a sanitizer passed \(\d+ s\)$")

    def test_a_seed_that_breaks_a_law_fails_and_is_printed_with_what_to_do(self):
        self.stand_in("tools/simulate", "echo 'seed 5: I1 broken; again: tools/simulate --replay 5'; "
                      "echo 'add each of these seeds to kOnceBroken'; exit 1")
        code, lines, parts = self.parts()
        self.assertEqual(code, 1)
        self.assertIn("seed 5: I1 broken; again: tools/simulate --replay 5", lines)
        self.assertIn("add each of these seeds to kOnceBroken", lines)
        self.assertIn("10000 fresh seeds failed", lines[-1])
        self.assertEqual(parts[-1], "sanitized")  # the rest runs nevertheless

    def test_the_bare_root_runs_again_only_if_what_decides_its_packages_changes(self):
        self.assertEqual(self.parts()[2], ["ctest", "simulate", "bare", "sanitized"])
        self.assertEqual(self.parts()[2], ["ctest", "simulate", "quickstart", "sanitized"])
        self.stand_in("room/CMakeLists.txt", "find_package(Other)")
        subprocess.run(["git", "add", "."], cwd=self.root, check=True)
        self.assertEqual(self.parts()[2], ["ctest", "simulate", "bare", "sanitized"])
        with (self.root / "tools/setup").open("a") as file:
            file.write("exit 0\n")
        self.assertEqual(self.parts()[2], ["ctest", "simulate", "bare", "sanitized"])

    def test_a_bare_root_that_fails_fails_and_runs_again(self):
        for _ in range(2):
            self.bare_root("FAILED", 1)
            code, lines, parts = self.parts()
            self.assertEqual((code, parts), (1, ["ctest", "simulate", "bare", "sanitized"]))
            self.assertIn("bare Debian failed", lines[-1])

    def test_a_machine_that_can_not_make_a_bare_root_runs_quickstart_itself(self):
        self.bare_root("SKIPPED: all of it: no root", 77)
        code, lines, parts = self.parts()
        self.assertEqual((code, parts), (0, ["ctest", "simulate", "bare", "quickstart", "sanitized"]))
        self.assertIn("SKIPPED: all of it: no root", lines)
        self.assertIn("bare Debian skipped", lines[-1])

    def test_a_missing_permission_is_a_failure_although_its_exit_code_is_that_of_a_skipped_test(self):
        self.bare_root("SKIPPED: all of it: no root", 77)
        self.stand_in("tools/quickstart", "echo 'SKIPPED: not a word of a test'; exit 77")
        code, lines, _ = self.parts()
        self.assertEqual(code, 77)
        self.assertRegex(lines[-1], r"bare Debian skipped .*quickstart failed .*with a sanitizer passed ")

    def test_a_bare_root_that_fails_with_the_exit_code_of_a_skipped_test_fails(self):
        self.bare_root("no permission to write /x", 77)
        code, lines, parts = self.parts()
        self.assertEqual((code, parts), (77, ["ctest", "simulate", "bare", "sanitized"]))
        self.assertIn("bare Debian failed", lines[-1])

    def after_slow_tests(self, seeds, seeds_limit):
        """Runs .ci/run when 2 seconds of its time are left. The simulator ends with `seeds`."""
        path = self.root / ".ci/run"
        text = path.read_text()
        for old, new in (("limit=3300 ", "limit=2 "), ("seeds_limit=240 ", f"seeds_limit={seeds_limit} ")):
            self.assertIn(f"\n{old}", text)
            text = text.replace(f"\n{old}", f"\n{new}")
        path.write_text(text)
        self.stand_in("tools/test")
        self.stand_in("tools/simulate", seeds)
        self.stand_in("tools/quickstart", "exec sleep 3600")
        self.stand_in("tools/sanitized", "exec sleep 3600")
        self.bare_root("SKIPPED: all of it: no root", 77)
        return self.run_tool(".ci/run")

    def test_seeds_run_although_the_tests_have_taken_all_the_time(self):
        code, lines, calls = self.after_slow_tests("sleep 3", 100)
        self.assertEqual(code, 0, lines)
        self.assertIn("simulate --fresh 5000", calls)
        self.assertRegex(lines[-1], r"5000 fresh seeds passed .*quickstart not done in the time that was left .*"
                         r"with a sanitizer not done in the time that was left ")

    def test_seeds_that_are_not_done_are_a_failure(self):
        code, lines, _ = self.after_slow_tests("exec sleep 3600", 3)
        self.assertEqual(code, 124, lines)
        self.assertIn("5000 fresh seeds failed", lines[-1])

    def test_without_torch_the_last_line_says_so(self):
        code, lines, _ = self.parts("--without-torch")
        self.assertEqual(code, 0, lines)
        self.assertIn("without PyTorch for Python (--without-torch)", lines[-1])

    def test_each_failure_fails(self):
        for name, code in (("tools/sanitized", 3), ("tools/quickstart", 4), ("bin/ctest", 8)):
            with self.subTest(name):
                text = (self.root / name).read_text()
                self.stand_in(name, f"exit {code}")
                self.bare_root("SKIPPED: all of it: no root", 77)
                self.assertEqual(self.parts()[0], code)
                (self.root / name).write_text(text)


class NightlyTest(SmallTree):
    def test_all_parts_run_and_stand_in_one_table(self):
        self.stand_in("tools/simulate", "echo '9 seeds from 5 on, 0 violations, 1.0 s, 9 seeds/s'")
        self.stand_in("tools/fuzz", "echo 'Done 77 runs in 2 second(s)'")
        code, lines, calls = self.run_tool("tools/nightly", "--fuzz-seconds", "2", "--seeds", "9")
        self.assertEqual(code, 0, lines)
        table = lines[lines.index(next(line for line in lines if line.startswith("part "))):]
        self.assertEqual([line.split("  ")[0] for line in table],
                         ["part", "seeds", "asan", "tsan", "kinds", "fuzz csv", "fuzz idx", "machine", "rdma",
                          "nightly: all 8 passed"])
        self.assertRegex(table[1], r"9 seeds from 5 on, 0 violations, 1.0 s, 9 seeds/s +passed ")
        self.assertRegex(table[2], r"100% tests passed, 0 tests failed out of 1 +passed ")
        self.assertRegex(table[4], r"^kinds +100% tests passed, 0 tests failed out of 1 +passed ")
        self.assertRegex(table[5], r"Done 77 runs in 2 second\(s\) +passed ")
        self.assertTrue(table[5].endswith("/build/nightly/fuzz-csv.log"))
        self.assertIn("fuzz csv --runs -1 --seconds 2", calls)
        self.assertIn("setup fuzz", calls)
        for words in ("/build/asan", "/build/tsan", "-L kinds", "-L machine", "-L rdma"):
            self.assertEqual(len([call for call in calls if call.startswith("ctest") and words in call]), 1, words)

    def test_a_part_that_fails_stops_no_other_and_the_exit_code_is_1(self):
        self.stand_in("tools/simulate", "exit 1")
        self.stand_in("tools/fuzz", "echo 'Done 77 runs in 2 second(s)'")
        code, lines, calls = self.run_tool("tools/nightly", "--parts", "fuzz,seeds", "--fuzzers", "idx")
        self.assertEqual(code, 1)
        self.assertEqual(lines[-1], "nightly: 1 of 2 failed")
        self.assertRegex(lines[-3], r"^seeds .* failed: .*simulate --seeds \d+\.\.\d+: exit code 1 ")
        self.assertRegex(lines[-2], r"^fuzz idx .* passed ")
        self.assertFalse([call for call in calls if call.startswith("fuzz csv")])

    def test_a_part_that_does_not_say_what_ran_has_failed(self):
        self.stand_in("bin/ctest", "echo 'No tests were found!!!'")
        code, lines, _ = self.run_tool("tools/nightly", "--parts", "kinds")
        self.assertEqual((code, lines[-1]), (1, "nightly: 1 of 1 failed"))
        self.assertRegex(lines[-2], r"^kinds +nothing +failed: its output has no line that says what ran; expected ")

    def long_part(self):
        """Makes a part that has a child and doesn't end. Returns the end of a pipe: the child writes a byte when it runs,
        and the pipe ends when the child ends."""
        pipe = self.root / "pipe"
        os.mkfifo(pipe)
        # The child has a process group of its own, as ninja's commands have.
        self.stand_in("tools/simulate", f"exec bash -c 'set -m; (echo >&3; exec sleep 3600) 3>{pipe} & wait'")
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        return reader

    def assert_reads(self, reader, expected):
        ready, _, _ = select.select([reader], [], [], 60)
        self.assertTrue(ready, "nothing came from the child of the part")
        self.assertEqual(os.read(reader, 1), expected)

    def test_a_part_that_takes_too_long_is_ended_with_all_that_it_started(self):
        reader = self.long_part()
        code, lines, _ = self.run_tool("tools/nightly", "--parts", "seeds", "--limit", "0.1")
        self.assertEqual(code, 1)
        self.assertIn("failed: not done after 0.1 minutes", lines[-2])
        self.assert_reads(reader, b"\n")
        self.assert_reads(reader, b"")

    def test_a_signal_ends_the_running_part_and_prints_the_table_of_the_others(self):
        reader = self.long_part()
        process = subprocess.Popen([self.root / "tools/nightly", "--parts", "seeds"], env=self.environment,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.assert_reads(reader, b"\n")
        process.terminate()
        self.assertIn("\npart  what ran  result  time  log\n", process.communicate(timeout=60)[0])
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assert_reads(reader, b"")

    def test_a_process_that_no_signal_ends_is_a_failure_and_the_next_part_runs(self):
        # As sudo's for a user who isn't root, or one that waits for a disk.
        loader = importlib.machinery.SourceFileLoader("nightly", str(ROOT / "tools/nightly"))
        nightly = importlib.util.module_from_spec(importlib.util.spec_from_loader("nightly", loader))
        loader.exec_module(nightly)
        nightly.PATIENCE = 0.1
        log = self.root / "log"
        for error in (PermissionError, None):
            with mock.patch.object(os, "kill", side_effect=error) as kill:
                row = nightly.Part("seeds", "x", "sleep", "3600").run(log, 0.1)
            pid = kill.call_args.args[0]
            self.assertEqual({call.args for call in kill.call_args_list}, {(pid, signal.SIGTERM), (pid, signal.SIGKILL)})
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.assertRegex(row[2], f"^failed: not done after .* minutes; process {pid} is still there$")
        self.assertEqual(nightly.Part("seeds", "x", "echo", "x").run(log, 10)[2], "passed")

    def test_names_that_nobody_knows_are_refused(self):
        for words in (("--parts", "seeds,moon"), ("--fuzzers", "moon"), ("--seeds", "0"), ("--fuzz-seconds", "-1")):
            code, lines, calls = self.run_tool("tools/nightly", *words)
            self.assertEqual((code, calls), (2, []), lines)
        self.assertIn("expected a whole number from 1 on", lines[-1])

    def test_the_real_simulator_runs_seeds(self):
        done = subprocess.run([ROOT / "tools/nightly", "--parts", "seeds", "--seeds", "20", "--logs", self.root / "logs"],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\nseeds +20 seeds from \d+ on, 0 violations, .* passed ")


class FreshSeedsTest(unittest.TestCase):
    def first_of_run(self, *words):
        done = subprocess.run([ROOT / "tools/simulate", *words], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return int(done.stdout.splitlines()[-1].split()[3])

    def test_the_commit_gives_the_first_one(self):
        commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(self.first_of_run("--fresh", "3"), int(commit[:15], 16))


if __name__ == "__main__":
    unittest.main()
