"""The small picture beside a check: the difference of two curves by rank, with its band."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rankdrift.diagnosis.agreement import MATTERS
from rankdrift.report.page.axis import Axis

# In units of the view box; the plot is what the axes enclose.
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 340, 138, 60, 8, 330, 112
APART = 20.0  # ticks, at the least
PERCENTS = (5, 10, 25, 50, 100, 200, 400, 900, 1900, 4900, 9900)
LOWERED = (-5, -10, -25, -50, -75, -90, -95, -99)
STANDARD_ERRORS = 1.96  # of a 95% band
FURTHEST = math.log(100)  # what is further off is as good as infinite, and drawn at the edge


def difference_picture(found: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Draw differences of log p over the logarithm of the rank, named in percent of p.

    Parameters
    ----------
    found
        `ranks`, `difference` and `error` of a check, of one length, 2 or more.
    """
    ranks = found["ranks"]
    off = [min(max(value, -FURTHEST), FURTHEST) for value in found["difference"]]
    wide = [STANDARD_ERRORS * error for error in found["error"]]
    x = Axis(ranks[0], ranks[-1], LEFT, RIGHT, True)
    # A band that is far wider than what was found runs out of the picture.
    far, least = math.log(2) + 0.5 * max(map(abs, off)), 1.3 * math.log1p(MATTERS)
    low = min(-least, *(d - min(w, far) for d, w in zip(off, wide, strict=True)))
    high = max(least, *(d + min(w, far) for d, w in zip(off, wide, strict=True)))
    y = Axis(low, high, BOTTOM, TOP, False)
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
        "band": _path([*over, *reversed(under)]) + "Z",
        "line": _path([(x(r), y(d)) for r, d in zip(ranks, off, strict=True)]),
        "x": [(f"{t:,.0f}", round(x(t), 1)) for t in x.ticks() if t == int(t)],
        "y": [(_signed(t), round(y(math.log1p(t / 100)), 1)) for t in _ticks(y)],
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


def _percent(log: float) -> int:
    return round(100 * math.expm1(log))


def _signed(percent: int) -> str:
    """With a minus as wide as the plus."""
    return f"{percent:+,}%".replace("-", "−") if percent else "0%"


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{round(a, 1)} {round(b, 1)}" for a, b in points)
