#!/usr/bin/env python3
"""Runs promtool on monitoring/prometheus: the configuration, the rules, and their cases in tests/monitoring/rules."""
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from monitored import ALERTS, INSTALLED, MONITORING, RECORDING

CASES = sorted((Path(__file__).resolve().parent / "rules").glob("*.yml"))


@unittest.skipUnless(shutil.which("promtool"), "no promtool here (tools/setup installs it: prometheus)")
class PromtoolTest(unittest.TestCase):
    def assert_right(self, *arguments):
        run = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_ConfigurationIsRightWhereItIsInstalled(self):
        text = (MONITORING / "prometheus/prometheus.yml").read_text()
        for path in (RECORDING, ALERTS):
            self.assertIn(f"  - {INSTALLED}/{path.relative_to(MONITORING)}\n", text)
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder) / "prometheus.yml"
            here.write_text(text.replace(INSTALLED, str(MONITORING)))
            self.assert_right("check", "config", "--lint=all", "--lint-fatal", here)

    def test_RulesAreRight(self):
        self.assert_right("check", "rules", "--lint=all", "--lint-fatal", RECORDING, ALERTS)

    def test_RulesDoWhatTheirCasesSay(self):
        self.assertTrue(CASES)
        self.assert_right("test", "rules", *CASES)


if __name__ == "__main__":
    unittest.main()
