"""The evidence of a change day by day, against the limit that raises an alarm."""

from __future__ import annotations

from typing import Any

from rankdrift.core.words import rank_words
from rankdrift.propensities.drift import Drift, SegmentDrift
from rankdrift.report.page.axis import Axis, Frame
from rankdrift.report.page.curve_svg import curve_picture
from rankdrift.report.page.series import Series
from rankdrift.report.page.small_pictures import MOST_DATES

FRAME = Frame(640, 200, 66, 16, 574, 162)  # with room for a million
LEAST, MOST = 0.1, 1e6
"""Evidence is drawn from here to there: beyond, it says nothing more."""
MOST_CHANGES = 6  # blocks told of a segment


def drift_picture(drift: Drift, queries: bool) -> dict[str, Any]:
    """Draw the evidence of each segment, dotted its limit, with words on what changed.

    Parameters
    ----------
    drift
        What was found.
    queries
        Whether segments are named, or numbered.
    """
    names = {
        one.segment: one.name if queries or not one.segment else f"segment {number}"
        for number, one in enumerate(drift.segments, start=1)
    }
    days = drift.days
    lines = [
        _line(one, names[one.segment], days, number)
        for number, one in enumerate(drift.tested, start=1)
    ]
    highest = max([10.0, *(v for line in lines for v in (*line.p, *line.truth) if v)])
    x = Axis(1, max(len(days), 2), FRAME.left, FRAME.right, False)
    y = Axis(LEAST, min(2 * highest, MOST), FRAME.bottom, FRAME.top, True)
    picture = curve_picture(lines, False, True, FRAME, (x, y)) if lines else {}
    step = -(-len(days) // MOST_DATES)
    dates = [(day, round(x(i), 1)) for i, day in enumerate(days, start=1)]
    ticks = [(f"{10**k:,}", round(y(10.0**k), 1)) for k in range(10) if 10.0**k <= y.last]
    raised = [names[one.segment] for one in drift.segments if one.alarm]
    return {
        **picture,
        "x": dates[::step],
        "y": ticks[:: -(-len(ticks) // 5)],
        "legend": [(line.name, line.css_classes) for line in lines],
        "alarm": drift.alarm,
        "words": _verdict(drift, raised),
        "limit": f"{drift.false_alarms:g}",
        "segments": [
            (names[one.segment] if drift.segment_columns else "", one.words, _changes(one))
            for one in drift.segments
        ],
    }


def _verdict(drift: Drift, raised: list[str]) -> str:
    if raised and drift.segment_columns:
        return f"Propensities of {', '.join(raised)} changed."
    return drift.words


def _line(one: SegmentDrift, name: str, days: tuple[str, ...], number: int) -> Series:
    place = {day: i for i, day in enumerate(days, start=1)}
    known = [
        (place[day], min(max(value, LEAST), MOST), limit)
        for day, value, limit in zip(one.days, one.evidence, one.limits, strict=True)
        if value is not None
    ]
    none: list[float | None] = [None] * len(known)
    return Series(
        group="",
        name=name,
        reference=0,
        rank=[at for at, _, _ in known],
        p=[value for _, value, _ in known],
        low=none,
        high=none,
        supported=[True] * len(known),
        truth=[limit for _, _, limit in known],
        shown=True,
        number=number,
    )


def _changes(one: SegmentDrift) -> list[tuple[str, str, str]]:
    """(ranks, change, interval) of the blocks that surely changed, the largest first."""
    sure = sorted((c for c in one.changes if c.sure), key=lambda c: -abs(c.ratio - 1))
    return [
        (
            rank_words(c.first, c.last),
            f"{c.ratio - 1:+.0%}",
            f"{c.low - 1:+.0%} to {c.high - 1:+.0%}",
        )
        for c in sure[:MOST_CHANGES]
    ]
