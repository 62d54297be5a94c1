"""A job's history as it remains after rollbacks, and a job's progress.

Both come from the log that psd writes with DISTTRAIN_VISITED_LOG; shards/visited_log.h describes it. An example of the
history:
1. Generation 1 makes steps 1 to 10.
2. Generation 2 begins after step 8. Steps 9 and 10 are lost: their visits don't count.
3. Generation 2 makes step 9. The history has steps 1 to 8 of generation 1 and step 9 of generation 2.
"""
import json
import time
from pathlib import Path


class VisitedHistory:
    """The history of one job. `problems` lists what is wrong in the log, in sentences."""

    def __init__(self, path):
        self.problems = []
        self.rollbacks = []  # (new generation, step after which it begins, number of lost steps)
        self.steps_logged = 0
        self._lines = []     # (generation, step, visits) of each step that no rollback has undone
        self._read(Path(path))

    @property
    def last_step(self):
        return self._lines[-1][1] if self._lines else 0

    def _read(self, path):
        generation = 0
        for number, text in enumerate(path.read_text().splitlines(), 1):
            line = json.loads(text)
            if line["generation"] < generation:
                # An older generation's pacer wrote this line because it hadn't heard of the rollback. Drop the line.
                continue
            if line["generation"] > generation:
                generation = line["generation"]
                self._begin(number, line)
            elif "step" not in line:
                self._problem(number, f"generation {generation} begins twice")
            else:
                self._step(number, line)

    def _begin(self, number, line):
        if "begins_after" not in line:
            return self._problem(number, f"generation {line['generation']} begins with a step")
        before, after = self.last_step, line["begins_after"]
        if after > before:
            self._problem(number, f"generation {line['generation']} goes on from step {after}, but the history ends at "
                                  f"step {before}")
        while self._lines and self._lines[-1][1] > after:
            self._lines.pop()
        self.rollbacks.append((line["generation"], after, before - after))

    def _step(self, number, line):
        self.steps_logged += 1
        if line["step"] != self.last_step + 1:
            self._problem(number, f"step {line['step']} of generation {line['generation']} follows step "
                                  f"{self.last_step}")
        self._lines.append((line["generation"], line["step"], line["visits"]))

    def _problem(self, number, text):
        self.problems.append(f"line {number}: {text}")

    def check(self, epochs, records):
        """Checks that each record of each epoch was visited once; adds violations to `problems`. Returns the number of
        visits."""
        times = [bytearray(records) for _ in range(epochs)]
        visits = 0
        for generation, step, of_workers in self._lines:
            for visit in of_workers:
                for begin, end in visit["positions"]:
                    visits += end - begin
                    if visit["epoch"] >= epochs or end > records:
                        self.problems.append(f"step {step} of generation {generation} visits [{begin}, {end}) of epoch "
                                             f"{visit['epoch']}, which isn't there")
                        continue
                    seen = times[visit["epoch"]]
                    if any(seen[begin:end]):
                        self.problems.append(f"step {step} of generation {generation}: {visit['worker']} visits "
                                             f"[{begin}, {end}) of epoch {visit['epoch']} again")
                    seen[begin:end] = b"\1" * (end - begin)
        for epoch, seen in enumerate(times):
            if missing := seen.count(0):
                self.problems.append(f"epoch {epoch}: {missing} records were never visited, the first is "
                                     f"{seen.index(0)}")
        return visits


class Progress:
    """Reads the log as it grows: the job's epoch, and the longest time without a step."""

    def __init__(self, path):
        self.path, self.file, self.tail = path, None, ""
        self.epoch, self.first, self.moved = 0, None, time.monotonic()
        self.longest, self.longest_at = 0.0, 0.0

    def look(self):
        if self.file is None:
            if not self.path.exists():
                return
            self.file = open(self.path)
        lines = (self.tail + self.file.read()).split("\n")
        self.tail = lines.pop()
        steps = [line for line in lines if '"step"' in line]
        if not steps:
            return
        now = time.monotonic()
        if self.first is None:
            self.first = now
        elif now - self.moved > self.longest:
            self.longest, self.longest_at = now - self.moved, self.moved - self.first
        self.moved = now
        self.epoch = max(self.epoch, json.loads(steps[-1])["visits"][0]["epoch"])
