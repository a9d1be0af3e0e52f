"""Charts of what a log holds: how often each rank is clicked, and what became of its rows."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from rankdrift.charts.curve import BLACK, COLOURS, HEIGHT, WIDTH, _data, _x
from rankdrift.core.errors import BadOption
from rankdrift.core.words import percent, rank_words, segment_words, share
from rankdrift.counts.counts import Counts
from rankdrift.counts.funnel import INPUT, USED, Funnel
from rankdrift.counts.rank_blocks import Block, rank_blocks

BLOCKS = 60
LINE = 24  # of the funnel: the height of a reason


def rates_chart(counts: Counts, log_rank: bool = True) -> alt.LayerChart:
    """Clicks per impression by rank, with 95% margins; a colour for each of the most shown
    segments."""
    rows = _rates(counts)
    if not rows:
        raise BadOption("There is nothing to draw: these counts have no impressions.")
    names = list(dict.fromkeys(row["segment"] for row in rows))
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    key = alt.Legend(title=" / ".join(counts.segment_columns)) if counts.segment_columns else None
    scale = alt.Scale(domain=names, range=colours)
    base = alt.Chart().encode(
        x=_x(rows, log_rank), color=alt.Color("segment:N", scale=scale, legend=key)
    )
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
    title = alt.TitleParams(
        "How often each rank is clicked",
        subtitle=[
            "bars: 95% margins; deeper ranks are pooled",
            "Not yet what a rank is worth: better results stand higher",
        ],
        anchor="start",
    )
    chart = alt.LayerChart(data=_data(rows), layer=layers)
    return chart.properties(width=WIDTH, height=HEIGHT, title=title)


def _rates(counts: Counts) -> list[dict[str, Any]]:
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


def _rate(name: str, block: Block) -> dict[str, Any]:
    rate = block.clicks / block.impressions
    margin = 1.96 * max(block.clicks, 1) ** 0.5 / block.impressions
    return {
        "segment": name, "rank": round((block.first * block.last) ** 0.5), "rate": rate,
        "low": max(rate - margin, 0.0), "high": rate + margin, "clicks": block.clicks,
        "impressions": block.impressions, "ranks": rank_words(block.first, block.last),
        "told": percent(rate),
    }  # fmt: skip


def funnel_chart(funnel: Funnel) -> alt.LayerChart:
    """Rows and clicks as shares of the log: what was dropped, by reason, and what was used."""
    rows: list[dict[str, Any]] = [
        {
            "reason": words, "what": what, "share": n / whole if whole else 0.0,
            "told": share(n, whole), "n": n,
        }
        for _, words, shown, clicks, _ in funnel.lines()
        for what, n, whole in (("rows", shown, funnel.rows), ("clicks", clicks, funnel.clicks))
    ]  # fmt: skip
    ends = [words for name, words, *_ in funnel.lines() if name in (INPUT, USED)]
    order = list(dict.fromkeys(row["reason"] for row in rows))
    y = alt.Y(
        "reason:N", sort=order, title=None,
        axis=alt.Axis(labelLimit=320, ticks=False, domain=False,
                      labelFontWeight=alt.condition(
                          alt.FieldOneOfPredicate("value", ends),
                          alt.value("bold"), alt.value("normal"))),
    )  # fmt: skip
    base = alt.Chart().encode(y=y, yOffset=alt.YOffset("what:N", sort=["rows", "clicks"]))
    scale = alt.Scale(domain=["rows", "clicks"], range=[COLOURS[0], COLOURS[1]])
    x = alt.X("share:Q", title="Share of the log", axis=alt.Axis(format="%"),
              scale=alt.Scale(domain=[0, 1]))  # fmt: skip
    tooltip = [
        alt.Tooltip("reason:N", title="What"),
        alt.Tooltip("n:Q", title="How many", format=",d"),
        alt.Tooltip("told:N", title="Share"),
    ]
    layers: list[alt.Chart] = [
        base.mark_bar().encode(
            x=x,
            color=alt.Color("what:N", scale=scale, legend=alt.Legend(title=None, offset=36)),
            tooltip=tooltip,
        ),
        base.mark_text(align="left", dx=4, fontSize=10, color=BLACK).encode(x=x, text="told:N"),
    ]
    title = alt.TitleParams(
        "From the log to usable pairs",
        subtitle=[f"{funnel.rows:,} rows and {funnel.clicks:,} clicks in the log; "
                  f"{funnel.used.pairs:,} usable pairs"],
        anchor="start",
    )  # fmt: skip
    chart = alt.LayerChart(data=_data(rows), layer=layers)
    return chart.properties(width=WIDTH, height=LINE * len(order), title=title)
