"""psd's own memory is at most what `disttrain plan` says."""
import json
import unittest
from pathlib import Path

from harness import SANITIZED, SystemTest

LONG = "epochs = 1000000"


def largest_own_bytes(pid):
    """The largest resident size, without the memory of workers that the ps has mapped."""
    sizes = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return 1024 * (int(sizes["VmHWM"].split()[0]) - int(sizes["RssShmem"].split()[0]))


@unittest.skipIf(SANITIZED, "a sanitizer needs more memory, for itself")
class MemoryTest(SystemTest):
    def test_psd_keeps_to_the_plan(self):
        for mode in ["async", "sync"]:
            for hidden in [32, 2000]:
                with self.subTest(mode=mode, hidden=hidden):
                    job = self.job(train=f'mode = "{mode}"\n{LONG}')
                    job.write_text(job.read_text().replace("[784, 32, 10]", f"[784, {hidden}, {hidden}, 10]"))
                    planned = json.loads(self.run_program("disttrain", "plan", job, "--json").out)["ps"][0]["bytes"]
                    process = self.start_up(job)
                    status = self.until_steps(50)
                    resident = largest_own_bytes(self.pid_of(status, "ps/0"))
                    self.assertEqual(self.run_program("disttrain", "kill").code, 0)
                    self.finish(process)
                    self.assertGreater(resident, 0)
                    self.assertLessEqual(resident, planned)


if __name__ == "__main__":
    unittest.main()
