"""How much there is to go by at each rank."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.rank_blocks import widening_edges
from rankdrift.core.types import Floats
from rankdrift.core.words import margin, rank_words
from rankdrift.counts.counts import Counts
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.table import curve_columns
from rankdrift.report.page.curve_svg import Axis
from rankdrift.report.page.series import LEVEL

# In units of the view box.
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 220, 54, 12, 614, 184
BLOCKS = 48


@dataclass(frozen=True)
class Support:
    """Ranks `first` to `last`: impressions (None if not known) and clicks of the estimate, both in
    a single rank on average; thin: how many ranks have thin data; error: half the interval in the
    middle."""

    first: int
    last: int
    impressions: float | None
    clicks: float
    thin: int
    error: float | None


def support_by_rank(curve: Propensities, counts: Counts | None) -> list[Support]:
    """Rank by rank at the top, then ever wider."""
    first, last = int(curve.ranks[0]), int(curve.ranks[-1])
    edges = widening_edges(first, last, BLOCKS)
    shown = np.zeros(last + 1)
    if counts:
        shown = _by_rank(counts.by_rank.rank, counts.by_rank.impressions, last)
    columns = curve_columns(curve, LEVEL)
    found = []
    for edge, after in pairwise(edges.tolist()):
        here = np.flatnonzero((curve.ranks >= edge) & (curve.ranks < after))
        if not len(here):
            continue
        middle = int(here[len(here) // 2])
        found.append(
            Support(
                edge,
                after - 1,
                float(shown[curve.ranks[here]].mean()) if counts else None,
                float(curve.clicks[here].mean()),
                int((~curve.supported[here]).sum()),
                _reach(columns["low"][middle], columns["high"][middle]),
            )
        )
    return found


def clicks_to_weigh(curve: Propensities, counts: Counts | None) -> Floats:
    """(R,): clicks at the ranks of the curve; all of the log, where counts know them."""
    if counts:
        table, last = counts.by_rank, int(curve.ranks[-1])
        return _by_rank(table.rank, table.clicks, last)[curve.ranks]
    return curve.clicks.astype(float)


def _by_rank(ranks: NDArray[np.int32], numbers: NDArray[Any], last: int) -> Floats:
    """(last + 1,): the sum of the numbers at each rank."""
    inside = ranks <= last
    return np.bincount(ranks[inside], numbers[inside], minlength=last + 1).astype(float)


def _reach(low: float | None, high: float | None) -> float | None:
    """Half the interval; None at the reference, which has none, and where it is not known."""
    if not low or not high or low == high or not np.isfinite(high):
        return None
    return float(np.sqrt(high / low)) - 1


def support_picture(curve: Propensities, counts: Counts | None) -> dict[str, Any] | None:
    """Bars of clicks a rank on a logarithmic scale, over the logarithm of the rank."""
    blocks = support_by_rank(curve, counts)
    most = max((b.clicks for b in blocks), default=0.0)
    if not most:
        return None
    x = Axis(blocks[0].first, blocks[-1].last + 1, LEFT, RIGHT, True)
    y = Axis(0.5, max(most, 1.0) * 1.1, BOTTOM, TOP, True)
    bars = [
        {
            "x": round(x(b.first), 1),
            "width": round(max(x(b.last + 1) - x(b.first) - 1, 1), 1),
            "y": round(y(b.clicks), 1),
            "height": round(BOTTOM - y(b.clicks), 1),
            "thin": b.thin,
            "told": f"rank {rank_words(b.first, b.last)}: {_about(b.clicks)} clicks"
            f"{' a rank' if b.last > b.first else ''}{', thin data' if b.thin else ''}",
        }
        for b in blocks
    ]
    powers = [10**k for k in range(10) if 10**k <= y.last]
    return {
        "width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "bottom": BOTTOM,
        "bars": bars,
        "x": [(f"{t:,.0f}", round((x(t) + x(t + 1)) / 2, 1)) for t in x.ticks() if t < x.last],
        "y": [(f"{t:,}", round(y(t), 1)) for t in powers],
        "rows": [
            {
                "ranks": rank_words(b.first, b.last),
                "impressions": None if b.impressions is None else f"{b.impressions:,.0f}",
                "clicks": _about(b.clicks),
                "error": "" if b.error is None else margin(b.error),
                "thin": "thin" if b.thin else "",
            }
            for b in blocks
        ],
        "known_impressions": counts is not None,
        "thin": any(b.thin for b in blocks),
    }  # fmt: skip


def _about(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
