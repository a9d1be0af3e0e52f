"""The chart of drift: a propensity over time, and the evidence of a change against its limit."""

from __future__ import annotations

import altair as alt

from rankdrift.charts.style import (
    BLACK,
    WIDTH,
    Row,
    colour_scale,
    inline_data,
)
from rankdrift.core.errors import BadOption
from rankdrift.core.words import printable
from rankdrift.propensities.drift import Drift, SegmentDrift

LEAST, MOST = 0.1, 1e9
"""Evidence is drawn from here to there: beyond, it says nothing more."""
HEIGHTS = 190, 150
TICKS = 5


def drift_chart(drift: Drift, rank: int = 10, level: float = 0.95) -> alt.VConcatChart:
    """Draw the propensity of a rank over time, with bands; below it the evidence of a change day by
    day, dashed the limit that raises an alarm.

    Parameters
    ----------
    drift
        What was found.
    rank
        Whose propensity is drawn.
    level
        Of the bands.
    """
    names = {one.segment: printable(one.name) for one in drift.segments}
    curve = [row for one in drift.segments for row in _curve_rows(one, rank, level)]
    evidence = [row for one in drift.tested for row in _evidence_rows(one)]
    if not curve and not evidence:
        raise BadOption("There is nothing to draw: too few days have clicks.")
    legend = (
        alt.Legend(title=None, symbolOpacity=1, symbolType="square") if len(names) > 1 else None
    )
    colour = alt.Color("segment:N", scale=colour_scale(list(names.values())), legend=legend)
    days = [row["day"] for row in (*curve, *evidence)]
    x = alt.X(
        "day:T",
        title=None,
        scale=alt.Scale(domain=[min(days), max(days)], type="utc"),
        axis=alt.Axis(format="%Y-%m-%d", tickCount=TICKS, labelFlush=True, grid=False),
    )
    base = alt.Chart().encode(x=x, color=colour)
    tooltip = [alt.Tooltip("segment:N"), alt.Tooltip("first:N"), alt.Tooltip("last:N")]
    tooltip += [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("propensity", "low", "high")]
    title = f"propensity of rank {rank}"
    above = alt.layer(
        base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", title=title), y2="high:Q"),
        base.mark_line(point=True).encode(y=alt.Y("propensity:Q", title=title), tooltip=tooltip),
        data=inline_data(curve),
    ).properties(width=WIDTH, height=HEIGHTS[0])
    highest = max(
        (value for row in evidence for value in (row["evidence"], row["limit"])), default=1
    )
    axis = alt.Axis(values=[10**k for k in range(0, 12, 2)], format=",.0f")
    scale = alt.Scale(type="log", domain=[LEAST, 2 * highest], nice=False)
    y, limit = (
        alt.Y(f"{name}:Q", scale=scale, axis=axis, title="evidence of a change")
        for name in ("evidence", "limit")
    )
    below = alt.layer(
        base.mark_line(interpolate="step-after").encode(
            y=y,
            tooltip=[
                alt.Tooltip("segment:N"),
                alt.Tooltip("day:T"),
                alt.Tooltip("evidence:Q", format=",.1f"),
                alt.Tooltip("limit:Q", format=",.0f"),
            ],
        ),
        alt.Chart().mark_line(color=BLACK, strokeDash=[4, 3]).encode(x=x, y=limit),
        data=inline_data(evidence),
    ).properties(width=WIDTH, height=HEIGHTS[1])
    words = alt.TitleParams(
        "Propensities changed" if drift.alarm else "Propensities do not seem to change",
        subtitle=[
            f"bands: {level:.0%} intervals of each period",
            f"dashed: evidence that raises an alarm, at most {drift.false_alarms:g} a year while "
            "nothing changes",
        ],
        anchor="start",
    )
    panels = [panel for panel, rows in ((above, curve), (below, evidence)) if rows]
    return alt.vconcat(*panels).properties(title=words)


def _curve_rows(one: SegmentDrift, rank: int, level: float) -> list[Row]:
    """The propensity of a rank in each period that has it."""
    rows = []
    for period in one.periods:
        curve = period.curve
        if curve is None or rank not in curve.ranks or rank == curve.reference:
            continue
        at = curve.ratio(rank, curve.reference, level)
        rows.append(
            {
                "segment": printable(one.name),
                "day": period.first,
                "first": period.first,
                "last": period.last,
                "propensity": at.value,
                "low": at.low,
                "high": at.high,
            }
        )
    return rows


def _evidence_rows(one: SegmentDrift) -> list[Row]:
    return [
        {
            "segment": printable(one.name),
            "day": day,
            "evidence": min(max(value, LEAST), MOST),
            "limit": limit,
        }
        for day, value, limit in zip(one.days, one.evidence, one.limits, strict=True)
        if value is not None
    ]
