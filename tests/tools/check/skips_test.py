"""A skipped test never counts as passed: tests/gtest_main.cc, tests/run_unittest.py and tools/check/skips."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = os.environ["SKIPPING_PROGRAM"]
SKIPPED = 77
HEAD = "import unittest\nclass Some(unittest.TestCase):\n"
RUNS = "  def test_runs(self): pass\n"
LEAVES_OUT = "  def test_leaves_out(self): self.skipTest('no device: x\\n y')\n"
FAILS = "  def test_fails(self): self.fail()\n"
IS_FOUND_OUT = ("  def test_runs(self):\n"
                "    import os\n"
                "    open(os.environ['TSAN_OPTIONS'].split('log_path=')[1] + '.1', 'w').write('data race in x')\n")
EMPTY = """<testsuite><testcase name="a" status="run"><system-out>SKIPPED: not: so</system-out></testcase></testsuite>"""
RESULTS = """<testsuite>
<testcase name="a" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>some
SKIPPED: Some.one: no device: x
SKIPPED: Some.two: not root
more</system-out></testcase>
<testcase name="b" status="fail"><failure/><system-out>SKIPPED: it: failed</system-out></testcase>
<testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out/></testcase>
</testsuite>"""


class ProgramsTest(unittest.TestCase):
    def run_program(self, chosen):
        done = subprocess.run([PROGRAM, f"--gtest_filter={chosen}", "--gtest_brief=1"], capture_output=True, text=True)
        return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]

    def test_program_that_leaves_a_test_out_is_skipped_and_says_which_and_why(self):
        self.assertEqual(self.run_program("*.Runs:*.LeavesSomethingOut"),
                         (SKIPPED, ["SKIPPED: Skipping.LeavesSomethingOut: no device here, nor elsewhere"]))

    def test_program_that_leaves_nothing_out_passes(self):
        self.assertEqual(self.run_program("*.Runs"), (0, []))

    def test_failure_beside_a_skip_is_a_failure(self):
        self.assertEqual(self.run_program("*")[0], 1)


class UnittestFilesTest(unittest.TestCase):
    def run_file(self, text, **environment):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "some_test.py"
            file.write_text(text)
            done = subprocess.run([sys.executable, "-B", ROOT / "tests/run_unittest.py", file], capture_output=True, text=True,
                                  env={**os.environ, **environment})
        return done.returncode, [line for line in done.stdout.splitlines() if line.startswith(("SKIPPED", "data race"))]

    def test_file_that_leaves_a_test_out_is_skipped_and_says_which_and_why(self):
        self.assertEqual(self.run_file(HEAD + RUNS + LEAVES_OUT), (SKIPPED, ["SKIPPED: Some.test_leaves_out: no device: x y"]))

    def test_part_of_a_test_counts(self):
        text = HEAD + "  def test_parts(self):\n    with self.subTest(part=1): self.skipTest('no part')\n"
        self.assertEqual(self.run_file(text), (SKIPPED, ["SKIPPED: Some.test_parts (part=1): no part"]))

    def test_class_module_and_import_count(self):
        skip = "raise unittest.SkipTest('no x')\n"
        for text in (HEAD.replace("class", "@unittest.skip('no x')\nclass") + RUNS,
                     HEAD + RUNS + "def setUpModule():\n  " + skip, "import unittest\n" + skip):
            with self.subTest(text):
                code, lines = self.run_file(text)
                self.assertEqual(code, SKIPPED)
                self.assertEqual(len(lines), 1, lines)
                self.assertTrue(lines[0].endswith(": no x"), lines)

    def test_file_that_leaves_nothing_out_passes(self):
        self.assertEqual(self.run_file(HEAD + RUNS), (0, []))

    def test_failure_beside_a_skip_is_a_failure(self):
        self.assertEqual(self.run_file(HEAD + LEAVES_OUT + FAILS)[0], 1)

    def test_report_of_a_sanitizer_is_a_failure(self):
        self.assertEqual(self.run_file(HEAD + IS_FOUND_OUT, TSAN_OPTIONS="x=1"), (1, ["data race in x"]))
        self.assertEqual(self.run_file(HEAD + RUNS, TSAN_OPTIONS="x=1"), (0, []))

    def test_file_without_tests_fails(self):
        self.assertEqual(self.run_file("import unittest\n")[0], 1)


class ListTest(unittest.TestCase):
    def check(self, *arguments, results=RESULTS, rules=()):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "results.xml").write_text(results)
            rules = "\n".join(f"[[may_skip]]\n{rule}" for rule in rules) or "may_skip = []"
            (Path(folder) / "may_skip.toml").write_text(rules)
            done = subprocess.run([ROOT / "tools/check/skips", *arguments, f"{folder}/results.xml", f"{folder}/may_skip.toml"],
                                  capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines() + done.stderr.splitlines()

    def test_each_is_listed_with_its_reason(self):
        self.assertEqual(self.check(), (0, ["skipped: a: Some.one: no device: x", "skipped: a: Some.two: not root",
                                            "skipped: c: all of it: SKIP_RETURN_CODE=77", "3 skipped in 2 tests"]))

    def test_nothing_is_said_where_nothing_was_left_out(self):
        self.assertEqual(self.check("--strict", results=EMPTY), (0, []))

    def test_strict_refuses_what_is_not_listed(self):
        code, lines = self.check("--strict")
        self.assertEqual(code, 1)
        self.assertIn("no device: x; this machine can run it, so it must", lines[0])
        self.assertEqual(lines[-1], "3 skipped in 2 tests, 3 of which may not be skipped here")

    def test_strict_allows_what_is_listed_for_a_machine_like_this(self):
        # On each machine, one of these two is true.
        anywhere = 'where = ["not root", "root"]'
        code, lines = self.check("--strict", rules=[f'test = "a"\ncase = "*.two"\n{anywhere}', f'test = "c"\n{anywhere}'])
        self.assertEqual(code, 1)
        self.assertEqual([" so it must" in line for line in lines], [True, False, False, False])

    def test_strict_refuses_where_the_machine_is_another(self):
        other = "root" if os.geteuid() != 0 else "not root"
        rules = [f'test = "*"\nwhere = ["{other}"]']
        self.assertEqual(self.check("--strict", rules=rules)[0], 1)

    def test_strict_allows_what_needs_pytorch_only_if_pytorch_was_left_out(self):
        rules = ['test = "*"\nwhere = ["without PyTorch"]']
        self.assertEqual(self.check("--strict", rules=rules)[0], 1)
        self.assertEqual(self.check("--strict", "--without-torch", rules=rules)[0], 0)

    def test_machine_that_nobody_knows_is_a_problem(self):
        code, lines = self.check(rules=['test = "a"\nwhere = ["on Mondays"]'])
        self.assertEqual(code, 1)
        self.assertIn("on Mondays", lines[0])

    def test_list_of_the_house_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "results.xml").write_text(EMPTY)
            done = subprocess.run([ROOT / "tools/check/skips", "--strict", f"{folder}/results.xml"], capture_output=True,
                                  text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)


if __name__ == "__main__":
    unittest.main()
