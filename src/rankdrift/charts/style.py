"""The style of all charts: colours, sizes, axes of ranks; and `Figure`, a chart that can be kept.

One description is drawn as PNG, SVG or a page that needs no network.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from rankdrift.core.artefacts import chart_ending
from rankdrift.core.files import replacing
from rankdrift.core.notebook import brief

# Okabe and Ito: told apart with any colour vision. The pool is black.
BLACK = "#000000"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
WIDTH, HEIGHT = 560, 320
_TICKS = [m * 10**e for e in range(6) for m in (1, 2, 5)]
# "<" in a text that strangers wrote could end the script of the page; as this it cannot.
_LESS_THAN, _STAND_IN = "\\u003c", "\\ufdd0"

Row = dict[str, Any]
"""What is drawn of one rank, check, feature …: plain values by field."""


@dataclass(frozen=True)
class Figure:
    """An Altair chart that can be kept: `save` needs neither a browser nor a network.

    Notebooks show it as a picture. `chart` is what Altair makes of it, for those who go on drawing.
    """

    chart: alt.LayerChart | alt.VConcatChart

    def save(self, path: str | os.PathLike[str], scale: float = 2.0) -> None:
        """Write .png (`scale` pixels a point), .svg or .html, whole or not at all."""
        ending = chart_ending(path)
        with replacing(path) as part:
            if ending == ".html":
                part.write_text(self.to_html(), encoding="utf-8")
            elif ending == ".png":
                self.chart.save(str(part), format="png", scale_factor=scale)
            else:
                self.chart.save(str(part), format="svg")

    def to_html(self) -> str:
        """Draw it on one page with all it needs inside."""
        safe = type(self.chart).from_dict(_without_less_than(self.chart.to_dict()))
        options = {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}
        page: str = safe.to_html(inline=True, embed_options=options)
        return page.replace(_STAND_IN, _LESS_THAN)

    def _repr_svg_(self) -> str:
        """For notebooks: a picture, where Altair's own takes scripts from the network."""
        import vl_convert

        drawn: str = vl_convert.vegalite_to_svg(self.chart.to_dict())
        # Where the notebook's letters are wider than those it was drawn with, none is cut off.
        return drawn.replace("<svg ", '<svg style="overflow: visible" ', 1)

    def __repr__(self) -> str:
        title = self.chart.to_dict().get("title", {}).get("text", "")
        return brief(self, title, "its save writes .png, .svg or .html")


def layered_chart(
    rows: Sequence[Row],
    layers: Sequence[alt.Chart],
    *,
    title: str,
    subtitle: str | Sequence[str],
    height: int = HEIGHT,
) -> alt.LayerChart:
    """Lay marks over each other in one picture of the usual width, its title on the left.

    Parameters
    ----------
    rows
        What the marks show, unless they bring data of their own.
    layers
        The marks, the first at the bottom.
    title, subtitle
        What is drawn, and how to read it, a line each.
    height
        Of the plot, without its axes.
    """
    words = alt.TitleParams(title, subtitle=subtitle, anchor="start")
    chart = alt.LayerChart(data=inline_data(rows), layer=layers)
    return chart.properties(width=WIDTH, height=height, title=words)


def inline_data(rows: Sequence[Row]) -> alt.InlineData:
    """Data that are kept in the chart itself."""
    return alt.InlineData(values=rows)


def rank_axis(rows: Sequence[Row], log_rank: bool) -> alt.X:
    """The axis of the ranks of these rows, with few round ticks where it is logarithmic."""
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


def colour_scale(names: Sequence[str], colours: Sequence[str] = COLOURS) -> alt.Scale:
    """A colour for each name; they repeat where there are more names than colours."""
    return alt.Scale(
        domain=list(names), range=[colours[i % len(colours)] for i in range(len(names))]
    )


def _without_less_than(value: Any) -> Any:
    """`value` with every "<" of its texts replaced by a stand-in."""
    if isinstance(value, dict):
        return {key: _without_less_than(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_less_than(item) for item in value]
    return value.replace("<", "\ufdd0") if isinstance(value, str) else value
