"""disttrain doctor on this host: with running daemons, without any, and with another program at a daemon's port."""
import os
import socket
import threading
import unittest

from harness import DIGITS, SystemTest
from ports import free_ports

CLUSTER = """
[cluster]
name = "{name}"
[chief]
address = "127.0.0.1:{chief}"
state_directory = "{folder}/chief"
[[ps]]
address = "127.0.0.1:{ps}"
[[worker]]
address = "127.0.0.1:{worker}"
"""
CHECKS = {"memlock", "nic", "rdma", "clock", "port", "gpu", "disk"}


class DoctorTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.ports = dict(zip(("chief", "ps", "worker"), free_ports(3)))
        self.cluster = self.write_cluster("cluster.toml")

    def write_cluster(self, file, name="doctored", extra="", **ports):
        path = self.folder / file
        path.write_text(CLUSTER.format(name=name, folder=self.folder, **{**self.ports, **ports}) + extra)
        return path

    def start_daemons(self):
        daemons = [self.start(daemon, "--cluster", self.cluster) for daemon in ("chiefd", "psd", "workerd")]
        self.until("all tasks to be ready", lambda: (status := self.status("--cluster", self.cluster)) and
                   all(task["state"] == "ready" for task in status["tasks"]))
        return daemons

    def doctor(self, *arguments, cluster=None):
        """Runs doctor. Returns (exit code, its JSON, its checks by name)."""
        outcome = self.run_program("disttrain", "doctor", cluster or self.cluster, "--json", *arguments)
        self.assertEqual(outcome.err, "", str(outcome))
        said = outcome.json
        self.assertEqual(said["well"], outcome.code == 0, str(outcome))
        return outcome.code, said, {(check["check"], check["of"]): check for check in said["checks"]}

    def test_host_with_running_daemons_is_well(self):
        self.start_daemons()
        code, said, checks = self.doctor()
        self.assertEqual(code, 0, said)
        self.assertEqual(said["cluster_file"], str(self.cluster))
        self.assertEqual({check for check, _ in checks}, CHECKS)
        for task, port in self.ports.items():
            found = checks["port", f"{task}/0"]
            self.assertEqual(found["state"], "ok", found)
            self.assertEqual(found["found"], f"port {port}: {task}/0 answers; its metrics are at port {port + 1000}")
            self.assertIsNone(found["advice"])
        self.assertEqual(checks["clock", None]["state"], "ok", checks["clock", None])
        self.assertIn("from the chief's", checks["clock", None]["found"])
        self.assertEqual((checks["nic", "127.0.0.1"]["state"], checks["nic", "127.0.0.1"]["found"]), ("ok", "lo (loopback)"))
        self.assertEqual(checks["gpu", None]["state"], "skipped")
        self.assertIn(str(self.folder / "chief"), checks["disk", "state"]["found"])

    def test_table_has_a_row_for_each_check(self):
        outcome = self.run_program("disttrain", "doctor", self.cluster)
        self.assertEqual(outcome.code, 0, str(outcome))
        lines = outcome.out.splitlines()
        self.assertEqual(lines[1].split(), ["CHECK", "STATE", "WHAT", "IT", "FOUND"])
        self.assertIn(f"cluster doctored of {self.cluster}", lines[0])
        rows = [line for line in lines[2:] if not line.startswith(" ")]
        self.assertEqual({row.split()[0] for row in rows}, CHECKS)

    def test_host_without_a_chief_says_so(self):
        code, said, checks = self.doctor()
        self.assertEqual(code, 0, said)
        self.assertIn(f"no chief answers at 127.0.0.1:{self.ports['chief']}", checks["clock", None]["found"])
        self.assertIn(f"port {self.ports['chief']} is free", checks["port", "chief/0"]["found"])
        self.assertIn("isn't there yet: chiefd makes it", checks["disk", "state"]["found"])
        self.assertFalse((self.folder / "chief").exists())  # doctor makes no folder

    def test_stranger_at_a_port_is_named(self):
        with socket.create_server(("127.0.0.1", self.ports["ps"])):
            code, said, checks = self.doctor()
        self.assertEqual(code, 1, said)
        found = checks["port", "ps/0"]
        self.assertEqual(found["state"], "fail", found)
        self.assertIn(f"port {self.ports['ps']} is held by", found["found"])
        self.assertIn(f"(pid {os.getpid()})", found["found"])
        self.assertIn("another port", found["advice"])
        self.assertEqual([check["check"] for check in said["checks"] if check["state"] == "fail"], ["port"])

    def test_stranger_that_talks_at_the_port_of_metrics_is_named(self):
        with socket.create_server(("127.0.0.1", self.ports["worker"] + 1000)) as server:
            def answer():
                connection, _ = server.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nok\n")
            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            code, said, checks = self.doctor()
            thread.join()
        self.assertEqual(code, 1, said)
        found = checks["port", "worker/0"]["found"]
        self.assertIn(f"port {self.ports['worker'] + 1000} is held by", found)
        self.assertIn(f"(pid {os.getpid()})", found)

    def test_daemons_of_another_cluster_are_no_strangers_and_no_friends(self):
        self.start_daemons()
        code, said, checks = self.doctor(cluster=self.write_cluster("other.toml", name="other"))
        self.assertEqual(code, 1, said)
        self.assertIn('chief of cluster "doctored"', checks["port", "chief/0"]["found"])
        self.assertIn('cluster "doctored"', checks["port", "ps/0"]["found"])

    def test_other_cluster_file_than_the_daemons_is_warned_of(self):
        self.start_daemons()
        code, said, checks = self.doctor(cluster=self.write_cluster("other.toml", extra="threads = 2\n"))
        self.assertEqual(code, 0, said)
        for task in self.ports:
            self.assertEqual(checks["port", f"{task}/0"]["state"], "warn", said)
            self.assertIn("another cluster file", checks["port", f"{task}/0"]["found"])

    def test_host_that_cant_be_reached_fails_in_time(self):
        # 240.0.0.0/4 is reserved: no host has such an address.
        cluster = self.write_cluster("far.toml", extra='[[worker]]\naddress = "240.0.0.1:7120"\n')
        # Without a deadline for its dials, doctor would need longer than the test waits.
        code, said, checks = self.doctor(cluster=cluster)
        self.assertEqual(code, 1, said)
        self.assertEqual(checks["host", "240.0.0.1"]["state"], "fail")
        self.assertIn("worker/1", checks["host", "240.0.0.1"]["found"])
        self.assertEqual(checks["nic", "127.0.0.1"]["state"], "warn")  # a loopback address beside another host

    def test_folders_of_a_job_are_looked_at(self):
        (self.folder / "checkpoints").mkdir()
        job = self.job()
        text = job.read_text()
        job.write_text(text + f'[checkpoint]\ndirectory = "{self.folder / "checkpoints"}"\n')
        code, said, checks = self.doctor("--job", job)
        self.assertEqual(code, 0, said)
        # 784 x 32 + 32 + 32 x 10 + 10 values of 4 bytes.
        self.assertIn("a checkpoint needs 99.4 KiB", checks["disk", "checkpoints"]["found"])
        self.assertIn(str(DIGITS), checks["disk", "data"]["found"])
        job.write_text(text + f'[checkpoint]\ndirectory = "{self.folder / "nowhere"}"\n')
        code, said, checks = self.doctor("--job", job)
        self.assertEqual(code, 1, said)
        self.assertIn("isn't there", checks["disk", "checkpoints"]["found"])

    def test_without_a_cluster_file_the_host_is_checked(self):
        if os.path.exists("/etc/disttrain/cluster.toml"):
            self.skipTest("this host has a cluster file in /etc/disttrain")
        outcome = self.run_program("disttrain", "doctor", "--json")
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertIsNone(outcome.json["cluster_file"])
        self.assertEqual({check["check"] for check in outcome.json["checks"]} | {"nic"}, CHECKS)

    def test_broken_files_are_refused(self):
        self.cluster.write_text("[chief]\nadress = 1\n")
        self.assert_refused(self.run_program("disttrain", "doctor", self.cluster), 78, "adress")
        self.assert_refused(self.run_program("disttrain", "doctor", self.folder / "none.toml"), 66, "none.toml")


if __name__ == "__main__":
    unittest.main()
