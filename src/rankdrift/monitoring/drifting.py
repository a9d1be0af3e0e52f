"""Counts of days -> have propensities changed? A test that may be looked at every day."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache, partial

import numpy as np

from rankdrift.core.days import iso_day
from rankdrift.core.errors import (
    BadCounts,
    BadOption,
    NotConverged,
    NotIdentified,
    NoUsablePairs,
)
from rankdrift.core.naming import names_checked
from rankdrift.core.types import Floats, Segment
from rankdrift.core.words import many, verb
from rankdrift.counts.counts import Counts, merge
from rankdrift.counts.file import find_counts, load_all
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.periods import by_period, estimate_by_period
from rankdrift.monitoring.drift_changes import page_change
from rankdrift.monitoring.drift_evidence import evidence_of
from rankdrift.monitoring.drift_scores import scores_of, shapes_of
from rankdrift.propensities.drift import Drift, SegmentDrift
from rankdrift.propensities.periods import Period

LOOKS_A_YEAR = 365
REFERENCE, WINDOW, FALSE_ALARMS, SMALLEST, LEVEL = 7, 28, 0.1, 0.05, 0.95
NEWEST = 7
"""Days that are compared with those before while there is no alarm."""
COMPARED = 91
"""Days at most that the size of a change is told against; the evidence goes by all."""
MOST_SEGMENTS = 20
"""Segments that are tested, those with the most clicks."""
UNFIT = (NoUsablePairs, NotIdentified, NotConverged)
"""What a segment may not bear, whatever the others do."""
_LARGEST = 600.0  # the logarithm of evidence that is still a number

Given = str | os.PathLike[str] | Counts
Parts = list[tuple[str, Counts]]
"""A day and its counts, in the order of time."""


@names_checked
def drift(
    counts: Given | Iterable[Given] | Mapping[str, Counts],
    *,
    since: str | None = None,
    reference: int = REFERENCE,
    window: int = WINDOW,
    false_alarms: float = FALSE_ALARMS,
    smallest: float = SMALLEST,
    level: float = LEVEL,
) -> Drift:
    """Test whether propensities of the newest days differ from those before, as often as one likes.

    Each segment is tested by itself. While nothing changes, there are at most `false_alarms` a year
    in all, though every day is looked at; the days need not have the same traffic, and may be
    missing.

    Parameters
    ----------
    counts
        Kept a day each: a folder or files, as `harvest_by_day` writes them; counts; or counts by
        day.
    since
        The first day to go by, ISO: give the day after a change that you know of.
    reference
        Days, at the beginning, that no change is looked for in.
    window
        Days back that a change may have begun at most; those before are what it is compared with.
    false_alarms
        How many a year at most.
    smallest
        The smallest change of propensities that raises an alarm, as a share.
    level
        Of the intervals.

    Returns
    -------
    Drift
        Its `alarm` says whether something changed, its `segments` what.

    Examples
    --------
    >>> rankdrift.drift("days/").alarm  # doctest: +SKIP
    False
    """
    _check(reference, window, false_alarms, smallest, level)
    since = None if since is None else iso_day("since", since)
    parts = _by_day(counts, since)
    columns = parts[0][1].segment_columns
    owns, remarks = _by_segment(parts)
    found = {}
    for segment, own in owns.items():
        try:
            found[segment] = _evidence(own, segment, reference, window)
        except UNFIT as error:
            found[segment] = SegmentDrift(segment, tuple(day for day, _ in own), why=str(error))
    limits = _limits(found, LOOKS_A_YEAR / false_alarms)
    merged = cache(lambda *days: merge(part for day, part in parts if days[0] <= day <= days[1]))
    groups = cache(lambda: by_period([part for _, part in parts]))
    done = []
    for segment in owns:
        told = replace(found[segment], limits=tuple(limits[segment]))
        if not told.why:
            told = _told(told, merged, smallest, level)
        done.append(replace(told, over_time=partial(_over_time, groups, segment)))
    options = {"since": since, "reference": reference, "window": window, "level": level}
    return Drift(tuple(done), false_alarms, smallest, columns, options, remarks)


def _check(
    reference: int,
    window: int,
    false_alarms: float,
    smallest: float,
    level: float,
) -> None:
    if reference < 2:
        raise BadOption(f"reference is {reference!r}, but it takes 2 days or more.")
    if window < 1:
        raise BadOption(f"window is {window!r}, but there must be at least 1 day.")
    if not 0 < false_alarms <= LOOKS_A_YEAR:
        raise BadOption(
            f"false_alarms is {false_alarms!r}, but it is more than 0 and at most {LOOKS_A_YEAR} "
            "a year. Use 0.1 for one in ten years."
        )
    if not 0 <= smallest < 10:
        raise BadOption(f"smallest is {smallest!r}, but it is a share such as 0.05.")
    if not 0 < level < 1:
        raise BadOption(f"level lies between 0 and 1, not {level!r}. Use 0.95.")


# -- days ------------------------------------------------------------------------------------------


def _by_day(counts: Given | Iterable[Given] | Mapping[str, Counts], since: str | None) -> Parts:
    """The counts of each day, those of the same day added up."""
    given = counts.values() if isinstance(counts, Mapping) else counts
    if isinstance(given, str | os.PathLike | Counts):
        given = [given]
    known: list[Counts] = []
    paths: list[str | os.PathLike[str]] = []
    for part in given:
        known.append(part) if isinstance(part, Counts) else paths.append(part)
    known += load_all(find_counts(paths)) if paths else []
    dated: dict[str, list[Counts]] = {}
    for part in known:
        if part.days and (since is None or min(part.days) >= since):
            dated.setdefault(max(part.days), []).append(part.without_splits())
    if known and not any(part.days for part in known):
        raise NoUsablePairs(
            f"Found {many(len(known), 'part')} of counts, none of which has a day with a pair that "
            "moved and was clicked: there is nothing to change. See `rankdrift inspect`."
        )
    if len(dated) < 2:
        raise BadCounts(_too_few_days(known, len(dated), since))
    merged = {day: merge(dated[day]) for day in sorted(dated)}
    different = {part.segment_columns for part in merged.values()}
    if len(different) > 1:
        told = " and by ".join(", ".join(names) or "nothing" for names in sorted(different))
        raise BadCounts(f"Some days are split by {told}. Harvest all with the same --segment.")
    return list(merged.items())


def _too_few_days(known: Sequence[Counts], dated: int, since: str | None) -> str:
    days = sorted({day for part in known for day in part.days})
    if since and days and days[-1] < since:
        return f"The newest day of these counts is {days[-1]}, and --since asks for {since} on."
    after = f" from {since} on" if since else ""
    used = [part for part in known if part.days and (not since or min(part.days) >= since)]
    if dated and all(len(part.days) == 1 for part in used):
        return (
            f"Found {many(dated, 'day')} of counts{after} with pairs that moved and were clicked, "
            "and it takes 2 at least: one to compare the other with. Give the folder of all days, "
            "which `harvest --by day` writes, or add days."
        )
    return (
        f"Found {many(dated, 'part')} of counts{after} with {many(len(days), 'day')}, but whether "
        "propensities change is told from counts that are kept a day each. Harvest with --by day "
        "and give the folder."
    )


def _by_segment(parts: Parts) -> tuple[dict[Segment, Parts], tuple[str, ...]]:
    """The days on which each segment has clicks to go by, of those that are tested, and a remark on
    the others."""
    found: dict[Segment, Parts] = {}
    clicks: dict[Segment, float] = {}
    for day, part in parts:
        choices = part.choices("every")
        weight = np.bincount(choices.segment, choices.weight, len(part.segments))
        for segment, each in zip(part.segments, weight.tolist(), strict=True):
            if each:
                found.setdefault(segment, []).append((day, part))
                clicks[segment] = clicks.get(segment, 0.0) + each
    if not found:
        raise NoUsablePairs(
            "No day has a usable pair: see `rankdrift inspect` for what is missing."
        )
    kept = sorted(found, key=lambda segment: -clicks[segment])[:MOST_SEGMENTS]
    rest = len(found) - len(kept)
    remark = f"{many(rest, 'segment')} with fewer clicks {verb(rest, 'is', 'are')} not tested."
    return {s: own for s, own in found.items() if s in kept}, (remark,) if rest else ()


def _over_time(groups: Callable[[], list[Counts]], segment: Segment) -> tuple[Period, ...]:
    return estimate_by_period(groups(), segment=segment)


# -- evidence --------------------------------------------------------------------------------------


def _evidence(own: Parts, segment: Segment, reference: int, window: int) -> SegmentDrift:
    """The evidence on each day, and what the newest is to be compared with."""
    if len(own) <= reference:
        raise NoUsablePairs(
            f"{many(len(own), 'day')} with clicks, and the first {reference} are the reference: "
            f"add {many(reference + 1 - len(own), 'day')}, or use a smaller --reference."
        )
    fitted = fit(_only(merge(part for _, part in own[:reference]), segment), Options())
    shapes = shapes_of(fitted, max(part.max_rank for _, part in own))
    days = np.array([date.fromisoformat(day).toordinal() for day, _ in own])
    scores = scores_of([part for _, part in own], segment, shapes)
    found = evidence_of(scores, shapes, days, reference=reference, window=window)
    names = tuple(day for day, _ in own)
    return SegmentDrift(
        segment,
        names,
        tuple(_plain(found.log)),
        reference=(names[0], names[-1]),
        newest=(names[int(found.began[-1])], names[-1]),
    )


def _only(counts: Counts, segment: Segment) -> Counts:
    return counts.restrict(segments=[segment]) if segment else counts


def _plain(log: Floats) -> list[float | None]:
    return [float(np.exp(min(one, _LARGEST))) if np.isfinite(one) else None for one in log.tolist()]


def _limits(
    found: Mapping[Segment, SegmentDrift], limit: float
) -> dict[Segment, list[float | None]]:
    """On each day as many times the limit as there were segments under test by then: what is
    allowed in all is split among them."""
    began = {
        segment: next((d for d, e in zip(one.days, one.evidence, strict=False) if e), None)
        for segment, one in found.items()
    }
    known = sorted(day for day in began.values() if day)
    return {
        segment: [
            limit * sum(day <= each for day in known) if e is not None else None
            for each, e in zip(one.days, one.evidence, strict=False)
        ]
        for segment, one in found.items()
    }


def _told(
    one: SegmentDrift, merged: Callable[[str, str], Counts], smallest: float, level: float
) -> SegmentDrift:
    """With what changed, and whether that is an alarm. `merged`: the counts from a day to a day."""
    last, limit = one.evidence[-1] or 0.0, one.limits[-1] or np.inf
    beyond = last >= limit
    assert one.newest is not None
    days = one.days
    place = days.index(one.newest[0]) if beyond else len(days) - min(NEWEST, len(days) - 1)
    first = days[max(place - COMPARED, 0)]
    before, newest = (first, days[place - 1]), (days[place], days[-1])
    one = replace(one, reference=before, newest=newest)
    try:
        old, new = (_only(merged(*span), one.segment) for span in (before, newest))
        found = page_change(old, new, level)
    except UNFIT:
        return replace(one, alarm=beyond)
    return replace(
        one,
        alarm=beyond and found.size >= smallest,
        size=found.size,
        clicks=found.clicks,
        changes=found.blocks,
    )
