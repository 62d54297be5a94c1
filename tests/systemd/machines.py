"""Machines with a real systemd, for tests: containers (systemd-nspawn) on a Debian 12 root, each with its own network.
debootstrap makes the root once, in tools/setup's cache. A machine's changes are in its own folder and vanish with it.

Machines need root, systemd-nspawn, debootstrap and overlayfs.

A container runs in a process namespace that ends with the test. If only nspawn is killed, its container goes on
running. If the first process of the namespace is killed, the kernel kills all processes in it.
"""
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "disttrain"
BASE = CACHE / "bookworm-root-1"  # when INCLUDED changes, raise this number
INCLUDED = ("systemd", "systemd-sysv", "dbus")
# How many seconds a test waits. After that the wait fails, so that a broken program fails the test instead of hanging
# it.
PATIENCE = 60.0

BOOT = """
set -e
root=$1 lower=$2 group=$3; shift 3
mount -t overlay overlay -o lowerdir="$lower",upperdir="$root/upper",workdir="$root/work" "$root/root"
if ! [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  umount -R /sys/fs/cgroup
  mount -t cgroup2 cgroup /sys/fs/cgroup
fi
mkdir "/sys/fs/cgroup/$group"
echo $$ >"/sys/fs/cgroup/$group/cgroup.procs"
export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
exec systemd-nspawn --quiet --register=no --keep-unit --console=pipe --boot --directory="$root/root" "$@"
"""
# Mounts the cgroup hierarchy if it isn't visible here. BOOT may have mounted it only in its own namespace.
REMOVE_GROUP = """
[ -f /sys/fs/cgroup/cgroup.controllers ] || { umount -R /sys/fs/cgroup; mount -t cgroup2 cgroup /sys/fs/cgroup; }
if [ -d "/sys/fs/cgroup/$1" ]; then find "/sys/fs/cgroup/$1" -depth -type d -exec rmdir {} +; fi
"""


def command(*words, check=True, timeout=PATIENCE * 10):
    run = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                         text=True, timeout=timeout)
    if check and run.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: exit code {run.returncode}\n{run.stdout}")
    return run


def why_not():
    """Why no machine can run here; "" if machines can run."""
    if os.geteuid() != 0:
        return "machines need root"
    for tool, package in (("systemd-nspawn", "systemd-container"), ("debootstrap", "debootstrap"), ("ip", "iproute2")):
        if shutil.which(tool) is None:
            return f"{tool} not found (Debian's package {package})"
    name = f"disttrain-probe-{os.getpid()}"
    if command("ip", "netns", "add", name, check=False).returncode != 0:
        return "this kernel, or a container around us, gives no network namespaces"
    ends = [f"disttrain-{end}{os.getpid() % 10000}" for end in "ab"]
    wire = command("ip", "link", "add", ends[0], "netns", name, "type", "veth", "peer", "name", ends[1], "netns", name,
                   check=False)
    command("ip", "netns", "del", name)  # also deletes the network interfaces in it
    if wire.returncode != 0:
        return f"this kernel gives no pairs of network interfaces (veth): {wire.stdout.strip()}"
    with tempfile.TemporaryDirectory() as folder:
        for part in ("lower", "upper", "work", "root"):
            (Path(folder) / part).mkdir()
        probe = command("unshare", "-m", "sh", "-c", 'cd "$0" && mount -t overlay overlay '
                        "-o lowerdir=lower,upperdir=upper,workdir=work root && mkdir cgroup && "
                        "mount -t cgroup2 cgroup cgroup && mkdir cgroup/disttrain-probe && rmdir cgroup/disttrain-probe",
                        folder, check=False)
        if probe.returncode != 0:
            return f"overlayfs and cgroup2 can't be mounted: {probe.stdout.strip()}"
    return make_base(BASE, INCLUDED)


def make_base(base, included):
    """Makes a clean Debian 12 with these packages in the folder, unless it is there. Returns why that failed, or ""."""
    if base.exists():
        return ""
    CACHE.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix="making-root.", dir=CACHE))
    try:
        run = command("debootstrap", "--variant=minbase", f"--include={','.join(included)}", "bookworm", making / "root", check=False,
                      timeout=900)
        if run.returncode != 0:
            return "debootstrap failed (no network?): " + run.stdout.strip().splitlines()[-1]
        try:
            os.rename(making / "root", base)
        except OSError:
            if not base.exists():  # if the folder exists, another run has made it in the meantime
                raise
        return ""
    finally:
        shutil.rmtree(making, ignore_errors=True)


def fetch_dependencies(packages):
    """Downloads the packages' dependencies into the root's apt cache, because machines have no internet access."""
    inside = [f"/packages/{package.name}" for package in packages]
    install = ["apt-get", "-y", "-q", "--no-install-recommends", "--download-only", "install", *inside]
    in_root = ["unshare", "-m", "bash", "-c", """
        base=$0 packages=$1
        shift
        mkdir -p "$base/packages" && mount --bind "$packages" "$base/packages" &&
        mount --bind /etc/resolv.conf "$base/etc/resolv.conf" && chroot "$base" env DEBIAN_FRONTEND=noninteractive "$@" """,
               BASE, packages[0].parent]
    if command(*in_root, *install[:1], "--no-download", *install[1:], check=False).returncode == 0:
        return
    command(*in_root, "apt-get", "-q", "update")
    command(*in_root, *install)


