"""Tests that run at the same time never get the same port."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import ports

TAKE = "import ports, sys; ports.LOCKS.mkdir(exist_ok=True); print(ports.take(int(sys.argv[1])))"


class PortsTest(unittest.TestCase):
    def test_a_port_is_locked_for_a_process_with_another_folder_for_temporary_files(self):
        port, = ports.free_ports(1)
        with tempfile.TemporaryDirectory() as folder:
            for environment in (os.environ, {**os.environ, "TMPDIR": folder}):
                taken = subprocess.run([sys.executable, "-c", TAKE, str(port)], env=environment, text=True,
                                       cwd=Path(__file__).parent, stdout=subprocess.PIPE, check=True)
                self.assertEqual(taken.stdout, "False\n")


if __name__ == "__main__":
    unittest.main()
