"""The chart of click rates: how often each rank is clicked."""

from __future__ import annotations

import altair as alt
import numpy as np

from rankdrift.charts.style import COLOURS, Row, colour_scale, layered_chart, rank_axis
from rankdrift.core.errors import BadOption
from rankdrift.core.words import percent, rank_words, segment_words
from rankdrift.counts.counts import Counts
from rankdrift.counts.rank_blocks import Block, rank_blocks

BLOCKS = 60


def rates_chart(counts: Counts, log_rank: bool = True) -> alt.LayerChart:
    """Draw clicks per impression by rank, with 95% margins; a colour for each of the most shown
    segments."""
    rows = _rates(counts)
    if not rows:
        raise BadOption("There is nothing to draw: these counts have no impressions.")
    names = list(dict.fromkeys(row["segment"] for row in rows))
    key = alt.Legend(title=" / ".join(counts.segment_columns)) if counts.segment_columns else None
    colour = alt.Color("segment:N", scale=colour_scale(names), legend=key)
    base = alt.Chart().encode(x=rank_axis(rows, log_rank), color=colour)
    axis = alt.Axis(format="%", title="Clicks per impression")
    y = alt.Y("rate:Q", axis=axis, scale=alt.Scale(domainMin=0))
    tooltip = [
        alt.Tooltip("ranks:N", title="Ranks"),
        alt.Tooltip("told:N", title="Clicks per impression"),
        alt.Tooltip("clicks:Q", title="Clicks", format=",d"),
        alt.Tooltip("impressions:Q", title="Impressions", format=",d"),
    ]
    layers: list[alt.Chart] = [
        base.mark_rule(opacity=0.5, clip=True).encode(
            y=alt.Y("low:Q", axis=axis), y2="high:Q", tooltip=alt.value(None)
        ),
        base.mark_line(strokeWidth=1.5, clip=True).encode(y=y),
        base.mark_point(filled=True, size=25, opacity=1).encode(y=y, tooltip=tooltip),
    ]
    return layered_chart(
        rows,
        layers,
        title="How often each rank is clicked",
        subtitle=[
            "bars: 95% margins; deeper ranks are pooled",
            "Not yet what a rank is worth: better results stand higher",
        ],
    )


def _rates(counts: Counts) -> list[Row]:
    table = counts.by_rank
    shown = np.bincount(table.segment, table.impressions, minlength=len(counts.segments))
    most = sorted(np.argsort(-shown, kind="stable")[: len(COLOURS)].tolist())
    rows = []
    for number in most:
        segment = counts.segments[number]
        part = counts.restrict(segments=[segment]) if counts.segment_columns else counts
        name = segment_words(segment) if segment else "All"
        rows += [_rate(name, block) for block in rank_blocks(part, BLOCKS) if block.impressions]
    return rows


def _rate(name: str, block: Block) -> Row:
    rate = block.clicks / block.impressions
    return {
        "segment": name,
        "rank": round((block.first * block.last) ** 0.5),
        "rate": rate,
        "low": max(rate - block.margin, 0.0),
        "high": rate + block.margin,
        "clicks": block.clicks,
        "impressions": block.impressions,
        "ranks": rank_words(block.first, block.last),
        "told": percent(rate),
    }
