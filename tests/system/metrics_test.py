"""The metrics pages of real daemons in training: families, labels, and counts that grow."""
import re
import shutil
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from ports import free_address
from harness import SystemTest

# For each daemon, its metrics with their labels. The metrics in JOB exist only while there is a job.
ALL = {
    "build_info": {"task", "version"},
    "config_info": {"task", "hash"},
    "start_time_seconds": {"task"},
    "config_last_reload_success_timestamp_seconds": {"task"},
    "rpc_requests_total": {"task", "op", "code"},
    "rpc_duration_seconds": {"task", "op"},
    "transport_bytes_total": {"task", "direction", "transport"},
    "log_messages_total": {"task", "level"},
}
CHIEF = {
    "leader": set(),
    "task_up": {"task"},
    "task_heartbeat_timestamp_seconds": {"task"},
    "tasks_expected": {"role"},
    "tasks_ready": {"role"},
    "unlisted_workers_ready": set(),
    "jobs_queued": set(),
    "jobs_ended_total": {"state"},
    "restarts_total": {"task", "reason"},
    "disk_free_bytes": {"task", "folder"},
    "disk_size_bytes": {"task", "folder"},
}
CHIEF_JOB = {
    "task_config_info": {"task", "hash"},
    "global_step": {"job"},
    "steps_target": {"job"},
    "generation": {"job"},
    "examples_total": {"job"},
    "learning_rate": {"job"},
    "loss": {"job"},
    "evaluations_waiting": {"job"},
    "evaluation_loss": {"job"},
    "evaluation_accuracy": {"job"},
    "evaluation_metric": {"job", "name"},
    "train_metric": {"job", "name"},
    "last_progress_timestamp_seconds": {"job"},
    "job_state": {"job", "state"},
    "goodput_seconds_total": {"job", "state"},
    "recoveries_total": {"job"},
    "job_absence_seconds": {"job", "role"},
    "job_absence_limit_seconds": {"job", "role"},
    "steps_lost_total": {"job"},
    "checkpoint_seconds": {"job", "op"},
    "checkpoint_bytes": {"job"},
    "checkpoint_last_success_timestamp_seconds": {"job"},
    "checkpoint_failures_total": {"job"},
    "checkpoint_expected_interval_seconds": {"job"},
}
WORKER_JOB = {
    "worker_steps_total": {"task", "job"},
    "worker_examples_total": {"task", "job"},
    "worker_step_seconds": {"task", "job", "phase"},
    "worker_loss": {"task", "job"},
    "worker_nonfinite_total": {"task", "job"},
    "data_records_total": {"task", "job"},
    "data_read_bytes_total": {"task", "job"},
    "data_errors_total": {"task", "job", "reason"},
    "data_prefetch_depth": {"task", "job"},
    "data_stage_seconds_total": {"task", "job", "stage"},
    "data_stall_seconds_total": {"task", "job"},
}
PS_JOB = {
    "ps_parameters_bytes": {"task", "job"},
    "ps_pull_bytes_total": {"task", "job", "shard"},
    "ps_push_bytes_total": {"task", "job", "shard"},
    "ps_apply_seconds": {"task", "job"},
    "ps_queue_depth": {"task", "job", "shard"},
    "ps_shard_version": {"task", "job", "shard"},
    "sync_dropped_gradients_total": {"task", "job"},
    "gradient_staleness_steps": {"task", "job"},
    "disk_free_bytes": {"task", "folder"},
    "disk_size_bytes": {"task", "folder"},
}
# While a job trains, these metrics must have grown between two scrapes.
GROWS = {
    "chief": ["global_step", "examples_total", "goodput_seconds_total", "rpc_requests_total", "transport_bytes_total",
              "checkpoint_seconds_count", "last_progress_timestamp_seconds", "task_heartbeat_timestamp_seconds"],
    "ps": ["ps_pull_bytes_total", "ps_push_bytes_total", "ps_apply_seconds_count", "ps_apply_seconds_sum",
           "ps_shard_version", "gradient_staleness_steps_count", "rpc_requests_total", "rpc_duration_seconds_count",
           "transport_bytes_total"],
    "worker": ["worker_steps_total", "worker_examples_total", "worker_step_seconds_count", "worker_step_seconds_sum",
               "data_records_total", "rpc_requests_total", "transport_bytes_total"],
}
MANY_SERIES = 2000  # if a page has more series than this, a label has unbounded values


