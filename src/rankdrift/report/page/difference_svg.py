"""The small picture beside a check: the difference of two curves by rank, with its band."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankdrift.diagnosis.agreement import MATTERS
from rankdrift.report.page.axis import Axis, largest_drawn, path_of, spaced

# In units of the view box; the plot is what the axes enclose.
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 260, 138, 56, 10, 252, 112
APART, APART_BELOW = 20.0, 28.0  # ticks, at the least
PERCENTS = (5, 10, 25, 50, 100, 200, 400, 900, 1900, 4900, 9900)
LOWERED = (-5, -10, -25, -50, -75, -90, -95, -99)
STANDARD_ERRORS = 1.96  # of a 95% band
FURTHEST = math.log(100)  # what is further off is as good as infinite, and drawn at the edge
LEAST = math.log(1.5)  # an axis reaches, so that what hardly matters looks like it

Difference = Mapping[str, Sequence[float]]


def common_reach(found: Iterable[Difference]) -> float:
    """How far from 0, in log p, the axis of several pictures reaches: to what was found, with its
    band; one that is far off all others runs out of its own picture.

    Parameters
    ----------
    found
        As `difference_picture` takes them: those of checks that could tell.
    """
    furthest = [
        max(abs(d) + min(STANDARD_ERRORS * e, abs(d) + LEAST) for d, e in _columns(one))
        for one in found
    ]
    return min(largest_drawn(furthest or [LEAST], [LEAST]), FURTHEST)


def difference_picture(found: Difference, reach: float) -> dict[str, Any]:
    """Draw differences of log p over the logarithm of the rank, named in percent of p.

    Parameters
    ----------
    found
        `ranks`, `difference` and `error` of a check, of one length, 2 or more.
    reach
        How far from 0 the axis goes.
    """
    ranks, off = found["ranks"], found["difference"]
    wide = [STANDARD_ERRORS * error for error in found["error"]]
    x = Axis(ranks[0], ranks[-1], LEFT, RIGHT, True)
    y = Axis(-reach, reach, BOTTOM, TOP, False)
    over = [(x(r), y(d + w)) for r, d, w in zip(ranks, off, wide, strict=True)]
    under = [(x(r), y(d - w)) for r, d, w in zip(ranks, off, wide, strict=True)]
    ends = (y(math.log1p(MATTERS)), y(math.log1p(-MATTERS)))
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "bottom": BOTTOM,
        "zero": round(y(0.0), 1),
        "small": {"y": round(ends[0], 1), "height": round(ends[1] - ends[0], 1)},
        "band": path_of([*over, *reversed(under)]) + "Z",
        "line": path_of([(x(r), y(d)) for r, d in zip(ranks, off, strict=True)]),
        "x": spaced([(f"{t:,.0f}", round(x(t), 1)) for t in x.ticks() if t == int(t)], APART_BELOW),
        "y": [(_signed(t), round(y(math.log1p(t / 100)), 1)) for t in _ticks(y)],
        "off": "".join(
            f"M{round(x(r) - 5, 1)} {round(y(d), 1)}h10l-5 {-7 if d > 0 else 7}z"
            for r, d in zip(ranks, off, strict=True)
            if abs(d) > reach
        ),
        "words": f"from {_signed(_percent(min(off)))} to {_signed(_percent(max(off)))}",
    }


def _ticks(y: Axis) -> list[int]:
    """0, and round percents outwards from it that are not too near to one another."""
    kept = [0]
    for side in (PERCENTS, LOWERED):
        last = y(0.0)
        for percent in side:
            value = math.log1p(percent / 100)
            if y.first <= value <= y.last and abs(y(value) - last) >= APART:
                kept.append(percent)
                last = y(value)
    return sorted(kept)


def _columns(found: Difference) -> Iterable[tuple[float, float]]:
    return zip(found["difference"], found["error"], strict=True)


def _percent(log: float) -> int:
    return round(100 * math.expm1(min(max(log, -FURTHEST), FURTHEST)))


def _signed(percent: int) -> str:
    """With a minus as wide as the plus."""
    return f"{percent:+,}%".replace("-", "−") if percent else "0%"
