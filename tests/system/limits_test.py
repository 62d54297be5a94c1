"""Programs that get less from the system than they need end with a sentence and a sysexits code, not with a crash."""
import os
import resource
import signal
import subprocess
import unittest

from harness import BIN, PATIENCE, SANITIZED, SystemTest
from ports import free_ports

CLUSTER = """
[cluster]
name = "limits"
[chief]
address = "127.0.0.1:{chief}"
state_directory = "{folder}/chief"
[metrics]
listen = "127.0.0.1:0"
[[ps]]
address = "127.0.0.1:{ps}"
shards = 4
[[worker]]
address = "127.0.0.1:{worker}"
"""
KIB = 1024
DAEMONS = ("chiefd", "psd", "workerd")
NOBODY = 65534


class LimitsTest(SystemTest):
    def setUp(self):
        super().setUp()
        chief, ps, worker = free_ports(3)
        self.cluster = self.folder / "cluster.toml"
        self.cluster.write_text(CLUSTER.format(folder=self.folder, chief=chief, ps=ps, worker=worker))

    def start_limited(self, program, *arguments, user=None, **limits):
        """Starts a program. `limits`: names of resource.RLIMIT_*, each with the value for its soft and hard limit."""
        def limit():
            for name, most in limits.items():
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        process = subprocess.Popen([BIN / program, *map(str, arguments)], env=self.environment, text=True, cwd="/",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=limit)
        self.processes.append(process)
        return process

    def run_limited(self, program, *arguments, **limits):
        return self.finish(self.start_limited(program, *arguments, **limits))

    def command_lines(self):
        for daemon in DAEMONS:
            yield daemon, "--cluster", self.cluster
        yield "disttrain", "up", "--job", self.job()

    def assert_ended(self, outcome, code, sentence):
        self.assertEqual(outcome.code, code, str(outcome))
        self.assertRegex(outcome.err + outcome.out, sentence)
        self.assertNotIn("crashed", outcome.err)

    def test_few_files(self):
        for daemon in DAEMONS:
            with self.subTest(daemon):
                self.assert_ended(self.run_limited(daemon, "--cluster", self.cluster, NOFILE=8), 78,
                                  "the limit of open files is 8; expected at least 64: raise `ulimit -n`")
        for files in range(4, 32, 2):
            with self.subTest(files):
                outcome = self.run_limited("disttrain", "up", "--job", self.job(train="steps = 1"), NOFILE=files)
                self.assertIn(outcome.code, (69, 75, 77, 78), str(outcome))
                self.assertRegex(outcome.err, "ulimit -n")

    def test_small_stack(self):
        for program, *arguments in self.command_lines():
            with self.subTest(program):
                self.assert_ended(self.run_limited(program, *arguments, STACK=64 * KIB), 78,
                                  "the limit of the stack is 64 KiB; expected at least 256: raise `ulimit -s`")

    @unittest.skipIf(SANITIZED == "thread", "ThreadSanitizer writes a file of its own before main()")
    def test_no_file_may_grow(self):
        for program, *arguments in (("chiefd", "--cluster", self.cluster), ("disttrain", "up", "--job", self.job())):
            with self.subTest(program):
                outcome = self.run_limited(program, *arguments, FSIZE=0)
                self.assertIn(outcome.code, (69, 74, 75, 77), str(outcome))
                self.assertIn("File too large", outcome.err)
                self.assertNotIn("crashed", outcome.err)

    # How much memory a program needs to start its threads depends on the machine. So this test tries many amounts.
    @unittest.skipIf(SANITIZED, "a sanitizer needs more memory, for itself")
    def test_little_memory(self):
        for daemon in ("chiefd", "psd"):
            codes = set()
            for megabytes in range(20, 260, 10):
                process = self.start_limited(daemon, "--cluster", self.cluster, AS=megabytes << 20)
                said = process.stderr.readline()
                process.terminate()  # with enough memory the program doesn't end by itself
                said += process.stderr.read()
                code = process.wait(PATIENCE)
                with self.subTest(daemon=daemon, megabytes=megabytes):
                    self.assertNotIn("crashed", said)
                    # exit code 127: the program loader had no memory for the libraries
                    self.assertIn(code, (0, -signal.SIGTERM, 75, 127), said)
                    if code == 75:
                        self.assertRegex(said, "out of memory|can't start a thread")
                codes.add(code)
            self.assertIn(75, codes)

    @unittest.skipIf(SANITIZED, "a sanitizer has threads and files of its own")
    def test_no_threads(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become a user without processes")
        self.folder.chmod(0o777)
        # If libtorch is in root's folder, another user can't run the daemons that need it.
        reachable = [daemon for daemon in DAEMONS if self.is_reachable(daemon)]
        if not reachable:
            self.skipTest(f"another user can't reach {BIN}")
        for daemon in reachable:
            with self.subTest(daemon):
                outcome = self.run_limited(daemon, "--cluster", self.cluster, user=NOBODY, NPROC=1)
                self.assert_ended(outcome, 75, "can't start a thread: raise `ulimit -u`")

    def is_reachable(self, daemon):
        return subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", BIN / daemon,
                               "--version"], capture_output=True, timeout=PATIENCE).returncode == 0


if __name__ == "__main__":
    unittest.main()
