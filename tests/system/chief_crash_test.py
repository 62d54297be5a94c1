"""A chief that crashes twice while it works for the same job sets this job aside and serves the others. A chief that is
killed takes its job up again, however often that happens."""
import os
import pathlib
import signal
import unittest

from absence_test import LONG, ClusterByHand


# The number of the call in which an event loop sleeps, and an instruction that no processor carries out.
SLEEP, BAD_INSTRUCTION = {"x86_64": ("232", bytes.fromhex("0f0b")),
                          "aarch64": ("22", bytes.fromhex("00000000"))}[os.uname().machine]


def plant_crash(process):
    """The process crashes as soon as its main thread wakes up: a bad instruction follows the call in which it sleeps."""
    call = [""]
    while call[0] != SLEEP:
        call = pathlib.Path(f"/proc/{process.pid}/syscall").read_text(encoding="ascii").split()
    with open(f"/proc/{process.pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(int(call[-1], 16))
        memory.write(BAD_INSTRUCTION)


class ChiefCrashTest(ClusterByHand):
    def end_chief(self, how):
        """Ends the chief by this signal, and starts the next one. SIGILL: by a crash."""
        chief = self.daemons["chief/0"]
        if how == signal.SIGILL:
            plant_crash(chief)
        else:
            os.kill(chief.pid, how)
        outcome = self.finish(chief)
        self.assertEqual(outcome.code, -how, str(outcome))
        self.start_daemon("chief/0")
        self.until_chief_answers(self.cluster)
        return outcome.err

    def test_job_that_crashes_the_chief_twice_is_set_aside_and_the_next_one_trains(self):
        bad = self.start_job()
        next_job = self.start("disttrain", "submit", self.job("next", train="epochs = 1"), "--json", "--cluster",
                              self.cluster)
        self.until("the second job to be queued", lambda: "next" in self.run_program(
            "disttrain", "status", "--all", "--cluster", self.cluster).out)
        for how in [signal.SIGKILL, signal.SIGKILL, signal.SIGABRT, signal.SIGABRT]:  # SIGABRT: as systemd's watchdog
            self.end_chief(how)
            self.assert_trains_on()
        self.assertIn("crashed: SIGILL at", self.end_chief(signal.SIGILL))
        self.assert_trains_on()
        self.end_chief(signal.SIGILL)
        failed = self.finish(bad)
        self.assertEqual((failed.code, failed.json["state"]), (1, "failed"), str(failed))
        self.assertIn("the chief has crashed 2 times while it worked for this job", failed.json["reason"])
        self.assert_finished(self.finish(next_job))
        self.end_chief(signal.SIGILL)  # no job runs, so this crash counts for none
        again = self.run_program("disttrain", "resubmit", "quick", "--cluster", self.cluster)
        self.assertEqual(again.code, 0, str(again))
        self.assert_trains_on()
        self.assertEqual(self.run_program("disttrain", "kill", "--cluster", self.cluster).code, 0)


if __name__ == "__main__":
    unittest.main()
