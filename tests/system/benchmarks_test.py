"""Runs each benchmark of failures with --quick: few measurements, no bounds."""
import subprocess
import sys
import unittest

from harness import BIN, PATIENCE, ROOT, SystemTest


class BenchmarksTest(SystemTest):
    def table_of(self, name):
        """Runs the benchmark. Returns the rows that it prints: first cell -> the other cells."""
        done = subprocess.run([sys.executable, ROOT / "tools/bench" / name, "--quick", "--build", BIN], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder, env=self.environment,
                              timeout=5 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("|")]
        return {row[0]: row[1:] for row in rows}

    def test_detection(self):
        rows = self.table_of("detection")
        self.assertEqual(rows["worker killed, ms"][0], "3")
        self.assertEqual(rows["ps killed, ms"][0], "2")
        self.assertEqual(rows["worker or ps stopped, s"][0], "2")

    def test_recovery(self):
        rows = self.table_of("recovery")
        self.assertEqual(rows["worker"][:2], ["async", "1"])
        self.assertEqual(rows["chief"][-1], "0", "steps lost")
        self.assertGreater(float(rows["318 KB"][2]), 0.0)

    def test_checkpoints(self):
        rows = self.table_of("checkpoints")
        for row in ["cut, ms", "writing, MB/s, and dd", "steps/s while one is taken, and without"]:
            self.assertGreater(float(rows[row][0]), 0.0, row)


if __name__ == "__main__":
    unittest.main()
