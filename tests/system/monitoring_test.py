"""Debian's Prometheus scrapes real daemons in training: each panel has data, and alerts see what happens."""
import json
import math
import re
import shutil
import sys
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "monitoring"))
import monitored  # noqa: E402
from ports import free_address  # noqa: E402
from harness import PATIENCE, SystemTest  # noqa: E402
from monitored import yaml  # noqa: E402

TASKS = ["chief/0", "ps/0", "ps/1", "worker/0", "worker/1"]
PROGRAMS = {"chief": "chiefd", "ps": "psd", "worker": "workerd"}
JOB = "watched"
# Values for the variables that a reader of the dashboards chooses in Grafana, and for Grafana's time intervals
# (Prometheus scrapes once per second here).
CHOSEN = {"$cluster": "test", "$job": JOB, "$task": ".*", "$__rate_interval": "4s", "$__range": "1m"}
# In a healthy cluster with a job in training, none of these alerts may even be pending.
SURE = "TaskDown|ClusterIncomplete|HeartbeatLate|RestartLoop|NoLeader|ConfigSkew|CheckpointFailing|NonFiniteLoss|JobFailed"


def get(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.read().decode()


class Prometheus:
    """A server that scrapes the pages (host:port) each second, with the rules of monitoring/prometheus."""

    def __init__(self, test, pages):
        address = free_address()
        self.url = f"http://{address}"
        config = yaml.safe_load((monitored.MONITORING / "prometheus/prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(monitored.RECORDING), str(monitored.ALERTS)]
        group, = config["scrape_configs"][0]["static_configs"]
        group["labels"]["cluster"] = CHOSEN["$cluster"]
        group["targets"] = list(pages)
        file = test.folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        self.process = test.start_command("prometheus", f"--config.file={file}", "--log.level=error",
                                          f"--web.listen-address={address}",
                                          f"--storage.tsdb.path={test.folder / 'prometheus'}")
        test.until("Prometheus to be ready", self.ready)

    def ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"prometheus ended: {self.process.stderr.read()}")
        try:
            return get(f"{self.url}/-/ready")
        except urllib.error.URLError:
            return None

    def ask(self, path, **parameters):
        """The data of Prometheus's answer; an error of Prometheus fails the test."""
        try:
            text = get(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        return json.loads(text)["data"]

    def now(self, query):
        """The labels of the series that the expression yields now."""
        return [entry["metric"] for entry in self.ask("query", query=query)["result"]]

    def lacking(self, query):
        """Why a panel with this query is empty; None if it shows data."""
        end = time.time()
        series = self.ask("query_range", query=query, start=end - 60, end=end, step=1)["result"]
        if not series:
            return "no series"
        shown = any(math.isfinite(float(value)) for entry in series for _, value in entry["values"])
        return None if shown else "nothing but NaN"


def with_choice(query):
    for name, value in CHOSEN.items():
        query = query.replace(name, value)
    return query


@unittest.skipUnless(shutil.which("prometheus"), "no prometheus here (tools/setup installs it)")
class MonitoringTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text('[cluster]\nname = "test"\n[metrics]\nlisten = "127.0.0.1:0"\n[chief]\n'
                                f'address = "{free_address()}"\nstate_directory = "{self.folder / "chief"}"\n'
                                + "".join(f'[[{task.split("/")[0]}]]\naddress = "{free_address()}"\n'
                                          + ("shards = 1\n" if task.startswith("ps") else "") for task in TASKS[1:]))
        self.daemons = {task: self.start_daemon(task) for task in TASKS}
        self.until_chief_answers(self.cluster)

    def start_daemon(self, task):
        role, index = task.split("/")
        return self.start(PROGRAMS[role], "--cluster", self.cluster, *([] if role == "chief" else ["--index", index]))

    def train(self):
        """Starts a job that gives every panel data: several shards, evaluations, checkpoints by time, a known end.
        Returns the address of each task's page: task -> host:port."""
        checkpoints = self.folder / "checkpoints"
        checkpoints.mkdir()
        job = self.job(JOB, job="shards = 2\nmin_workers = 1", train="steps = 100000000",
                       evaluate=f'every_steps = 500\n[checkpoint]\ndirectory = "{checkpoints}"\nevery = "1s"\nkeep = 1')
        outcome = self.run_program("disttrain", "submit", "--detach", job, "--cluster", self.cluster)
        self.assertEqual(outcome.code, 0, str(outcome))
        status = self.until_steps(1000, "--cluster", self.cluster)
        return {task["task"]: task["metrics"] for task in status["tasks"]}

    def until_shown(self, prometheus, queries):
        """Waits until each query has data. Fails with the queries that have none, and why."""
        lacking = dict.fromkeys(queries, "not asked")

        def all_shown():
            for query in list(lacking):
                lacking[query] = prometheus.lacking(with_choice(query[1]))
                if lacking[query] is None:
                    del lacking[query]
            return not lacking
        try:
            self.until("every panel to have data", all_shown)
        except self.failureException as never:
            raise self.failureException("\n".join([str(never)] + [
                f"{title}: {why}: {query}" for (title, query), why in lacking.items()])) from None

    def test_panels_have_data_and_alerts_see_what_happens(self):
        prometheus = Prometheus(self, self.train().values())
        self.until_shown(prometheus, [(f"{dashboard['uid']}, {title}", query)
                                      for dashboard in monitored.dashboards().values()
                                      for title, query in monitored.queries(dashboard)])
        for dashboard in monitored.dashboards().values():
            for variable in dashboard["templating"]["list"][1:]:
                series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
                offered = prometheus.ask(f"label/{label}/values", **{"match[]": with_choice(series)})
                self.assertTrue(set(offered) & {"test", JOB, *TASKS}, f"{dashboard['uid']}: {variable['definition']}")
        self.assertEqual(prometheus.now(f'ALERTS{{alertname=~"{SURE}"}}'), [])

        self.daemons["worker/1"].kill()
        self.until("TaskDown of worker/1",
                   lambda: [alert["task"] for alert in prometheus.now('ALERTS{alertname="TaskDown"}')] == ["worker/1"])
        self.until("ClusterIncomplete for workers", lambda: [
            alert["role"] for alert in prometheus.now('ALERTS{alertname="ClusterIncomplete"}')] == ["worker"])
        self.assertEqual(prometheus.now('ALERTS{alertname="NoLeader"}'), [])
        self.daemons["chief/0"].kill()
        self.until("NoLeader", lambda: prometheus.now('ALERTS{alertname="NoLeader"}'))

    def families(self, page):
        """Name -> (type, set of labels)."""
        text = get(f"http://{page}/metrics")
        found = {name: (kind, set()) for name, kind in re.findall(r"^# TYPE (disttrain_\w+) (\w+)$", text, re.M)}
        for name, labels in re.findall(r"^(disttrain_\w+)(?:\{(.*)\})? ", text, re.M):
            family = name if name in found else re.sub(r"_(bucket|sum|count)$", "", name)
            found[family][1].update(set(re.findall(r'(\w+)="', labels)) - {"le"})
        return found

    def test_pages_have_what_the_table_says(self):
        pages = self.train()
        table, roles = monitored.metrics(), monitored.exporters()
        for task, page in pages.items():
            expected = {name: table[name] for name in table if roles[name] & {task.split("/")[0], "all"}}
            self.until(f"all metrics of {task}", lambda: set(expected) <= set(self.families(page)))
            self.assertEqual(self.families(page), expected, task)


if __name__ == "__main__":
    unittest.main()
