"""Workers and ps exchange tensors by RDMA, between two addresses of one machine: with the same bits as over TCP, and with
each failure noticed and overcome. Needs two RDMA devices with the addresses 10.77.0.1 and 10.77.0.2 (tests/rdma)."""
import subprocess
import time
import unittest
from pathlib import Path

from harness import BIN, SystemTest
from ports import free_ports
from wires import EARLY, WireTest

CLUSTER = """
[cluster]
name = "{name}"
[chief]
address = "10.77.0.1:{}"
state_directory = "{folder}/chief"
[metrics]
listen = ""
[transport]
kind = "{kind}"
[[ps]]
address = "10.77.0.2:{}"
[[ps]]
address = "10.77.0.2:{}"
[[worker]]
address = "10.77.0.1:{}"
[[worker]]
address = "10.77.0.1:{}"
"""


def addresses():
    return subprocess.run(["ip", "-brief", "address"], capture_output=True, text=True).stdout


def counted(what):
    """How many of them the kernel holds: "qp" or "mr", without the queue pairs of the kernel itself."""
    shown = subprocess.run(["rdma", "resource", "show", what], capture_output=True, text=True, check=True).stdout
    return len([line for line in shown.splitlines() if "comm [" not in line])


HAS_DEVICE = bool(list(Path("/sys/class/infiniband").glob("*")))


@unittest.skipIf(HAS_DEVICE, "this host has an RDMA device")
class WithoutADeviceTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.cluster = self.folder / "cluster.toml"
        text = CLUSTER.format(*free_ports(5), name="rdma", kind="rdma", folder=self.folder)
        self.cluster.write_text(text.replace("10.77.0.1", "127.0.0.1").replace("10.77.0.2", "127.0.0.1"))

    def test_up_says_so_before_it_starts_a_task(self):
        outcome = self.run_program("disttrain", "up", self.cluster, "--job", self.job())
        self.assertEqual(outcome.code, 69, str(outcome))
        self.assertEqual(outcome.err, "disttrain up: transport.kind = \"rdma\": this host has no RDMA device that this process "
                                      "may use; `disttrain doctor` checks them\n")

    def test_a_task_says_so_in_one_sentence(self):
        outcome = self.run_program("psd", "--cluster", self.cluster, "--index", "0")
        self.assertEqual(outcome.code, 69)
        self.assertRegex(outcome.err, r"can't listen on 127.0.0.1:\d+ by RDMA \(transport.kind = \"rdma\"\): this host has no "
                                      r"RDMA device that this process may use; `disttrain doctor` checks them")


@unittest.skipUnless(HAS_DEVICE, "this host has no RDMA device")
@unittest.skipUnless("10.77.0.1/" in addresses() and "10.77.0.2/" in addresses(), "the devices have other addresses")
class RdmaTest(WireTest):
    CLUSTER = CLUSTER
    LAYERS = "[784, 400, 10]"
    STEPS = 5  # the machine is slow

    def test_bits_are_those_over_tcp(self):
        for train in ("steps = 20", "steps = 20\npipeline = 1"):
            with self.subTest(train=train):
                job = self.write_job("sync", train)
                self.assertEqual(self.hash_over("rdma", job), self.hash_over("tcp", job))

    def test_each_mode_trains(self):
        for mode, more in (("async", ""), ("ssp", "staleness = 3"), ("async", "pipeline = 1")):
            with self.subTest(mode=mode):
                self.hash_over("rdma", self.write_job(mode, f"steps = 30\n{more}"))
        self.assertEqual(counted("qp"), 0)
        self.assertEqual(counted("mr"), 0)

    def test_too_little_locked_memory_is_one_sentence(self):
        cluster = self.cluster("rdma")
        job = self.write_job("sync", "steps = 10")
        # Root may lock any amount with the capability ipc_lock.
        outcome = self.finish(self.start_command(
            "prlimit", "--memlock=65536", "setpriv", "--bounding-set=-ipc_lock", BIN / "disttrain", "up", cluster, "--job", job))
        self.assertEqual(outcome.code, 78, str(outcome))
        self.assertRegex(outcome.err, r"can't listen on 10.77.0.\d:\d+ by RDMA \(transport.kind = \"rdma\"\): can't register \d+ "
                                      r"bytes with the RDMA device: .*; this process may lock 64 KiB of memory, .*run `ulimit -l "
                                      r"unlimited`, or install the drop-ins for RDMA \(LimitMEMLOCK\)")
        self.assertNotIn("restarting", outcome.err)

    def test_auto_takes_shared_memory_on_one_host(self):
        self.hash_over("auto", self.write_job("sync", "steps = 10"))

    def test_steps_that_begin_early_have_the_bits_of_others(self):
        self.check_steps_that_begin_early("rdma", steps=10)

    def test_kills_are_overcome(self):
        self.check_kills(("worker/0", "ps/1", "worker/1", "ps/0"), "sync")

    def test_kills_are_overcome_while_steps_begin_early(self):
        self.check_kills(("worker/0", "ps/1"), "async", EARLY)

    def check_kills(self, tasks, mode, layers=None):
        cluster = self.start_long("rdma", mode, layers)
        self.kill_one_after_another(cluster, tasks)
        self.assertEqual(self.status("--cluster", cluster)["transport"], "rdma")
        self.kill_all()
        self.until("the registrations to be gone", lambda: counted("mr") == 0 and counted("qp") == 0)

    def test_a_wire_that_was_cut_is_used_again(self):
        # The interfaces stay up: if one goes down under load, soft-RoCE's own queue pair for connection requests doesn't
        # recover (Linux 6.1; rping fails then too). All that the tasks say to each other goes over the wire. So `up` doesn't
        # hear the chief either, and may start another one.
        cluster = self.start_long("rdma", "sync")
        before = self.status("--cluster", cluster)
        for name in ("v0", "v1"):
            subprocess.run(["tc", "qdisc", "add", "dev", name, "root", "netem", "loss", "100%"], check=True)
        time.sleep(8)
        for name in ("v0", "v1"):
            subprocess.run(["tc", "qdisc", "del", "dev", name, "root"], check=True)
        self.until("a rollback", lambda: (self.status("--cluster", cluster) or before)["generation"] > before["generation"])
        before = self.status("--cluster", cluster)
        self.until("steps after the cut", lambda: self.has_moved(cluster, before))
        self.until("the wire", lambda: (self.status("--cluster", cluster) or before)["transport"] == "rdma")


if __name__ == "__main__":
    unittest.main()
