"""The words in which a finding ends, each set closed. They are text: in JSON, in f-strings and
compared with text they are their value."""

from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What a check of the assumptions found, from the best to what could not be looked at."""

    GOOD = "good"
    CAUTION = "caution"
    SERIOUS = "serious"
    CANNOT_TELL = "cannot tell"

    @classmethod
    def _missing_(cls, value: Any) -> "Verdict | None":
        """Files until 0.1.0 say "unknown"."""
        return cls.CANNOT_TELL if value == "unknown" else None


class Fitness(StrEnum):
    """Whether a log can be used at all."""

    GOOD = "good"
    WEAK = "weak"
    UNFIT = "unfit"


class Agreement(StrEnum):
    """Whether two curves say the same."""

    AGREE = "agree"
    DIFFER = "differ"
    CANNOT_TELL = "cannot tell"
