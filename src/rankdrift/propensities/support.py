"""How much there is behind a curve, by block of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rankdrift.core.rank_blocks import widening_edges
from rankdrift.core.types import Floats
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.table import curve_columns


@dataclass(frozen=True)
class Support:
    """What the ranks `first` to `last` rest on.

    impressions (None if not known) and clicks of the estimate are those of a single rank on
    average; thin: how many ranks have thin data; error: half the interval of the rank in the
    middle, None where it has none or it is not known.
    """

    first: int
    last: int
    impressions: float | None
    clicks: float
    thin: int
    error: float | None


def support_of_blocks(
    curve: Propensities, impressions: Floats | None, *, most: int, level: float
) -> list[Support]:
    """Sum up a curve in blocks: rank by rank at the top, then ever wider.

    Parameters
    ----------
    curve
        What is summed up; its segments are not.
    impressions
        (L,), that of rank r at place r, for all ranks of the curve; None if not known.
    most
        How many blocks there may be.
    level
        Of the intervals.
    """
    edges = widening_edges(int(curve.ranks[0]), int(curve.ranks[-1]), most)
    columns = curve_columns(curve, level)
    found = []
    for edge, after in pairwise(edges.tolist()):
        here = np.flatnonzero((curve.ranks >= edge) & (curve.ranks < after))
        if not len(here):
            continue
        middle = int(here[len(here) // 2])
        found.append(
            Support(
                first=edge,
                last=after - 1,
                impressions=(
                    None if impressions is None else float(impressions[curve.ranks[here]].mean())
                ),
                clicks=float(curve.clicks[here].mean()),
                thin=int((~curve.supported[here]).sum()),
                error=_half_interval(columns["low"][middle], columns["high"][middle]),
            )
        )
    return found


def _half_interval(low: float | None, high: float | None) -> float | None:
    """As a share; None at the reference, which has none, and where it is not known."""
    if not low or not high or low == high or not np.isfinite(high):
        return None
    return float(np.sqrt(high / low)) - 1
