"""The chart of propensities: one curve with its band, or the pool and its segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
from numpy.typing import ArrayLike

from rankdrift.charts.curve_layers import (
    BREAK,
    curve_rows,
    curve_tooltip,
    propensity_axis,
    reference_mark,
    trust_layers,
    truth_line,
    truth_rows,
)
from rankdrift.charts.style import BLACK, COLOURS, Row, layered_chart, rank_axis
from rankdrift.core.words import many, named_ranks, verb
from rankdrift.propensities.intervals import POSTERIOR
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.table import label, most_clicked

_FEW_RANKS = 60  # so few that each may have a dot


def curve_chart(
    p: Propensities,
    truth: Mapping[int, float] | ArrayLike | None = None,
    level: float = 0.95,
    log_rank: bool = True,
    log_p: bool = False,
    simultaneous: bool = False,
) -> alt.LayerChart:
    """Draw propensity by rank with its band; hollow points where the data are thin.

    With segments, the pool and the segments with the most clicks, shrunk towards the pool.

    Parameters
    ----------
    p
        What to draw.
    truth
        The propensity of each rank, or of ranks 1, 2, 3 and so on, for simulated data; it is taken
        relative to the same rank, and drawn dashed.
    level
        Of the intervals.
    log_rank, log_p
        Whether the axes are logarithmic.
    simultaneous
        Whether the band holds the whole curve at once, rather than each rank by itself.
    """
    curves, legend, left_out = _curves(p)
    rows = [
        row
        for name, curve in curves.items()
        for row in curve_rows(name, curve, level, simultaneous)
    ]
    true = truth_rows(p, truth)
    x, axis = rank_axis(rows, log_rank), propensity_axis(rows, true, p.reference, log_p)
    y, low = alt.Y("propensity:Q", **axis), alt.Y("low:Q", **axis)
    several = len(curves) > 1
    colours = [BLACK, *COLOURS] if several else [COLOURS[0]]
    key = alt.Legend(title=legend, symbolOpacity=1, symbolType="square")
    scale = alt.Scale(domain=list(curves), range=colours[: len(curves)])
    colour = alt.Color("curve:N", scale=scale, legend=key if several else None)
    few = len(p.ranks) <= _FEW_RANKS or len(p.ranks) < p.ranks[-1] - p.ranks[0] + 1
    base = alt.Chart().encode(x=x, color=colour)
    tooltip = curve_tooltip(level, (legend or "Curve") if several else None)
    layers: list[alt.Chart] = [
        base.mark_area(opacity=0.12 if several else 0.18, clip=True, invalid=BREAK).encode(
            y=low, y2="high:Q", tooltip=alt.value(None)
        ),
        base.mark_line(strokeWidth=2, clip=True, invalid=BREAK).encode(y=y),
        base.mark_rule(strokeWidth=2, clip=True, opacity=0.5)
        .encode(y=low, y2="high:Q")
        .transform_filter("datum.alone && isValid(datum.low)"),
        base.mark_point(filled=True, size=25, opacity=1 if few else 0)
        .encode(y=y, tooltip=tooltip)
        .transform_filter("datum.supported && isValid(datum.propensity)"),
        base.mark_point(filled=False, size=30, fill="white", strokeWidth=1.2)
        .encode(y=y, tooltip=tooltip)
        .transform_filter("!datum.supported && isValid(datum.propensity)"),
        reference_mark(p.reference, x, y),
    ]
    if true:
        layers.append(truth_line(true, x, y))
    if p.trust is not None:
        layers += trust_layers(rows, x, axis)
    return layered_chart(
        rows,
        layers,
        title="How likely a result at each rank is looked at",
        subtitle=_subtitle(p, rows, level, simultaneous, left_out, bool(true)),
    )


def _curves(p: Propensities) -> tuple[dict[str, Propensities], str, int]:
    """The curves to draw by name, the title of their legend, and how many are left out."""
    drawn = {label(segment): curve for segment, curve in most_clicked(p, len(COLOURS)).items()}
    pool = "All"
    while pool in drawn:
        pool = f"({pool})"
    segments = p.segments
    return {pool: p, **drawn}, " / ".join(p.segment_columns), len(segments) - len(drawn)


def _subtitle(
    p: Propensities,
    rows: Sequence[Row],
    level: float,
    simultaneous: bool,
    left_out: int,
    truth: bool,
) -> Sequence[str]:
    whole = " of the whole curve at once" if simultaneous else " of each rank by itself"
    parts = [p.method]
    if any(row.get("low") is not None for row in rows):
        kind = "credible interval" if p.errors == POSTERIOR else "interval"
        parts.append(f"band: {100 * level:g}% {kind}{whole}")
    if truth:
        parts.append("dashed: truth")
    if p.trust is not None:
        parts.append("below, in orange: trust, clicks that need no relevance")
    lines = ["; ".join(parts)]
    if any(row.get("supported") is False for row in rows):
        lines.append("Hollow points: thin data")
    if p.gaps:
        lines.append(f"No estimate for {named_ranks(p.gaps)}")
    if left_out:
        drawn = verb(left_out, "is not drawn", "are not drawn")
        lines.append(f"{many(left_out, 'segment')} with fewer clicks {drawn}")
    return lines
