"""TensorBoard's event files of real jobs, read by a plain reader and by the package tensorboard."""
import json
import os
import signal
import subprocess
import sys
import unittest

import plain_events
from harness import ROOT, SystemTest

sys.path.insert(0, str(ROOT / "tests/python"))
from pythons import require_python  # noqa: E402

READER = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
run = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
run.Reload()
print(json.dumps({tag: [(e.step, e.value) for e in run.Scalars(tag)] for tag in run.Tags()["scalars"]}))
"""
TAGS = {"train/loss", "train/learning_rate", "train/steps_per_second", "train/examples_per_second", "evaluation/loss",
        "evaluation/accuracy"}


class EventFilesTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()
        self.events = self.checkpoints / "quick/events"

    def settings(self, *more):
        values = [f"checkpoint.directory={self.checkpoints}", *more]
        return [word for value in values for word in ("--set", value)]

    def curves(self):
        """The curves of a run, which both readers must agree on."""
        plain = plain_events.scalars(self.events)
        out = subprocess.run([require_python("tensorboard"), "-c", READER, self.events], check=True, capture_output=True, text=True).stdout
        theirs = {tag: [tuple(point) for point in points] for tag, points in json.loads(out).items()}
        self.assertEqual(theirs, plain)
        return theirs

    def assert_rising(self, curves):
        for tag, points in curves.items():
            steps = [step for step, _ in points]
            self.assertEqual(steps, sorted(set(steps)), tag)

    def test_curves_of_a_job_end_with_its_result(self):
        job = self.job(train='epochs = 20\noptimizer = { rule = "sgd", learning_rate = 0.125 }')
        result = self.assert_finished(self.up(job, *self.settings()))
        curves = self.curves()
        # Workers report their training metrics with their heartbeats. A short job may end before one has come.
        self.assertEqual(set(curves) - {"train/accuracy"}, TAGS)
        self.assert_rising(curves)
        self.assertGreaterEqual(len(curves["train/loss"]), 2)
        self.assertEqual(curves["train/loss"][-1][0], result["global_step"])
        self.assertAlmostEqual(curves["train/loss"][-1][1], result["loss"], places=5)
        self.assertEqual({value for _, value in curves["train/learning_rate"]}, {0.125})
        self.assertTrue(all(value > 0 for _, value in curves["train/steps_per_second"]))
        step, accuracy = curves["evaluation/accuracy"][-1]
        self.assertEqual(step, result["evaluation"]["step"])
        self.assertAlmostEqual(accuracy, result["evaluation"]["accuracy"], places=5)

    def test_rollback_hides_what_was_lost(self):
        job = self.job(train="epochs = 1000000")
        # The job takes no checkpoint but the one that the test asks for.
        process = self.start_up(job, *self.settings('checkpoint.every="1h"'))
        self.until_steps(100)
        self.assertEqual(self.run_program("disttrain", "checkpoint", "save").code, 0)

        def beyond_a_checkpoint():
            status = self.status()
            points = plain_events.scalars(self.events).get("train/loss", []) if self.events.exists() else []
            return status and status["checkpoint"] and points and \
                points[-1][0] > int(status["checkpoint"].rsplit("-", 1)[1]) + 100 and status
        status = self.until("points beyond a checkpoint", beyond_a_checkpoint)
        os.kill(self.pid_of(status, "ps/0"), signal.SIGKILL)
        status = self.until("a rollback", lambda: (self.status() or {}).get("recoveries") and self.status())
        self.until_steps(status["global_step"] + 200)
        self.assertEqual(self.run_program("disttrain", "kill").code, 0)
        self.finish(process)
        rolled_back = next(event for event in self.restarts() if event["step"] > 1)
        curves = self.curves()
        self.assert_rising(curves)
        shown = {step for points in curves.values() for step, _ in points}
        written = {event["step"] for event in plain_events.events(self.events) if "scalars" in event}
        self.assertTrue(written - shown, f"nothing was hidden by {rolled_back}")

    def test_chief_that_is_restarted_hides_nothing(self):
        process = self.start_up(self.job(train="epochs = 1000000"), *self.settings('checkpoint.every="1h"'))
        self.until_steps(100)
        self.assertEqual(self.run_program("disttrain", "checkpoint", "save").code, 0)
        saved = int(self.status()["checkpoint"].rsplit("-", 1)[1])

        def far():
            points = plain_events.scalars(self.events).get("train/loss", []) if self.events.exists() else []
            return points and points[-1][0] > saved + 1000
        self.until("points beyond the checkpoint", far)
        status = self.status()
        os.kill(self.pid_of(status, "chief/0"), signal.SIGKILL)
        before = plain_events.scalars(self.events)["train/loss"]

        def files():
            return {event["file"] for event in plain_events.events(self.events) if "scalars" in event}
        self.until("points of another chief", lambda: len(files()) > 1)
        self.until_steps(self.status()["global_step"] + 500)
        self.assertEqual(self.run_program("disttrain", "stop").code, 0)
        self.finish(process)
        curves = self.curves()
        self.assert_rising(curves)
        self.assertEqual(curves["train/loss"][:len(before)], before)
        self.assertGreaterEqual(self.restarts()[-1]["step"], before[-1][0])
        steps = dict(curves["train/steps_per_second"])
        for step, examples in curves["train/examples_per_second"]:
            self.assertAlmostEqual(examples / steps[step], 50, delta=10, msg=f"step {step}: a batch has 50 examples")

    def restarts(self):
        return [event for event in plain_events.events(self.events) if event.get("restart")]

    def test_second_run_is_the_same_curve(self):
        first = self.assert_finished(self.up(self.job(train="epochs = 10"), *self.settings()))
        second = self.assert_finished(self.up(self.job(train="epochs = 20"), *self.settings()))
        self.assertGreater(second["global_step"], first["global_step"])
        curves = self.curves()
        self.assert_rising(curves)
        steps = [step for step, _ in curves["evaluation/accuracy"]]
        self.assertEqual(steps, [first["global_step"], second["global_step"]],
                         f"{second}; the last events: {plain_events.events(self.events)[-8:]}")

    def test_folder_that_cannot_be_written_stops_nothing(self):
        (self.checkpoints / "quick").mkdir()
        self.events.symlink_to("/proc")  # a folder without room for files
        process = self.start_up(self.job(train="epochs = 1000000"), *self.settings())
        self.until("the log to say so", lambda: "event files can't be written; training goes on" in
                   self.run_program("disttrain", "logs").out)
        self.until_steps(self.until_steps(1)["global_step"] + 100)
        self.assertEqual(self.run_program("disttrain", "stop").code, 0)
        self.finish(process)


if __name__ == "__main__":
    unittest.main()
