"""The curve day by day, or week by week: does it stay what it is?

Counts that were kept a day each can be estimated from a day each. The days are put together into
few periods, and each gets a curve of few parameters, so that a year takes seconds and a thin day
has an answer. A curve for one day is no better than its clicks: what counts is whether they differ
by more than their errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from rankdrift.core.errors import RankdriftError
from rankdrift.core.types import Segment
from rankdrift.counts.counts import Counts, merge
from rankdrift.estimation.estimating import estimate
from rankdrift.propensities.periods import Period

MOST_DAYS = 31
"""More days than these are put together by week."""
MOST_WEEKS = 26
"""More weeks than these are put together by month."""
KNOTS = (1, 3, 10, 40, 160)
"""Of the curve of each period, with its first and its last rank."""
APART = 1.5  # the last rank from the knot above it, at the least


def estimate_by_period(
    parts: Iterable[Counts], *, reference: int = 1, segment: Segment | None = None
) -> tuple[Period, ...]:
    """Estimate a curve for each day, week or month of counts that were kept apart.

    Parameters
    ----------
    parts
        Counts of one log, each of its own days. Those without days are left out.
    reference
        The rank whose propensity is 1.
    segment
        One to go by alone.

    Returns
    -------
    tuple[Period, ...]
        In the order of time; empty if there are not two.
    """
    groups = by_period([part.without_splits() for part in parts if part.days])
    if segment:
        some = [part for part in groups if segment in part.segments]
        groups = [part.restrict(segments=[segment]) for part in some]
    groups = [part.pool() for part in groups]
    return tuple(_period(part, reference) for part in groups) if len(groups) > 1 else ()


def _period(counts: Counts, reference: int) -> Period:
    first, last, ranks = min(counts.days), max(counts.days), counts.ranks.tolist()
    inside = [k for k in KNOTS if ranks and ranks[0] < k and APART * k < ranks[-1]]
    knots = ", ".join(map(str, [*ranks[:1], *inside, *ranks[-1:]]))
    curve = f"loglog({knots})" if knots else "loglog"
    try:
        return Period(first, last, estimate(counts, curve=curve, reference=reference))
    except RankdriftError as error:
        return Period(first, last, None, str(error))


def by_period(parts: Sequence[Counts]) -> list[Counts]:
    """Put counts together by the day, week or month in which they begin, as few as need be; those
    that are stay so."""
    days = {part: date.fromisoformat(min(part.days)) for part in parts}
    for keys, most in (
        ({p: day.toordinal() for p, day in days.items()}, MOST_DAYS),
        ({p: (day.toordinal() - 1) // 7 for p, day in days.items()}, MOST_WEEKS),
        ({p: 12 * day.year + day.month for p, day in days.items()}, len(parts)),
    ):
        names = sorted(set(keys.values()))
        if len(names) <= most:
            break
    return [merge(part for part in parts if keys[part] == name) for name in names]
