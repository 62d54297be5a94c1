#!/usr/bin/env python3
"""Checks the form of dashboards and provisioning files, without running Grafana."""
import itertools
import re
import subprocess
import sys
import unittest

import monitored
from monitored import INSTALLED, MONITORING, PROVISIONING, dashboards, names_in, panels, queries, yaml

UNITS = {"none", "short", "percentunit", "s", "bytes", "Bps", "reqps", "sci"}
VARIABLES = ["datasource", "cluster", "job", "task"]
COLUMNS = 24
BUILT_IN = {"__rate_interval", "__range"}  # Grafana's own variables


def overlap(a, b):
    return (a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and
            a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"])


class DashboardsTest(unittest.TestCase):
    def each(self):
        found = list(dashboards().values())
        self.assertEqual(len(found), 5)
        return found

    def test_TheyAreWhatTheirSourcesMake(self):
        run = subprocess.run([sys.executable, MONITORING / "grafana/make-dashboards", "--check"], capture_output=True,
                             text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_UidsAndPanelNumbersAreUnique(self):
        uids = [dashboard["uid"] for dashboard in dashboards().values()]
        self.assertEqual(len(set(uids)), len(uids))
        for path, dashboard in dashboards().items():
            self.assertEqual(path.stem, dashboard["uid"])
            numbers = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(set(numbers)), len(numbers), path.name)

    def test_DashboardsHaveTitleVariablesAndLinksToEachOther(self):
        for dashboard in self.each():
            self.assertTrue(dashboard["title"] and dashboard["description"], dashboard["uid"])
            self.assertGreaterEqual(dashboard["schemaVersion"], 36)
            self.assertEqual([variable["name"] for variable in dashboard["templating"]["list"]], VARIABLES)
            link = dashboard["links"][0]
            self.assertEqual((link["type"], link["includeVars"], link["keepTime"]), ("dashboards", True, True))
            self.assertEqual(link["tags"], dashboard["tags"])

    def test_EachVariableIsUsedAndEachUsedOneIsThere(self):
        for dashboard in self.each():
            used = set(re.findall(r"\$\{?(\w+)", str(dashboard["panels"])))
            self.assertEqual(used - BUILT_IN, set(VARIABLES), dashboard["uid"])

    def test_EachPanelHasTitleDescriptionUnitAndQueries(self):
        for dashboard in self.each():
            for panel in panels(dashboard):
                with self.subTest(panel["title"]):
                    self.assertGreater(len(panel["title"]), 2)
                    self.assertGreater(len(panel["description"]), 10)
                    unit = panel["fieldConfig"]["defaults"]["unit"]
                    self.assertTrue(unit in UNITS or unit.startswith("suffix: "), unit)
                    self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "${datasource}"})
                    references = [target["refId"] for target in panel["targets"]]
                    self.assertTrue(references)
                    self.assertEqual(len(set(references)), len(references))

    def test_TitlesAreUniqueInADashboard(self):
        for dashboard in self.each():
            titles = [panel["title"] for panel in panels(dashboard)]
            self.assertEqual(len(set(titles)), len(titles), dashboard["uid"])

    def test_PanelsLieInTheGridAndDoNotOverlap(self):
        for dashboard in self.each():
            places = [panel["gridPos"] for panel in dashboard["panels"]]
            for place in places:
                self.assertTrue(place["x"] >= 0 and place["x"] + place["w"] <= COLUMNS, place)
            for a, b in itertools.combinations(places, 2):
                self.assertFalse(overlap(a, b), f"{dashboard['uid']}: {a} and {b}")

    def test_CountersAreReadAsRatesOverTheIntervalOfThePicture(self):
        counters = {name for name, metric in monitored.series().items()
                    if monitored.metrics()[metric][0] != "gauge"} - {"disttrain_recoveries_total"}
        for dashboard in self.each():
            for title, query in queries(dashboard):
                for name in names_in(query) & counters:
                    for use in re.finditer(name + r"\b(\{[^}]*\})?(\[[^\]]*\])?", query):
                        self.assertIn(use[2], ("[$__rate_interval]", "[$__range]", "[1h]"), f"{title}: {query}")

    def test_QueriesNameOnlyKnownSeriesOfTheChosenCluster(self):
        recorded = {rule["record"] for rule in monitored.rules(monitored.RECORDING)}
        known = set(monitored.series()) | recorded
        for dashboard in self.each():
            for title, query in queries(dashboard):
                with self.subTest(title):
                    self.assertEqual(names_in(query) - known, set())
                    selectors = re.findall(r"\{[^}]*\}", query)
                    self.assertEqual([s for s in selectors if 'cluster="$cluster"' not in s], [], query)

    def test_LabelsInQueriesAreTheMetricsOwn(self):
        table, series = monitored.metrics(), monitored.series()
        for dashboard in self.each():
            for title, query in queries(dashboard):
                for name, selector in re.findall(r"(?<![:\w])(disttrain_\w+)\{([^}]*)\}", query):
                    asked = set(re.findall(r"(\w+)\s*[=!]", selector)) - {"cluster"}
                    self.assertEqual(asked - table[series[name]][1], set(), f"{title}: {query}")

    def test_EachMetricIsOnAPanelOrInAnAlert(self):
        text = [query for dashboard in dashboards().values() for _, query in queries(dashboard)]
        text += [rule["expr"] for path in (monitored.ALERTS, monitored.RECORDING) for rule in monitored.rules(path)]
        used = {metric for name, metric in monitored.series().items() if name in set().union(*map(names_in, text))}
        self.assertEqual(set(monitored.metrics()) - used, set())


class ProvisioningTest(unittest.TestCase):
    def test_DatasourceIsPrometheusWithItsScrapeInterval(self):
        datasource, = yaml.safe_load((PROVISIONING / "datasources/disttrain.yml").read_text())["datasources"]
        prometheus = yaml.safe_load((MONITORING / "prometheus/prometheus.yml").read_text())
        self.assertEqual(datasource["type"], "prometheus")
        self.assertEqual(datasource["jsonData"]["timeInterval"], prometheus["global"]["scrape_interval"])

    def test_ProviderNamesTheFolderThatIsInstalled(self):
        provider, = yaml.safe_load((PROVISIONING / "dashboards/disttrain.yml").read_text())["providers"]
        self.assertEqual(provider["type"], "file")
        folder, = {path.parent for path in dashboards()}
        self.assertEqual(provider["options"]["path"], f"{INSTALLED}/{folder.relative_to(MONITORING)}")
        self.assertIn(provider["options"]["path"], (MONITORING / "README.md").read_text())


if __name__ == "__main__":
    unittest.main()
