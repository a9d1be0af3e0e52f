"""The chart of rankers compared: improvement by rank, with its spread."""

from __future__ import annotations

import altair as alt

from rankdrift.charts.style import colour_scale, layered_chart
from rankdrift.core.errors import BadOption
from rankdrift.ranking.comparison import Comparison


def comparison_chart(c: Comparison) -> alt.LayerChart:
    """Draw a point and a bar of two deviations either way for each rank and model."""
    rows = [
        {
            "rank": str(at.rank),
            "pair": f"{model} over {base}",
            "improvement": found.mean,
            "low": found.mean - 2 * found.sd,
            "high": found.mean + 2 * found.sd,
            "clicks": at.clicks,
            "p": found.p_value,
        }
        for at in c.at_rank
        for (model, base), found in at.improvements.items()
    ]
    if not rows:
        raise BadOption(
            "There is nothing to draw: no baseline to improve on, or no rank with clicks."
        )
    names = [f"{model} over {base}" for model, base in c.pairs]
    order = [str(at.rank) for at in c.at_rank if not at.gap]
    x = alt.X("rank:N", sort=order, title="rank", axis=alt.Axis(labelAngle=0))
    offset = alt.XOffset("pair:N", sort=names)
    colour = alt.Color("pair:N", scale=colour_scale(names), title=None)
    axis = alt.Axis(format="+.1%")
    tooltip = [
        alt.Tooltip("pair:N", title="models"),
        alt.Tooltip("rank:N"),
        alt.Tooltip("improvement:Q", format="+.2%"),
        alt.Tooltip("p:Q", format=".2g", title="p-value"),
        alt.Tooltip("clicks:Q", format=","),
    ]
    base = alt.Chart().encode(x=x, xOffset=offset, color=colour)
    layers: list[alt.Chart] = [
        alt.Chart().mark_rule(color="#888888").encode(y=alt.datum(0)),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title="", axis=axis), y2="high:Q"),
        base.mark_point(filled=True, size=45, opacity=1).encode(
            y=alt.Y("improvement:Q", title="improvement of AUC", axis=axis), tooltip=tooltip
        ),
    ]
    samples = c.spread
    return layered_chart(
        rows,
        layers,
        title="Who tells clicked results from others at the same rank",
        subtitle=[f"bars: two standard deviations over {samples}", *c.verdicts[:3]],
    )
