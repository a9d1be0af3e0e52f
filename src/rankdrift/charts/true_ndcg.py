"""The chart of rankers on simulated markets: the true NDCG of every model, seed by seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from rankdrift.charts.style import BLACK, COLOURS, layered_chart
from rankdrift.core.words import many


def true_ndcg_chart(ndcg: Mapping[str, Iterable[float]], seeds: Sequence[int]) -> alt.LayerChart:
    """Draw a dot for each seed and model, and a tick for a model's mean; `ndcg` is by model, with a
    number for each of `seeds`."""
    models = list(ndcg)
    rows = [
        {"model": model, "seed": seed, "ndcg": float(value)}
        for model, values in ndcg.items()
        for seed, value in zip(seeds, values, strict=True)
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
    return layered_chart(
        rows,
        layers,
        title="How close to the order of true relevance",
        subtitle=f"{many(len(seeds), 'simulated market')}, a dot each; ticks: their means",
    )
