"""The ratio of two ranks' propensities from the pairs that appeared at both: Appendix C."""

from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.types import Floats
from rankdrift.counts.counts import Counts
from rankdrift.estimation.covariance import jackknife_root
from rankdrift.propensities.intervals import Interval, check_level, t_quantile
from rankdrift.propensities.propensities import ENOUGH_CLICKS


@dataclass(frozen=True)
class Ratio(Interval):
    """p_i / p_j, and what it rests on.

    Attributes
    ----------
    value, low, high, level
        The ratio and its interval.
    std_error, df
        Of the log of the ratio, with its degrees of freedom.
    pairs
        Listed pairs with a click that appeared at both ranks.
    clicks_i, clicks_j
        The clicks of those pairs at each rank.
    left_out
        Pairs counted by two ranks at a time, which may have appeared at both but do not tell their
        clicks per impression; None where restricted counts of an older rankdrift do not know how
        many.
    """

    std_error: float
    df: float
    pairs: int
    clicks_i: int
    clicks_j: int
    left_out: int | None


def ratio(counts: Counts, i: int, j: int, level: float = 0.95) -> Ratio:
    """The ratio p_i / p_j from the pairs that appeared at both ranks: Appendix C.

    It is the clicks per impression at i, summed over pairs, over the same at j; no curve is
    assumed, and no other rank is looked at.

    Parameters
    ----------
    counts
        From `harvest`.
    i, j
        Two ranks.
    level
        Of the interval, which is the jackknife's over query buckets, on the log of the ratio.

    Returns
    -------
    Ratio

    Raises
    ------
    NotIdentified
        If either rank has fewer than 10 clicks of such pairs, or has them in one bucket only.

    Notes
    -----
    For a pair x_k shown n_ki times at i, with c_ki clicks, c_ki / n_ki has mean p_i z_k however
    often it was shown, so the sums N_i = Σ_k c_ki / n_ki and N_j have means p_i Σ z_k and
    p_j Σ z_k over the same pairs, and z falls out of their ratio.

    Counts hold only pairs that got a click. That does not touch the ratio: N_i and N_j are sums
    over *all* pairs that appeared at both ranks, and one without a click has c_ki = c_kj = 0,
    adds 0 to both, and need not be known. (Their averages would be biased, for then the number of
    pairs would have to include the unclicked; ratios of sums do not ask for it.) Nor do pairs
    counted by two ranks at a time, which are left out: what decides about that is how often a pair
    was shown, not whether it was clicked.
    """
    check_level(level)
    _check_ranks(counts, i, j)
    rank, click = counts.pairs.shown >> 1, counts.pairs.shown & 1
    shown = np.stack([(rank == r).sum(axis=1) for r in (i, j)])  # (2, P)
    clicks = np.stack([((rank == r) & (click == 1)).sum(axis=1) for r in (i, j)])
    both = (shown > 0).all(axis=0)
    times = counts.pairs.pairs[both]
    per_impression = clicks[:, both] / shown[:, both] * times
    sums = np.zeros((2, counts.buckets))
    for side, each in enumerate(per_impression):
        sums[side] = np.bincount(counts.pairs.bucket[both], each, minlength=counts.buckets)
    pairs, (clicks_i, clicks_j) = int(times.sum()), (clicks[:, both] @ times).tolist()
    _refuse_few(counts, i, j, (pairs, clicks_i, clicks_j), sums)
    log, error, df = _jackknife(sums)
    reach = t_quantile(level, df) * error
    low, value, high = (float(np.exp(log + off)) for off in (-reach, 0.0, reach))
    return Ratio(value, low, high, level, error, df, pairs, clicks_i, clicks_j, counts.n_overflow)


def _jackknife(sums: Floats) -> tuple[float, float, float]:
    """log of the ratio of `sums` (2, G), its error and degrees of freedom, from leaving out
    each bucket."""
    total = sums.sum(axis=1)
    others = total[:, None] - sums[:, sums.any(axis=0)]
    logs = np.log(others[0] / others[1])
    error = np.sqrt((jackknife_root(logs[:, None]) ** 2).sum())
    return float(np.log(total[0] / total[1])), float(error), float(len(logs) - 1)


def _check_ranks(counts: Counts, i: int, j: int) -> None:
    for rank in (i, j):
        if not (rank == int(rank) and 1 <= rank <= counts.max_rank):
            raise BadOption(f"Rank {rank} is not one of the ranks counted, 1 to {counts.max_rank}.")
    if i == j:
        raise BadOption(f"The ratio of rank {i} to itself is 1. Give two ranks.")


def _refuse_few(counts: Counts, i: int, j: int, found: tuple[int, int, int], sums: Floats) -> None:
    pairs, *clicks = found
    spread = (sums > 0).sum(axis=1)  # in how many buckets
    if min(clicks) >= ENOUGH_CLICKS and spread.min() >= 2:
        return
    compared = ", without those held as comparisons" if len(counts.rank_pairs) else ""
    raise NotIdentified(
        f"{pairs:,} listed pairs with a click appeared at both rank {i} and rank {j}{compared}, "
        f"with {clicks[0]:,} clicks at the one (in {spread[0]} buckets of queries) and "
        f"{clicks[1]:,} at the other (in {spread[1]}). The ratio needs {ENOUGH_CLICKS} at each, in "
        "two buckets or more. Estimate a curve instead (`rankdrift estimate`), which compares them "
        "by way of other ranks, or add days."
    )
