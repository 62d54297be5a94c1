"""Trainers that go wrong in every way that we know: each gives one clear error, the cluster is unharmed, and the next
job trains. tests/engine/trainer tests the same engine without daemons, and more of its messages."""
import os
import unittest
from pathlib import Path

from harness import BIN
from lasting_cluster import NUMPY_TRAINER, RAW_TRAINER, WORKERS, LastingClusterTest, numpy_python

STEP = "    job.push_pull({'w': np.zeros((2, 3))}, loss=0)\n"
# What a trainer does in each step before step 1000, and then.
LATE = NUMPY_TRAINER + "    if job.step_number < 1000:\n        " + STEP.strip() + "\n        continue\n"


class BadTrainerTest(LastingClusterTest):
    def assert_trainer_fails(self, script, *words, **keys):
        """Each case is one job in the same cluster."""
        return self.assert_fails(self.submit(self.trainer_job(script, **keys)), *words)

    # ---- before the first step ----

    def test_trainer_that_cant_start(self):
        self.assert_trainer_fails(NUMPY_TRAINER + STEP, "can't start the trainer \"/no/python\": No such file or directory",
                                  "model.trainer must begin with a program that every worker's host has", python="/no/python")
        self.assert_trainer_fails(NUMPY_TRAINER + STEP, "its folder \"/no/folder\" can't be used: No such file or directory",
                                  model='folder = "/no/folder"')
        plain = self.folder / "plain"
        plain.write_text("no program")
        self.assert_trainer_fails(NUMPY_TRAINER + STEP, "Permission denied", python=plain)
        job = self.trainer_job(NUMPY_TRAINER + STEP)
        (self.folder / "bad.py").unlink()
        self.assert_fails(self.submit(job), "the trainer ended with exit code 2 (while it started); its last lines:\n",
                          "can't open file", "bad.py")

    def test_folder_that_the_worker_may_not_enter(self):
        if os.geteuid() == 0:
            # Root may enter every folder, so for root the folder is a file.
            (self.folder / "closed").write_text("")
            words = "Not a directory"
        else:
            (self.folder / "closed").mkdir(mode=0)
            words = "Permission denied"
        self.assert_trainer_fails(NUMPY_TRAINER + STEP, "can't be used: " + words,
                                  model=f'folder = "{self.folder / "closed"}"')

    def test_script_that_isnt_a_trainer(self):
        self.assert_trainer_fails("", "ended with exit code 0 before it had called disttrain.init()")
        self.assert_trainer_fails("import no_such_module\n", "\n  ModuleNotFoundError: No module named 'no_such_module'\n")
        self.assert_trainer_fails("this is no Python\n", "\n  SyntaxError: invalid syntax\n")

    def test_model_that_cant_be(self):
        for changes, words in [("metrics=[f'm{i}' for i in range(1000)]", "with 1000 metrics, expected at most 64"),
                               ("variables=[[f'v{i}', [1], 'trainable'] for i in range(100_000)]", "with 100000 variables"),
                               ("variables=[['w', [2**40], 'trainable']]", "a dimension of the variable \"w\" = 1099511627776"),
                               ("variables=[['w', [2**34], 'trainable']]", "the job needs 65610 MiB"),
                               ("variables=[['../../x', [1], 'trainable'], ['../../x', [1], 'trainable']]", "two variables"),
                               ("records=0", "has no data set of its own, and the job has none")]:
            with self.subTest(changes):
                self.assert_trainer_fails(RAW_TRAINER + f"describe({changes})\nwhile True: next_step()\n", words)

    def test_garbage_on_the_socket(self):
        for garbage in ("os.urandom(1000)", "struct.pack('<II', 0xffffffff, 0xffffffff)", "struct.pack('<II', 2, 0) + b'[]'"):
            with self.subTest(garbage):
                self.assert_trainer_fails(RAW_TRAINER + f"connection.sendall({garbage})\nsignal.pause()\n",
                                          "bytes on its socket that aren't a message of the package disttrain (while it started)")

    def test_trainer_that_never_describes_its_model(self):
        self.assert_trainer_fails(RAW_TRAINER + "signal.pause()\n", "the trainer hasn't answered for 1 s (while it started)",
                                  model='start_timeout = "1s"')

    def test_trainer_that_is_killed_before_it_describes_its_model_is_started_again(self):
        script = """
import os, signal
try:
    open(f"tried-{os.getppid()}", "x").close()
    os.kill(os.getpid(), signal.SIGKILL)
except FileExistsError:
    pass
""" + NUMPY_TRAINER + STEP
        result = self.assert_finished(self.submit(self.trainer_job(script, train="epochs = 1")))
        self.assertEqual((result["recoveries"], result["warnings"]), (0, []))
        self.assertEqual(len(list(self.folder.glob("tried-*"))), WORKERS)
        logs = self.run_program("disttrain", "logs", "--cluster", self.cluster).out
        self.assertEqual(logs.count("(it is started again: the trainer was killed by signal 9"), WORKERS, logs)
        self.assert_unharmed()

    def test_initial_values_that_arent_finite(self):
        self.assert_trainer_fails(NUMPY_TRAINER.replace("np.zeros((2, 3))", "np.array([[0, 1, 2], [3, np.inf, np.nan]])") + STEP,
                                  "job bad failed because of worker/0: the trainer gave initial values that are NaN or "
                                  'infinite: the variable "w" has one at index 4 of its 6 values in row-major order; ')

    # ---- in a step ----

    def test_exception_in_step_1000_is_shown_as_python_prints_it(self):
        error = self.assert_trainer_fails(
            LATE + "    raise ValueError(f'bad label in step {job.step_number}')\n", 
            "the trainer ended with exit code 1 (in this worker's step 1",
            # So the job doesn't try it again and again.
            "each worker has failed in the same way, so another try would fail too: the trainer ended with exit code 1")
        self.assertRegex(error, r'its last lines:\n  Traceback \(most recent call last\):\n    File ".*/bad.py", line 10, in '
                                r"<module>\n(.*\n)*  ValueError: bad label in step \d+\nwhat to do: ")
        self.assertNotIn("\\n", error)

    def test_loop_that_ends_before_the_job_fails_it_at_once(self):
        outcome = self.submit(self.trainer_job(LATE + "    break\n"))
        self.assert_fails(outcome, "the trainer ended with exit code 0 before the job was over; its loop must run until "
                                   "job.batches() ends by itself: to end a job earlier, set train.steps, train.epochs or "
                                   "evaluate.stop_after (in this worker's step 1")
        self.assertNotIn("lost worker", outcome.out + outcome.err)

    def test_exception_in_the_final_evaluation_fails_the_job_at_once(self):
        outcome = self.submit(self.trainer_job(NUMPY_TRAINER.replace("for batch in", """
@job.on_evaluate(dataset=range(10))
def evaluate(batch):
    raise ValueError("bad label")
for batch in""") + STEP, train="epochs = 1"))
        self.assert_fails(outcome, "the trainer ended with exit code 1 (while it evaluated); its last lines:\n",
                          "\n  ValueError: bad label\n")
        self.assertEqual(outcome.json["recoveries"], 0)

    def test_kill_names_the_signal_and_the_memory(self):
        self.assert_trainer_fails(LATE + "    os.kill(os.getpid(), signal.SIGKILL)\n",
                                  "the trainer was killed by signal 9 (SIGKILL); possibly by the kernel for this host's memory "
                                  "or a cgroup's limit: see `dmesg | tail`")

    def test_crash_of_the_interpreter_shows_where(self):
        error = self.assert_trainer_fails(LATE + "    os.kill(os.getpid(), signal.SIGSEGV)\n",
                                          "the trainer was killed by signal 11 (Segmentation fault)",
                                          "Fatal Python error: Segmentation fault", 'bad.py", line 10 in <module>')
        self.assertIn("most recent call first", error)

    def test_allocation_that_fails_is_an_exception(self):
        self.assert_trainer_fails(LATE + "    import resource\n    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))\n"
                                         "    np.ones(1 << 32)\n", "MemoryError: Unable to allocate")

    def test_trainer_that_hangs_shows_where(self):
        error = self.assert_trainer_fails(LATE + "    while True:\n        signal.pause()\n", "the trainer hasn't answered for 2.25 s",
                                          "bad.py\", line 11 in <module>", job='stall_timeout = "3s"')
        self.assertIn("most recent call first", error)

    def test_closed_socket(self):
        self.assert_trainer_fails(RAW_TRAINER + "describe()\nnext_step()\nconnection.close()\nsignal.pause()\n",
                                  "the trainer closed its socket (in this worker's step 1)", job='stall_timeout = "3s"')

    def test_gradients_of_another_shape(self):
        error = self.assert_trainer_fails(NUMPY_TRAINER + "    job.push_pull({'w': np.zeros((3, 2))}, loss=0)\n",
                                          'the gradient of "w" has the shape [3, 2]; expected [2, 3], as the variable has')
        self.assertIn("(in this worker's step 1); its last lines:\n  Traceback", error)

    def test_answers_that_dont_fit(self):
        for answer, words in [("finish(step); finish(step)", "sent the end of a computation without being asked, or twice"),
                              ("finish(step, metrics=[1.0] * 100_000)", "with 100000 metrics, expected at most 128"),
                              ("finish(step, loss_sum='big')", "with loss_sum that isn't a number"),
                              ("finish(step, number=7)", "without being asked"),
                              ("send(type='ready', number=step['number'], end=7)", "announced the gradients of the words 0 to 7 of 6"),
                              ("connection.sendall(struct.pack('<II', 0xffffffff, 0) + b'x' * 100_000)", "aren't a message")]:
            with self.subTest(answer):
                self.assert_trainer_fails(RAW_TRAINER + f"describe()\nwhile True:\n    step = next_step(); {answer}\n", words)

    def test_state_that_isnt_finite(self):
        """The step of one NaN is skipped, and the state keeps its value. If each step has one, the job fails."""
        script = NUMPY_TRAINER.replace('np.zeros((2, 3))}', "np.zeros((2, 3))}, state={'seen': np.zeros(1, 'f4')}")
        self.assertNotEqual(script, NUMPY_TRAINER)
        push = "    job.push_pull({'w': np.zeros((2, 3))}, loss=0, state={'seen': STATE})\n"
        self.assert_trainer_fails(script + push.replace("STATE", "np.full(1, np.nan)"),
                                  "losses, gradients or state variables of 10 steps in a row weren't finite")
        once = script + "    assert np.isfinite(job.state['seen']).all()\n" + push.replace(
            "STATE", "np.full(1, np.inf if 7 in batch.x else 1)")
        self.assertEqual(self.assert_finished(self.submit(self.trainer_job(once, train="epochs = 1")))["skipped"], 1)

    def test_losses_and_gradients_that_arent_finite(self):
        for gradient, loss in (("0", "float('nan')"), ("0", "float('inf')"), ("np.nan", "0"), ("-np.inf", "0")):
            with self.subTest(gradient=gradient, loss=loss):
                self.assert_trainer_fails(NUMPY_TRAINER + f"    job.push_pull({{'w': np.full((2, 3), {gradient})}}, loss={loss})\n",
                                          "losses, gradients or state variables of 10 steps in a row weren't finite")

    def test_only_data_that_the_trainer_doesnt_have(self):
        """dataset[i] raises for some records: the error names it, however often another worker tries them again."""
        self.assert_trainer_fails(NUMPY_TRAINER.replace("range(10_000)", "Data()").replace("job = disttrain.init", """
class Data:
    def __len__(self): return 1000
    def __getitem__(self, i):
        if i > 500: raise FileNotFoundError(f"image {i}.png")
        return np.float32(i)
job = disttrain.init""") + STEP, "FileNotFoundError: image ")

    def test_checkpoints_that_the_job_takes_none_of_are_told_once(self):
        """Each worker tells it for each job, and not in each step."""
        job = self.trainer_job(NUMPY_TRAINER + "    job.checkpoint()\n" + STEP, train="epochs = 1")
        for jobs in (1, 2):
            self.assert_finished(self.submit(job))
            logs = self.run_program("disttrain", "logs", "--cluster", self.cluster).out
            self.assertEqual(logs.count("the trainer asks for a checkpoint, but the job takes none"), jobs * WORKERS, logs)

    # ---- processes and output ----

    def test_children_and_grandchildren_dont_outlive_the_trainer(self):
        self.assert_trainer_fails(LATE + """
    for _ in range(5):
        if os.fork() == 0:
            os.fork()
            while True: signal.pause()
    sys.exit(4)
""", "the trainer ended with exit code 4")
        self.assertEqual(len(self.processes_of_this_test()), len(self.daemons))

    def test_child_that_uses_the_job(self):
        self.assert_trainer_fails(NUMPY_TRAINER + "    if os.fork() == 0:\n    " + STEP + "    os.wait()\n    sys.exit(5)\n",
                                  "a child process of the trainer called job.push_pull(); only the process that called")

    def test_gigabyte_of_output(self):
        """Half of it has no newlines. The worker reads it fast enough for a step, and the log has a bounded part of it."""
        self.assert_trainer_fails(NUMPY_TRAINER + """
    line = 'x' * 99 + '\\n'
    for _ in range(50): sys.stderr.write(line * 100_000)
    for _ in range(50): sys.stdout.write('y' * 10_000_000)
    print('\\nthe end', flush=True)
    raise disttrain.DisttrainError('enough')
""", "the trainer can't go on: enough", "\n  disttrain.errors.DisttrainError: enough\n")
        logs = self.run_program("disttrain", "logs", "--cluster", self.cluster).out
        self.assertLess(len(logs), 4_000_000)

    def test_output_that_isnt_text(self):
        error = self.assert_trainer_fails(NUMPY_TRAINER + r"""
    sys.stdout.buffer.write(b'\x1b[2J\x1b]0;title\x07\xff\xfe\x00' * 200 + os.urandom(10_000))
    raise disttrain.DisttrainError('\x1b[31mred')
""", "\\x1b[31mred")
        self.assertNotIn("\x1b", error)


