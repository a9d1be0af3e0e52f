"""Several curves in one chart or in two beside each other, and their numbers as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.core.files import together, write_text
from rankdrift.core.notebook import brief
from rankdrift.core.types import Floats, Ranks
from rankdrift.core.words import many
from rankdrift.propensities.intervals import t_quantile
from rankdrift.propensities.propensities import Propensities

if TYPE_CHECKING:
    import altair as alt


DRAWN = 200  # estimated to rank 500, drawn to 200, as in the paper
LEVEL = 0.95
BLUE, RED, GREEN, BLACK, GREY = "#0072B2", "#D55E00", "#009E73", "#000000", "#555555"
DASHED, DOTTED, SOLID = [6, 3], [1.5, 3], [1, 0]


@dataclass(frozen=True)
class Line:
    """A curve to draw: ranks, values (R,); low, high (R,) if it has a band."""

    name: str
    colour: str
    ranks: Ranks
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    dash: Sequence[float] = (1, 0)
    width: float = 2.0


@dataclass(frozen=True)
class Figures:
    """The files written; errors: for each curve drawn, the root mean square of log p − log truth
    over the ranks drawn."""

    paths: tuple[Path, ...]
    errors: Mapping[str, Mapping[str, float]]

    def __repr__(self) -> str:
        return brief(self, many(len(self.paths), "file"), f"figures {', '.join(self.errors)}")


def true_line(p: Floats, colour: str = GREEN, dash: Sequence[float] = (1, 0)) -> Line:
    """The truth (R,) as a curve to draw, 1 at rank 1."""
    return Line("truth", colour, np.arange(1, len(p) + 1, dtype=np.int32), p / p[0], dash=dash)


def line_of(
    name: str,
    found: Propensities,
    colour: str,
    *,
    band: bool = False,
    scaled_to: Floats | None = None,
    dash: Sequence[float] = (1, 0),
    width: float = 2.0,
) -> Line:
    """An estimate as a curve to draw.

    Parameters
    ----------
    name, colour, dash, width
        How it is drawn.
    found
        The estimate.
    band
        Draw its intervals too.
    scaled_to
        A truth (R,): mean logs over the ranks drawn are made the same, and the band is
        that of p relative to this mean. None: the estimate as it is.
    """
    inside = found.ranks <= DRAWN
    log_p, deviations = found.log_p, found.deviations
    if scaled_to is not None:
        true = np.log(scaled_to / scaled_to[0])[found.ranks[inside] - 1]
        log_p = log_p + float((true - log_p[inside]).mean())
        deviations = deviations - deviations[inside].mean(axis=0)
    low = high = None
    if band:
        reach = t_quantile(LEVEL, found.df) * np.sqrt((deviations**2).sum(axis=1))
        low, high = np.exp(log_p - reach), np.exp(log_p + reach)
    return Line(name, colour, found.ranks, np.exp(log_p), low, high, dash, width)


def error_of(line: Line, truth: Floats) -> float:
    """The root mean square of log p − log truth (R,) over the ranks drawn."""
    inside = line.ranks <= DRAWN
    off = np.log(line.values[inside]) - np.log(truth / truth[0])[line.ranks[inside] - 1]
    return float(np.sqrt((off**2).mean()))


def panel(lines: Sequence[Line], title: str, subtitle: str, top: float) -> alt.LayerChart:
    """One chart; the first line lies at the bottom."""
    import altair as alt

    x = alt.X(
        "rank:Q",
        title="Rank",
        scale=alt.Scale(domain=[1, DRAWN], nice=False),
        axis=alt.Axis(values=[1, *range(20, DRAWN + 1, 20)], grid=False),
    )
    scale = alt.Scale(domain=[0, top], nice=False)
    y = alt.Y("propensity:Q", title="Propensity", scale=scale)
    names = [line.name for line in lines]
    colour = alt.Color(
        "curve:N",
        scale=alt.Scale(domain=names, range=[line.colour for line in lines]),
        legend=alt.Legend(
            title=None,
            orient="top-right",
            symbolType="stroke",
            symbolSize=300,
            symbolStrokeWidth=2.5,
            fillColor="white",
            padding=6,
            labelLimit=300,
        ),
    )
    dash = alt.StrokeDash(
        "curve:N", scale=alt.Scale(domain=names, range=[list(line.dash) for line in lines])
    )
    layers: list[alt.Chart] = []
    for line in lines:
        if line.low is not None:
            low = alt.Y("low:Q", scale=scale, title="Propensity")
            area = alt.Chart(alt.InlineData(values=_rows(line))).mark_area(
                opacity=0.18, clip=True, color=line.colour
            )
            layers.append(area.encode(x=x, y=low, y2="high:Q"))
    for line in lines:
        mark = alt.Chart(alt.InlineData(values=_rows(line))).mark_line(
            strokeWidth=line.width, clip=True
        )
        layers.append(mark.encode(x=x, y=y, color=colour, strokeDash=dash))
    words = alt.TitleParams(title, subtitle=subtitle, anchor="start", fontSize=14)
    return alt.LayerChart(layer=layers).properties(width=460, height=300, title=words)


def save(folder: Path, name: str, chart: Any, lines: Mapping[str, Sequence[Line]]) -> list[Path]:
    """Write the chart as .svg and .png, and the numbers behind it as .csv."""
    from rankdrift.charts.style import Figure

    paths = [folder / f"{name}{ending}" for ending in (".svg", ".png", ".csv")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["panel", "curve", "rank", "propensity", "low", "high"])
    for title, drawn in lines.items():
        for line in drawn:
            for row in _rows(line, deepest=int(line.ranks[-1])):
                numbers = (row.get(column) for column in ("propensity", "low", "high"))
                cells = ("" if number is None else f"{number:.6g}" for number in numbers)
                writer.writerow([title, line.name, row["rank"], *cells])
    with together():
        for path in paths[:2]:
            Figure(chart).save(path)
        write_text(paths[2], text.getvalue())
    return paths


def _rows(line: Line, deepest: int = DRAWN) -> list[dict[str, Any]]:
    columns: dict[str, Any] = {"rank": line.ranks, "propensity": line.values}
    if line.low is not None and line.high is not None:
        columns |= {"low": line.low, "high": line.high}
    inside = line.ranks <= deepest
    rows = zip(*(values[inside].tolist() for values in columns.values()), strict=True)
    return [{"curve": line.name, **dict(zip(columns, row, strict=True))} for row in rows]
