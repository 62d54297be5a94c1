"""One array of a model, as the cluster knows it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Variable:
    name: str
    shape: tuple
    kind: str  # "trainable", or "state" for running statistics, which have no gradient

    @property
    def elements(self):
        elements = 1
        for size in self.shape:
            elements *= size
        return elements
