"""As kinds_test.py, for .pt2 files.

Compiling is slow, so all kinds are parts of one model, whose loss is the sum of theirs: their gradients are those that each has
by itself. Compiled programs draw their random numbers in another order than PyTorch. So of the kinds with random numbers only
the evaluation and the prediction are compared, with the parameters that the worker has found.
"""

import unittest

import in_torch

in_torch.run(__file__)

from trained import Package, TrainedTest  # noqa: E402


class CompiledKindsTest(TrainedTest):
    def test_Compiled(self):
        for is_random in (False, True):
            kinds = self.kinds(".pt2", is_random)
            if kinds:
                package = Package(kinds, ".pt2", self.folder)
                self.run_all([package])
                self.compare(package, not is_random)


if __name__ == "__main__":
    unittest.main()
