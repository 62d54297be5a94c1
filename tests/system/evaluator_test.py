"""Evaluators: they evaluate the checkpoints of a job while it trains, and the job stops early and keeps the best."""
import json
import os
import re
import signal
import struct
import unittest

from harness import SystemTest

SYNC = 'mode = "sync"\nepochs = 4'
LONG = "epochs = 1000000"


def tensors_and_metadata(path):
    """The bytes of all tensors by name, and the metadata of a safetensors file."""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    metadata = header.pop("__metadata__", {})
    data = content[8 + size:]
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()}, metadata


class EvaluatorTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()

    def settings(self, every=10, keep=100000, **evaluate):
        sets = {"checkpoint.directory": self.checkpoints, "checkpoint.every_steps": every, "checkpoint.keep": keep}
        sets.update({f"evaluate.{key}": value for key, value in evaluate.items()})
        return [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]

    def with_evaluator(self, *arguments, **settings):
        return ["--evaluators", 1, *self.settings(**settings), *arguments]

    def saved(self):
        """The paths of the job's checkpoints by their steps."""
        folder = self.checkpoints / "quick"
        names = [entry for entry in folder.iterdir() if entry.name.startswith("gen-")] if folder.exists() else []
        return {int(path.name.split("-step-")[1]): path for path in names}

    def evaluated_steps(self):
        """The steps of the checkpoints that the evaluator says it has evaluated."""
        outcome = self.run_program("disttrain", "logs", "--task", "evaluator/0")
        return [int(step) for step in re.findall(r"evaluated the checkpoint of step (\d+)", outcome.out)]

    def until_status(self, what, predicate):
        def judged():
            status = self.status()
            return status if status and predicate(status) else None
        return self.until(what, judged)

    def test_the_final_evaluation_is_that_of_a_worker(self):
        """The evaluator reads the parameters from the checkpoint, and gets the same numbers as a worker that pulls them
        from the ps tasks."""
        by_worker = self.assert_finished(self.up(self.job(train=SYNC)))
        by_evaluator = self.assert_finished(self.up(self.job(train=SYNC), *self.with_evaluator()))
        for key in ("loss", "examples", "step", "parameters_hash"):
            self.assertEqual(by_evaluator["evaluation"][key], by_worker["evaluation"][key], key)
        self.assertEqual(by_evaluator["evaluations_waiting"], 0)
        self.assertIn("evaluator/0", [task["task"] for task in by_evaluator["tasks"]])

    def test_a_killed_evaluator_misses_no_checkpoint_and_disturbs_nobody(self):
        process = self.start_up(self.job(train=LONG), *self.with_evaluator(every=300))
        self.until_status("an evaluation", lambda status: status["evaluation"])
        for _ in range(2):
            status = self.status()
            os.kill(self.pid_of(status, "evaluator/0"), signal.SIGKILL)
            step = status["evaluation"]["step"]
            after = self.until_status("an evaluation by the next process", lambda now: (
                now["evaluation"]["step"] > step
                and self.pid_of(now, "evaluator/0") not in (None, self.pid_of(status, "evaluator/0"))))
            self.assertEqual((after["recoveries"], after["state"]), (0, "running"))
            self.assertGreater(after["global_step"], status["global_step"])
        # Stop the checkpoints, so that the evaluator catches up.
        last = max(self.saved())
        self.until_status("the evaluation of the checkpoints so far", lambda now: now["evaluation"]["step"] >= last)
        missing = {step for step in self.saved() if step <= last} - set(self.evaluated_steps())
        self.assertEqual(missing, set())
        process.send_signal(signal.SIGINT)
        self.finish(process)

    def test_a_job_without_progress_finishes_early(self):
        job = self.job(train=LONG + "\noptimizer = { rule = \"sgd\", learning_rate = 1e-30 }")
        result = self.assert_finished(self.up(job, *self.with_evaluator(every=50, stop_after=3)))
        self.assertIn("finished early: 3 evaluations in a row had no better loss", result["reason"])
        self.assertIn("evaluate.stop_after", result["reason"])
        self.assertEqual(max(self.saved()), result["global_step"])
        self.assertEqual(result["evaluation"]["step"], result["global_step"])

    def test_a_job_finishes_early_without_an_evaluator_too(self):
        job = self.job(train=LONG + "\noptimizer = { rule = \"sgd\", learning_rate = 1e-30 }")
        result = self.assert_finished(
            self.up(job, "--set", "evaluate.every_steps=50", "--set", "evaluate.stop_after=2",
                    "--set", "evaluate.metric=accuracy"))
        self.assertIn("finished early: 2 evaluations in a row had no better accuracy", result["reason"])

    def test_the_best_checkpoints_are_kept_and_the_best_one_exported(self):
        job = self.job(train="epochs = 10\noptimizer = { rule = \"sgd\", learning_rate = 3.0 }")
        result = self.assert_finished(self.up(job, *self.with_evaluator(every=20, keep=1, keep_best=2)))
        best = result["best_checkpoints"]
        self.assertEqual(len(best), 2)
        self.assertLessEqual(best[0]["value"], best[1]["value"])
        self.assertLessEqual(best[0]["value"], result["evaluation"]["loss"])
        for one in best:
            self.assertIn(one["step"], self.saved())
        self.assertLessEqual(len(self.saved()), 3)
        exported, metadata = tensors_and_metadata(self.checkpoints / "quick" / "best.safetensors")
        self.assertEqual(metadata["disttrain.step"], str(best[0]["step"]))
        self.assertEqual(metadata["disttrain.metric"], "loss")
        self.assertAlmostEqual(float(metadata["disttrain.value"]), best[0]["value"], places=5)
        outcome = self.run_program("disttrain", "checkpoint", "export", best[0]["path"], self.folder / "x.safetensors")
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertEqual(exported, tensors_and_metadata(self.folder / "x.safetensors")[0])

    def test_a_restarted_chief_remembers_the_best(self):
        process = self.start_up(self.job(train=LONG), *self.with_evaluator(every=300, keep=1, keep_best=1))
        before = self.until_status("a best checkpoint", lambda status: status["best_checkpoints"])
        os.kill(self.pid_of(before, "chief/0"), signal.SIGKILL)
        after = self.until_status("the next chief", lambda status: (
            self.pid_of(status, "chief/0") != self.pid_of(before, "chief/0")))
        self.assertLessEqual(after["best_checkpoints"][0]["value"], before["best_checkpoints"][0]["value"])
        step = after["evaluation"]["step"]
        self.until_status("a further evaluation", lambda status: status["evaluation"]["step"] > step)
        process.send_signal(signal.SIGINT)
        self.finish(process)

    def test_an_evaluator_needs_checkpoints(self):
        self.assert_refused(self.up(self.job(), "--evaluators", 1), 78, "an evaluator needs checkpoints",
                            "checkpoint.directory")

    def test_a_metric_that_the_model_lacks_is_refused(self):
        outcome = self.up(self.job(), *self.with_evaluator(keep_best=1, metric="auc"))
        self.assertEqual(outcome.code, 78, str(outcome))
        self.assertIn('evaluate.metric is "auc", but the model\'s metrics are "loss", "accuracy"', outcome.json["reason"])


if __name__ == "__main__":
    unittest.main()
