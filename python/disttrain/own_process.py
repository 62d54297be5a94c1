"""Keeps the job to the process that called disttrain.init()."""

import mmap
import os

from disttrain.errors import DisttrainError

# In the environment of all processes that a trainer starts: the trainer's process.
STARTED_VARIABLE = "DISTTRAIN_STARTED_BY"
_LONGEST = 1000  # of a text, in bytes


class OwnProcess:
    """A forked child has the job's socket and memory, too. What it sends or writes there would disturb the trainer."""

    def __init__(self):
        self._process = os.getpid()
        # Forked children share this memory. It has the text of a child's error.
        self._told = mmap.mmap(-1, _LONGEST)

    def is_here(self):
        return os.getpid() == self._process

    def require(self, what):
        """Fails in a child. `what`: the function of the job that was called."""
        if self.is_here():
            return
        text = (
            f"a child process of the trainer called {what}; only the process that called disttrain.init() may: let the "
            "child (of os.fork(), multiprocessing or a DataLoader) return what it computes"
        )
        told = text.encode()[:_LONGEST]
        self._told[: len(told)] = told
        raise DisttrainError(text)

    def check(self, what):
        """The same. It also fails in the process itself after it has failed in a child, because nobody may see the error
        of a child."""
        self.require(what)
        if self._told[0]:
            raise DisttrainError(self._told[:].rstrip(b"\0").decode(errors="ignore"))


def refuse_child_of_trainer():
    """Fails in a process that a trainer has started anew, as multiprocessing's "spawn" does."""
    trainer = os.environ.get(STARTED_VARIABLE)
    if trainer is not None:
        raise DisttrainError(
            f"disttrain.init() was called in process {os.getpid()}, which the trainer (process {trainer}) has started; a job has "
            'one process: put the lines of the script below `if __name__ == "__main__":`, because multiprocessing runs the '
            "script again in each process that it spawns"
        )


def mark_children():
    """For refuse_child_of_trainer()."""
    os.environ[STARTED_VARIABLE] = str(os.getpid())
