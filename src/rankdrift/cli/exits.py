"""How a run ends."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes: what became of a run."""

    GOOD = 0
    UNFIT = 1
    """It ran, and found that the data will not do."""
    WRONG = 2
    """The request could not be met as it was."""
    BROKEN = 70
    """A defect of rankdrift's own."""
    STOPPED = 130
    """By Ctrl-C."""
