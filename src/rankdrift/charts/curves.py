"""Several estimates of one curve in one chart."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
from numpy.typing import ArrayLike

from rankdrift.charts.curve import (
    _BREAK,
    BLACK,
    COLOURS,
    HEIGHT,
    WIDTH,
    _data,
    _reference_mark,
    _rows,
    _tooltip,
    _truth,
    _truth_line,
    _x,
    _y_axis,
)
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
    """Propensity by rank, a line and a band for each method; only ranks with enough data.

    All have one reference. `truth` as in `curve_chart`, dashed.
    """
    first = next(iter(curves.values()))
    rows = [
        row
        for name, curve in curves.items()
        for row in _rows(name, curve, level, False)
        if row.get("supported") or row["rank"] == curve.reference
    ]
    true = _truth(first, truth)
    x, axis = _x(rows, log_rank), _y_axis(rows, true, first.reference, log_p)
    y, low = alt.Y("propensity:Q", **axis), alt.Y("low:Q", **axis)
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(curves))]
    scale = alt.Scale(domain=list(curves), range=colours)
    key = alt.Legend(title="Method", symbolOpacity=1, symbolType="square")
    base = alt.Chart().encode(x=x, color=alt.Color("curve:N", scale=scale, legend=key))
    layers: list[alt.Chart] = [
        base.mark_area(opacity=0.10, clip=True, invalid=_BREAK).encode(
            y=low, y2="high:Q", tooltip=alt.value(None)
        ),
        base.mark_line(strokeWidth=2, clip=True, invalid=_BREAK).encode(y=y),
        base.mark_point(filled=True, size=20).encode(y=y, tooltip=_tooltip(level, True, "Method")),
        _reference_mark(first.reference, x, y),
    ]
    if true:
        layers.append(_truth_line(true, x, y))
    told = f"band: {100 * level:g}% interval of each rank by itself; ranks with thin data left out"
    title = alt.TitleParams(
        "How likely a result at each rank is looked at, by several methods",
        subtitle=[told + ("; dashed: truth" if true else "")],
        anchor="start",
    )
    chart = alt.LayerChart(data=_data(rows), layer=layers)
    return chart.properties(width=WIDTH, height=HEIGHT, title=title)
