"""A new user's first command on a bare Debian 12: tools/quickstart to the end of the training, and tools/test to the end
of the build, with the packages. A machine on which people develop has packages that tools/setup doesn't install, so it doesn't show that one
is missing.

It runs in a root that debootstrap makes, with the tree as it is here, tracked or not. The root uses this machine's network,
package servers and certificates. BUILD (environment) is a build folder, on whose disk the root needs up to 20 GB.
"""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import machines
from machines import command

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", SOURCE / "build/release")).resolve()
BASE = machines.CACHE / "bookworm-bare-1"  # when INCLUDED changes, raise this number
INCLUDED = ("ca-certificates", "git", "sudo", "python3-venv")
# With --kill-child the processes in the root end with the test.
ENTER = """
set -e
root=$1 ccache=$2; shift 2
mount -t proc proc "$root/proc"
mount -t tmpfs tmp "$root/tmp"
mount --rbind /dev "$root/dev"
if [ -n "$ccache" ]; then mount --bind "$ccache" "$root/root/.cache/ccache"; fi
exec chroot "$root" "$@"
"""
# What tells clients how to reach the package servers.
SHARED_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_INDEX_URL",
                    "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT")
SHARED_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/root/.config/pip/pip.conf", "/root/.netrc")


def why_not():
    """Why no bare root can be made here; "" if it can."""
    if os.geteuid() != 0:
        return "a root of its own needs root"
    if shutil.which("debootstrap") is None:
        return "debootstrap not found (Debian's package debootstrap)"
    probe = command("unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "none", "/mnt", check=False)
    if probe.returncode != 0:
        return f"this process can't mount file systems in its own namespace: {probe.stdout.strip()}"
    return machines.make_base(BASE, INCLUDED)


def share_package_servers(root):
    """Lets apt and pip in the root reach the package servers as they do here."""
    for name in SHARED_FILES:
        if Path(name).exists():
            (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, root / name[1:])
    # Without hooks, which may call programs that the root doesn't have.
    for file in Path("/etc/apt/apt.conf.d").iterdir():
        text = file.read_text(errors="replace")
        if "Acquire" in text and "Invoke" not in text:
            shutil.copy(file, root / "etc/apt/apt.conf.d")
    if Path("/etc/apt/auth.conf.d").exists():
        shutil.copytree("/etc/apt/auth.conf.d", root / "etc/apt/auth.conf.d", dirs_exist_ok=True)
    sources = [file for file in map(Path, ("/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources"))
               if file.exists() and "bookworm" in file.read_text()]
    if sources:
        (root / "etc/apt/sources.list").unlink()
        for file in sources:
            shutil.copy(file, root / str(file)[1:])
    authorities = Path("/usr/local/share/ca-certificates")
    if authorities.exists():
        shutil.copytree(authorities, root / "usr/local/share/ca-certificates", dirs_exist_ok=True)


class BareRoot:
    """A bare Debian 12 with this source in /root/disttrain."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="bare-root-", dir=BUILD))
        self.root = self.folder / "root"
        try:
            command("cp", "-a", BASE, self.root)
            share_package_servers(self.root)
            # Packages start no services, which would take ports of this machine.
            (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
            (self.root / "usr/sbin/policy-rc.d").chmod(0o755)
            self.run("update-ca-certificates")
            files = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                   capture_output=True, check=True).stdout.decode().split("\0")
            for name in filter(None, files):
                if (SOURCE / name).is_file():
                    (self.root / "root/disttrain" / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(SOURCE / name, self.root / "root/disttrain" / name, follow_symlinks=False)
        except BaseException:
            self.remove()
            raise

    def run(self, *words, ccache=None):
        """Runs a command in the root. Returns its exit code and what it printed. ccache: a folder of this machine for
        /root/.cache/ccache."""
        if ccache:
            (self.root / "root/.cache/ccache").mkdir(parents=True, exist_ok=True)
        variables = [f"{name}={os.environ[name]}" for name in SHARED_VARIABLES if name in os.environ]
        run = command("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation",
                      "private", "env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
                      "LC_ALL=C.UTF-8", "CI=true", "PIP_CERT=/etc/ssl/certs/ca-certificates.crt", *variables,
                      "bash", "-c", ENTER, "bash", self.root, ccache or "", *words, check=False, timeout=7200)
        return run.returncode, run.stdout

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def ccache_folder():
    """This machine's cache of compilations, which the root shares, so that its build takes minutes less. None: none."""
    run = command("ccache", "--get-config", "cache_dir", check=False) if shutil.which("ccache") else None
    folder = Path(run.stdout.strip()) if run and run.returncode == 0 else None
    return folder if folder and folder.is_dir() else None


class BareRootTest(unittest.TestCase):
    def in_bare_root(self, script, **options):
        root = BareRoot()
        self.addCleanup(root.remove)
        code, output = root.run("bash", "-c", f"cd /root/disttrain && {script}", **options)
        self.assertEqual(code, 0, output[-20000:])
        return output

    def test_quickstart_trains(self):
        output = self.in_bare_root("tools/quickstart")
        self.assertRegex(output, "test accuracy")
        print("\n".join(line for line in output.splitlines() if "test accuracy" in line), flush=True)

    def test_tools_test_installs_and_builds_all(self):
        # ctest only lists the tests.
        output = self.in_bare_root("tools/test release --show-only && tools/package", ccache=ccache_folder())
        self.assertRegex(output, r"Total Tests: \d{3}")
        self.assertRegex(output, r"workerd_.*\.deb")


def setUpModule():
    if reason := why_not():
        raise unittest.SkipTest(reason)


if __name__ == "__main__":
    unittest.main()
