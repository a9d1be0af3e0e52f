"""Propensities from interventional sets: AllPairs, PivotOne and AdjacentChain.

Agarwal et al., "Estimating Position Bias without Intrusive Interventions", WSDM 2019.
"""

import numpy as np

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.types import Bools, Floats
from rankdrift.core.words import named_ranks, ranges
from rankdrift.counts.connection import connect
from rankdrift.methods.interventions import Interventions
from rankdrift.methods.making_propensities import About, Evidence, by_jackknife, place_of
from rankdrift.methods.rank_times_stratum import Strata, jackknife_buckets, maximise
from rankdrift.methods.two_ranks import log_ratios
from rankdrift.propensities.propensities import Propensities

NEVER = "no pair was shown both there and at rank {}"
ONE_SIDE = (
    "pairs shown both there and at rank {} were clicked in fewer than two buckets on one side"
)


def all_pairs(found: Interventions, *, reference: int = 1) -> Propensities:
    """Propensities from all interventional sets at once, by maximum likelihood (AllPairs).

    P(click at k in the set of k and k') = p_k r_kk': each two ranks have a relevance of their own.
    Errors come from leaving out buckets of queries.

    Parameters
    ----------
    found
        The sets, from `find_interventions`, with pairs that got no click.
    reference
        The rank whose propensity is 1.

    Returns
    -------
    Propensities
        Ranks that nothing connects to the reference are in `gaps`.
    """
    if not found.unclicked:
        raise BadOption(
            "AllPairs needs pairs without clicks as well: collect the interventions with "
            "unclicked=True. (PivotOne and AdjacentChain do without.)"
        )
    total = found.clicks.sum(axis=0)
    winner, loser = np.nonzero(total > 0)
    blocks = connect(found.ranks[winner], found.ranks[loser])
    block = next((b for b in blocks.blocks if reference in b), None)
    if block is None:
        others = "; ".join(ranges(b) for b in blocks.blocks) or "none"
        raise NotIdentified(
            f"Rank {reference}, the reference, cannot be compared with any other: pairs shown "
            "there and elsewhere must get a click there and elsewhere. Ranks that compare with "
            f"each other: {others}. Choose a reference among them, or add days."
        )
    keep = np.isin(found.ranks, block)
    gaps = {}
    for rank in found.ranks[~keep].tolist():
        other = next((b for b in blocks.blocks if rank in b), None)
        gaps[rank] = (
            _alone(found, rank) if other is None else f"compares only with {named_ranks(other)}"
        )
    data = _strata(found, keep)
    fit = maximise(data, _start(found, keep))
    about = About(
        "AllPairs",
        reference,
        fit.log_likelihood,
        len(block) - 1,
        gaps,
        {"sets": data.n_strata, "path": list(fit.path)},
    )
    evidence = Evidence(found.shown.sum(axis=0), found.clicked).at(keep)
    return by_jackknife(data.ranks, fit.log_p, jackknife_buckets(data, fit), evidence, about)


def _strata(found: Interventions, keep: Bools) -> Strata:
    """A stratum for each two ranks."""
    at = np.ix_(np.arange(found.buckets), keep, keep)
    clicks, pairs = found.clicks[at], found.pairs[at]
    bucket, rank, other = np.nonzero(pairs > 0)
    size = clicks.shape[1]
    _, stratum = np.unique(
        np.minimum(rank, other) * size + np.maximum(rank, other), return_inverse=True
    )
    won = clicks[bucket, rank, other]
    missed = pairs[bucket, rank, other] - won
    return Strata(found.ranks[keep], stratum, rank, bucket, won, missed, found.buckets)


def _start(found: Interventions, keep: Bools) -> Floats:
    """Each rank's share of the clicks of its sets."""
    total = found.clicks.sum(axis=0)[np.ix_(keep, keep)]
    return np.asarray(np.log((total.sum(axis=1) + 0.5) / (total.sum(axis=0) + 0.5)))


def _alone(found: Interventions, rank: int) -> str:
    if not found.shown[:, rank - 1].any():
        return "no pair moved there or away"
    return "pairs shown there and elsewhere were clicked on one side only"