class Network:
    """The networks of two hosts, 10.79.0.1 and 10.79.0.2, joined by a veth pair."""

    def __init__(self):
        mark = os.getpid() % 10000
        self.names = [f"disttrain-m{mark}-{host}" for host in (1, 2)]
        for name in self.names:
            command("ip", "netns", "add", name)
            command("ip", "-n", name, "link", "set", "lo", "up")
        ends = [f"m{mark}-{host}" for host in (1, 2)]
        command("ip", "link", "add", ends[0], "netns", self.names[0], "type", "veth", "peer", "name", ends[1], "netns",
                self.names[1])
        for name, end, address in zip(self.names, ends, ("10.79.0.1/24", "10.79.0.2/24")):
            command("ip", "-n", name, "address", "add", address, "dev", end)
            command("ip", "-n", name, "link", "set", end, "up")

    def remove(self):
        for name in self.names:
            command("ip", "netns", "del", name, check=False)


class Machine:
    """One host. `folders`: folders of this machine that it may read, {path there: path here}."""

    def __init__(self, name, network, folders):
        self.name = f"{name}-{os.getpid()}"
        self.started = 0
        self.leader = None
        self.folder = Path(tempfile.mkdtemp(prefix=f"disttrain-machine-{name}-"))
        for part in ("root", "upper", "work"):
            (self.folder / part).mkdir()
        binds = [f"--bind-ro={here}:{there}" for there, here in folders.items()]
        self.console = open(self.folder / "console", "w+")
        self.process = subprocess.Popen(
            # With pdeathsig and --kill-child, the machine ends when the test ends, even if the test is killed.
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount",
             "--propagation", "private", "bash", "-c", BOOT, "bash", self.folder, BASE,
             f"disttrain-{self.name}", f"--machine={name}", f"--hostname={name}", f"--network-namespace-path=/run/netns/{network}", *binds],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=subprocess.STDOUT)
        try:
            self.leader = self.until("its first process", self._first_process)
            self.until("its systemd to be up", lambda: self.run("systemctl", "is-system-running", "--wait",
                                                                check=False).stdout.strip() in ("running", "degraded"))
        except BaseException:
            self.remove()
            raise

    def _first_process(self):
        """Pid here of the machine's process 1, which is in three pid namespaces: ours, unshare's and the machine's."""
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} didn't start:\n{(self.folder / 'console').read_text()}")
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"disttrain-{self.name}" in (entry / "cgroup").read_text():
                    ids = next(line for line in (entry / "status").read_text().splitlines() if line.startswith("NSpid:"))
                    if ids.split()[-1] == "1" and len(ids.split()) == 4:
                        return entry.name
            except (OSError, StopIteration):
                continue
        return None

    def words(self, *words):
        """The command line that runs `words` in the machine."""
        return ["nsenter", "--target", self.leader, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
                *map(str, words)]

    def run(self, *words, check=True, timeout=PATIENCE * 3):
        return command(*self.words(*words), check=check, timeout=timeout)

    def start(self, *words):
        """Starts a command in the background; it ends with stop() or with the machine."""
        self.started += 1
        unit = f"test-{self.started}"
        process = subprocess.Popen(self.words("systemd-run", "--quiet", "--collect", "--pipe", "--wait", f"--unit={unit}",
                                              "--setenv=HOME=/root", *words),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        process.unit = unit
        return process

    def stop(self, process):
        """Kills a command that start() started, if it still runs. Returns its output."""
        self.run("systemctl", "kill", "--signal=KILL", process.unit, check=False)
        return process.communicate(timeout=PATIENCE)[0]

    def read(self, path):
        return self.run("cat", path).stdout

    def write(self, path, text):
        subprocess.run(self.words("sh", "-c", 'mkdir -p "${1%/*}" && cat >"$1"', "sh", path), input=text, text=True,
                       check=True)

    def install(self, packages):
        return self.run("apt-get", "-y", "-q", "--no-install-recommends", "install",
                        *[f"/packages/{package.name}" for package in packages])

    def unit(self, unit):
        """The output of systemctl show, as a dictionary."""
        lines = self.run("systemctl", "show", unit).stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def journal(self, *matches):
        """The entries of the journal, each a dictionary of its fields."""
        lines = self.run("journalctl", "--no-pager", "--output=json", *matches).stdout.splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def until(self, what, predicate, patience=PATIENCE):
        """Waits for a true value of predicate() and returns it."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            value = predicate()
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"{self.name}: waited {patience} s for {what}\n{(self.folder / 'console').read_text()[-3000:]}")

    def remove(self):
        self.process.kill()
        self.process.wait()
        self.console.close()
        group = f"disttrain-{self.name}"

        def gone():
            return command("unshare", "-m", "--propagation", "private", "sh", "-c", REMOVE_GROUP, "sh", group,
                           check=False).returncode == 0
        deadline = time.monotonic() + PATIENCE
        while not gone() and time.monotonic() < deadline:
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)
