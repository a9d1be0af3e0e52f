"""The chart of click models: how much more than the position-based one each explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from rankdrift.charts.style import BLACK, COLOURS, Row, inline_data, layered_chart
from rankdrift.core.errors import BadOption
from rankdrift.core.words import many

if TYPE_CHECKING:
    from rankdrift.clickmodels.comparing import ModelComparison

_LEAST = -0.5  # what is further behind is drawn here


def models_chart(found: ModelComparison) -> alt.LayerChart:
    """Draw how much more, or less, than the position-based model each explains, with intervals.

    Parameters
    ----------
    found
        From `compare_models`.
    """
    rows: list[Row] = [
        {
            "model": f"{score.name} · {score.model.title}",
            "more": max(score.more, _LEAST),
            "low": max(score.more_low or 0.0, _LEAST),
            "high": max(score.more_high or 0.0, _LEAST),
            "loglik": score.log_likelihood,
        }
        for score in found.scores.values()
        if score.more is not None
    ]
    if not rows:
        raise BadOption(f"There is nothing to draw. {found.words}")
    # A model with less to it than the floor is drawn at the edge, not left out.
    y = alt.Y("model:N", sort=[row["model"] for row in rows], title=None).axis(labelLimit=260)
    axis = alt.Axis(format="+%", title="Explained more than by the position-based model")
    x = alt.X("more:Q", axis=axis)
    base = alt.Chart().encode(y=y)
    tooltip = [
        alt.Tooltip("model:N", title="Model"),
        alt.Tooltip("more:Q", title="More", format="+.1%"),
        alt.Tooltip("low:Q", title="Low", format="+.1%"),
        alt.Tooltip("high:Q", title="High", format="+.1%"),
        alt.Tooltip("loglik:Q", title="Log-likelihood", format=".5f"),
    ]
    zero = alt.Chart(inline_data([{"more": 0}])).mark_rule(color=BLACK).encode(x=x)
    layers: list[alt.Chart] = [
        zero,
        base.mark_rule(color=COLOURS[0], strokeWidth=2).encode(
            x=alt.X("low:Q", axis=axis), x2="high:Q"
        ),
        base.mark_point(filled=True, size=50, color=COLOURS[0]).encode(x=x, tooltip=tooltip),
    ]
    test = found.searches[1]
    return layered_chart(
        rows,
        layers,
        title="Click models on searches they have not seen",
        subtitle=[
            f"log-likelihood above random clicks, {many(test, 'search', 'searches')} held out; "
            f"bars: {found.level:.0%} intervals over queries",
            f"what is further behind than {-_LEAST:.0%} stands at the edge",
        ],
        height=26 * len(rows),
    )
