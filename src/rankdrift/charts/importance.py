"""The chart of what a ranker goes by: a bar for each feature."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from rankdrift.charts.style import COLOURS, Row, layered_chart
from rankdrift.core.words import many, printable, verb

LINE = 26  # the height of a feature
MOST_FEATURES = 25


def importance_chart(importance: Mapping[str, float], name: str) -> alt.LayerChart:
    """Draw how much each feature lowered the loss, as shares of the whole; the first ones."""
    rows: list[Row] = [
        {"feature": printable(feature), "share": share}
        for feature, share in list(importance.items())[:MOST_FEATURES]
    ]
    y = alt.Y(
        "feature:N",
        sort=[row["feature"] for row in rows],
        title=None,
        axis=alt.Axis(labelLimit=260),
    )
    x = alt.X("share:Q", title="Share of the gain", axis=alt.Axis(format="%"))
    tooltip = [
        alt.Tooltip("feature:N", title="Feature"),
        alt.Tooltip("share:Q", title="Share of the gain", format=".1%"),
    ]
    bars: alt.Chart = alt.Chart().mark_bar(color=COLOURS[0]).encode(x=x, y=y, tooltip=tooltip)
    left = len(importance) - len(rows)
    others = f"{many(left, 'feature')} with less {verb(left, 'is', 'are')}"
    return layered_chart(
        rows,
        [bars],
        title=f"What {printable(name)} goes by",
        subtitle=[f"{others} not drawn" if left else "all features"],
        height=LINE * len(rows),
    )
