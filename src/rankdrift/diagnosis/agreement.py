"""Do curves agree? What counts as sure and as large enough to matter, and the words for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from rankdrift.core.rank_blocks import ONE_TWO_FIVE, block_of
from rankdrift.core.types import Floats, Ranks
from rankdrift.core.words import ranges
from rankdrift.propensities.propensities import Propensities

# Below this, a difference at a typical rank would be told as 0.0%.
NOTHING = 0.0005


# A difference must be both beyond chance and large enough to matter.
SURE = 0.001
LIKELY = 0.01
MATTERS = 0.10


def percent(log: float) -> float:
    return 100 * float(np.expm1(log))


def block_weights(ranks: Ranks, weight: Floats) -> Floats:
    """(B, R): the weights of the ranks within each block that has any."""
    of = block_of(ranks, ONE_TWO_FIVE)
    table = np.where(np.unique(of)[:, None] == of, weight, 0.0)
    table = table[table.any(axis=1)]
    return np.asarray(table / table.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Apart:
    """The block of ranks where curves are furthest apart for what their errors are, and by how much
    the highest is above the lowest there."""

    ranks: str
    percent: float


def furthest_apart(curves: Sequence[Propensities]) -> Apart | None:
    """None where clicks tell of no rank that all have. Errors are taken for independent."""
    shared = reduce(np.intersect1d, (curve.ranks for curve in curves))
    at = [(curve, np.searchsorted(curve.ranks, shared)) for curve in curves]
    clicks = np.sum([curve.clicks[place] for curve, place in at], axis=0)
    block = block_weights(shared, np.where(shared == curves[0].reference, 0.0, clicks))
    if not len(block):
        return None
    log_p = np.stack([block @ curve.log_p[place] for curve, place in at])
    noise = np.stack([((block @ c.deviations[place]) ** 2).sum(axis=1) for c, place in at])
    each = np.arange(len(block))
    high, low = log_p.argmax(axis=0), log_p.argmin(axis=0)
    gap = log_p[high, each] - log_p[low, each]
    error = np.sqrt(noise[high, each] + noise[low, each])
    worst = int((gap / np.maximum(error, 1e-300)).argmax())
    return Apart(ranges(shared[block[worst] > 0].tolist()), percent(float(gap[worst])))


def segments_words(p: Propensities) -> str:
    """Have all segments one curve? Nothing where that was not asked. Names no segment."""
    test = p.difference
    if test is None:
        return ""
    told = f"(p = {test.p_value:.2g})"
    if test.p_value >= LIKELY:
        return f"Segments differ by no more than chance explains {told}."
    little = ", but little" if test.spread <= MATTERS / 2 else ""
    sure = "differ" if test.p_value < SURE else "may differ, though that is not sure"
    return f"Segments {sure} {told}{little}: {_how_far(p, test.spread)}."


def _how_far(p: Propensities, spread: float) -> str:
    if spread >= NOTHING:
        return f"beyond noise by {np.expm1(spread):.1%} at a typical rank"
    curves = list(p.by_segment.values())
    apart = furthest_apart(curves) if len(curves) > 1 else None
    if apart is None:
        return "at a typical rank by no more than noise"
    return (
        f"at a typical rank by no more than noise, most at ranks {apart.ranks}, where the highest "
        f"is {apart.percent:.1f}% above the lowest"
    )
