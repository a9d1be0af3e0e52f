"""Ratios of two ranks' propensities from the pairs that appeared at both: Appendix C.

N_i, the clicks per impression at i summed over those pairs, over N_j is p_i / p_j: `ratio` of two
ranks, `ratios` for a whole curve.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.types import Bools, Floats, SmallInts
from rankdrift.core.words import many, named_ranks, ranges
from rankdrift.counts.counts import Counts
from rankdrift.estimation.fitted_curve import behind
from rankdrift.methods.making_propensities import (
    About,
    Evidence,
    bucket_deviations,
    by_deviations,
)
from rankdrift.propensities.intervals import Interval, check_level, t_quantile
from rankdrift.propensities.propensities import ENOUGH_CLICKS, Propensities

# Of the log of a ratio that is a link of a curve, as it is to be expected: with as many clicks at
# either rank, 20 at each.
LARGEST_DEVIATION = ENOUGH_CLICKS**-0.5


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
    compared_i, compared_j
        What pairs shown too often to be listed add: "i clicked over j" and "j over i", by weight.
    """

    std_error: float
    df: float
    pairs: int
    clicks_i: int
    clicks_j: int
    compared_i: float
    compared_j: float


@dataclass(frozen=True, eq=False)
class _Shares:
    """N in pieces (C,): clicks per impression at `rank` of pairs shown at `other` too, by bucket of
    queries; `listed`: not from pairs counted by two ranks at a time."""

    rank: SmallInts
    other: SmallInts
    bucket: SmallInts
    clicks: Floats
    listed: Bools


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
    pairs would have to include the unclicked; ratios of sums do not ask for it.)

    Of pairs shown too often to be listed, counts hold c_ki n_kj / (m_k - 1), m_k appearances in
    all. Its mean is p_i z_k times a number that stays the same if i and j change places. So it is
    added to N_i, and c_kj n_ki / (m_k - 1) to N_j.
    """
    check_level(level)
    _check_ranks(counts, i, j)
    shares = _shares(counts)
    via = np.full(counts.max_rank, -1, np.int32)
    via[i - 1] = j - 1
    here, there = (side[:, [i - 1]] for side in _along(shares, counts, via))
    listed, compared = _listed(counts, i, j), _compared(shares, i, j)
    _refuse_few(i, j, listed, compared, (here, there))
    log, influence, _ = log_ratios(here, there)
    used = np.asarray((here + there).any(axis=1))
    error, df = float(np.linalg.norm(bucket_deviations(influence, used))), float(used.sum() - 1)
    reach = t_quantile(level, df) * error
    low, value, high = (float(np.exp(log[0] + off)) for off in (-reach, 0.0, reach))
    return Ratio(value, low, high, level, error, df, *listed, *compared)


def ratios(counts: Counts, *, reference: int = 1) -> Propensities:
    """A curve from ratios of two ranks: Appendix C, for every rank and the reference.

    It is taken directly or by way of other ranks, whichever way is to be expected to be surer: from
    the clicks at both ranks together, shared between them as click rates by rank are. How the
    clicks in fact fell is not looked at, for choosing by it would bias the ratios. Errors come from
    leaving out buckets of queries.

    Parameters
    ----------
    counts
        From `harvest`.
    reference
        The rank whose propensity is 1.

    Returns
    -------
    Propensities
        Ranks to which no way leads by ratios whose logs are to be expected to be known to a third
        are in `gaps`. `provenance["via"]` has of every other rank the one it was compared with.

    Raises
    ------
    NotIdentified
        If the reference has no such ratio.
    """
    from scipy.sparse.csgraph import dijkstra

    shares = _shares(counts)
    variance, linked = _links(shares, counts)
    if not (1 <= reference <= counts.max_rank and linked[reference - 1].any()):
        blocks = "; ".join(map(ranges, _blocks(linked))) or "none"
        raise NotIdentified(
            f"Rank {reference}, the reference, has too few clicks of pairs shown at both in common "
            f"with every other rank. Ranks that compare with each other: {blocks}. Choose a "
            "reference among them, estimate a curve (`rankdrift estimate`), which needs fewer "
            "clicks, or add days."
        )
    cost = np.where(linked, variance, 0.0)
    far, via = dijkstra(cost, indices=reference - 1, return_predecessors=True)
    here, there = _along(shares, counts, via)
    log_p, influence, _ = log_ratios(here, there)
    thin = np.where(here.sum(axis=0) < there.sum(axis=0), here, there)  # the thinner side
    weakest, many = np.arange(len(via)), thin.sum(axis=0)
    many[reference - 1] = np.inf
    order = np.argsort(far, kind="stable")[: int(np.isfinite(far).sum())]
    for rank in order[1:]:  # on from the ranks that it is reached by
        log_p[rank] += log_p[via[rank]]
        influence[:, rank] += influence[:, via[rank]]
        weakest[rank] = min(rank, weakest[via[rank]], key=many.__getitem__)
    weakest[reference - 1] = order[1]  # its best link
    at = np.sort(order)
    ranks = at.astype(np.int32) + 1
    used = np.asarray((here + there).any(axis=1))
    return by_deviations(
        ranks,
        log_p[at],
        bucket_deviations(influence[:, at], used),
        Evidence(behind(counts, ranks, "every")[0], thin[:, weakest[at]]),
        About(
            "ratios of two ranks",
            reference,
            parameters=len(ranks) - 1,
            gaps=_gaps(counts, variance, linked, ranks),
            provenance={"via": {str(r + 1): int(via[r]) + 1 for r in np.sort(order[1:])}},
        ),
        errors="buckets",
        df=float(used.sum() - 1),
    )


def log_ratios(here: Floats, there: Floats) -> tuple[Floats, Floats, Bools]:
    """Logs of ratios of sums over buckets, and how they change without each.

    Parameters
    ----------
    here, there
        (G, K), by bucket of queries.

    Returns
    -------
    log
        (K,): of Σ here / Σ there.
    influence
        (G, K): how far it moves without each bucket.
    enough
        (K,): where both sides have clicks in two buckets or more; elsewhere the others are 0.
    """
    enough = ((here > 0).sum(axis=0) > 1) & ((there > 0).sum(axis=0) > 1)
    total = [np.where(enough, side.sum(axis=0), 1.0) for side in (here, there)]
    rest = [
        np.where(enough, all_ - side, 1.0) for side, all_ in zip((here, there), total, strict=True)
    ]
    log = np.log(total[0] / total[1])
    return log, np.log(rest[0] / rest[1]) - log, enough


def _shares(counts: Counts) -> _Shares:
    """Of all pairs. A choice has the clicks at one rank of a listed pair, c_ki, or
    c_ki n_kj / (m_k - 1) with j for the only other rank."""
    choices = counts.choices()
    shown, clicked = choices.shown, choices.clicked[:, None]
    times = (shown == clicked).sum(axis=1)
    again = np.diff(shown, axis=1, prepend=0) == 0  # ascending: a rank shown again follows itself
    choice, column = np.nonzero((shown > 0) & (shown != clicked) & ~again)
    return _Shares(
        choices.clicked[choice],
        shown[choice, column],
        choices.bucket[choice],
        (choices.weight / times)[choice],
        choices.pair[choice] >= 0,
    )


def _links(shares: _Shares, counts: Counts) -> tuple[Floats, Bools]:
    """(R, R): what variance to expect of the log of two ranks' ratio; whether it is small enough,
    and either has clicks in two buckets or more."""
    size = counts.max_rank
    cell = (shares.rank.astype(np.int64) - 1) * size + shares.other - 1
    clicks = np.bincount(cell, shares.clicks, size * size).reshape(size, size)
    buckets = np.unique(cell * counts.buckets + shares.bucket) // counts.buckets
    spread = np.bincount(buckets, minlength=size * size).reshape(size, size) > 1
    shown, clicked = (
        np.bincount(counts.by_rank.rank - 1, numbers, size)
        for numbers in (counts.by_rank.impressions, counts.by_rank.clicks)
    )
    rate = (clicked + 0.5) / (shown + 1)
    share = rate[:, None] / (rate[:, None] + rate)  # of the clicks at both, those at the one
    with np.errstate(divide="ignore"):
        variance = 1 / ((clicks + clicks.T) * share * share.T)
    return variance, (variance <= LARGEST_DEVIATION**2) & spread & spread.T


def _along(shares: _Shares, counts: Counts, via: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """(G, R) twice: clicks by bucket at each rank, and at the one that it is reached by, of pairs
    shown at both."""
    link = np.full((len(via), len(via)), -1)
    reached = np.flatnonzero(via >= 0)
    link[reached, via[reached]] = reached
    sides = []
    for rank in (link[shares.rank - 1, shares.other - 1], link[shares.other - 1, shares.rank - 1]):
        on = rank >= 0
        cell = shares.bucket[on] * len(via) + rank[on]
        summed = np.bincount(cell, shares.clicks[on], counts.buckets * len(via))
        sides.append(summed.reshape(counts.buckets, len(via)).astype(np.float64))
    return sides[0], sides[1]


def _blocks(linked: Bools) -> list[list[int]]:
    """Ranks that links connect with each other, two or more."""
    from scipy.sparse.csgraph import connected_components

    _, block = connected_components(linked)
    several = np.flatnonzero(np.bincount(block) > 1)
    return [(np.flatnonzero(block == one) + 1).tolist() for one in several]


def _gaps(
    counts: Counts, variance: Floats, linked: Bools, ranks: NDArray[np.int32]
) -> dict[int, str]:
    """Ranks that were shown and not reached, and why."""
    shown = counts.by_rank.rank[counts.by_rank.impressions > 0]
    blocks, gaps = _blocks(linked), dict[int, str]()
    for rank in np.setdiff1d(np.union1d(shown, counts.ranks), ranks).tolist():
        block = next((b for b in blocks if rank in b), None)
        deviation = np.sqrt(variance[rank - 1].min())
        if block:
            gaps[rank] = f"compares only with {named_ranks(block)}"
        elif deviation <= LARGEST_DEVIATION:
            gaps[rank] = "pairs shown there and elsewhere were clicked in one bucket on one side"
        elif np.isfinite(deviation):
            gaps[rank] = (
                "too few clicks of pairs shown there and elsewhere: its best ratio would have a "
                f"deviation of {deviation:.2f} in its log, more than {LARGEST_DEVIATION:.2f}"
            )
        else:
            gaps[rank] = "no clicked pair moved there or away"
    return gaps


def _listed(counts: Counts, i: int, j: int) -> tuple[int, int, int]:
    """Listed pairs shown at both ranks, and their clicks at each."""
    rank, click = counts.pairs.shown >> 1, counts.pairs.shown & 1 == 1
    both = (rank == i).any(axis=1) & (rank == j).any(axis=1)
    times = counts.pairs.pairs[both]
    clicks = [int((click & (rank == r)).sum(axis=1)[both] @ times) for r in (i, j)]
    return int(times.sum()), clicks[0], clicks[1]


def _compared(shares: _Shares, i: int, j: int) -> tuple[float, float]:
    """By weight, how often i was clicked over j, and j over i, by pairs that are not listed."""
    i_over_j = (shares.rank == i) & (shares.other == j) & ~shares.listed
    j_over_i = (shares.rank == j) & (shares.other == i) & ~shares.listed
    return float(shares.clicks[i_over_j].sum()), float(shares.clicks[j_over_i].sum())


def _check_ranks(counts: Counts, i: int, j: int) -> None:
    for rank in (i, j):
        if not (rank == int(rank) and 1 <= rank <= counts.max_rank):
            raise BadOption(f"Rank {rank} is not one of the ranks counted, 1 to {counts.max_rank}.")
    if i == j:
        raise BadOption(f"The ratio of rank {i} to itself is 1. Give two ranks.")


def _refuse_few(
    i: int,
    j: int,
    listed: tuple[int, int, int],
    compared: tuple[float, float],
    sums: tuple[Floats, Floats],
) -> None:
    pairs, *clicks = listed
    spread = [int((side > 0).sum()) for side in sums]  # in how many buckets
    if min(np.add(clicks, compared)) >= ENOUGH_CLICKS and min(spread) >= 2:
        return
    more = (
        f" (pairs shown too often to be listed add {compared[0]:.1f} and {compared[1]:.1f} by "
        "weight)"
        if any(compared)
        else ""
    )
    raise NotIdentified(
        f"{many(pairs, 'listed pair')} with a click appeared at both rank {i} and rank {j}, with "
        f"{many(clicks[0], 'click')} at the one (in {many(spread[0], 'bucket')} of queries) and "
        f"{clicks[1]:,} at the other (in {spread[1]}){more}. The ratio needs {ENOUGH_CLICKS} at "
        "each, in two buckets or more. Estimate a curve instead (`rankdrift estimate`), which "
        "compares them by way of other ranks, or add days."
    )
