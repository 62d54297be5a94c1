"""One array of a model, as the cluster knows it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Variable:
    name: str
    shape: tuple
    kind: str  # "trainable", or "state" for running statistics, which have no gradient
    dtype: str = "float32"  # or "float64": how the cluster keeps the values
    bounds: tuple = None  # (low, high): the parameter servers keep each value within them; None: no bounds

    @property
    def elements(self):
        elements = 1
        for size in self.shape:
            elements *= size
        return elements

    @property
    def words(self):
        """The place that the variable takes in the flat arrays, in words of 4 bytes."""
        return self.elements * (2 if self.dtype == "float64" else 1)


def kept_as(dtype):
    """The dtype in which the cluster keeps an array of this dtype: float64 stays, and all others become float32."""
    return "float64" if str(dtype) in ("float64", "torch.float64") else "float32"


def split(flat, begins, variables):
    """Views of a flat array of words, one for each variable. `begins` are the places of the variables' first words."""
    return [
        flat[begin : begin + variable.words].view(variable.dtype).reshape(variable.shape)
        for begin, variable in zip(begins, variables)
    ]


def read_only(array):
    """A view that refuses to be written. The cluster replaces its values, so what a script writes there would be lost."""
    view = array.view()
    view.flags.writeable = False
    return view
