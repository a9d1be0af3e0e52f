"""How far estimates from replayed counts are off, by block of ranks."""

from __future__ import annotations

import altair as alt

from rankdrift.charts.curve import COLOURS, HEIGHT, WIDTH
from rankdrift.core.errors import BadOption
from rankdrift.core.words import rank_words
from rankdrift.simulate.replay import VERDICTS, Replay


def replay_chart(replay: Replay) -> alt.LayerChart:
    """A bar of the root mean square error of log p for each block, a tick where it is claimed."""
    if not replay.blocks:
        raise BadOption("There is nothing to draw: no replay could be estimated.")
    ranks = [rank_words(block.first, block.last) for block in replay.blocks]
    rows = [
        {"ranks": name, **vars(block)} for name, block in zip(ranks, replay.blocks, strict=True)
    ]
    x = alt.X("ranks:N", sort=ranks, title="ranks", axis=alt.Axis(labelAngle=0))
    tooltip = [
        alt.Tooltip("ranks:N"),
        alt.Tooltip("rmse:Q", format=".3f", title="error of log p"),
        alt.Tooltip("predicted:Q", format=".3f", title="error claimed"),
        alt.Tooltip("bias:Q", format="+.3f"),
        alt.Tooltip("coverage:Q", format=".0%", title="intervals that hold the truth"),
    ]
    layers: list[alt.Chart] = [
        alt.Chart()
        .mark_bar(color=COLOURS[0])
        .encode(x=x, y=alt.Y("rmse:Q", title="error of log p"), tooltip=tooltip),
        alt.Chart()
        .mark_tick(color=COLOURS[1], thickness=3, width=40)
        .encode(x=x, y=alt.Y("predicted:Q", title="")),
    ]
    title = alt.TitleParams(
        f"The curve {VERDICTS[replay.verdict]}",
        subtitle=f"root mean square over {replay.replays:,} replays; ticks: what estimates claim",
        anchor="start",
    )
    chart = alt.LayerChart(data=alt.InlineData(values=rows), layer=layers)
    return chart.properties(width=WIDTH, height=HEIGHT, title=title)
