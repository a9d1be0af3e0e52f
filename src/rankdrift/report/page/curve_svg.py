"""The chart of the curves as it is first seen; report.js draws it anew when a switch is turned.

Both must draw alike: the browser's tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from rankdrift.core.words import figure
from rankdrift.report.page.axis import (
    Axis,
    Frame,
    Point,
    largest_drawn,
    path_of,
    smallest_drawn,
    spaced,
    without_needless,
)
from rankdrift.report.page.series import Series

FURTHEST = 5.0
"""The axis of p reaches up to so many times what the first line needs, whatever the others do."""
APART = 34.0  # ranks below a picture, in its units
Fewer = Callable[[Sequence[Point]], list[Point]]
MOST_OFF = 3  # values off the chart that are told


LARGE = Frame(640, 380, 54, 22, 614, 338)
LEFT, TOP, RIGHT, BOTTOM = LARGE.left, LARGE.top, LARGE.right, LARGE.bottom
MIDDLE = Frame(640, 250, 54, 16, 614, 212)
SMALL = Frame(320, 190, 44, 12, 310, 158)


def curve_picture(
    series: Iterable[Series],
    log_rank: bool,
    log_p: bool,
    frame: Frame = LARGE,
    scales: tuple[Axis, Axis] | None = None,
) -> dict[str, Any]:
    """Draw axes with their ticks, and the paths of each line, for those that are shown.

    Parameters
    ----------
    series
        All lines.
    log_rank, log_p
        Whether the axes are logarithmic.
    frame
        The size of the picture.
    scales
        Its axes, if several pictures are to share them.
    """
    shown = [s for s in series if s.shown]
    x, y = scales or axes(shown, log_rank, log_p, frame)
    return {
        **asdict(frame),
        "x": spaced([(f"{t:,.0f}", _round(x(t))) for t in x.ticks() if t == int(t)], APART),
        "y": [(f"{t:g}", _round(y(t))) for t in y.ticks()],
        "lines": [
            {
                "css_classes": s.css_classes,
                "number": s.number,
                **paths(s, x, y, list if frame is LARGE else without_needless),
            }
            for s in shown
        ],
        "off": off_words(shown, y),
    }


def axes(
    shown: Sequence[Series], log_rank: bool, log_p: bool, frame: Frame = LARGE
) -> tuple[Axis, Axis]:
    """Choose the axes: that of p follows the curves, but not to a rank or a curve that is far off
    all others, and bands that are far wider run out of the picture.

    Parameters
    ----------
    shown
        The lines to be drawn.
    log_rank, log_p
        Whether the axes are logarithmic.
    frame
        The size of the picture.
    """
    ranks = [r for s in shown for r in (s.rank[0], s.rank[-1])] or [1, 2]
    ends = [_ends(s) for s in shown] or [(1.0, 1.0)]
    least = min(low for low, _ in ends)
    most = min(max(high for _, high in ends), ends[0][1] * FURTHEST)
    bounds = [
        (low, high)
        for s in shown
        for p, low, high in zip(s.p, s.low, s.high, strict=True)
        if low is not None and high is not None and least <= p <= most
    ]
    lowest = min((low for low, _ in bounds), default=least)
    highest = max((high for _, high in bounds), default=most)
    top = max(most, min(highest, 1.5 * most)) * 1.02
    bottom = min(least, max(lowest, least / 3)) if log_p else 0.0
    first, last = min(ranks), max(ranks)
    return (
        Axis(first, max(last, first + 1), frame.left, frame.right, log_rank),
        Axis(bottom, top, frame.bottom, frame.top, log_p),
    )


def _ends(s: Series) -> tuple[float, float]:
    """How far the axis must reach for a line: its first rank and its reference are never off it."""
    kept = [p for r, p in zip(s.rank, s.p, strict=True) if r in (s.rank[0], s.reference)]
    truth = [v for v in s.truth if v is not None]
    return smallest_drawn(s.p, [*kept, *truth]), largest_drawn(s.p, [*kept, *truth])


def off_words(shown: Iterable[Series], y: Axis) -> str:
    """Say which values the axis does not reach, if any."""
    named = [
        f"{s.full_name}, rank {r} ({figure(p)})"
        for s in shown
        for r, p in zip(s.rank, s.p, strict=True)
        if not y.first <= p <= y.last
    ]
    more = [f"{len(named) - MOST_OFF} more"] if len(named) > MOST_OFF else []
    return "; ".join(named[:MOST_OFF] + more)


def paths(s: Series, x: Axis, y: Axis, fewer: Fewer = list) -> dict[str, str]:
    """Draw a line's band, line, thin (the parts with thin data), truth, and marks where it is off
    the chart; a missing rank breaks them all.

    Parameters
    ----------
    s
        The line.
    x, y
        Where a rank and a propensity are in the picture.
    fewer
        Takes needless points away. The large picture keeps all, as report.js draws them.
    """
    d = {"band": "", "truth": "", "thin": "", "line": "", "off": ""}
    for run in _runs(s.rank):
        for enough, piece in _by_support(s, run):
            points = [(x(s.rank[i]), y(s.p[i])) for i in piece]
            d["line" if enough else "thin"] += path_of(fewer(points))
        for piece in _known(run, s.high):
            d["band"] += path_of(fewer(_band(s, piece, x, y))) + "Z"
        for piece in _known(run, s.truth) if s.truth else ():
            d["truth"] += path_of(fewer([(x(s.rank[i]), y(s.truth[i] or 0)) for i in piece]))
    for rank, p in zip(s.rank, s.p, strict=True):
        if not y.first <= p <= y.last:
            d["off"] += f"M{_round(x(rank) - 5)} {_round(y(p))}h10l-5 {-8 if p > y.last else 8}z"
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


def _band(s: Series, piece: list[int], x: Axis, y: Axis) -> list[Point]:
    """Round the interval; a rank by itself gets a narrow bar."""
    wide = 1.5 if len(piece) == 1 else 0.0
    over = [(x(s.rank[i]) + d, y(s.high[i])) for i in piece for d in {-wide, wide}]
    under = [(x(s.rank[i]) + d, y(s.low[i])) for i in piece for d in {-wide, wide}]
    return sorted(over) + sorted(under, reverse=True)


def _round(value: float) -> float:
    return round(value, 1)
