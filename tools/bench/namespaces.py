"""Hosts on one machine: network namespaces joined by a bridge whose links can fail, and a cluster of daemons on
them."""
import itertools
import json
import os
import subprocess
import tempfile
from pathlib import Path

from cluster import PATIENCE

SKIPPED = 77
LACKS = "this needs root, iproute2 and a kernel with network namespaces"


class Failure(Exception):
    pass


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Network:
    """Namespaces, one per host, joined by a bridge in a namespace of its own. close() removes them."""

    def __init__(self, count):
        self.prefix = f"dt{os.getpid() % 100000}"
        self.switch = f"{self.prefix}-s"
        self.hosts = [f"{self.prefix}-{i}" for i in range(count)]
        for name in [self.switch, *self.hosts]:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.switch, "link", "add", "br0", "type", "bridge")
        ip("-n", self.switch, "link", "set", "br0", "up")
        for i, host in enumerate(self.hosts):
            ip("link", "add", "eth0", "netns", host, "type", "veth", "peer", "name", f"port{i}", "netns", self.switch)
            ip("-n", self.switch, "link", "set", f"port{i}", "master", "br0", "up")
            ip("-n", host, "address", "add", f"{self.address(i)}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "eth0", "up")

    @staticmethod
    def address(host):
        return f"10.79.0.{host + 1}"

    def fail(self, host, direction):
        others = [i for i in range(len(self.hosts)) if i != host]
        if direction == "both ways":
            ip("-n", self.switch, "link", "set", f"port{host}", "down")
        elif direction == "from it":
            for other in others:
                self.misdirect(host, other)
        else:
            for other in others:
                self.misdirect(other, host)

    def part(self, host, other, direction="both ways"):
        """Loses frames between the two: from the host, to it, or both ways. All other links carry."""
        if direction != "to it":
            self.misdirect(host, other)
        if direction != "from it":
            self.misdirect(other, host)

    def misdirect(self, sender, receiver):
        ip("-n", self.hosts[sender], "neighbour", "replace", self.address(receiver), "lladdr", "02:00:00:00:00:99",
           "dev", "eth0", "nud", "permanent")

    def mend(self, host):
        ip("-n", self.switch, "link", "set", f"port{host}", "up")
        for sender, receiver in itertools.permutations(range(len(self.hosts)), 2):
            subprocess.run(["ip", "-n", self.hosts[sender], "neighbour", "del", self.address(receiver), "dev", "eth0"],
                           capture_output=True)

    def netem(self, *rule):
        """Applies a netem rule to what each host sends; without a rule removes it. False: this kernel has no netem."""
        verb = ["replace"] if rule else ["del"]
        for host in self.hosts:
            done = subprocess.run(["tc", "-n", host, "qdisc", verb[0], "dev", "eth0", "root", "netem", *rule],
                                  capture_output=True)
            if done.returncode != 0:
                return False
        return True

    def close(self):
        for name in [*self.hosts, self.switch]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Cluster:
    """Daemons of one cluster, each on its host. `hosts`: the tasks of each host. `cluster`, `job`: texts of the two
    files; {folder} in them becomes the cluster's folder."""

    def __init__(self, build, network, hosts, cluster, job):
        self.network, self.build = network, build.resolve()
        self.folder = Path(tempfile.mkdtemp(prefix="disttrain-network-"))
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.folder),
                            "DISTTRAIN_VISITED_LOG": str(self.folder)}
        (self.folder / "checkpoints").mkdir()
        (self.folder / "cluster.toml").write_text(cluster.replace("{folder}", str(self.folder)))
        self.job = self.folder / "job.toml"
        self.job.write_text(job.replace("{folder}", str(self.folder)))
        self.processes, self.daemons = [], []
        for host, tasks in enumerate(hosts):
            for task in tasks:
                role, index = task.split("/")
                place = [] if role == "chief" else ["--index", index]
                program = "chiefd" if role == "chief" else f"{role}d"
                self.daemons.append(self.start(host, task.replace("/", "-"), program, *place))

    def start(self, host, name, program, *arguments):
        command = ["ip", "netns", "exec", self.network.hosts[host], self.build / program, *map(str, arguments),
                   "--cluster", self.folder / "cluster.toml"]
        with open(self.folder / f"{name}.out", "w") as out, open(self.folder / f"{name}.err", "w") as err:
            process = subprocess.Popen(command, env=self.environment, stdout=out, stderr=err)
        self.processes.append(process)
        return process

    def ask(self, *arguments):
        process = self.start(0, "ask", "disttrain", *arguments, "--json")
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"`disttrain {' '.join(arguments)}` still runs after {PATIENCE:.0f} s") from None
        text = (self.folder / "ask.out").read_text()
        return json.loads(text) if process.returncode == 0 and text.strip() else None

    def events(self):
        return self.ask("events", "--all") or []

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
