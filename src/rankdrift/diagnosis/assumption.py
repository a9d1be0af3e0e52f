"""What a check of the assumptions is: a question, what it needs, and a function that answers it.

Each is an `Assumption` in the registry `ASSUMPTIONS`, which the files in `checks` fill. Add one by

    ASSUMPTIONS.register(Assumption("parity", "Are even ranks like odd ones?", "nothing", check))

and `diagnose` makes it, in Python and on the command line, after those that are there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rankdrift.core.registry import Registry
from rankdrift.core.types import Floats
from rankdrift.core.verdicts import Verdict
from rankdrift.counts.counts import Counts
from rankdrift.estimation.fitting import Fitted, Options

MOVES, FEEDBACK, KINDS = "moves", "feedback", "kinds"
"""What several checks see a side of, each too dimly to be sure: that docs are higher when they are
better, that they rise after they are clicked, and that better docs have a flatter curve. Names of
the checks that put it together."""


@dataclass(frozen=True)
class Data:
    """What checks look at: the counts and the curve fitted to all of them.

    options: those of the fit, with the curve that it used, so that the parameters of every other
    fit with them mean the same. found: what the checks before this one found, by name.
    """

    counts: Counts
    options: Options
    fitted: Fitted
    found: dict[str, "Finding"] = field(default_factory=dict)

    @cached_property
    def pooled(self) -> Counts:
        """The counts with the segments summed away."""
        return self.counts.pool()


@dataclass(frozen=True)
class Evidence:
    """What a test says against an assumption.

    p_value: of the assumption; size: how far it is off at a typical rank, beyond noise, as a share;
    reach: the largest bias of log p, the mean over ranks, that the test leaves open (one-sided,
    95%); 0 where that is not what it looks for. signs: of what it is a sign, such as MOVES, and
    what each bucket of queries (G,) adds to it, in standard errors.
    """

    p_value: float
    size: float
    reach: float = 0.0
    signs: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes
    ----------
    verdict
        What it comes to; None where `evidence` is to decide, together with that of all other
        checks.
    words
        What was found, ending in a full stop; where evidence decides, if nothing is wrong.
    advice
        What to do if something is wrong.
    numbers
        Behind it, plain values by name. `p_value` is where charts look, and `ranks`, `difference`
        and `error`, lists of one length, for a curve to draw.
    alarm
        What was found if something is wrong, where evidence decides.
    wanted
        What to do if it cannot be told.
    evidence
        What a test says, or None.
    """

    verdict: Verdict | None
    words: str
    advice: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    alarm: str = ""
    wanted: str = ""
    evidence: Evidence | None = None


def always(counts: Counts) -> bool:
    """Of all counts."""
    return True


@dataclass(frozen=True)
class Assumption:
    """Something that the estimate assumes, and how to find out whether it holds.

    Parameters
    ----------
    name
        By which it is told.
    question
        In plain words; the answer is yes if all is well.
    needs
        The columns or data, in words.
    check
        The test and its words; may raise RankdriftError where the data do not allow it.
    asked_of
        The counts that it is asked of at all.
    worst
        The worst that it may make of the whole: SERIOUS; CAUTION, where what it sees may be
        harmless; GOOD, where it touches the curve not at all and is for information.
    wanted
        What to do where the data do not allow it.
    weight
        How much of the chance of a false alarm it is given, beside the others.
    role
        The column of the log that it needs, if any.
    more
        What to do instead where that column is there, and it still cannot be told.
    """

    name: str
    question: str
    needs: str
    check: Callable[[Data], Finding]
    asked_of: Callable[[Counts], bool] = always
    worst: Verdict = Verdict.SERIOUS
    wanted: str = ""
    weight: float = 1.0
    role: str = ""
    more: str = "Add days."


ASSUMPTIONS: Registry[Assumption] = Registry("check")
