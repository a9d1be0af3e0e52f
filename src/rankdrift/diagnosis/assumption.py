"""What a check of the assumptions is: a question, what it needs, and a function that answers it.

Each is an `Assumption` in the registry `ASSUMPTIONS`, which the files in `checks` fill. Add one by

    ASSUMPTIONS.register(Assumption("parity", "Are even ranks like odd ones?", "nothing", check))

and `diagnose` makes it, in Python and on the command line, after those that are there.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rankdrift.core.registry import Registry
from rankdrift.core.verdicts import Verdict
from rankdrift.counts.counts import Counts
from rankdrift.estimation.fitting import Fitted, Options


@dataclass(frozen=True)
class Data:
    """What checks look at: the counts and the curve fitted to all of them.

    options: those of the fit, with the curve that it used, so that the parameters of every other
    fit with them mean the same.
    """

    counts: Counts
    options: Options
    fitted: Fitted


@dataclass(frozen=True)
class Finding:
    """What a check found: words that end in a full stop, advice if something is to be done, and
    the numbers behind, plain values by name (`p_value` is where charts look)."""

    verdict: Verdict
    words: str
    advice: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)


def always(counts: Counts) -> bool:
    """Of all counts."""
    return True


@dataclass(frozen=True)
class Assumption:
    """Something that the estimate assumes, and how to find out whether it holds.

    name: by which it is told; question: in plain words, true to a good verdict if the answer is
    yes; needs: the columns or data, in words; check: the test and its words, which may raise
    RankdriftError where the data do not allow it; asked_of: the counts that it is asked of at all.
    """

    name: str
    question: str
    needs: str
    check: Callable[[Data], Finding]
    asked_of: Callable[[Counts], bool] = always


ASSUMPTIONS: Registry[Assumption] = Registry("check")
