"""What pictures of a page are made of: a frame, axes and how far they reach, and paths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Point = tuple[float, float]

UNSEEN = 0.3  # in units of a picture, which is shown at about one pixel each
FEW = 20  # one value in so many, and one at least, may be left off a chart
OFF_ABOVE, OFF_BELOW = 3.0, 10.0
"""A value is off the chart if it is so many times the next one, or so many times less: the smaller
ones of a curve are far apart by nature."""


@dataclass(frozen=True)
class Frame:
    """The size of a picture in units of its view box, and the plot that its axes enclose."""

    width: int
    height: int
    left: int
    top: int
    right: int
    bottom: int


@dataclass(frozen=True)
class Axis:
    """A stretch of numbers laid on a stretch of the picture, evenly or by logarithms."""

    first: float
    last: float
    start: float
    end: float
    log: bool

    def __call__(self, value: float) -> float:
        """Where a number is in the picture; one beyond an end is at that end."""
        value = min(max(value, self.first), self.last)
        if self.log:
            share = math.log(value / self.first) / math.log(self.last / self.first)
        else:
            share = (value - self.first) / (self.last - self.first)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Few round numbers inside it."""
        if self.log:
            powers = range(math.floor(math.log10(self.first)), math.ceil(math.log10(self.last)) + 1)
            found = [step * 10.0**power for power in powers for step in (1, 2, 5)]
        else:
            size = self.last - self.first
            power = 10.0 ** math.floor(math.log10(size))
            step = next(m * power for m in (0.1, 0.2, 0.5, 1.0, 2.0) if size / (m * power) <= 6)
            first = math.ceil(self.first / step)
            found = [i * step for i in range(first, first + 8)]
        return [t for t in found if self.first <= t <= self.last]


def largest_drawn(values: Iterable[float], kept: Iterable[float]) -> float:
    """The largest of the positive `values` but for few that are far above all others; no less than
    any of `kept`."""
    return max(_inner(sorted(values, reverse=True), OFF_ABOVE), *kept)


def smallest_drawn(values: Iterable[float], kept: Iterable[float]) -> float:
    """The smallest but for few that are far below all others; no more than any of `kept`."""
    return min(_inner(sorted(values), OFF_BELOW), *kept)


def _inner(outermost_first: Sequence[float], far: float) -> float:
    """The first value that is not cut off from the rest by a step of more than the factor `far`."""
    few = max(len(outermost_first) // FEW, 1)
    for i in range(min(few, len(outermost_first) - 1), 0, -1):
        outer, inner = outermost_first[i - 1 : i + 1]
        if max(outer, inner) > far * min(outer, inner):
            return inner
    return outermost_first[0]


def spaced(ticks: Iterable[tuple[str, float]], apart: float) -> list[tuple[str, float]]:
    """Those (text, place) that are so far from the one before that their texts do not touch."""
    kept: list[tuple[str, float]] = []
    for text, place in ticks:
        if not kept or abs(place - kept[-1][1]) >= apart:
            kept.append((text, place))
    return kept


def path_of(points: Sequence[Point]) -> str:
    """A line through points, as SVG has it; a point by itself is a dot."""
    if len(points) == 1:
        return f"M{round(points[0][0], 1)} {round(points[0][1], 1)}h0"
    return "M" + "L".join(f"{round(a, 1)} {round(b, 1)}" for a, b in points)


def without_needless(points: Sequence[Point]) -> list[Point]:
    """The points of a line but those that it goes through anyhow, to within UNSEEN (Ramer, Douglas
    and Peucker): the curves of a small picture have five hundred ranks and a few bends."""
    place = np.array(points, dtype=float)
    kept = np.zeros(len(place), bool)
    kept[[0, -1]] = True
    waiting = [(0, len(place) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        way, off = place[last] - place[first], place[first + 1 : last] - place[first]
        length = float(np.hypot(*way))
        away = (
            np.abs(way[0] * off[:, 1] - way[1] * off[:, 0]) / length
            if length > UNSEEN
            else np.hypot(off[:, 0], off[:, 1])
        )
        furthest = int(away.argmax())
        if away[furthest] > UNSEEN:
            middle = first + 1 + furthest
            kept[middle] = True
            waiting += [(first, middle), (middle, last)]
    return [point for point, keep in zip(points, kept.tolist(), strict=True) if keep]
