"""The chart of several estimates of one curve."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
from numpy.typing import ArrayLike

from rankdrift.charts.curve_layers import (
    BREAK,
    curve_rows,
    curve_tooltip,
    propensity_axis,
    reference_mark,
    truth_line,
    truth_rows,
)
from rankdrift.charts.style import BLACK, COLOURS, colour_scale, layered_chart, rank_axis
from rankdrift.propensities.propensities import Propensities

# As many curves as there are colours can be told apart; more repeat them.
PALETTE = (*COLOURS, BLACK)


def curves_chart(
    curves: Mapping[str, Propensities],
    truth: Mapping[int, float] | ArrayLike | None = None,
    level: float = 0.95,
    log_rank: bool = True,
    log_p: bool = True,
) -> alt.LayerChart:
    """Draw propensity by rank, a line and a band for each method; only ranks with enough data.

    Parameters
    ----------
    curves
        What to draw, by the name of the method; all have one reference.
    truth
        As in `curve_chart`: dashed, for simulated data.
    level
        Of the intervals.
    log_rank, log_p
        Whether the axes are logarithmic.
    """
    first = next(iter(curves.values()))
    rows = [
        row
        for name, curve in curves.items()
        for row in curve_rows(name, curve, level, False)
        if row.get("supported") or row["rank"] == curve.reference
    ]
    true = truth_rows(first, truth)
    x, axis = rank_axis(rows, log_rank), propensity_axis(rows, true, first.reference, log_p)
    y, low = alt.Y("propensity:Q", **axis), alt.Y("low:Q", **axis)
    scale = colour_scale(list(curves), PALETTE)
    key = alt.Legend(title="Method", symbolOpacity=1, symbolType="square")
    base = alt.Chart().encode(x=x, color=alt.Color("curve:N", scale=scale, legend=key))
    layers: list[alt.Chart] = [
        base.mark_area(opacity=0.10, clip=True, invalid=BREAK).encode(
            y=low, y2="high:Q", tooltip=alt.value(None)
        ),
        base.mark_line(strokeWidth=2, clip=True, invalid=BREAK).encode(y=y),
        base.mark_point(filled=True, size=20).encode(y=y, tooltip=curve_tooltip(level, "Method")),
        reference_mark(first.reference, x, y),
    ]
    if true:
        layers.append(truth_line(true, x, y))
    band = f"band: {100 * level:g}% interval of each rank by itself; ranks with thin data left out"
    return layered_chart(
        rows,
        layers,
        title="How likely a result at each rank is looked at, by several methods",
        subtitle=[band + ("; dashed: truth" if true else "")],
    )
