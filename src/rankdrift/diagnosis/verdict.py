"""Many checks, one verdict."""

from collections.abc import Iterable

from rankdrift.core.verdicts import Verdict


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst there is: serious, then caution. What could not be looked at does not count, so
    that nothing else and nothing at all are good."""
    found = set(verdicts)
    return next((v for v in (Verdict.SERIOUS, Verdict.CAUTION) if v in found), Verdict.GOOD)
