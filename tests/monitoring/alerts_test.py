#!/usr/bin/env python3
"""Checks the form of alerts and recording rules, and that each alert has a case where it fires and one where it
doesn't."""
import re
import unittest
from pathlib import Path

import monitored
from monitored import ALERTS, RECORDING, ROOT, names_in, rules, yaml

CASES = sorted((Path(__file__).resolve().parent / "rules").glob("*.yml"))
EXPECTED = set("TaskDown ClusterIncomplete TrainingStalled HeartbeatLate NonFiniteLoss ThroughputDrop StragglerWorker "
               "HotShard InputBound CheckpointStale CheckpointFailing RestartLoop NoLeader ConfigSkew DiskFull "
               "JobFailed JobWaitsForTasks".split())


def cases():
    """Yields (alert, name of the case, whether it ever fires there, names of the input series)."""
    for path in CASES:
        for group in yaml.safe_load(path.read_text())["tests"]:
            inputs = {entry["series"].split("{")[0] for entry in group["input_series"]}
            checks = group.get("alert_rule_test", [])
            for alert in {check["alertname"] for check in checks}:
                fires = any(check.get("exp_alerts") for check in checks if check["alertname"] == alert)
                yield alert, group["name"], fires, inputs


class AlertsTest(unittest.TestCase):
    def setUp(self):
        self.alerts = rules(ALERTS)
        self.recorded = {rule["record"]: rule["expr"] for rule in rules(RECORDING)}

    def inputs_of(self, query):
        """The metrics that a query uses, directly or through recorded series."""
        found = set()
        for name in names_in(query):
            found |= self.inputs_of(self.recorded[name]) if name in self.recorded else {name}
        return found

    def test_AllAlertsAreThereOnce(self):
        names = [rule["alert"] for rule in self.alerts]
        self.assertEqual(sorted(names), sorted(EXPECTED))

    def test_EachAlertWaitsAndSaysWhatToDo(self):
        for rule in self.alerts:
            with self.subTest(rule["alert"]):
                self.assertIn("for", rule)
                self.assertIn(rule["labels"]["severity"], ("critical", "warning"))
                self.assertEqual(set(rule["annotations"]), {"summary", "description"})
                self.assertIn("expected", rule["annotations"]["description"])

    def test_EachVerbInADescriptionExists(self):
        # Each verb has a manual page (a test in tests/man checks this), so the pages give the list of the verbs.
        verbs = {page.name.split(".")[0].removeprefix("disttrain-") for page in (ROOT / "man").glob("disttrain-*.1.scd")}
        named = [(rule["alert"], verb) for rule in self.alerts
                 for verb in re.findall(r"`disttrain (\w+)", rule["annotations"]["description"])]
        self.assertTrue(named)
        self.assertEqual([(alert, verb) for alert, verb in named if verb not in verbs], [])

    def test_RulesUseOnlyMetricsOfTheTable(self):
        known = set(monitored.series()) | set(self.recorded)
        for rule in self.alerts + rules(RECORDING):
            self.assertEqual(names_in(rule["expr"]) - known, set(), rule.get("alert", rule.get("record")))

    def test_EachAlertHasACaseWhereItFires(self):
        fires = {alert for alert, _, fires, _ in cases() if fires}
        self.assertEqual(EXPECTED - fires, set())

    def test_EachAlertHasACaseWhereItIsSilentThoughAllItsSeriesAreThere(self):
        silent = {}
        for alert, _, fires, inputs in cases():
            if not fires:
                silent.setdefault(alert, set()).update(inputs)
        for rule in self.alerts:
            with self.subTest(rule["alert"]):
                self.assertEqual(self.inputs_of(rule["expr"]) - silent.get(rule["alert"], set()), set())

    def test_EachRecordedSeriesHasACaseAndAUse(self):
        tested = set()
        for path in CASES:
            for group in yaml.safe_load(path.read_text())["tests"]:
                tested |= {check["expr"] for check in group.get("promql_expr_test", [])}
        used = set().union(*(names_in(rule["expr"]) for rule in self.alerts))
        used |= set().union(*(names_in(query) for dashboard in monitored.dashboards().values()
                              for _, query in monitored.queries(dashboard)))
        self.assertEqual(set(self.recorded) - tested, set())
        self.assertEqual(set(self.recorded) - used, set())


if __name__ == "__main__":
    unittest.main()