def pivot_one(found: Interventions, *, reference: int = 1) -> Propensities:
    """Propensities from the sets with the reference alone (PivotOne).

    p_k / p_1 is clicks at k over clicks at 1, for the pairs shown at both; pairs without clicks do
    not matter. Errors come from leaving out buckets of queries.

    Parameters
    ----------
    found
        The interventional sets, from `find_interventions`.
    reference
        The pivot, the rank whose propensity is 1.

    Returns
    -------
    Propensities
        Ranks whose set with the pivot has clicks in fewer than two buckets on a side are in `gaps`.
    """
    place = place_of(reference, found.ranks, {})
    here, there = found.clicks[:, :, place], found.clicks[:, place, :]
    met = found.pairs[:, :, place].sum(axis=0) > 0
    met[place] = True
    log_p, influence, enough = log_ratios(here, there)
    enough[place], log_p[place], influence[:, place] = True, 0.0, 0.0
    gaps = {
        rank: ONE_SIDE.format(reference) if met[rank - 1] else NEVER.format(reference)
        for rank in found.ranks[~enough].tolist()
    }
    clicks = np.minimum(here, there)  # on the thinner side of each set
    clicks[:, place] = found.clicked[:, place]
    return _propensities(found, log_p, influence, clicks, enough, gaps, "PivotOne", reference)


def adjacent_chain(found: Interventions, *, reference: int = 1) -> Propensities:
    """Propensities as products of ratios of neighbours (AdjacentChain).

    Each ratio is from the set of k and k + 1 alone; pairs without clicks do not matter. Errors come
    from leaving out buckets of queries.

    Parameters
    ----------
    found
        The interventional sets, from `find_interventions`.
    reference
        The rank whose propensity is 1.

    Returns
    -------
    Propensities
        Ranks beyond the first broken link on either side of the reference are in `gaps`.
    """
    at = np.arange(len(found.ranks) - 1)
    here, there = found.clicks[:, at + 1, at], found.clicks[:, at, at + 1]
    links, link_influence, enough = log_ratios(here, there)
    broken = np.flatnonzero(~enough) + 1  # the link below rank `broken` is missing
    place = place_of(reference, found.ranks, {})
    above, below = broken[broken <= place], broken[broken > place]
    first = int(above.max(initial=0))
    last = int(below.min(initial=len(found.ranks)))
    keep = (np.arange(len(found.ranks)) >= first) & (np.arange(len(found.ranks)) < last)
    log_p = np.concatenate([[0.0], np.cumsum(np.where(enough, links, 0.0))])
    influence = np.zeros((found.buckets, len(found.ranks)))
    influence[:, 1:] = np.cumsum(np.where(enough, link_influence, 0.0), axis=1)
    breaks = [rank for rank in (first, last) if 0 < rank < len(found.ranks)]
    why = "the chain is broken between " + " and ".join(f"{r} and {r + 1}" for r in breaks)
    gaps = dict.fromkeys(found.ranks[~keep].tolist(), why)
    clicks = _weakest(np.minimum(here, there), place)
    clicks[:, place] = found.clicked[:, place]
    return _propensities(found, log_p, influence, clicks, keep, gaps, "AdjacentChain", reference)


def _weakest(links: Floats, place: int) -> Floats:
    """(G, R): clicks of the weakest link (G, R - 1) between each rank and that at `place`."""
    total = links.sum(axis=0)
    down = [int(total[place:k].argmin()) + place for k in range(place + 1, len(total) + 1)]
    up = [int(total[k:place].argmin()) + k for k in range(place)]
    return links[:, [*up, min(place, len(total) - 1), *down]]


def _propensities(
    found: Interventions,
    log_p: Floats,
    influence: Floats,
    clicks: Floats,
    keep: Bools,
    gaps: dict[int, str],
    method: str,
    reference: int,
) -> Propensities:
    if keep.sum() < 2:
        reasons = "; ".join(f"rank {rank}: {why}" for rank, why in list(gaps.items())[:3])
        raise NotIdentified(
            f"{method} can compare rank {reference} with no other ({reasons}). Use AllPairs, which "
            "goes by way of other ranks, another reference, or add days."
        )
    sets = int(keep.sum()) - 1
    about = About(method, reference, None, sets, gaps, {"sets": sets})
    evidence = Evidence(found.shown.sum(axis=0), clicks).at(keep)
    return by_jackknife(found.ranks[keep], log_p[keep], influence[:, keep], evidence, about)
