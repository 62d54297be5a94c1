"""Jobs on two hosts: network namespaces joined by a veth pair."""
import os
import subprocess
import unittest

from harness import BIN, SystemTest

CLUSTER = """
[cluster]
name = "two-hosts"
[chief]
address = "10.78.0.1:7100"
state_directory = "{folder}/chief"
[[ps]]
address = "10.78.0.1:7110"
[[worker]]
address = "10.78.0.1:7120"
[[worker]]
address = "10.78.0.2:7120"
"""


def namespaces_work():
    if os.geteuid() != 0:
        return False
    try:
        probe = subprocess.run(["ip", "netns", "add", "disttrain-probe"], capture_output=True)
    except FileNotFoundError:
        return False
    if probe.returncode != 0:
        return False
    subprocess.run(["ip", "netns", "del", "disttrain-probe"], check=True)
    return True


@unittest.skipUnless(namespaces_work(), "network namespaces need root, iproute2 and a kernel that has them")
class TwoHostsTest(SystemTest):
    def setUp(self):
        super().setUp()
        suffix = os.getpid() % 10000
        self.hosts = [f"disttrain-a{suffix}", f"disttrain-b{suffix}"]
        self.addCleanup(self.remove_hosts)
        for host in self.hosts:
            self.ip("netns", "add", host)
            self.ip("-n", host, "link", "set", "lo", "up")
        self.ip("link", "add", f"va{suffix}", "netns", self.hosts[0], "type", "veth", "peer", "name", f"vb{suffix}",
                "netns", self.hosts[1])
        for number, link in enumerate([f"va{suffix}", f"vb{suffix}"]):
            self.ip("-n", self.hosts[number], "address", "add", f"10.78.0.{number + 1}/24", "dev", link)
            self.ip("-n", self.hosts[number], "link", "set", link, "up")
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text(CLUSTER.format(folder=self.folder))

    def ip(self, *arguments):
        subprocess.run(["ip", *arguments], check=True)

    def remove_hosts(self):
        for host in self.hosts:
            subprocess.run(["ip", "netns", "del", host], capture_output=True)

    def start_on(self, host, program, *arguments):
        process = subprocess.Popen(["ip", "netns", "exec", self.hosts[host], str(BIN / program), *map(str, arguments)],
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def test_job_trains_over_the_network(self):
        # Without --index, each daemon finds its index: it looks for an address of its own host in the cluster file.
        self.start_on(0, "chiefd", "--cluster", self.cluster)
        self.start_on(0, "psd", "--cluster", self.cluster)
        self.start_on(0, "workerd", "--cluster", self.cluster)
        self.start_on(1, "workerd", "--cluster", self.cluster)
        self.until("the chief to answer", lambda: self.finish(
            self.start_on(1, "disttrain", "status", "--json", "--cluster", self.cluster)).code == 0)
        for mode in ["async", "sync"]:
            # Without leases, each worker visits the whole data set, so both take part even if one is much faster.
            job = self.job(mode, data='sharding = "none"', train=f'mode = "{mode}"\nepochs = 2')
            result = self.assert_finished(
                self.finish(self.start_on(1, "disttrain", "submit", job, "--cluster", self.cluster, "--json")))
            steps = [task["step"] for task in result["tasks"] if task["task"].startswith("worker")]
            self.assertEqual(len(steps), 2)
            self.assertGreater(min(steps), 0)

    def test_up_starts_only_its_own_hosts_tasks(self):
        self.cluster.write_text(CLUSTER.format(folder=self.folder).replace("10.78.0.2:7120", "10.78.0.2:7121"))
        job = self.job(train='mode = "sync"\nepochs = 2', data='sharding = "none"')
        other = self.start_on(1, "workerd", "--cluster", self.cluster, "--index", "1")
        up = self.start_on(0, "disttrain", "up", self.cluster, "--job", job, "--json")
        result = self.assert_finished(self.finish(up))
        steps = {task["task"]: task["step"] for task in result["tasks"]}
        self.assertGreater(steps["worker/1"], 0)
        self.assertIsNone(other.poll(), "`up` must not end the other host's worker")

    def test_up_names_a_host_that_nobody_knows(self):
        self.cluster.write_text(CLUSTER.format(folder=self.folder).replace("10.78.0.2:", "no-such-host.invalid:"))
        outcome = self.finish(self.start_on(0, "disttrain", "up", self.cluster, "--job", self.job(), "--json"))
        self.assertIn(outcome.code, (69, 78), str(outcome))
        self.assertIn('worker/1: host name "no-such-host.invalid" can\'t be resolved', outcome.err)

    def test_plan_says_whose_cores_it_counted(self):
        self.cluster.write_text(CLUSTER.format(folder=self.folder))
        for host, is_counted in ((0, False), (1, True)):
            outcome = self.finish(self.start_on(host, "disttrain", "plan", self.job(), "--cluster", self.cluster))
            self.assertEqual(outcome.code, 0, str(outcome))
            self.assertEqual("ps/0 is assumed to have as many cores as this host" in outcome.out, is_counted, str(outcome))


if __name__ == "__main__":
    unittest.main()
