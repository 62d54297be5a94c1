"""tools/check-trace finds each kind of problem in a trace."""
import copy
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "tools/check-trace"


def load():
    loader = importlib.machinery.SourceFileLoader("check_trace", str(PROGRAM))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_trace", loader))
    loader.exec_module(module)
    return module


check_trace = load()


def name(what, pid, tid, text):
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": text}}


def span(pid, tid, begin, duration):
    return {"ph": "X", "name": "work", "cat": "test", "ts": begin, "dur": duration, "pid": pid, "tid": tid, "args": {}}


def point(phase, pid, time):
    event = {"ph": phase, "name": "frame", "cat": "frame", "id": "1/0/1", "ts": time, "pid": pid, "tid": 1}
    return event if phase == "s" else {**event, "bp": "e"}


def clock(task, uncertainty):
    return {"task": task, "offset_us": 0, "uncertainty_us": uncertainty}


GOOD = {"otherData": {"program": "disttrain", "job": "quick", "id": 1, "mode": "sync", "profile_steps": [1, 1],
                      "clocks": [clock("worker/0", 2.0), clock("ps/0", 3.0)], "dropped": {}, "missing": [], "frames": 1,
                      "flows": 1},
        "traceEvents": [name("process_name", 1, 0, "worker/0"), name("thread_name", 1, 1, "push"),
                        name("process_name", 2, 0, "ps/0"), name("thread_name", 2, 1, "shard 0"),
                        span(1, 1, 10, 5), span(1, 1, 40, 10), span(2, 1, 20, 10), span(2, 1, 22, 4.5),
                        point("s", 1, 10), point("t", 2, 22), point("f", 1, 40)]}


class CheckTraceTest(unittest.TestCase):
    def problems(self, change):
        content = copy.deepcopy(GOOD)
        change(content)
        return "\n".join(check_trace.Trace(content).problems)

    def change_event(self, index, **values):
        return self.problems(lambda content: content["traceEvents"][index].update(values))

    def test_good_trace_has_no_problem(self):
        self.assertEqual(self.problems(lambda content: None), "")

    def test_missing_key(self):
        self.assertIn("['dur'] missing", self.problems(lambda content: content["traceEvents"][4].pop("dur")))

    def test_negative_duration(self):
        self.assertIn("negative time", self.change_event(4, dur=-1))

    def test_unknown_phase(self):
        self.assertIn("unknown ph", self.change_event(4, ph="Q"))

    def test_missing_fact(self):
        self.assertIn("otherData lacks clocks", self.problems(lambda content: content["otherData"].pop("clocks")))

    def test_empty_trace(self):
        self.assertIn("empty", self.problems(lambda content: content["traceEvents"].clear()))

    def test_process_and_row_without_a_name(self):
        self.assertIn("process 3 has no name", self.change_event(4, pid=3))
        self.assertIn("row 1/7 has no name", self.change_event(4, tid=7))

    def test_task_without_a_clock(self):
        self.assertIn("otherData.clocks lacks ps/0",
                      self.problems(lambda content: content["otherData"]["clocks"].pop()))

    def test_spans_that_overlap(self):
        self.assertIn("ps/0, shard 0", self.change_event(7, dur=9))
        self.assertEqual(self.change_event(7, dur=8), "", "two spans may end together")

    def test_flow_without_a_step(self):
        self.assertIn("flow 1/0/1 has only ['f', 's']", self.problems(lambda content: content["traceEvents"].pop(9)))

    def test_flow_with_two_ends(self):
        problems = self.problems(lambda content: content["traceEvents"].append(point("f", 1, 45)))
        self.assertIn("two events \"f\"", problems)

    def test_number_of_flows(self):
        self.assertIn("otherData.flows is 2", self.problems(lambda content: content["otherData"].update(flows=2)))

    def test_flow_outside_of_a_span(self):
        self.assertIn("is in no span", self.change_event(10, ts=60))

    def test_update_before_its_push_within_the_uncertainty(self):
        self.assertEqual(self.problems(lambda content: (content["traceEvents"][6].update(ts=5.5, dur=3.5),
                                                        content["traceEvents"][9].update(ts=5.5))), "")

    def test_update_before_its_push(self):
        self.assertIn("before \"s\"", self.problems(lambda content: (content["traceEvents"][6].update(ts=4, dur=3),
                                                                   content["traceEvents"][9].update(ts=4))))

    def test_answer_before_the_update(self):
        self.assertIn("before \"t\"", self.change_event(10, ts=11))

    def test_program(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(GOOD, file)
            file.flush()
            outcome = subprocess.run([sys.executable, PROGRAM, file.name], capture_output=True, text=True)
            self.assertEqual(outcome.returncode, 0, outcome)
            self.assertIn("4 spans, 1 flows of 1 frames, tasks worker/0, ps/0, missing none", outcome.stdout)
            file.seek(0)
            json.dump({**GOOD, "traceEvents": []}, file)
            file.truncate()
            file.flush()
            outcome = subprocess.run([sys.executable, PROGRAM, file.name], capture_output=True, text=True)
            self.assertEqual(outcome.returncode, 1, outcome)
            self.assertIn("traceEvents is missing or empty", outcome.stdout)


if __name__ == "__main__":
    unittest.main()
