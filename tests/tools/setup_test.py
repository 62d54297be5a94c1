#!/usr/bin/env python3
"""Runs tools/setup with stand-ins for the system's tools: checks what it does, and its message when it fails."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "tools" / "setup"
# tools/setup may use these real tools. All other commands that it calls must be stand-ins.
REAL = ("bash env dirname basename sed tr grep awk cut head tail cat mkdir mktemp mv rm df nproc printf g++ ls "
        "touch").split()


class Setup(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="disttrain-setup-"))
        self.addCleanup(shutil.rmtree, self.home)
        self.bin = self.home / "bin"
        self.bin.mkdir()
        for tool in REAL:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.calls = self.home / "calls"
        self.calls.write_text("")
        self.os_release = self.home / "os-release"
        self.os_release.write_text('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n')
        self.stand_in("id", "echo 0")
        self.stand_in("dpkg-query", "echo 'install ok installed'")
        self.stand_in("apt-get")

    def stand_in(self, name, body="exit 0"):
        """Makes a tool that records its call and then runs `body`."""
        file = self.bin / name
        file.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.calls}\n{body}\n')
        file.chmod(0o755)

    def with_venvs(self):
        torch_python = [("torch-python-2.11.0", file) for file in (
            "torch/lib/libtorch_cpu.so", "safetensors/numpy.py", "safetensors/__init__.py", "sympy/__init__.py",
            "torchvision/__init__.py", "transformers/__init__.py", "truststore/__init__.py")]
        for name, file in (*torch_python, ("torch-2.11.0", "torch/lib/libtorch_cpu.so"), ("arrow-26.0.1", "pyarrow/libparquet.so.2600"),
                           ("safetensors-0.8.0", "safetensors/numpy.py"),
                           ("tensorboard-2.20.0", "tensorboard/version.py"), ("jax-0.10.2", "jax/version.py"),
                           ("pjrt-plugin-0.0.1", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so")):
            path = self.home / "cache/disttrain" / name / "lib/python3.11/site-packages" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")

    def run_setup(self, *arguments, **variables):
        environment = {"PATH": str(self.bin), "HOME": str(self.home), "XDG_CACHE_HOME": str(self.home / "cache"),
                       "DISTTRAIN_OS_RELEASE": str(self.os_release), "TMPDIR": str(self.home), **variables}
        run = subprocess.run([str(SETUP), *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def assert_fails(self, *sentences, code=1, **variables):
        found, output = self.run_setup(**variables)
        self.assertEqual(found, code, output)
        for sentence in sentences:
            self.assertIn(sentence, output)
        left = [p.name for p in self.home.iterdir() if p.name not in ("bin", "calls", "os-release", "cache")]
        self.assertEqual(left, [], "temporary files were left")

    def test_WithAllThereItInstallsNothing(self):
        self.with_venvs()
        code, output = self.run_setup()
        self.assertEqual(code, 0, output)
        self.assertIn("ready", output)
        self.assertNotIn("apt-get", self.calls.read_text())

    def test_RootInstallsOnlyWhatIsMissing(self):
        self.with_venvs()
        self.stand_in("dpkg-query", 'case "$*" in *mold*|*ninja-build*) exit 1;; esac; echo "install ok installed"')
        code, output = self.run_setup()
        self.assertEqual(code, 0, output)
        self.assertIn("apt-get -y -q -o DPkg::Lock::Timeout=300 install --no-install-recommends ninja-build mold\n",
                      self.calls.read_text())

    def test_BuildLeavesOutWhatOnlyTestsNeed(self):
        self.with_venvs()
        shutil.rmtree(self.home / "cache/disttrain/safetensors-0.8.0")
        for name in ("tensorboard-2.20.0", "jax-0.10.2", "pjrt-plugin-0.0.1", "torch-python-2.11.0"):
            shutil.rmtree(self.home / "cache/disttrain" / name)
        self.stand_in("dpkg-query", "exit 1")
        code, output = self.run_setup("build")
        self.assertEqual(code, 0, output)
        install = next(call for call in self.calls.read_text().splitlines() if " install " in call)
        self.assertIn(" libasio-dev ", install)
        for package in ("chromium", "prometheus", "libgtest-dev", "debootstrap", "lintian", "scdoc", "ccache"):
            self.assertNotIn(package, install.split())
        for name in ("tensorboard", "jax", "pjrt", "torch_python"):
            self.assertNotIn(name, output)

    def test_TorchForPythonIsInstalledUnlessItIsLeftOut(self):
        self.with_venvs()
        code, output = self.run_setup()
        self.assertEqual(code, 0, output)
        self.assertIn(f"torch_python 2.11.0: is installed in {self.home}/cache/disttrain/torch-python-2.11.0", output)
        code, output = self.run_setup("--without-torch")
        self.assertEqual(code, 0, output)
        self.assertNotIn("torch_python", output)

    def test_TorchForPythonWithoutWhatTheExamplesUseIsInstalledAgain(self):
        self.with_venvs()
        folder = self.home / "cache/disttrain/torch-python-2.11.0/lib/python3.11/site-packages"
        shutil.rmtree(folder / "transformers")
        (self.bin / "df").unlink()
        self.stand_in("df", "echo 'header'; echo 'disk 5000 4800 200 96% /'")
        code, output = self.run_setup()
        self.assertEqual(code, 1, output)
        self.assertIn("takes 4.3 GB and about two minutes; with --without-torch", output)
        self.assertIn("no disk space for torch_python", output)

    def test_UnknownWordIsAUsageError(self):
        code, output = self.run_setup("tests")
        self.assertEqual(code, 64, output)
        self.assertIn("expected build, fuzz or --without-torch, or nothing for all but fuzz", output)

    def test_UserInstallsThroughSudo(self):
        self.with_venvs()
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", 'if [ "$1" = -n ]; then exit 0; fi; exec "$@"')
        self.stand_in("dpkg-query", "exit 1")
        code, output = self.run_setup()
        self.assertEqual(code, 0, output)
        self.assertIn("sudo env DEBIAN_FRONTEND=noninteractive apt-get", self.calls.read_text())

    def test_NeitherRootNorSudoNamesTheCommandForRoot(self):
        self.stand_in("id", "echo 1000")
        self.stand_in("dpkg-query", "exit 1")
        self.assert_fails("not root and no sudo", "apt-get install build-essential cmake", code=77)

    def test_SudoWithoutATerminalToAskOnSaysSo(self):
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", "exit 1")
        self.stand_in("dpkg-query", "exit 1")
        self.assert_fails("sudo wants a password", code=77)

    def test_AnotherSystemIsNamed(self):
        self.os_release.write_text('PRETTY_NAME="Fedora Linux 40"\nID=fedora\n')
        self.assert_fails("this is Fedora Linux 40; tools/setup knows Debian 12 and later only")

    def test_NoNetworkForPackagesIsSaid(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("apt-get", "echo \"Err:1 x  Temporary failure resolving 'x'\"; exit 100")
        self.assert_fails("apt-get update failed: no network")

    def test_CertificateThatIsNotTrustedIsSaid(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("apt-get", "echo 'Certificate verification failed: The certificate is NOT trusted.'; exit 100")
        self.assert_fails("apt-get update failed: the package server's certificate isn't trusted here")

    def test_FullDiskWhileInstallingPackagesIsSaid(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("apt-get", 'case "$*" in *update*) exit 0;; esac; '
                      'echo "E: You don\'t have enough free space in /var/cache/apt/archives/."; exit 100')
        self.assert_fails("apt-get install failed: the disk is full")

    def test_PackageThatIsNotOfferedIsSaid(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("apt-get", 'case "$*" in *update*) exit 0;; esac; '
                      'echo "E: Unable to locate package mold"; exit 100')
        self.assert_fails("a package isn't offered here")

    def test_OldCompilerIsNamed(self):
        self.with_venvs()
        (self.bin / "g++").unlink()
        self.stand_in("g++", "echo 10")
        self.assert_fails("g++ is version 10; expected 12 or later")

    def test_NoSpaceForLibtorchIsSaidBeforeItBegins(self):
        (self.bin / "df").unlink()
        self.stand_in("df", "echo 'header'; echo 'disk 5000 4800 200 96% /'")
        self.assert_fails("has 200 MB free, 3000 are needed")
        self.assertEqual(list((self.home / "cache/disttrain").iterdir()), [])

    def test_CacheThatCannotBeWrittenIsSaid(self):
        (self.home / "cache").write_text("a file, not a folder")
        self.assert_fails("can't create", "set XDG_CACHE_HOME", code=77)

    @unittest.skipUnless(os.path.exists("/usr/bin/python3"), "no /usr/bin/python3 here")
    def test_NoNetworkForLibtorchIsSaidAndNothingIsLeft(self):
        (self.bin / "df").unlink()
        self.stand_in("df", "echo 'header'; echo 'disk 9000 0 9000 0% /'")
        self.assert_fails("pip install torch==2.11.0", "no network", PIP_CONFIG_FILE="/dev/null", PIP_RETRIES="0",
                          PIP_INDEX_URL="http://127.0.0.1:1/simple", PIP_DEFAULT_TIMEOUT="2")
        self.assertEqual(list((self.home / "cache/disttrain").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