class UpTest(LastingClusterTest):
    """The same at the end of `disttrain up`, which most users see."""

    def up_fails(self, body):
        """Everything that `up` prints, in the order in which a terminal shows it, and the chief's log."""
        job = self.trainer_job(LATE + body)
        up = self.start_command("sh", "-c", 'exec "$0" "$@" 2>&1', BIN / "disttrain", "up", "--job", job)
        outcome = self.finish(up)
        self.assertEqual(outcome.code, 1, str(outcome))
        run = Path(outcome.out.splitlines()[-1].split("run folder: ")[1])
        return outcome.out, (run / "chief-0.log").read_text()

    def test_traceback_is_among_the_last_lines_and_in_real_lines(self):
        out, log = self.up_fails("    raise ValueError('bad label')\n")
        self.assertIn("  ValueError: bad label", out.splitlines()[-4:])
        self.assertRegex(out, r"\n  warning.*: lost worker/\d: the trainer ended with exit code 1 .*its last lines:\n    Traceback ")
        self.assertRegex(log, r" goes on without worker/\d: the trainer ended .*its last lines:\n      Traceback ")
        for text in (out, log):
            self.assertNotIn("\\n", text)

    def test_trainer_that_kills_its_worker_again_and_again_ends_the_job_with_that_reason(self):
        """After its first loss, each worker is killed before it has described the model. So it never takes part again."""
        job = self.trainer_job("""
import os, signal
from pathlib import Path
if list(Path.cwd().glob("killed-*")):
    os.kill(os.getppid(), signal.SIGKILL)
""" + LATE + "    Path(f'killed-{os.getpid()}').touch()\n    os.kill(os.getppid(), signal.SIGKILL)\n", job="max_restarts = 1")
        job.write_text(job.read_text().replace("max_restarts = 2\n", ""))
        outcome = self.finish(self.start("disttrain", "up", "--job", job))
        self.assertEqual(outcome.code, 1, str(outcome))
        self.assertRegex(outcome.err, "because of worker/[01]: it was lost more than job.max_restarts .1. times within "
                                      "job.restart_window, and too few other workers are left; the last loss: while it read the "
                                      "data and built the model, ")

    def test_output_of_trainers_is_shown_as_asked(self):
        """Rank 0's by default, and in the order in which it was printed."""
        script = NUMPY_TRAINER.replace("for batch in", 'print("begins", flush=True)\nfor batch in') + STEP
        script += '    if job.step_number % 100 == 0: print(f"in step {job.step_number}", flush=True)\nprint("is over", flush=True)\n'
        job = self.trainer_job(script, train='mode = "sync"\nepochs = 1')
        shown = {}
        for option in ("rank0", "all", "none"):
            outcome = self.finish(self.start("disttrain", "up", "--job", job, "--output", option, "--json"))
            self.assert_finished(outcome)
            shown[option] = [line for line in outcome.err.splitlines() if "begins" in line or "in step" in line or "is over" in line]
        self.assertEqual(shown["none"], [])
        self.assertEqual([line for line in shown["rank0"] if line == "begins"], ["begins"])
        self.assertEqual(shown["rank0"][-1], "is over", shown)
        self.assertLess(1, sum(line.startswith("in step ") for line in shown["rank0"]))
        for worker in ("worker/0", "worker/1"):
            self.assertIn(f"{worker}: begins", shown["all"])
            self.assertIn(f"{worker}: is over", shown["all"])

    def test_child_that_uses_the_job_while_the_trainer_goes_on(self):
        out, _ = self.up_fails("    if os.fork() == 0:\n    " + STEP + "    os.wait()\n" + STEP)
        self.assertIn("job bad failed because of worker/", out)
        self.assertIn("the trainer can't go on: a child process of the trainer called job.push_pull(); only the process that "
                      "called disttrain.init() may", out)
        self.assertIn("DisttrainError: a child process of the trainer called job.push_pull()", "\n".join(out.splitlines()[-4:]))

    def test_signal_is_among_the_last_lines(self):
        out, _ = self.up_fails("    os.kill(os.getpid(), signal.SIGSEGV)\n")
        # Behind the signal comes the stack that Python printed.
        last = "\n".join(out.splitlines()[-12:])
        self.assertRegex(last, "job bad failed because of worker/.*signal 11 .Segmentation fault. .in this worker's step")
        self.assertIn("Fatal Python error: Segmentation fault", last)

    def test_skipped_steps_are_told_once_and_counted_at_the_end_and_by_status(self):
        gradient = "np.full((2, 3), np.nan if 7 in batch.x else 0)"  # in the step that has record 7
        job = self.trainer_job(NUMPY_TRAINER + f"    job.push_pull({{'w': {gradient}}}, loss=0)\n", name="skips", train="epochs = 1")
        outcome = self.finish(self.start("disttrain", "up", "--job", job, "--ps", 1, "--workers", 2))
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertEqual(outcome.err.count("skipped, because a loss, a gradient, a state variable or an update was NaN or "
                                           "infinite"), 1, outcome.err)
        self.assertIn("  warning: 1 step was skipped, because", outcome.out)
        self.assertEqual(self.assert_finished(self.submit(job))["skipped"], 1)
        status = self.run_program("disttrain", "status", "--cluster", self.cluster)
        self.assertIn("  warning: 1 step was skipped, because", status.out)


if __name__ == "__main__":
    unittest.main()
