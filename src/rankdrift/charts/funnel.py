"""The chart of what became of a log's rows and clicks."""

from __future__ import annotations

import altair as alt

from rankdrift.charts.style import BLACK, COLOURS, Row, layered_chart
from rankdrift.core.words import many, share
from rankdrift.counts.funnel import INPUT, USED, Funnel

LINE = 24  # the height of a reason


def funnel_chart(funnel: Funnel) -> alt.LayerChart:
    """Draw rows and clicks as shares of the log: what was dropped, by reason, and what was used."""
    rows: list[Row] = [
        {
            "reason": words,
            "what": what,
            "share": n / whole if whole else 0.0,
            "told": share(n, whole),
            "n": n,
        }
        for _, words, shown, clicks, _ in funnel.lines()
        for what, n, whole in (("rows", shown, funnel.rows), ("clicks", clicks, funnel.clicks))
    ]
    ends = [words for name, words, *_ in funnel.lines() if name in (INPUT, USED)]
    order = list(dict.fromkeys(row["reason"] for row in rows))
    bold_ends = alt.condition(
        alt.FieldOneOfPredicate("value", ends), alt.value("bold"), alt.value("normal")
    )
    axis = alt.Axis(labelLimit=320, ticks=False, domain=False, labelFontWeight=bold_ends)
    y = alt.Y("reason:N", sort=order, title=None, axis=axis)
    base = alt.Chart().encode(y=y, yOffset=alt.YOffset("what:N", sort=["rows", "clicks"]))
    scale = alt.Scale(domain=["rows", "clicks"], range=[COLOURS[0], COLOURS[1]])
    x = alt.X(
        "share:Q",
        title="Share of the log",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[0, 1]),
    )
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
    log = f"{many(funnel.rows, 'row')} and {many(funnel.clicks, 'click')} in the log"
    return layered_chart(
        rows,
        layers,
        title="From the log to usable pairs",
        subtitle=[f"{log}; {many(funnel.used.pairs, 'usable pair')}"],
        height=LINE * len(order),
    )
