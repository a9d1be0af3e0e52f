"""The chart of replayed counts: how far estimates are off, by block of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from rankdrift.charts.style import COLOURS, layered_chart
from rankdrift.core.errors import BadOption
from rankdrift.core.words import many, rank_words


def replay_chart(blocks: Sequence[Mapping[str, Any]], verdict: str, replays: int) -> alt.LayerChart:
    """Draw a bar of the root mean square error of log p for each block, a tick where it is claimed.

    Parameters
    ----------
    blocks
        As in `Replay.to_dict`.
    verdict
        What the curve does, in words.
    replays
        How many there were.
    """
    if not blocks:
        raise BadOption("There is nothing to draw: no replay could be estimated.")
    ranks = [rank_words(block["first"], block["last"]) for block in blocks]
    rows = [{"ranks": name, **block} for name, block in zip(ranks, blocks, strict=True)]
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
    return layered_chart(
        rows,
        layers,
        title=f"The curve {verdict}",
        subtitle=f"root mean square over {many(replays, 'replay')}; ticks: what estimates claim",
    )
