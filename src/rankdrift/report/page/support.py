"""The picture of how much there is to go by at each rank, and its table."""

from __future__ import annotations

from typing import Any

from rankdrift.core.types import Floats
from rankdrift.core.words import margin, named_ranks, rank_words
from rankdrift.counts.counts import Counts
from rankdrift.counts.rank_blocks import totals_by_rank
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.support import Support, support_of_blocks
from rankdrift.report.page.axis import Axis
from rankdrift.report.page.series import LEVEL

# In units of the view box.
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 220, 54, 12, 614, 184
BLOCKS = 48


def support_by_rank(curve: Propensities, counts: Counts | None) -> list[Support]:
    """Sum up what a curve rests on, with the impressions of its counts where they are known."""
    shown = totals_by_rank(counts, int(curve.ranks[-1])).impressions if counts else None
    return support_of_blocks(curve, shown, most=BLOCKS, level=LEVEL)


def clicks_to_weigh(curve: Propensities, counts: Counts | None) -> Floats:
    """(R,): clicks at the ranks of the curve; all of the log, where counts know them."""
    if counts:
        return totals_by_rank(counts, int(curve.ranks[-1])).clicks[curve.ranks]
    return curve.clicks.astype(float)


def support_picture(curve: Propensities, counts: Counts | None) -> dict[str, Any] | None:
    """Draw bars of clicks a rank on a logarithmic scale, over the logarithm of the rank, and list
    the same numbers; None if there are no clicks."""
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
            "tooltip": f"{named_ranks(range(b.first, b.last + 1))}: "
            f"{_about(b.clicks)} {'click' if _about(b.clicks) == '1' else 'clicks'}"
            f"{' a rank' if b.last > b.first else ''}{', thin data' if b.thin else ''}",
        }
        for b in blocks
    ]
    powers = [10**k for k in range(10) if 10**k <= y.last]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "bottom": BOTTOM,
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
    }


def _about(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
