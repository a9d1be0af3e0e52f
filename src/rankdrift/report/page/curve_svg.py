"""The chart of the curves as it is first seen; report.js draws it anew when a switch is turned.

Both must draw alike: the browser's tests compare the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rankdrift.report.page.series import Series

# In units of the view box; the plot is what the axes enclose.
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 380, 54, 22, 614, 338
_STEPS = (1, 2, 5)

Scale = Callable[[float], float]


@dataclass(frozen=True)
class Axis:
    """A stretch of numbers laid on a stretch of the picture, evenly or by logarithms."""

    first: float
    last: float
    start: float
    end: float
    log: bool

    def __call__(self, value: float) -> float:
        value = min(max(value, self.first), self.last)
        if self.log:
            share = math.log(value / self.first) / math.log(self.last / self.first)
        else:
            share = (value - self.first) / (self.last - self.first)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            powers = range(math.floor(math.log10(self.first)), math.ceil(math.log10(self.last)) + 1)
            found = [step * 10.0**power for power in powers for step in _STEPS]
        else:
            size = self.last - self.first
            power = 10.0 ** math.floor(math.log10(size))
            step = next(m * power for m in (0.1, 0.2, 0.5, 1.0, 2.0) if size / (m * power) <= 6)
            first = math.ceil(self.first / step)
            found = [i * step for i in range(first, first + 8)]
        return [t for t in found if self.first <= t <= self.last]


def curve_picture(series: Iterable[Series], log_rank: bool, log_p: bool) -> dict[str, Any]:
    """Axes with their ticks, and the paths of each line, for those that are shown."""
    shown = [s for s in series if s.shown]
    x, y = axes(shown, log_rank, log_p)
    return {
        "width": WIDTH, "height": HEIGHT, "left": LEFT, "top": TOP, "right": RIGHT,
        "bottom": BOTTOM,
        "x": [(f"{t:,.0f}", _round(x(t))) for t in x.ticks() if t == int(t)],
        "y": [(f"{t:g}", _round(y(t))) for t in y.ticks()],
        "lines": [{"look": s.look, "number": s.number, **paths(s, x, y)} for s in shown],
    }  # fmt: skip


def axes(shown: Sequence[Series], log_rank: bool, log_p: bool) -> tuple[Axis, Axis]:
    """The axis of p follows the curves; bands that are far wider run out of the picture."""
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
    """band, line, thin (the parts with thin data) and truth; a missing rank breaks them all."""
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
