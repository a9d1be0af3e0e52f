"""What charts of propensities share: their rows, the axis of p, tooltips, marks, the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import numpy as np
from numpy.typing import ArrayLike

from rankdrift.charts.style import BLACK, COLOURS, Row, inline_data
from rankdrift.core.errors import BadOption
from rankdrift.core.types import Floats
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.table import curve_columns

BREAK: Literal["break-paths-show-domains"] = "break-paths-show-domains"
"""What a line does at a rank without estimate."""


_TRUST_TIPS = {"trust": "Trust", "trust_low": "from", "trust_high": "to"}


def curve_rows(name: str, curve: Propensities, level: float, simultaneous: bool) -> list[Row]:
    """A row a rank from the first to the last, without a propensity where there is no estimate.

    Parameters
    ----------
    name
        Of the curve, in the legend.
    curve
        What is drawn; its segments are not.
    level, simultaneous
        Of the intervals, as in `Propensities.interval`.
    """
    columns = curve_columns(curve, level, simultaneous)
    rows = [
        {"curve": name, **dict(zip(columns, row, strict=True))}
        for row in zip(*columns.values(), strict=True)
    ]
    for row in rows:
        row["weight"] = 1 / row["propensity"]
        row["data"] = "enough" if row["supported"] else "thin: take the interval with care"
        if row["high"] is not None and not np.isfinite(row["high"]):
            row["low"] = row["high"] = None
    known = set(curve.ranks.tolist())
    for row in rows:  # one between two gaps has no line and no band: it gets a bar
        row["alone"] = not known & {row["rank"] - 1, row["rank"] + 1}
    # A rank without estimate breaks the line, so that none is read off it.
    missing = set(range(int(curve.ranks[0]), int(curve.ranks[-1]))) - known
    rows += [{"curve": name, "rank": rank, "propensity": None} for rank in missing]
    return sorted(rows, key=lambda row: int(row["rank"]))


def truth_rows(p: Propensities, truth: Mapping[int, float] | ArrayLike | None) -> list[Row]:
    """The truth at the ranks of the curve, relative to the same rank; nothing without a truth."""
    if truth is None:
        return []
    if isinstance(truth, Mapping):
        values = {int(rank): float(value) for rank, value in truth.items()}
    else:
        given: Floats = np.asarray(truth, dtype=float)
        values = {rank: float(value) for rank, value in enumerate(given.ravel(), start=1)}
    if not values.get(p.reference, 0) > 0:
        raise BadOption(f"The truth has no propensity for rank {p.reference}, the reference.")
    inside = [r for r in sorted(values) if p.ranks[0] <= r <= p.ranks[-1]]
    return [{"rank": r, "propensity": values[r] / values[p.reference]} for r in inside]


def propensity_axis(
    rows: Sequence[Row], true: Sequence[Row], reference: int, log_p: bool
) -> dict[str, Any]:
    """Title and scale of the axis of p: it follows the curve, and bands that are far wider run out
    of the picture.

    Parameters
    ----------
    rows, true
        What is drawn, of the estimates and of the truth.
    reference
        The rank whose propensity is 1.
    log_p
        Whether the scale is logarithmic.
    """
    values = [row["propensity"] for row in (*rows, *true) if row["propensity"] is not None]
    lows = [row["low"] for row in rows if row.get("low") is not None] or values
    highs = [row["high"] for row in rows if row.get("high") is not None] or values
    top = max(max(values), min(max(highs), 1.5 * max(values))) * 1.02
    title = f"Propensity relative to rank {reference}"
    if log_p:
        bottom = min(min(values), max(min(lows), min(values) / 3))
        scale = alt.Scale(type="log", domain=[bottom, top], nice=False)
    else:
        scale = alt.Scale(domain=[0, top], nice=False)
    return {"title": title, "scale": scale}


def curve_tooltip(level: float, curve_title: str | None) -> list[alt.Tooltip]:
    """What is shown of a rank when pointed at; the curve's name only if it has a title there."""
    bounds = f"{100 * level:g}% interval"
    fields = [
        ("rank:Q", "Rank", ",d"),
        ("propensity:Q", "Propensity", ".3f"),
        ("low:Q", f"{bounds}, from", ".3f"),
        ("high:Q", f"{bounds}, to", ".3f"),
        ("weight:Q", "Weight of a click", ".2f"),
        ("pairs:Q", "Pairs shown", ",d"),
        ("clicks:Q", "Clicks", ",d"),
    ]
    tips = [alt.Tooltip(field, title=title, format=form) for field, title, form in fields]
    tips.append(alt.Tooltip("data:N", title="Data"))
    if curve_title is None:
        return tips
    return [alt.Tooltip("curve:N", title=curve_title), *tips]


def reference_mark(reference: int, x: alt.X, y: alt.Y) -> alt.Chart:
    """A diamond at the reference, which is 1 by definition."""
    text = f"Rank {reference} is the reference: 1 by definition"
    row = {"rank": reference, "propensity": 1.0, "note": text}
    mark = alt.Chart(inline_data([row])).mark_point(
        shape="diamond", filled=True, size=110, color=BLACK, opacity=1
    )
    drawn: alt.Chart = mark.encode(x=x, y=y, tooltip=alt.Tooltip("note:N", title="Reference"))
    return drawn


def trust_layers(rows: Sequence[Row], x: alt.X, axis: dict[str, Any]) -> list[alt.Chart]:
    """The second curve with its band: the chance of a click that needs no relevance.

    Parameters
    ----------
    rows
        Those of the curve.
    x, axis
        Where ranks are, and what the vertical axis is like.
    """
    known = [row for row in rows if row.get("trust") is not None]
    tips = [alt.Tooltip(f"{name}:Q", title=t, format=".3f") for name, t in _TRUST_TIPS.items()]
    base = alt.Chart(inline_data(known)).encode(x=x)
    band = base.mark_area(opacity=0.18, clip=True, color=COLOURS[1]).encode(
        y=alt.Y("trust_low:Q", **axis), y2="trust_high:Q", tooltip=alt.value(None)
    )
    line = base.mark_line(strokeWidth=2, clip=True, color=COLOURS[1]).encode(
        y=alt.Y("trust:Q", **axis), tooltip=[alt.Tooltip("rank:Q", title="Rank"), *tips]
    )
    return [band, line]


def truth_line(true: Sequence[Row], x: alt.X, y: alt.Y) -> alt.Chart:
    """The truth of simulated data, dashed."""
    tips = [
        alt.Tooltip("rank:Q", title="Rank"),
        alt.Tooltip("propensity:Q", title="Truth", format=".3f"),
    ]
    line = alt.Chart(inline_data(true)).mark_line(
        strokeDash=[6, 4], strokeWidth=1.5, color="#555555", clip=True
    )
    drawn: alt.Chart = line.encode(x=x, y=y, tooltip=tips)
    return drawn