def fetch(address, path):
    """(status, body)"""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Page:
    """The parsed answer of /metrics. Names are without disttrain_."""

    def __init__(self, text):
        self.text, self.types, self.series = text, {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:]
                self.types[name.removeprefix("disttrain_")] = kind
            elif not line.startswith("#"):
                name, labels, value = re.fullmatch(r"disttrain_(\w+?)(?:\{(.*)\})? (\S+)", line).groups()
                labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
                self.series.setdefault(name, []).append((labels, float(value)))

    def of(self, name, **labels):
        """Values of the series with these labels."""
        return [value for own, value in self.series.get(name, []) if labels.items() <= own.items()]

    def sum(self, name, **labels):
        return sum(self.of(name, **labels))

    def labels(self, family):
        """The set of label names of each series of the family, without le."""
        names = [family + end for end in ("_bucket", "_sum", "_count")] if self.types[family] == "histogram" else [family]
        return [set(own) - {"le"} for name in names for own, _ in self.series[name]]


class MetricsTest(SystemTest):
    def page(self, address):
        status, text = fetch(address, "/metrics")
        self.assertEqual(status, 200, text)
        return Page(text)

    def addresses(self, *arguments):
        """Where each task of the job serves its metrics."""
        return {task["task"]: task["metrics"] for task in self.status(*arguments)["tasks"]}

    def assert_has(self, page, families, task):
        for family, labels in families.items():
            self.assertIn(family, page.types, f"{task}\n{page.text}")
            for found in page.labels(family):
                self.assertEqual(found, labels, f"{task}: {family}")

    def assert_promtool_is_content(self, page):
        promtool = shutil.which("promtool")
        self.assertIsNotNone(promtool, "no promtool: tools/setup installs it")
        done = subprocess.run([promtool, "check", "metrics"], input=page.text, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_every_family_is_there_and_what_it_counts_grows(self):
        checkpoints = self.folder / "checkpoints"
        checkpoints.mkdir()
        job = self.job(train='epochs = 1000000\noptimizer = { rule = "sgd", learning_rate = 0.01 }',
                       evaluate=f'every_steps = 20\n[checkpoint]\ndirectory = "{checkpoints}"\n'
                                'every = "100ms"')
        process = self.start_up(job)
        self.until_steps(50)
        addresses = self.addresses()
        self.assertEqual(len(set(addresses.values())), 4, addresses)

        def has_everything():
            """The workers' next heartbeats report where their time went."""
            page = self.page(addresses["chief/0"])
            return "evaluation_loss" in page.types and page.sum("checkpoint_bytes") > 0 and \
                page.sum("goodput_seconds_total", state="train") > 0
        self.until("an evaluation, a checkpoint and the use of time", has_everything)
        before = {task: self.page(address) for task, address in addresses.items()}
        expected = {"chief": ALL | CHIEF | CHIEF_JOB, "ps": ALL | PS_JOB, "worker": ALL | WORKER_JOB}
        for task, page in before.items():
            role = task.split("/")[0]
            self.assert_has(page, expected[role], task)
            self.assertEqual(set(page.types), set(expected[role]), "page and table must have the same families")
            self.assertLess(sum(map(len, page.series.values())), MANY_SERIES)
            self.assert_promtool_is_content(page)
            for name in ALL:
                for labels, _ in page.series.get(name, []):
                    self.assertEqual(labels["task"], task)
        for task, page in before.items():
            for name in GROWS[task.split("/")[0]]:
                with self.subTest(f"{task}: {name}"):
                    self.until(f"{name} of {task} to grow",
                               lambda: self.page(addresses[task]).sum(name) > page.sum(name))
            later = self.page(addresses[task])
            for family, kind in page.types.items():
                for end in {"counter": [""], "histogram": ["_bucket", "_count"]}.get(kind, []):
                    for labels, value in page.series[family + end]:
                        self.assertGreaterEqual(later.of(family + end, **labels)[0], value, f"{family}{labels}")
        self.assert_values_make_sense(before, addresses)
        process.send_signal(2)
        self.finish(process)

    def assert_values_make_sense(self, pages, addresses):
        chief, ps, worker = pages["chief/0"], pages["ps/0"], pages["worker/0"]
        self.assertEqual(chief.of("leader"), [1])
        self.assertEqual(chief.of("task_up", task="worker/1"), [1])
        self.assertEqual((chief.of("tasks_expected", role="worker"), chief.of("tasks_ready", role="worker")), ([2], [2]))
        self.assertEqual(chief.of("job_state", job="quick", state="running"), [1])
        self.assertEqual(chief.sum("job_state"), 1)
        self.assertEqual({own["state"] for own, _ in chief.series["goodput_seconds_total"]},
                         {"train", "input", "sync", "checkpoint", "restore", "stall", "init"})
        self.assertGreater(chief.sum("goodput_seconds_total", state="train"), 0)
        self.assertGreater(chief.sum("checkpoint_bytes"), 0)
        self.assertEqual(chief.sum("checkpoint_expected_interval_seconds"), 0.1)
        self.assertEqual({own["hash"] for own, _ in chief.series["task_config_info"]},
                         {own["hash"] for own, _ in worker.series["config_info"]})
        for page in pages.values():
            self.assertEqual([own["level"] for own, _ in page.series["log_messages_total"]],
                             ["debug", "info", "warn", "error"])
            self.assertGreater(page.sum("log_messages_total", level="info"), 0)
        parameters = 4 * (784 * 32 + 32 + 32 * 10 + 10)
        self.assertEqual(ps.sum("ps_parameters_bytes"), parameters)
        self.assertEqual(ps.sum("ps_push_bytes_total") % 4, 0)
        self.assertGreater(ps.of("rpc_requests_total", op="push", code="ok")[0], 0)
        self.assertAlmostEqual(chief.sum("learning_rate"), 0.01)
        self.assertEqual(worker.sum("worker_examples_total"), 50 * worker.sum("worker_steps_total"))
        self.assertEqual({own["phase"] for own, _ in worker.series["worker_step_seconds_count"]},
                         {"input", "pull", "compute", "push", "wait"})
        self.assertGreater(worker.sum("data_read_bytes_total"), 0)

    def write_cluster(self, metrics="127.0.0.1"):
        self.cluster = self.folder / "cluster.toml"
        self.chief, self.ps = free_address(), free_address()
        self.cluster.write_text(f'[cluster]\nname = "metrics"\n[chief]\naddress = "{self.chief}"\n'
                                f'state_directory = "{self.folder / "chief"}"\n'
                                f'[[ps]]\naddress = "{self.ps}"\n[[worker]]\naddress = "{free_address()}"\n'
                                f'[metrics]\nlisten = "{metrics}"\n')

    @staticmethod
    def metrics_of(address):
        host, port = address.rsplit(":", 1)
        return f"{host}:{int(port) + 1000}"

    def until_answers(self, address, path, status):
        def answered():
            try:
                found = fetch(address, path)
            except (urllib.error.URLError, ConnectionError):
                return None
            return found if found[0] == status else None
        return self.until(f"{path} of {address} to be {status}", answered)

    def test_daemon_is_ready_once_it_has_joined_and_counts_from_zero_before_any_job(self):
        self.write_cluster()
        ps, chief = self.metrics_of(self.ps), self.metrics_of(self.chief)
        self.start("psd", "--cluster", self.cluster)
        self.assertEqual(self.until_answers(ps, "/readyz", 503)[1], f"waits for the chief at {self.chief}\n")
        self.assertEqual(fetch(ps, "/healthz")[0], 200)
        self.start("chiefd", "--cluster", self.cluster)
        self.until_answers(chief, "/readyz", 200)
        self.until_answers(ps, "/readyz", 200)
        self.assert_has(self.page(ps), ALL, "ps/0")
        page = self.page(chief)
        self.assert_has(page, ALL | CHIEF, "chief/0")
        for family in CHIEF_JOB.keys() - {"task_config_info"}:
            self.assertNotIn(family, page.types)
        self.assertEqual(page.of("rpc_requests_total", op="submit_job", code="refused"), [0])
        self.assertEqual(page.of("restarts_total", task="worker/0", reason="crash"), [0])
        self.assertEqual(page.of("task_up", task="worker/0"), [0])
        self.assertEqual(page.of("task_heartbeat_timestamp_seconds", task="worker/0"), [0])
        self.assertEqual(fetch(chief, "/nothing")[0], 404)
        refused = self.run_program("disttrain", "submit", self.job(job="min_workers = 9"), "--cluster", self.cluster)
        self.assertEqual(refused.code, 78, str(refused))
        self.assertEqual(self.page(chief).of("rpc_requests_total", op="submit_job", code="refused"), [1])

    def test_port_in_use_ends_the_daemon_with_what_to_do(self):
        self.write_cluster()
        host, port = self.metrics_of(self.ps).rsplit(":", 1)
        with socket.create_server((host, int(port))):
            outcome = self.run_program("psd", "--cluster", self.cluster)
        self.assertEqual(outcome.code, 69, str(outcome))
        for word in (port, "in use", "metrics.listen"):
            self.assertIn(word, outcome.err)

    def test_off_is_off(self):
        self.write_cluster(metrics="")
        self.start("chiefd", "--cluster", self.cluster)
        self.until_chief_answers(self.cluster)
        tasks = self.status("--cluster", self.cluster)["tasks"]
        self.assertEqual({task["metrics"] for task in tasks}, {None})
        with self.assertRaises(urllib.error.URLError):
            fetch(self.metrics_of(self.chief), "/metrics")


if __name__ == "__main__":
    unittest.main()
