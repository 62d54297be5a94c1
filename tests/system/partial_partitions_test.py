"""A short run of tools/bench/partial_partitions without bounds on times: some workers can't reach one ps for longer
than job.stall_timeout, and the others train on. The job finishes, each record counts once, the events name the link,
the workers are back in the end, and no task is blamed."""
import os
import subprocess
import tempfile
import unittest

from harness import BIN, PATIENCE, ROOT

SKIPPED = 77


class PartialPartitionsTest(unittest.TestCase):
    def cut_off(self, *arguments):
        with tempfile.TemporaryDirectory(prefix="disttrain-test-") as folder:
            cut = subprocess.Popen(
                [ROOT / "tools/bench/partial_partitions", "--build", BIN, "--seconds", "8", "--stall-timeout", "5s",
                 "--bounds", "0", *arguments],
                env={**os.environ, "TMPDIR": folder}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            try:
                out, _ = cut.communicate(timeout=5 * PATIENCE)
            except subprocess.TimeoutExpired:
                cut.terminate()  # the script ends its daemons
                out, _ = cut.communicate()
        if cut.returncode == SKIPPED:
            self.skipTest(out)
        self.assertEqual(cut.returncode, 0, out)

    def test_one_worker_in_sync(self):
        self.cut_off("--cut", "one", "--mode", "sync")

    def test_half_of_the_workers_whose_frames_arrive_but_whose_answers_do_not(self):
        self.cut_off("--cut", "half", "--mode", "async", "--direction", "to")


if __name__ == "__main__":
    unittest.main()
