#!/usr/bin/env python3
"""promtool on monitoring/prometheus: its configuration, its rules, and their cases in tests/monitoring/rules."""
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from monitored import ALERTS, MONITORING, RECORDING

CASES = sorted((Path(__file__).resolve().parent / "rules").glob("*.yml"))


class PromtoolTest(unittest.TestCase):
    def assert_right(self, *arguments):
        run = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_ConfigurationIsRight(self):
        self.assert_right("check", "config", "--lint=all", "--lint-fatal", MONITORING / "prometheus/prometheus.yml")

    def test_RulesAreRight(self):
        self.assert_right("check", "rules", "--lint=all", "--lint-fatal", RECORDING, ALERTS)

    def test_RulesDoWhatTheirCasesSay(self):
        self.assertTrue(CASES)
        self.assert_right("test", "rules", *CASES)


if __name__ == "__main__":
    if shutil.which("promtool") is None:
        print("SKIPPED: no promtool here (Debian: prometheus)")
        sys.exit(77)
    unittest.main()
