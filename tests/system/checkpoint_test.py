"""Problems with a checkpoint folder: each gives a clear message, the previous checkpoint stays, and training goes
on."""
import json
import os
import shutil
import signal
import subprocess
import unittest

from harness import BIN, SystemTest

LONG = "epochs = 1000000"


def can_mount():
    """Returns True if this process can mount a small file system in its own namespace."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return shutil.which("unshare") and subprocess.run(command, capture_output=True).returncode == 0


class CheckpointTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()

    def settings(self, every=200):
        return ["--set", f"checkpoint.directory={self.checkpoints}", "--set", f"checkpoint.every_steps={every}"]

    def train(self, epochs=5, *arguments, ps=1):
        """Runs a job with checkpoints to its end."""
        return self.up(self.job(train=f"epochs = {epochs}"), *self.settings(), *arguments, ps=ps)

    def saved(self):
        """The checkpoints of the job, oldest first."""
        folder = self.checkpoints / "quick"
        names = [entry for entry in folder.iterdir() if entry.name.startswith("gen-")] if folder.exists() else []
        return sorted(names, key=lambda path: path.name.split("-step-")[1])

    def events(self, process, *kinds):
        """Waits until all these kinds of events have occurred. Returns all events."""
        def told():
            outcome = self.run_program("disttrain", "events", "--json")
            events = json.loads(outcome.out) if outcome.code == 0 and outcome.out.strip() else []
            return events if {event["kind"] for event in events} >= set(kinds) else None
        events = self.until(f"events {kinds}", told)
        self.assertIsNone(process.poll(), "the job has ended")
        return events

    def text_of(self, events, kind):
        return " ".join(event["text"] for event in events if event["kind"] == kind)

    def goes_on(self, process):
        """Waits until the job has made more steps."""
        before = self.until_steps(1)["global_step"]
        self.until_steps(before + 50)
        self.assertIsNone(process.poll())

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        self.finish(process)

    def damage(self, checkpoint, how):
        shard = next(iter(checkpoint.glob("*.safetensors")))
        content = bytearray(shard.read_bytes())
        if how == "one bit":
            content[-5] ^= 0x10
        elif how == "truncated":
            content = content[:-7]
        shard.write_bytes(content)

    def test_damaged_checkpoint_is_set_aside_and_the_one_before_taken(self):
        for how in ("one bit", "truncated"):
            with self.subTest(how):
                shutil.rmtree(self.checkpoints)
                self.checkpoints.mkdir()
                self.assert_finished(self.train(5))
                newest, before = self.saved()[-1], self.saved()[-2]
                self.damage(newest, how)
                process = self.start_up(self.job(train=LONG), *self.settings(1000000))
                self.until_steps(1)
                events = self.events(process, "checkpoint_broken", "restored")
                self.assertIn(newest.name, self.text_of(events, "checkpoint_broken"))
                self.assertIn(before.name, self.text_of(events, "restored"))
                self.goes_on(process)
                self.stop(process)

    def test_damage_is_found_by_verify(self):
        self.assert_finished(self.train(5))
        newest = self.saved()[-1]
        self.assertEqual(self.run_program("disttrain", "checkpoint", "verify", newest).code, 0)
        self.damage(newest, "one bit")
        outcome = self.run_program("disttrain", "checkpoint", "verify", newest)
        self.assertEqual(outcome.code, 65, str(outcome))

    def test_manifest_of_a_newer_version_is_refused_with_a_sentence(self):
        self.assert_finished(self.train(5))
        for checkpoint in self.saved():
            manifest = checkpoint / "MANIFEST.json"
            content = json.loads(manifest.read_text())
            content["format"] = 1000
            manifest.write_text(json.dumps(content))
        outcome = self.up(self.job(train="epochs = 6"), *self.settings())
        self.assertNotEqual(outcome.code, 0, str(outcome))
        self.assertIn("version", outcome.err + outcome.out)
        self.assertTrue(self.saved(), "a checkpoint of a newer version must stay")

    def test_two_jobs_on_one_folder_are_kept_apart(self):
        process = self.start_up(self.job(train=LONG), *self.settings())
        self.until_steps(1)
        # The second job runs in another cluster, with another runtime folder.
        other = self.folder / "other"
        other.mkdir()
        second = self.finish(self.start("disttrain", "up", "--job", self.job(), "--ps", 1, "--workers", 1, "--json",
                                        *self.settings(), environment={"XDG_RUNTIME_DIR": str(other)}))
        self.assertEqual(second.code, 78, str(second))
        self.assertIn("quick", second.err + second.out)
        self.goes_on(process)
        self.stop(process)

    def test_vanished_folder_costs_checkpoints_but_no_steps(self):
        process = self.start_up(self.job(train=LONG), *self.settings(100))
        self.events(process, "checkpoint")
        # The folder disappears at one moment (a rename is atomic), while checkpoints are being written.
        self.checkpoints.rename(self.folder / "away")
        events = self.events(process, "checkpoint_failed")
        self.assertIn(str(self.checkpoints), self.text_of(events, "checkpoint_failed"))
        self.goes_on(process)
        self.stop(process)

    def test_folder_without_permission_is_refused_at_the_start(self):
        self.checkpoints.chmod(0o500)
        # Drops the capabilities of root, because they would let the process write everywhere.
        as_user = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
        outcome = self.finish(self.start_command(*as_user, BIN / "disttrain", "up", "--job", self.job(train="epochs = 5"),
                                                 "--ps", 1, "--workers", 2, "--json", *self.settings()))
        self.assertEqual(outcome.code, 77, str(outcome))
        self.assertIn(str(self.checkpoints), outcome.err + outcome.out)

    def test_full_disk_leaves_the_checkpoint_before_and_training_running(self):
        if not can_mount():
            self.skipTest("this process can't mount file systems in its own namespace")
        job = self.job(train=LONG)
        script = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
        process = subprocess.Popen(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script,
                                    self.checkpoints, BIN / "disttrain", "up", "--job", job, "--ps", "1", "--workers",
                                    "2", "--json", *self.settings(100), "--set", "checkpoint.keep=1"],
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        self.events(process, "checkpoint")
        inside = f"/proc/{process.pid}/root{self.checkpoints}"
        filler = f"{inside}/filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        events = self.events(process, "checkpoint_failed")
        self.assertIn("No space left", self.text_of(events, "checkpoint_failed"))
        self.goes_on(process)
        kept = [name for name in os.listdir(f"{inside}/quick") if name.startswith("gen-")]
        self.assertTrue(kept)
        os.remove(filler)
        taken = len([event for event in events if event["kind"] == "checkpoint"])
        self.until("a checkpoint after there is room again",
                   lambda: len([e for e in self.events(process) if e["kind"] == "checkpoint"]) > taken)
        self.stop(process)


if __name__ == "__main__":
    unittest.main()
