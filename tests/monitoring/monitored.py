"""Reads the table of metrics, the rules, the dashboards, and the names in a query, for the tests of monitoring/."""
import json
import re
import unittest
from pathlib import Path

try:
    import yaml
except ImportError:
    raise unittest.SkipTest("no PyYAML here (tools/setup installs it: python3-yaml)") from None

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "monitoring"
INSTALLED = "/usr/share/disttrain/monitoring"  # packaging/CMakeLists.txt
RECORDING = MONITORING / "prometheus/disttrain-recording.yml"
ALERTS = MONITORING / "prometheus/disttrain-alerts.yml"
PROVISIONING = MONITORING / "grafana/provisioning"
DASHBOARDS = sorted((MONITORING / "grafana/dashboards").glob("*.json"))


def words(text):
    return {word.strip() for word in text.split(",") if word.strip()}


def table():
    """The rows of monitoring/metrics.md: name, type, labels, of."""
    text = (MONITORING / "metrics.md").read_text()
    return re.findall(r"^\| (disttrain_\w+) \| (\w+) \| ([\w, ]*)\| ([\w, ]+) \|", text, re.M)


def metrics():
    """Name -> (type, set of labels)."""
    return {name: (kind, words(labels)) for name, kind, labels, _ in table()}


def exporters():
    """Name -> set of roles, or of "all"."""
    return {name: words(roles) for name, _, _, roles in table()}


def series():
    """Name of a series in a scrape -> the metric that it belongs to."""
    names = {}
    for name, (kind, _) in metrics().items():
        for suffix in ("_bucket", "_sum", "_count") if kind == "histogram" else ("",):
            names[name + suffix] = name
    return names


def rules(path):
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def names_in(query):
    """Names of disttrain's series and of recorded series (level:disttrain_...) in a query."""
    return set(re.findall(r"\b(?:\w+:)?disttrain_\w+(?::\w+)?", query))


def dashboards():
    """Path -> dashboard."""
    return {path: json.loads(path.read_text()) for path in DASHBOARDS}


def panels(dashboard):
    """Yields all panels, also those in a collapsed row, but not the rows themselves, which have only a title."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def queries(dashboard):
    """[(panel's title, query)] of all targets."""
    return [(panel["title"], target["expr"]) for panel in panels(dashboard) for target in panel.get("targets", [])]
