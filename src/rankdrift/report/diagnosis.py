"""A diagnosis as it is told, in the terminal and on a page: one sentence on the whole, then the
checks in the order in which they matter to a reader."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.checks import ASSUMPTIONS

Plain = Mapping[str, Any]

HEADLINES = {
    Verdict.GOOD: "nothing was found to be wrong, and a bias of 10% would have been seen.",
    Verdict.CAUTION: "use the curve, but know what was found.",
    Verdict.SERIOUS: "do not rely on the curve yet, for what it assumes fails on this data.",
    Verdict.CANNOT_TELL: "nothing was found to be wrong, but this log cannot show all that may be.",
}
"""What each verdict over all checks means, as a sentence goes on after its word."""
UNSEEN = "What this log cannot tell"
"""Above the sentences on what could not be told."""


@dataclass(frozen=True)
class Sorted:
    """Checks as plain values: those that object, the serious first; those that could not tell;
    those that are good; and those for information, which say nothing of the curve."""

    objections: tuple[Plain, ...]
    untold: tuple[Plain, ...]
    good: tuple[Plain, ...]
    information: tuple[Plain, ...]


def sort_checks(checks: Iterable[Plain]) -> Sorted:
    """Sort the checks of `Diagnosis.to_dict`, each group in its order."""
    asides = {check.name for check in ASSUMPTIONS if check.worst == Verdict.GOOD}
    given = list(checks)

    def of(verdict: Verdict) -> tuple[Plain, ...]:
        counted = (check for check in given if check["name"] not in asides)
        return tuple(check for check in counted if Verdict(check["verdict"]) is verdict)

    return Sorted(
        objections=of(Verdict.SERIOUS) + of(Verdict.CAUTION),
        untold=of(Verdict.CANNOT_TELL),
        good=of(Verdict.GOOD),
        information=tuple(check for check in given if check["name"] in asides),
    )
