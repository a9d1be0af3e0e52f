"""Charts of propensities: one description, drawn as PNG, SVG or a page that needs no network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import altair as alt
import numpy as np
from numpy.typing import ArrayLike

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.files import replacing
from rankdrift.core.types import Floats, Segment
from rankdrift.core.words import ranges
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.table import label

# Okabe and Ito: told apart with any colour vision. The pool is black.
BLACK = "#000000"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
ENDINGS = (".png", ".svg", ".html")
WIDTH, HEIGHT = 560, 320
_FEW_RANKS = 60  # so few that each may have a dot
_BREAK: Literal["break-paths-show-domains"] = "break-paths-show-domains"
_TICKS = [m * 10**e for e in range(6) for m in (1, 2, 5)]
# "<" in a text that strangers wrote could end the script of the page; as this it cannot.
_LESS_THAN, _STAND_IN = "\\u003c", "\\ufdd0"

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Figure:
    """An Altair chart that can be kept: `save` needs neither a browser nor a network."""

    chart: alt.LayerChart

    def save(self, path: str | os.PathLike[str], scale: float = 2.0) -> None:
        """Write .png (`scale` pixels a point), .svg or .html, whole or not at all."""
        ending = Path(path).suffix.lower()
        if ending not in ENDINGS:
            raise BadOption(
                f"No chart can be written as {ending or 'a file without an ending'!r}."
                f"{did_you_mean(ending, ENDINGS)} Use {', '.join(ENDINGS)}."
            )
        with replacing(path) as part:
            if ending == ".html":
                part.write_text(self.to_html(), encoding="utf-8")
            elif ending == ".png":
                self.chart.save(str(part), format="png", scale_factor=scale)
            else:
                self.chart.save(str(part), format="svg")

    def to_html(self) -> str:
        """One page with all it needs inside."""
        safe = alt.LayerChart.from_dict(_without_less_than(self.chart.to_dict()))
        options = {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}
        page: str = safe.to_html(inline=True, embed_options=options)
        return page.replace(_STAND_IN, _LESS_THAN)

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        return self.chart._repr_mimebundle_(*args, **kwargs)


def curve_chart(
    p: Propensities,
    truth: Mapping[int, float] | ArrayLike | None = None,
    level: float = 0.95,
    log_rank: bool = True,
    log_p: bool = False,
    simultaneous: bool = False,
) -> alt.LayerChart:
    """Propensity by rank with its band; hollow points where the data are thin.

    `truth`: the propensity of each rank, or of ranks 1, 2, 3 and so on, for simulated data; it is
    taken relative to the same rank. With segments, the pool and the segments with the most
    clicks, leaning on the pool.
    """
    curves, legend, left_out = _curves(p)
    rows = [
        row for name, curve in curves.items() for row in _rows(name, curve, level, simultaneous)
    ]
    true = _truth(p, truth)
    x, axis = _x(rows, log_rank), _y_axis(rows, true, p.reference, log_p)
    y, low = alt.Y("propensity:Q", **axis), alt.Y("low:Q", **axis)
    several = len(curves) > 1
    colours = [BLACK, *COLOURS] if several else [COLOURS[0]]
    key = alt.Legend(title=legend, symbolOpacity=1, symbolType="square")
    scale = alt.Scale(domain=list(curves), range=colours[: len(curves)])
    colour = alt.Color("curve:N", scale=scale, legend=key if several else None)
    few = len(p.ranks) <= _FEW_RANKS or len(p.ranks) < p.ranks[-1] - p.ranks[0] + 1
    base = alt.Chart().encode(x=x, color=colour)
    tooltip = _tooltip(level, several, legend)
    layers: list[alt.Chart] = [
        base.mark_area(opacity=0.12 if several else 0.18, clip=True, invalid=_BREAK).encode(
            y=low, y2="high:Q", tooltip=alt.value(None)
        ),
        base.mark_line(strokeWidth=2, clip=True, invalid=_BREAK).encode(y=y),
        base.mark_rule(strokeWidth=2, clip=True, opacity=0.5)
        .encode(y=low, y2="high:Q")
        .transform_filter("datum.alone && isValid(datum.low)"),
        base.mark_point(filled=True, size=25, opacity=1 if few else 0)
        .encode(y=y, tooltip=tooltip)
        .transform_filter("datum.supported && isValid(datum.propensity)"),
        base.mark_point(filled=False, size=30, fill="white", strokeWidth=1.2)
        .encode(y=y, tooltip=tooltip)
        .transform_filter("!datum.supported && isValid(datum.propensity)"),
        _reference_mark(p.reference, x, y),
    ]
    if true:
        layers.append(_truth_line(true, x, y))
    title = alt.TitleParams(
        "How likely a result at each rank is looked at",
        subtitle=_subtitle(p, rows, level, simultaneous, left_out, bool(true)),
        anchor="start",
    )
    chart = alt.LayerChart(data=_data(rows), layer=layers)
    return chart.properties(width=WIDTH, height=HEIGHT, title=title)


def _data(rows: Rows) -> Any:
    return alt.InlineData(values=rows)


def _curves(p: Propensities) -> tuple[dict[str, Propensities], str, int]:
    """The curves to draw by name, the title of their legend, and how many are left out."""
    found: Mapping[Segment, Propensities] = p.shrunk or p.by_segment
    most = sorted(found, key=lambda segment: -int(found[segment].clicks.sum()))[: len(COLOURS)]
    drawn = {label(segment): found[segment] for segment in found if segment in most}
    pool = "All"
    while pool in drawn:
        pool = f"({pool})"
    return {pool: p, **drawn}, " / ".join(p.segment_columns), len(found) - len(drawn)


def _rows(name: str, curve: Propensities, level: float, simultaneous: bool) -> Rows:
    from rankdrift.propensities.table import curve_columns

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


def _truth(p: Propensities, truth: Mapping[int, float] | ArrayLike | None) -> Rows:
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


def _x(rows: Rows, log_rank: bool) -> alt.X:
    ranks = [row["rank"] for row in rows]
    first, last = min(ranks), max(ranks)
    if not log_rank:
        return alt.X("rank:Q", title="Rank", scale=alt.Scale(domain=[first, last], nice=False))
    ticks = [tick for tick in _TICKS if first <= tick <= last]
    return alt.X(
        "rank:Q",
        title="Rank",
        scale=alt.Scale(type="log", domain=[first, last], nice=False),
        axis=alt.Axis(values=ticks or [first, last], format=",d", grid=False),
    )


def _y_axis(rows: Rows, true: Rows, reference: int, log_p: bool) -> dict[str, Any]:
    """The axis follows the curve; bands that are far wider run out of the picture."""
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


def _tooltip(level: float, several: bool, legend: str) -> list[alt.Tooltip]:
    bounds = f"{100 * level:g}% interval"
    told = [
        ("rank:Q", "Rank", ",d"),
        ("propensity:Q", "Propensity", ".3f"),
        ("low:Q", f"{bounds}, from", ".3f"),
        ("high:Q", f"{bounds}, to", ".3f"),
        ("weight:Q", "Weight of a click", ".2f"),
        ("pairs:Q", "Pairs shown", ",d"),
        ("clicks:Q", "Clicks", ",d"),
    ]
    tips = [alt.Tooltip(field, title=title, format=form) for field, title, form in told]
    tips.append(alt.Tooltip("data:N", title="Data"))
    return [alt.Tooltip("curve:N", title=legend or "Curve"), *tips] if several else tips


def _reference_mark(reference: int, x: alt.X, y: alt.Y) -> alt.Chart:
    text = f"Rank {reference} is the reference: 1 by definition"
    row = {"rank": reference, "propensity": 1.0, "note": text}
    mark = alt.Chart(_data([row])).mark_point(
        shape="diamond", filled=True, size=110, color=BLACK, opacity=1
    )
    drawn: alt.Chart = mark.encode(x=x, y=y, tooltip=alt.Tooltip("note:N", title="Reference"))
    return drawn


def _truth_line(true: Rows, x: alt.X, y: alt.Y) -> alt.Chart:
    tips = [alt.Tooltip("rank:Q", title="Rank"),
            alt.Tooltip("propensity:Q", title="Truth", format=".3f")]  # fmt: skip
    line = alt.Chart(_data(true)).mark_line(
        strokeDash=[6, 4], strokeWidth=1.5, color="#555555", clip=True
    )
    drawn: alt.Chart = line.encode(x=x, y=y, tooltip=tips)
    return drawn


def _subtitle(
    p: Propensities, rows: Rows, level: float, simultaneous: bool, left_out: int, truth: bool
) -> Sequence[str]:
    whole = " of the whole curve at once" if simultaneous else " of each rank by itself"
    parts = [p.method]
    if any(row.get("low") is not None for row in rows):
        parts.append(f"band: {100 * level:g}% interval{whole}")
    if truth:
        parts.append("dashed: truth")
    lines = ["; ".join(parts)]
    if any(row.get("supported") is False for row in rows):
        lines.append("Hollow points: thin data")
    if p.gaps:
        lines.append(f"No estimate for ranks {ranges(p.gaps)}")
    if left_out:
        lines.append(f"{left_out} segments with fewer clicks are not drawn")
    return lines


def _without_less_than(value: Any) -> Any:
    """`value` with every "<" of its texts replaced by a stand-in."""
    if isinstance(value, dict):
        return {key: _without_less_than(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_less_than(item) for item in value]
    return value.replace("<", "\ufdd0") if isinstance(value, str) else value
