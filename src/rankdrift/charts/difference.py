"""The chart of one check: how far two curves differ at each rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import altair as alt

from rankdrift.charts.style import BLACK, COLOURS, Row, inline_data, layered_chart, rank_axis
from rankdrift.core.errors import BadOption
from rankdrift.core.words import printable

if TYPE_CHECKING:
    from rankdrift.diagnosis.diagnosing import Check

HEIGHT = 200
STANDARD_ERRORS = 1.96  # of a 95% band
FURTHEST = math.log(100)  # what is further off is as good as infinite, and drawn there


def difference_chart(check: Check) -> alt.LayerChart:
    """Draw the difference that a check found in percent of p, by rank, with its 95% band.

    Parameters
    ----------
    check
        Of a diagnosis; BadOption if it compared no curves.
    """
    found = [check.numbers.get(name) or () for name in ("ranks", "difference", "error")]
    rows: list[Row] = [
        {
            "rank": rank,
            "off": _share(off),
            "low": _share(off - STANDARD_ERRORS * error),
            "high": _share(off + STANDARD_ERRORS * error),
        }
        for rank, off, error in zip(*found, strict=True)
        if math.isfinite(off) and math.isfinite(error)
    ]
    if len(rows) < 2:
        raise BadOption(
            f"There is no curve to draw of the check {check.name!r}: {printable(check.words)}"
        )
    axis = alt.Axis(format="+%", title="Difference")
    # A band that is far wider than what was found runs out of the picture.
    most = max(2 * max(abs(row["off"]) for row in rows), 0.25)
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    scale = alt.Scale(domain=[max(low, -most), min(high, most)])
    y = alt.Y("off:Q", axis=axis, scale=scale)
    base = alt.Chart().encode(x=rank_axis(rows, True))
    tooltip = [
        alt.Tooltip("rank:Q", title="Rank", format=",d"),
        alt.Tooltip("off:Q", title="Difference", format="+.1%"),
        alt.Tooltip("low:Q", title="Low", format="+.1%"),
        alt.Tooltip("high:Q", title="High", format="+.1%"),
    ]
    layers: list[alt.Chart] = [
        base.mark_area(opacity=0.15, clip=True, color=COLOURS[0]).encode(
            y=alt.Y("low:Q", axis=axis, scale=scale), y2="high:Q", tooltip=alt.value(None)
        ),
        alt.Chart(inline_data([{"off": 0}])).mark_rule(color=BLACK).encode(y=y),
        base.mark_line(strokeWidth=2, clip=True, color=COLOURS[0]).encode(y=y),
        base.mark_point(filled=True, size=25, color=COLOURS[0], clip=True).encode(
            y=y, tooltip=tooltip
        ),
    ]
    return layered_chart(
        rows,
        layers,
        title=f"What the check of {printable(check.name)} found: {check.verdict}",
        subtitle=["difference of two curves, in percent of p; band: 95% of each rank by itself"],
        height=HEIGHT,
    )


def _share(log: float) -> float:
    """A difference of log p as a share of p."""
    return math.expm1(min(max(log, -FURTHEST), FURTHEST))
