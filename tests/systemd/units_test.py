"""Installs the units into a root with `cmake --install`, and checks that they parse and how well they are sandboxed."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", SOURCE / "build/release"))
UNITS = "usr/lib/systemd/system"
STOPPED_FOR_GOOD = ["USAGE", "DATAERR", "NOINPUT", "NOPERM", "CONFIG"]


def run(*command):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze here (tools/setup installs it: systemd)")
class UnitsTest(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="disttrain-units-"))
        self.addCleanup(shutil.rmtree, self.root)
        # Copies the system's units, because our units refer to them. The programs may not be built, so empty scripts
        # stand in for them.
        shutil.copytree("/usr/lib/systemd/system", self.root / UNITS, symlinks=True)
        for program in ("usr/sbin/chiefd", "usr/sbin/psd", "usr/sbin/workerd", "bin/kill"):
            path = self.root / program
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)
        outcome = run("env", f"DESTDIR={self.root}", "cmake", "-DCMAKE_INSTALL_PREFIX=/usr", "-P",
                      BUILD / "systemd/cmake_install.cmake")
        self.assertEqual(outcome.returncode, 0, outcome.stdout)

    def drop_in(self, unit, name):
        """Copies a drop-in to the unit's folder, as its first line tells the operator."""
        folder = self.root / UNITS / f"{unit}.d"
        folder.mkdir(exist_ok=True)
        shutil.copy(self.root / "usr/share/disttrain/systemd" / name, folder)

    def settings(self, unit):
        lines = (self.root / UNITS / unit).read_text().splitlines()
        return [line for line in lines if line and not line.startswith("#")]

    def assert_exposure(self, unit, most):
        outcome = run("systemd-analyze", "security", "--offline=true", f"--root={self.root}", f"--threshold={most}", unit)
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        self.assertIn(f"Overall exposure level for {unit}", outcome.stdout)

    def test_units_parse_without_a_complaint(self):
        self.drop_in("psd.service", "psd-rdma.conf")
        self.drop_in("workerd.service", "workerd-cuda.conf")
        self.drop_in("workerd.service", "workerd-rdma.conf")
        outcome = run("systemd-analyze", "verify", "--man=no", f"--root={self.root}", "chiefd.service", "psd.service",
                      "psd@1.service", "workerd.service", "workerd@2.service", "evaluator.service",
                      "evaluator@1.service", "disttrain.target",
                      "disttrain-ps.target")
        self.assertEqual((outcome.returncode, outcome.stdout), (0, ""))

    def test_exposure_is_within_its_bound(self):
        for unit, most in [("chiefd.service", 13), ("psd.service", 14), ("psd@0.service", 14), ("workerd.service", 18),
                           ("workerd@0.service", 18), ("evaluator.service", 18), ("evaluator@0.service", 18)]:
            with self.subTest(unit):
                self.assert_exposure(unit, most)

    def test_exposure_with_hardware_is_within_its_bound(self):
        self.drop_in("psd.service", "psd-rdma.conf")
        self.drop_in("workerd.service", "workerd-cuda.conf")
        self.drop_in("workerd.service", "workerd-rdma.conf")
        for unit in ("psd.service", "workerd.service"):
            with self.subTest(unit):
                self.assert_exposure(unit, 21)

    def test_instances_differ_from_the_plain_unit_in_their_index_only(self):
        for role in ("psd", "workerd", "evaluator"):
            with self.subTest(role):
                instance = [line.replace(" --index %i", "").replace(" %i", "")
                            for line in self.settings(f"{role}@.service")]
                self.assertEqual(instance, self.settings(f"{role}.service"))

    def test_only_those_that_keep_something_have_a_folder_for_it(self):
        for unit, folders in [("chiefd.service", ["StateDirectory=disttrain/chief disttrain/checkpoints"]),
                              ("psd.service", ["StateDirectory=disttrain/checkpoints"]), ("workerd.service", []),
                              ("evaluator.service", [])]:
            with self.subTest(unit):
                opened = [line for line in self.settings(unit) if line.startswith(("StateDirectory=", "ReadWritePaths="))]
                self.assertEqual(opened, folders)

    def test_what_another_start_does_not_mend_is_not_started_again(self):
        for unit in ("chiefd.service", "psd.service", "workerd.service", "evaluator.service"):
            with self.subTest(unit):
                settings = self.settings(unit)
                self.assertIn("RestartPreventExitStatus=" + " ".join(STOPPED_FOR_GOOD), settings)
                checks = [line for line in settings if line.startswith("ExecReload=")]
                self.assertTrue(checks[0].endswith("--check"), checks)
                self.assertIn("-HUP", checks[1])

    # By default, systemd stops a unit if the kernel kills one of its processes for memory.
    def test_worker_outlives_a_trainer_that_is_killed_for_memory(self):
        for unit in ("workerd.service", "workerd@.service", "evaluator.service", "evaluator@.service"):
            self.assertIn("OOMPolicy=continue", self.settings(unit))

    # By default, systemd sends SIGTERM to all processes of a unit.
    def test_worker_that_is_told_to_end_keeps_its_trainer_for_its_last_step(self):
        for unit in ("workerd.service", "workerd@.service", "evaluator.service", "evaluator@.service"):
            self.assertIn("KillMode=mixed", self.settings(unit))

    def test_user_and_folders_are_made(self):
        if shutil.which("systemd-sysusers") is None:
            self.skipTest("no systemd-sysusers here")
        outcome = run("systemd-sysusers", f"--root={self.root}", "disttrain.conf")
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        self.assertIn("disttrain:", (self.root / "etc/passwd").read_text())
        groups = [line.split(":")[0] for line in (self.root / "etc/group").read_text().splitlines()]
        self.assertLessEqual({"disttrain", "video", "render"}, set(groups))
        if os.geteuid() != 0:
            self.skipTest("systemd-tmpfiles: only root can make folders of other users")
        outcome = run("systemd-tmpfiles", f"--root={self.root}", "--create", "disttrain.conf")
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        self.assertTrue((self.root / "var/lib/disttrain/checkpoints").is_dir())


if __name__ == "__main__":
    unittest.main()
