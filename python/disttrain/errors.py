"""The error of this package."""


class DisttrainError(Exception):
    """The script uses disttrain in a wrong way, and would do so again. The worker then doesn't restart the script."""
