"""A short run of tools/bench/chaos: a dozen random kills and stops. The job finishes, and each record counts once."""
import os
import subprocess
import sys
import tempfile
import unittest

from harness import BIN, DIGITS, PATIENCE, ROOT

sys.path.insert(0, str(ROOT / "tools/bench"))
from visited_history import VisitedHistory  # noqa: E402

BEGIN = '{"generation": 1, "begins_after": 0}\n'


def step(generation, number, begin, end, epoch=0):
    return (f'{{"generation": {generation}, "step": {number}, "visits": [{{"worker": "worker/0", "epoch": {epoch}, '
            f'"positions": [[{begin}, {end}]]}}]}}\n')


class ChaosTest(unittest.TestCase):
    def test_job_under_random_faults_finishes_with_each_record_once(self):
        with tempfile.TemporaryDirectory(prefix="disttrain-test-") as folder:
            # With so few test digits, the accuracy varies, so this test allows a wide tolerance. The long run of
            # tools/bench/chaos allows only a narrow one.
            chaos = subprocess.Popen(
                [ROOT / "tools/bench/chaos", "--build", BIN, "--data", DIGITS, "--kills", "12", "--epochs", "200",
                 "--every-steps", "500", "--baselines", "1", "--tolerance", "0.04", "--seed", "7",
                 "--patience", str(PATIENCE)],
                env={**os.environ, "TMPDIR": folder}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            try:
                out, _ = chaos.communicate(timeout=5 * PATIENCE)
            except subprocess.TimeoutExpired:
                chaos.terminate()  # the script ends its daemons
                out, _ = chaos.communicate()
            self.assertEqual(chaos.returncode, 0, out)


class VisitedHistoryTest(unittest.TestCase):
    def problems(self, *lines):
        """The problems in the history of a job with one epoch of 10 records."""
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as log:
            log.write("".join(lines))
            log.flush()
            history = VisitedHistory(log.name)
        history.check(epochs=1, records=10)
        return history.problems

    def assert_problem(self, word, *lines):
        problems = self.problems(*lines)
        self.assertTrue(any(word in problem for problem in problems), problems)

    def test_records_of_steps_that_were_rolled_back_count_again(self):
        self.assertEqual(self.problems(BEGIN, step(1, 1, 0, 5), step(1, 2, 5, 10),
                                       '{"generation": 3, "begins_after": 1}\n', step(3, 2, 5, 10)), [])

    def test_late_lines_of_an_earlier_generation_are_void(self):
        self.assertEqual(self.problems(BEGIN, step(1, 1, 0, 5), '{"generation": 2, "begins_after": 1}\n',
                                       step(1, 2, 5, 10), step(2, 2, 5, 10)), [])

    def test_record_that_is_visited_twice_is_found(self):
        self.assert_problem("again", BEGIN, step(1, 1, 0, 6), step(1, 2, 5, 10))

    def test_record_that_is_never_visited_is_found(self):
        self.assert_problem("never visited, the first is 5", BEGIN, step(1, 1, 0, 5), step(1, 2, 6, 10))

    def test_step_that_counts_twice_or_is_missing_is_found(self):
        self.assert_problem("step 1 of generation 1 follows step 1", BEGIN, step(1, 1, 0, 5), step(1, 1, 5, 10))
        self.assert_problem("step 3 of generation 1 follows step 1", BEGIN, step(1, 1, 0, 5), step(1, 3, 5, 10))

    def test_generation_that_goes_on_from_a_step_that_nobody_made_is_found(self):
        self.assert_problem("goes on from step 2, but the history ends at step 1", BEGIN, step(1, 1, 0, 10),
                            '{"generation": 2, "begins_after": 2}\n')


if __name__ == "__main__":
    unittest.main()
