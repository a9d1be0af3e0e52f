"""The chart of the curves as it is first seen; report.js draws it anew when a switch is turned.

Both must draw alike: the browser's tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from rankdrift.report.page.axis import Axis
from rankdrift.report.page.series import Series

# In units of the view box; the plot is what the axes enclose.
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 380, 54, 22, 614, 338

Scale = Callable[[float], float]


def curve_picture(series: Iterable[Series], log_rank: bool, log_p: bool) -> dict[str, Any]:
    """Draw axes with their ticks, and the paths of each line, for those that are shown.

    Parameters
    ----------
    series
        All lines.
    log_rank, log_p
        Whether the axes are logarithmic.
    """
    shown = [s for s in series if s.shown]
    x, y = axes(shown, log_rank, log_p)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "top": TOP,
        "right": RIGHT,
        "bottom": BOTTOM,
        "x": [(f"{t:,.0f}", _round(x(t))) for t in x.ticks() if t == int(t)],
        "y": [(f"{t:g}", _round(y(t))) for t in y.ticks()],
        "lines": [
            {"css_classes": s.css_classes, "number": s.number, **paths(s, x, y)} for s in shown
        ],
    }


def axes(shown: Sequence[Series], log_rank: bool, log_p: bool) -> tuple[Axis, Axis]:
    """Choose the axes: that of p follows the curves, and bands that are far wider run out of the
    picture.

    Parameters
    ----------
    shown
        The lines to be drawn.
    log_rank, log_p
        Whether the axes are logarithmic.
    """
    ranks = [r for s in shown for r in (s.rank[0], s.rank[-1])] or [1, 2]
    values = [v for s in shown for v in (*s.p, *s.truth) if v is not None] or [1.0]
    lows = [v for s in shown for v in s.low if v is not None] or values
    highs = [v for s in shown for v in s.high if v is not None] or values
    top = max(*values, min(max(highs), 1.5 * max(values))) * 1.02 if values else 1.0
    bottom = min(*values, max(min(lows), min(values) / 3)) if log_p else 0.0
    first, last = min(ranks), max(ranks)
    return (
        Axis(first, max(last, first + 1), LEFT, RIGHT, log_rank),
        Axis(bottom, top, BOTTOM, TOP, log_p),
    )


def paths(s: Series, x: Scale, y: Scale) -> dict[str, str]:
    """Draw a line's band, line, thin (the parts with thin data) and truth; a missing rank breaks
    them all.

    Parameters
    ----------
    s
        The line.
    x, y
        Where a rank and a propensity are in the picture.
    """
    d = {"line": "", "thin": "", "band": "", "truth": ""}
    for run in _runs(s.rank):
        for enough, piece in _by_support(s, run):
            d["line" if enough else "thin"] += _path([(x(s.rank[i]), y(s.p[i])) for i in piece])
        for piece in _known(run, s.high):
            d["band"] += _band(s, piece, x, y)
        for piece in _known(run, s.truth) if s.truth else ():
            d["truth"] += _path([(x(s.rank[i]), y(s.truth[i] or 0)) for i in piece])
    return d


def _runs(ranks: Sequence[int]) -> list[list[int]]:
    """Indices of ranks that follow each other without a gap."""
    runs = [[0]] if ranks else []
    for i, (a, b) in enumerate(pairwise(ranks), start=1):
        if b == a + 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    return runs


def _by_support(s: Series, run: list[int]) -> list[tuple[bool, list[int]]]:
    """Pieces of a run; a step to or from a rank with thin data is thin."""
    if len(run) == 1:
        return [(s.supported[run[0]], run)]
    pieces: list[tuple[bool, list[int]]] = []
    for a, b in pairwise(run):
        enough = s.supported[a] and s.supported[b]
        if pieces and pieces[-1][0] == enough:
            pieces[-1][1].append(b)
        else:
            pieces.append((enough, [a, b]))
    return pieces


def _known(run: list[int], values: Sequence[float | None]) -> list[list[int]]:
    pieces: list[list[int]] = []
    for i in run:
        if values[i] is None:
            continue
        if pieces and pieces[-1][-1] == i - 1:
            pieces[-1].append(i)
        else:
            pieces.append([i])
    return pieces


def _band(s: Series, piece: list[int], x: Scale, y: Scale) -> str:
    """Round the interval; a rank by itself gets a narrow bar."""
    wide = 1.5 if len(piece) == 1 else 0.0
    over = [(x(s.rank[i]) + d, y(s.high[i])) for i in piece for d in {-wide, wide}]
    under = [(x(s.rank[i]) + d, y(s.low[i])) for i in piece for d in {-wide, wide}]
    return _path(sorted(over) + sorted(under, reverse=True)) + "Z"


def _path(points: Sequence[tuple[float, float]]) -> str:
    if len(points) == 1:
        return f"M{_round(points[0][0])} {_round(points[0][1])}h0"
    return "M" + "L".join(f"{_round(a)} {_round(b)}" for a, b in points)


def _round(value: float) -> float:
    return round(value, 1)
