"""Have all segments one curve? And the words for it, also where a curve by segment is reported."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.rank_blocks import block_weights
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import chance_words, off_by, ranges
from rankdrift.counts.counts import Counts
from rankdrift.diagnosis.agreement import (
    LIKELY,
    MATTERS,
    SURE,
    could_see,
    percent_above,
    plain_numbers,
    reach_of,
)
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Evidence, Finding
from rankdrift.estimation.part_test import segments_test
from rankdrift.propensities.propensities import Propensities

# Below this, a difference at a typical rank would be told as 0.0%.
NOTHING = 0.0005


def check(data: Data) -> Finding:
    """Each segment against all, in blocks of ranks."""
    by = ",".join(data.counts.segment_columns)
    test = segments_test(data.counts, data.fitted)
    if test is None:
        raise NotIdentified(f"only one segment by {by} has clicks to compare.")
    chance = chance_words(test.p_value)
    return Finding(
        None,
        f"By {by}, segments differ by no more than chance ({chance}); {could_see(test.noise)}.",
        alarm=f"By {by}, segments have curves of their own ({chance}): one of them differs from "
        f"all by {off_by(test.beyond_noise)} at a typical rank.",
        advice=f"Give each its own curve: --by {by}.",
        wanted="Add days, or use fewer segments.",
        evidence=Evidence(test.p_value, test.beyond_noise, reach_of(test.mean, test.noise)),
        numbers=plain_numbers(test),
    )


def segment_difference_words(p: Propensities) -> str:
    """Have all segments one curve? Nothing where that was not asked. Names no segment."""
    test = p.difference
    if test is None:
        return ""
    if len(p.segments) < 2:
        return "Only one segment has a curve, so there is no other to compare it with."
    chance = f"({chance_words(test.p_value)})"
    if test.p_value >= LIKELY:
        return f"Segments differ by no more than chance explains {chance}."
    little = ", but little" if test.spread <= MATTERS / 2 else ""
    sure = "differ" if test.p_value < SURE else "may differ, though that is not sure"
    return f"Segments {sure} {chance}{little}: {_how_far(p, test.spread)}."


def _how_far(p: Propensities, spread: float) -> str:
    if spread >= NOTHING:
        return f"beyond noise by {off_by(float(np.expm1(spread)), 1)} at a typical rank"
    curves = list(p.by_segment.values())
    most = widest_block(curves) if len(curves) > 1 else None
    if most is None:
        return "at a typical rank by no more than noise"
    return (
        f"at a typical rank by no more than noise, most at ranks {most.ranks}, where the highest "
        f"is {_above(most.percent)}"
    )


def _above(percent: float) -> str:
    if percent < 100:
        return f"{percent:.1f}% above the lowest"
    return f"{1 + percent / 100:.1f} times the lowest, which so few clicks can do by chance"


@dataclass(frozen=True)
class WidestBlock:
    """The block of ranks where curves are furthest apart for what their errors are, and by how much
    the highest is above the lowest there."""

    ranks: str
    percent: float


def widest_block(curves: Sequence[Propensities]) -> WidestBlock | None:
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
    return WidestBlock(ranges(shared[block[worst] > 0].tolist()), percent_above(float(gap[worst])))


def _has_segments(counts: Counts) -> bool:
    return bool(counts.segment_columns)


ASSUMPTIONS.register(
    Assumption(
        "segments",
        "Have all segments one curve?",
        "counts that are split by segment",
        check,
        asked_of=_has_segments,
        worst=Verdict.CAUTION,
    )
)
