"""The chart of a plan: what each design costs for how close a ratio."""

from __future__ import annotations

import altair as alt
import numpy as np

from rankdrift.charts.style import Row, colour_scale, layered_chart
from rankdrift.experiments.planning import Plan

CLOSEST, WIDEST, POINTS = 0.02, 0.5, 25


def plan_chart(found: Plan) -> alt.LayerChart:
    """Draw clicks lost in all against the width of the interval, a line a design.

    Parameters
    ----------
    found
        From `plan`.
    """
    rows: list[Row] = []
    for each in found.designs:
        for within in np.geomspace(CLOSEST, WIDEST, POINTS):
            searches, clicks = each.at(float(within), found.within)
            rows.append(
                {
                    "design": each.name,
                    "within": float(within),
                    "searches": round(searches),
                    "clicks": max(clicks, 0.01),
                }
            )
    scale = alt.Scale(type="log", nice=False)
    names = [each.name for each in found.designs]
    base = alt.Chart().encode(
        x=alt.X(
            "within:Q",
            scale=scale,
            title="How closely the ratio is known",
            axis=alt.Axis(format="%", values=[0.02, 0.05, 0.1, 0.2, 0.5]),
        ),
        y=alt.Y("clicks:Q", scale=alt.Scale(type="log"), title="Clicks lost in all"),
        color=alt.Color("design:N", scale=colour_scale(names), legend=alt.Legend(title="Design")),
    )
    tooltip = [
        alt.Tooltip("design:N", title="Design"),
        alt.Tooltip("within:Q", title="Within", format=".1%"),
        alt.Tooltip("searches:Q", title="Searches", format=","),
        alt.Tooltip("clicks:Q", title="Clicks lost", format=",.0f"),
    ]
    i, j = found.ratio
    return layered_chart(
        rows,
        [
            base.mark_line(strokeWidth=2),
            base.mark_point(size=20, filled=True).encode(tooltip=tooltip),
        ],
        title=f"What it costs to know the ratio of ranks {i} and {j}",
        subtitle="lower is cheaper; the 95% interval of the ratio is that wide to either side",
    )
