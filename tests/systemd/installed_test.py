"""Installs the packages on clean Debian machines with a real systemd, and starts, kills, reloads, stops and removes
them.

BUILD (environment) is the build folder. Packages that are older than their contents are first rebuilt into
BUILD/packages.
"""
import json
import os
import re
import shutil
import unittest
from pathlib import Path

import machines
from machines import Machine, Network, command

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", SOURCE / "build/release")).resolve()
PACKAGES = BUILD / "packages"
DAEMONS = ("chiefd", "psd", "workerd")
ENDLESS = "epochs = 1000000"

CLUSTER = """
[chief]
address = "{host}:7100"
[[ps]]
address = "{host}:7110"
[[worker]]
address = "{host}:7120"
{more}
[heartbeat]
timeout = "1s"
"""
JOB = """
[job]
name = "{name}"
[model]
builtin = "mlp"
layers = [784, 32, 10]
[data]
path = "/srv/digits"
files = "train-images-idx3-ubyte.gz"
scale = 0.00392156862745098
[train]
batch_size = 50
{train}
[checkpoint]
directory = "/var/lib/disttrain/checkpoints"
every = "1s"
[evaluate]
files = "t10k-images-idx3-ubyte.gz"
"""


def packages():
    return sorted(PACKAGES.glob("*.deb"))


def newest(*paths):
    """Modification time of the newest of these files and of the files in these folders."""
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    return max(file.stat().st_mtime for file in files)


def make_packages():
    # Builds the packages as tools/package does, if a file that goes into them is newer: a manual page, a script or an
    # override.
    command("cmake", "--build", BUILD, "--target", *DAEMONS, "disttrain", "manual", "package_changelog", "wheel",
            timeout=3600)
    made = {package.name.split("_")[0]: package for package in packages()}
    rules = newest(SOURCE / "packaging", SOURCE / "tools/cmake", BUILD / "CPackConfig.cmake")
    rooms = ("systemd", "etc", "completion", "man", "monitoring", "python")
    changed = max(rules, newest(*(SOURCE / room for room in rooms),
                                *(BUILD / room for room in ("systemd", "man", "packaging")),
                                *(BUILD / "bin" / program for program in (*DAEMONS, "disttrain"))))
    since = dict.fromkeys(("disttrain-common", *DAEMONS, "disttrain", "python3-disttrain"), changed)
    since["disttrain-libtorch"] = rules  # this package holds only libtorch, so nothing that is built here makes it old
    old = [name for name, time_of in since.items() if name not in made or made[name].stat().st_mtime < time_of]
    if old:
        command("cpack", "--config", BUILD / "CPackConfig.cmake", "-D", "CPACK_COMPONENTS_ALL=" + ";".join(old), timeout=600)


