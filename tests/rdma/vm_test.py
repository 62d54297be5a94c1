"""Runs the tests of RDMA in a virtual machine with two soft-RoCE devices. See make-vm and run-in-vm. It takes about 15
minutes, because the machine emulates its CPUs, so tools/test leaves it out; `tools/test release -L rdma` runs it."""
import json
import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("BUILD", ROOT / "build/release")).resolve()
VM = BUILD / "rdma-vm"
PATIENCE = "5"  # how much longer a test of processes waits there


@unittest.skipUnless(os.geteuid() == 0, "only root can share the root file system with a virtual machine")
class VmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (VM / "initrd").exists():
            subprocess.run([HERE / "make-vm", VM], check=True)

    def in_vm(self, *command, timeout=600, may_skip=False):
        done = subprocess.run([HERE / "run-in-vm", VM, *map(str, command)], cwd=ROOT, capture_output=True, text=True,
                              env={**os.environ, "TIMEOUT": str(timeout)})
        self.assertIn(done.returncode, (0, 77) if may_skip else (0,), done.stdout[-8000:] + done.stderr[-4000:])
        return done.stdout

    def train_between_two_machines(self, ps=("unlimited",), worker=("unlimited",)):
        """The status of a job with the ps on one machine and the worker on the other one, and the logs. The arguments are
        those of two-hosts after FOLDER."""
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            wire = f"addr.type=unix,addr.path={folder}/wire"
            machines = []
            for host, end, more in ((1, f"server=on,{wire}", ps), (2, f"server=off,{wire}", worker)):
                card = f"-netdev stream,id=wire,{end} -device virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0{host}"
                machines.append(subprocess.Popen(
                    [HERE / "run-in-vm", VM, HERE / "two-hosts", BUILD / "bin", str(host), folder, *more], cwd=ROOT,
                    text=True, stdout=subprocess.PIPE, env={**os.environ, "TIMEOUT": "200", "QEMU_ARGUMENTS": card}))
                while host == 1 and not Path(folder, "wire").exists() and machines[0].poll() is None:
                    time.sleep(0.1)
            outputs = [machine.communicate()[0] for machine in machines]
            logs = "".join(log.read_text() for log in sorted(Path(folder).glob("*.log")))
            self.assertEqual([machine.returncode for machine in machines], [0, 0], "".join(outputs) + logs)
            return json.loads(outputs[0].splitlines()[-1]), logs

    def system_test(self, *names):
        self.in_vm("env", f"BIN={BUILD}/bin", f"DISTTRAIN_PATIENCE={PATIENCE}", "PYTHONDONTWRITEBYTECODE=1", "sh", "-c",
                   f"cd tests/system && python3 ../run_unittest.py rdma_test.py {' '.join(f'RdmaTest.{name}' for name in names)}")

    def test_contract(self):
        self.in_vm(BUILD / "tests/transport_contract_test", "--gtest_filter=*/rdma*")
        self.in_vm(BUILD / "tests/transport_places_test", "--gtest_filter=*/rdma")

    def test_auto_takes_rdma_between_two_machines(self):
        status, logs = self.train_between_two_machines()
        self.assertEqual(status["transport"], "rdma", logs)

    def test_auto_takes_tcp_without_locked_memory(self):
        status, logs = self.train_between_two_machines(worker=("65536",))
        self.assertEqual(status["transport"], "tcp", logs)
        # Enough for the channel's messages, but not for the landings of the gradients.
        status, logs = self.train_between_two_machines(ps=("1500000",))
        # The channels were lost once, and opened again over TCP.
        self.assertEqual((status["state"], status["transport"]), ("finished", "tcp"), logs)
        self.assertIn("ps/0 answers again", logs)

    def test_auto_avoids_a_host_without_a_device(self):
        status, logs = self.train_between_two_machines(ps=("unlimited", "without-device"))
        self.assertEqual((status["state"], status["transport"]), ("finished", "tcp"), logs)
        self.assertIn("new connections with 10.78.0.1 don't use RDMA in the next minute", logs)

    def test_transport(self):
        self.in_vm(BUILD / "tests/transport_rdma_test", may_skip=True)

    def test_transport_with_delayed_packets(self):
        delay = "for name in v0 v1; do tc qdisc add dev $name root netem delay 20ms; done"
        cases = "Rdma.*:RdmaByChoice.AnEnd*:-*Thousand*:*AHostThatDoesNotAnswer*"  # the last needs the place of `delay`
        self.in_vm("sh", "-c", f"{delay}; {BUILD}/tests/transport_rdma_test --gtest_filter={cases}", may_skip=True)
        self.in_vm("sh", "-c", f"{delay}; {BUILD}/tests/transport_places_test --gtest_filter=*/rdma")

    def test_contract_with_lost_packets(self):
        loss = "for name in v0 v1; do tc qdisc add dev $name root netem loss 0.5%; done"
        self.in_vm("sh", "-c", f"{loss}; {BUILD}/tests/transport_contract_test --gtest_filter=*/rdma")

    def test_bits(self):
        self.system_test("test_bits_are_those_over_tcp", "test_steps_that_begin_early_have_the_bits_of_others")

    def test_modes(self):
        self.system_test("test_each_mode_trains", "test_auto_takes_shared_memory_on_one_host")

    def test_kills(self):
        self.system_test("test_kills_are_overcome")

    def test_kills_while_steps_begin_early(self):
        self.system_test("test_kills_are_overcome_while_steps_begin_early")

    def test_failures(self):
        self.system_test("test_a_wire_that_was_cut_is_used_again", "test_too_little_locked_memory_is_one_sentence")


if __name__ == "__main__":
    unittest.main()
