"""The true NDCG of every model, seed by seed."""

from __future__ import annotations

import altair as alt

from rankdrift.charts.curve import BLACK, COLOURS, HEIGHT, WIDTH
from rankdrift.reproduce.table import Table


def table_chart(table: Table) -> alt.LayerChart:
    """A dot a seed, a tick for their mean."""
    models = list(table.models)
    rows = [
        {"model": model, "seed": run.seed, "ndcg": float(value)}
        for model in models
        for run, value in zip(table.runs, table.measure("true NDCG", model), strict=True)
    ]
    x = alt.X("model:N", sort=models, title=None, axis=alt.Axis(labelAngle=0))
    scale = alt.Scale(zero=False)
    layers: list[alt.Chart] = [
        alt.Chart()
        .mark_tick(color=BLACK, thickness=2, width=36)
        .encode(x=x, y=alt.Y("mean(ndcg):Q", title="", scale=scale)),
        alt.Chart()
        .mark_point(filled=True, size=60, opacity=0.8, color=COLOURS[0])
        .encode(
            x=x,
            y=alt.Y("ndcg:Q", title="true NDCG", scale=scale),
            tooltip=[alt.Tooltip("model:N"), alt.Tooltip("seed:N"), alt.Tooltip("ndcg:Q")],
        ),
    ]
    title = alt.TitleParams(
        "How close to the order of true relevance",
        subtitle=f"{len(table.runs)} simulated markets, a dot each; ticks: their means",
        anchor="start",
    )
    chart = alt.LayerChart(data=alt.InlineData(values=rows), layer=layers)
    return chart.properties(width=WIDTH, height=HEIGHT, title=title)