class InstalledTest(unittest.TestCase):
    """One host with all roles; in one test a second host joins it."""

    @classmethod
    def setUpClass(cls):
        cls.network = Network()
        cls.addClassCleanup(cls.network.remove)
        cls.host = cls.machine("one", 0)
        cls.said = cls.host.install(packages()).stdout
        cls.shipped = cls.host.read("/etc/disttrain/cluster.toml")

    @classmethod
    def machine(cls, name, network):
        machine = Machine(name, cls.network.names[network],
                          {"/packages": PACKAGES, "/srv/digits": SOURCE / "tests/data/mnist-mini"})
        cls.addClassCleanup(machine.remove)
        return machine

    def setUp(self):
        self.addCleanup(self.clean)
        self.processes = []
        self.cursor = self.host.journal("--lines=1")[0]["__CURSOR"]
        self.write_cluster()

    def clean(self):
        """Brings the host back to the state after the installation."""
        self.host.run("systemctl", "stop", "disttrain.target", *DAEMONS, check=False)
        self.host.run("systemctl", "disable", *DAEMONS, check=False)
        self.host.run("systemctl", "reset-failed", check=False)
        self.host.run("sh", "-c", "rm -rf /var/lib/disttrain/chief/* /var/lib/disttrain/checkpoints/*")
        for process in self.processes:
            self.host.stop(process)

    # Actions of the operator.

    def write_cluster(self, more="", host="10.79.0.1", tail=""):
        self.host.write("/etc/disttrain/cluster.toml", CLUSTER.format(host=host, more=more) + tail)

    def start_all(self, units=DAEMONS):
        self.host.run("systemctl", "enable", *units)
        self.host.run("systemctl", "start", "disttrain.target")
        for unit in units:
            self.host.until(f"{unit} to be active", lambda unit=unit: self.host.unit(unit)["ActiveState"] == "active")

    def submit(self, name="quick", train=ENDLESS):
        self.host.write(f"/root/{name}.toml", JOB.format(name=name, train=train))
        process = self.host.start("disttrain", "submit", f"/root/{name}.toml", "--json")
        self.processes.append(process)
        return process

    def finished(self, process):
        out, _ = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out)
        return json.loads(out.strip().splitlines()[-1])

    def status(self):
        run = self.host.run("disttrain", "status", "--json", check=False)
        return json.loads(run.stdout.strip().splitlines()[-1]) if run.returncode == 0 and run.stdout.strip() else {}

    def until_steps(self, steps):
        def reached():
            status = self.status()
            return status if status.get("state") == "running" and status["global_step"] >= steps else None
        return self.host.until(f"step {steps}", reached)

    def events(self):
        return json.loads(self.host.run("disttrain", "events", "--all", "--json").stdout)

    def until_status(self, unit, pattern):
        """Waits until the unit's status text matches the pattern."""
        return self.host.until(f"{unit}'s status to have {pattern}",
                               lambda: re.search(pattern, self.host.unit(unit).get("StatusText", "")))

    def entries(self, **fields):
        """This test's journal entries with these fields. (With a match, journalctl --after-cursor skips the first
        match.)"""
        return [entry for entry in self.host.journal(f"--after-cursor={self.cursor}")
                if all(entry.get(field) == value for field, value in fields.items())]

    def logged(self, unit, pattern):
        """This test's matching log lines of the daemon, and systemd's lines about it."""
        lines = self.entries(_SYSTEMD_UNIT=f"{unit}.service") + self.entries(UNIT=f"{unit}.service")
        return [entry["MESSAGE"] for entry in lines if re.search(pattern, entry["MESSAGE"] or "")]

    def until_logged(self, unit, pattern):
        return self.host.until(f"the journal of {unit} to have {pattern}", lambda: self.logged(unit, pattern))

    def until_ended_well(self, unit):
        """Waits until the unit has ended well. Returns when, in microseconds, from the journal: systemd may have
        forgotten an ended unit."""
        def ended():
            return [entry for entry in self.entries(UNIT=f"{unit}.service") if "Deactivated successfully" in entry["MESSAGE"]]
        return int(self.host.until(f"{unit} to end well", ended)[-1]["__MONOTONIC_TIMESTAMP"])

    # Tests.

    def test_installing_starts_nothing_and_makes_user_and_folders(self):
        self.assertEqual(self.host.run("systemctl", "is-enabled", *DAEMONS, check=False).stdout.split(), ["disabled"] * 3)
        self.assertNotIn("Created symlink", self.said)
        self.assertIn("disttrain:x:", self.host.read("/etc/passwd"))
        folders = self.host.run("stat", "--format=%n %U %a", "/var/lib/disttrain/checkpoints", "/var/log/disttrain").stdout
        self.assertEqual(folders, "/var/lib/disttrain/checkpoints disttrain 750\n/var/log/disttrain disttrain 750\n")
        self.assertEqual(self.shipped, (SOURCE / "etc/cluster.toml").read_text())
        self.host.write("/root/shipped.toml", self.shipped)
        self.assertIn("is valid: cluster", self.host.run("disttrain", "check", "/root/shipped.toml").stdout)

    def test_manual_pages_and_completion_are_installed(self):
        for path in ("man/man1/disttrain-submit.1.gz", "man/man5/disttrain-cluster.toml.5.gz", "man/man8/psd.8.gz",
                     "bash-completion/completions/disttrain", "bash-completion/completions/workerd"):
            self.assertEqual(self.host.run("test", "-s", f"/usr/share/{path}", check=False).returncode, 0, path)

    def test_python_package_is_imported_by_debians_python(self):
        said = self.host.run("python3", "-c", "import disttrain; print(disttrain.__file__)").stdout
        self.assertEqual(said.strip(), "/usr/lib/python3/dist-packages/disttrain/__init__.py")

    def test_rules_and_dashboards_are_installed(self):
        share = "/usr/share/disttrain/monitoring"
        found = self.host.run("sh", "-c", f"cd {share} && find . -type f").stdout.split()
        source = SOURCE / "monitoring"
        wanted = [source / "README.md", source / "metrics.md", *source.glob("prometheus/*.yml"),
                  *source.glob("grafana/dashboards/*.json"), *source.glob("grafana/provisioning/*/*.yml")]
        self.assertEqual(sorted(found), sorted(f"./{file.relative_to(source)}" for file in wanted))
        for file in wanted:
            self.assertEqual(self.host.read(f"{share}/{file.relative_to(source)}"), file.read_text(), file)

    def test_upgrade_restarts_nothing_and_keeps_the_file(self):
        self.start_all()
        before = {unit: self.host.unit(unit)["MainPID"] for unit in DAEMONS}
        said = self.host.run("apt-get", "-y", "-q", "--reinstall", "install", *[
            f"/packages/{package.name}" for package in packages() if "libtorch" not in package.name]).stdout
        for unit in DAEMONS:
            self.assertIn(f"{unit}: the running daemon is still version 0.1.0", said)
            self.assertEqual(self.host.unit(unit)["MainPID"], before[unit])
        self.assertIn("10.79.0.1", self.host.read("/etc/disttrain/cluster.toml"))
        self.finished(self.submit(train="epochs = 1"))

    def test_host_with_all_roles_trains(self):
        self.start_all()
        self.assertRegex(self.host.unit("workerd")["StatusText"], "the chief is at 10.79.0.1:7100")
        result = self.finished(self.submit(train="epochs = 3"))
        self.assertEqual((result["state"], result["examples"]), ("finished", 18000))
        users = self.host.run("sh", "-c", "ps -o user= -p $(pidof chiefd psd workerd) 2>/dev/null || "
                              "stat --format=%U $(printf '/proc/%s ' $(pidof chiefd psd workerd))").stdout.split()
        self.assertEqual(set(users), {"disttrain"})

    def test_killed_ps_is_survived(self):
        self.start_all()
        process = self.submit(train="steps = 20000")
        self.until_steps(200)
        before = self.host.unit("psd")
        self.host.run("systemctl", "kill", "--signal=KILL", "psd")
        self.host.until("psd to be started again", lambda: (now := self.host.unit("psd"))["ActiveState"] == "active" and
                        now["MainPID"] != before["MainPID"])
        self.assertEqual(self.host.unit("psd")["NRestarts"], str(int(before["NRestarts"]) + 1))
        self.assertEqual(self.finished(process)["state"], "finished")
        self.assertIn("rolled_back", [event["kind"] for event in self.events()])
        self.assertTrue(self.logged("psd", "code=killed, status=9/KILL"))

    def test_restarted_ps_loses_no_step(self):
        self.start_all()
        self.submit()
        self.until_steps(200)
        self.host.run("systemctl", "restart", "psd")
        self.until_steps(200)
        events = {event["kind"]: event["text"] for event in self.events()}
        self.assertIn(", 0 steps are lost;", events["rolled_back"])
        self.assertNotIn("loss_counted", events)

    def test_restarted_host_loses_no_step(self):
        self.start_all()
        self.submit()
        self.until_steps(200)
        before = {unit: self.host.unit(unit)["MainPID"] for unit in DAEMONS}
        self.host.run("systemctl", "restart", "disttrain.target")
        for unit in DAEMONS:
            self.host.until(f"{unit} to be another process", lambda unit=unit: (now := self.host.unit(unit))["ActiveState"]
                            == "active" and now["MainPID"] != before[unit])
        self.until_steps(200)
        events = {event["kind"]: event["text"] for event in self.events()}
        self.assertIn(", 0 steps are lost;", events["rolled_back"])
        self.assertNotIn("loss_counted", events)

    def test_several_tasks_of_a_role_are_stopped_in_order(self):
        workers, ps = ("workerd@0", "workerd@1"), ("psd@0", "psd@1")
        units = ("chiefd", *ps, *workers)
        self.write_cluster('[[ps]]\naddress = "10.79.0.1:7111"\n[[worker]]\naddress = "10.79.0.1:7121"\n')
        self.addCleanup(self.host.run, "systemctl", "disable", *ps, *workers)
        self.start_all(units)
        self.assertEqual(self.finished(self.submit("short", "epochs = 1"))["state"], "finished")
        self.submit("long")
        self.until_steps(200)
        self.host.run("systemctl", "stop", "disttrain.target")
        ended = {unit: self.until_ended_well(unit) for unit in units}
        for unit in (*ps, *workers):
            self.assertTrue(self.logged(unit, "the chief granted the leave"), unit)
        self.assertLess(max(ended[unit] for unit in workers), min(ended[unit] for unit in ps))
        self.assertLess(max(ended[unit] for unit in ps), ended["chiefd"])
        self.host.run("systemctl", "start", "disttrain.target")
        self.until_steps(200)
        events = {event["kind"]: event["text"] for event in self.events()}
        self.assertIn(", 0 steps are lost;", events["rolled_back"])
        self.assertNotIn("loss_counted", events)

    def test_job_goes_on_after_all_were_restarted_at_once(self):
        # A restart of all units may stop them in any order. So the job repeats the steps after its newest checkpoint.
        self.start_all()
        self.submit()
        self.until_steps(200)
        self.host.run("systemctl", "restart", *DAEMONS)
        self.until_steps(200)

    def test_reload_takes_a_good_file_and_refuses_a_broken_one(self):
        self.start_all()
        process = self.submit()
        self.until_steps(50)
        self.write_cluster(tail='[log]\nlevel = "debug"\n')
        self.host.run("systemctl", "reload", *DAEMONS)
        for unit in DAEMONS:
            self.until_logged(unit, 'applied these changes: log.level is "debug" now, was "info"')
        self.write_cluster(tail='[log]\nlevel = "loud"\nrate = "lots"\n')
        for unit in DAEMONS:
            with self.subTest(unit):
                pid = self.host.unit(unit)["MainPID"]
                run = self.host.run("systemctl", "reload", unit, check=False)
                self.assertNotEqual(run.returncode, 0)
                self.assertTrue(self.logged(unit, r'log\.level is "loud"; expected'))
                state = self.host.unit(unit)
                self.assertEqual((state["ActiveState"], state["MainPID"]), ("active", pid))
        self.assertIsNone(process.poll())
        self.write_cluster()
        self.until_steps(self.status()["global_step"] + 50)

    def test_stop_is_orderly_and_needs_no_timeout(self):
        self.start_all()
        self.submit()
        reached = self.until_steps(200)["global_step"]
        self.host.run("systemctl", "stop", "disttrain.target", "chiefd*", "psd*", "workerd*")
        for unit in DAEMONS:
            self.assertEqual(self.host.unit(unit)["ActiveState"], "inactive", unit)
        for unit in DAEMONS:
            self.until_ended_well(unit)
            self.assertEqual(self.logged(unit, "timed out|SIGKILL"), [])
        self.host.run("systemctl", "start", "disttrain.target")
        self.assertGreaterEqual(self.until_steps(reached)["global_step"], reached)
        self.assertNotIn("initial values", str(self.events()))

    def test_daemon_that_stands_still_is_killed_by_its_watchdog(self):
        for unit in DAEMONS:
            self.host.write(f"/etc/systemd/system/{unit}.service.d/watchdog.conf", "[Service]\nWatchdogSec=3\n")
        self.addCleanup(self.host.run, "sh", "-c", "rm -r /etc/systemd/system/*.service.d; systemctl daemon-reload")
        self.host.run("systemctl", "daemon-reload")
        self.start_all()
        process = self.submit(train="steps = 60000")
        self.until_steps(200)
        for unit in ("psd", "workerd", "chiefd"):
            pid = self.host.unit(unit)["MainPID"]
            self.host.run("systemctl", "kill", "--signal=STOP", unit)
            self.host.until(f"{unit} to be another process", lambda: (now := self.host.unit(unit))["MainPID"] not in ("0", pid)
                            and now["ActiveState"] == "active")
            self.assertTrue(self.logged(unit, "Watchdog timeout"), unit)
            self.until_steps(self.until_steps(1)["global_step"] + 10)
        self.host.run("disttrain", "stop")
        process.communicate(timeout=60)
        self.assertEqual(self.status()["state"], "stopped")

    def test_journal_is_read_by_field(self):
        self.start_all()
        self.finished(self.submit(train="epochs = 1"))
        for program in DAEMONS:
            entries = self.host.journal(f"SYSLOG_IDENTIFIER={program}")
            self.assertTrue(entries, program)
            self.assertEqual({entry["_SYSTEMD_UNIT"] for entry in entries}, {f"{program}.service"})
            self.assertTrue(all(entry["MESSAGE"] for entry in entries))
        self.assertTrue(any("registered with the chief" in entry["MESSAGE"]
                            for entry in self.host.journal("_SYSTEMD_UNIT=workerd.service")))
        for task in ("chief/0", "ps/0", "worker/0"):
            self.assertTrue(self.entries(DISTTRAIN_TASK=task), task)
        self.assertTrue(self.entries(DISTTRAIN_JOB="quick", DISTTRAIN_TASK="worker/0"))
        [end] = self.entries(DISTTRAIN_EVENT="finished")
        self.assertEqual((end["DISTTRAIN_TASK"], end["DISTTRAIN_JOB"], end["DISTTRAIN_STEP"], end["PRIORITY"]),
                         ("chief/0", "quick", "120", "6"))
        self.assertIn(end, self.host.journal(f"MESSAGE_ID={end['MESSAGE_ID']}"))

    def test_crash_leaves_its_stack_in_the_journal(self):
        self.start_all()
        self.host.run("systemctl", "kill", "--signal=SEGV", "psd")
        [crash] = self.host.until("the crash in the journal", lambda: self.entries(DISTTRAIN_EVENT="crashed"))
        self.assertEqual((crash["_SYSTEMD_UNIT"], crash["PRIORITY"]), ("psd.service", "2"))
        self.assertIn("SIGSEGV", crash["MESSAGE"])
        self.assertIn("psd(", crash["MESSAGE"])
        self.until_logged("psd", "status=11/SEGV")
        self.finished(self.submit(train="epochs = 1"))

    def test_bad_file_fails_once_with_its_sentence(self):
        self.write_cluster(tail="[transport]\ncredits = 0\n")
        for unit in DAEMONS:
            with self.subTest(unit):
                self.assertNotEqual(self.host.run("systemctl", "start", unit, check=False).returncode, 0)
                state = self.host.unit(unit)
                self.assertEqual((state["ActiveState"], state["ExecMainStatus"], state["NRestarts"]), ("failed", "78", "0"))
                self.assertIn("transport.credits is 0; expected",
                              self.host.run("systemctl", "status", unit, check=False).stdout)

    def test_port_in_use_is_tried_again_said_and_given_up(self):
        other = self.host.start("systemd-socket-activate", "--listen=10.79.0.1:7110", "/bin/cat")
        self.processes.append(other)
        self.host.until("the port to be taken", lambda: ":1BC6 " in self.host.read("/proc/net/tcp"))
        self.host.run("systemctl", "start", "--no-block", "psd")
        self.until_status("psd", r"7110.*in use.*tries again in .* of 5")
        state = self.host.until("systemd to give up",
                                lambda: (now := self.host.unit("psd"))["ActiveState"] == "failed" and now, patience=300)
        self.assertEqual((state["ExecMainStatus"], state["NRestarts"]), ("69", "10"))
        self.assertTrue(self.logged("psd", "Start request repeated too quickly"))

    def test_second_host_joins_while_the_job_trains(self):
        guest = self.machine("two", 1)
        guest.install([p for p in packages() if p.name.split("_")[0] in
                       ("disttrain-common", "workerd", "disttrain-libtorch")])
        more = '[[worker]]\naddress = "10.79.0.2:7120"\n'
        self.write_cluster(more)
        guest.write("/etc/disttrain/cluster.toml", self.host.read("/etc/disttrain/cluster.toml"))
        self.start_all()
        process = self.submit()
        self.until_steps(100)
        guest.run("systemctl", "start", "workerd")

        def works():
            tasks = {task["task"]: task for task in self.status().get("tasks", [])}
            return tasks.get("worker/1", {}).get("step", 0) > 10
        self.host.until("the second host to have a part in the steps", works)
        self.assertRegex(guest.unit("workerd")["StatusText"], r"job quick, step \d+")
        self.assertIsNone(process.poll())
        guest.run("systemctl", "stop", "workerd")
        self.assertTrue([entry for entry in guest.journal("UNIT=workerd.service")
                         if "Deactivated successfully" in entry["MESSAGE"]])
        self.until_steps(self.status()["global_step"] + 50)
        self.assertIn("worker_left", [event["kind"] for event in self.events()])

    def test_z_removed_and_purged_without_leftovers(self):
        # Nothing is installed after this test. Its name makes it the last one.
        self.start_all()
        self.host.run("systemctl", "enable", "psd@1", "disttrain.target")
        self.finished(self.submit(train="epochs = 1"))
        names = [package.name.split("_")[0] for package in packages()]
        self.host.run("apt-get", "-y", "-q", "remove", *names)
        self.assertEqual(self.host.run("pidof", *DAEMONS, check=False).stdout, "")
        self.assertIn("10.79.0.1", self.host.read("/etc/disttrain/cluster.toml"))
        run = self.host.run("apt-get", "-y", "-q", "purge", "disttrain-common")
        self.host.run("apt-get", "-y", "-q", "purge", *DAEMONS)
        self.assertIn("/var/lib/disttrain/checkpoints isn't empty and stays", run.stdout)
        found = "find / -xdev -path /proc -prune -o -path /packages -prune -o ( -name *disttrain* -o -name chiefd* -o " \
                "-name psd* -o -name workerd* -o -user disttrain ) -print"
        left = self.host.run("find", *found.split()[1:]).stdout.splitlines()
        kept = [path for path in left if not path.startswith(("/var/lib/disttrain", "/root/", "/var/log/journal"))]
        self.assertEqual(kept, [])
        self.assertFalse([path for path in left if path.startswith("/var/lib/disttrain/chief")])
        self.assertEqual(self.host.run("systemctl", "list-units", "--all", "--plain", "--no-legend", "chiefd*", "psd*",
                                       "workerd*", "disttrain*").stdout, "")


def setUpModule():
    reason = machines.why_not()
    if not reason and not (BUILD / "CPackConfig.cmake").exists():
        reason = f"{BUILD} wasn't configured for packages"
    if reason:
        raise unittest.SkipTest(reason)
    make_packages()
    machines.fetch_dependencies(packages())


class PackagesTest(unittest.TestCase):
    @unittest.skipIf(shutil.which("lintian") is None, "there is no lintian here (Debian's package lintian)")
    def test_lintian_finds_no_errors(self):
        run = command("lintian", "--allow-root", "--fail-on", "error", *packages(), check=False, timeout=900)
        self.assertEqual(run.returncode, 0, run.stdout)


if __name__ == "__main__":
    unittest.main()
