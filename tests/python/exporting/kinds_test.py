"""Trains a .pt file of each kind of modules (kinds.py) with workerd's own code, and compares with plain PyTorch.

The test exports the kinds, runs 5 steps of sgd, an evaluation and a prediction by the program train_packages, and does the
same in PyTorch, with the same random numbers.
"""

import unittest

import in_torch

in_torch.run(__file__)

import disttrain  # noqa: E402
from kinds import KINDS  # noqa: E402
from trained import PART, PARTS, Package, TrainedTest  # noqa: E402


class KindsTest(TrainedTest):
    def test_TorchScript(self):
        packages = []
        for kind in self.kinds(".pt"):
            with self.subTest(kind.name):
                packages.append(Package([kind], ".pt", self.folder))
        self.run_all(packages)
        for package in packages:
            with self.subTest(package.kinds[0].name):
                self.compare(package, True)

    def test_OtherFormatIsRefused(self):
        for kind in KINDS[PART::PARTS]:
            for ending in {".pt", ".pt2"} - set(kind.formats):
                with self.subTest(kind.name), self.assertRaisesRegex(disttrain.ExportError, f"to a {kind.formats[0]} file"):
                    Package([kind], ending, self.folder)


if __name__ == "__main__":
    unittest.main()
