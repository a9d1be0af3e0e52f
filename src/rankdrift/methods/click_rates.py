"""Clicks per impression by rank, relative to the reference: the baseline that everyone has.

It is the propensity times the mean relevance of what is shown at the rank. A ranker that puts
better results higher makes it fall faster than the propensities do; among rows whose order was
drawn at random (`experiments.experiment`) it is the propensity itself.
"""

import numpy as np

from rankdrift.core.errors import NoUsablePairs
from rankdrift.core.types import Bools
from rankdrift.counts.counts import Counts
from rankdrift.methods.making_propensities import (
    ONE_BUCKET,
    About,
    Evidence,
    by_deviations,
    by_jackknife,
    place_of,
)
from rankdrift.methods.tallies import Tally
from rankdrift.propensities.propensities import Propensities

NO_CLICKS = "shown but never clicked: its propensity is small, but nobody knows how small"


def ctr(found: Counts | Tally, *, reference: int = 1) -> Propensities:
    """Clicks per impression by rank, relative to the reference: propensity times relevance.

    It assumes that results are as relevant at every rank, and is too steep where a ranker puts
    better ones higher.

    Parameters
    ----------
    found
        Counts, or a `tally` of the log. Counts hold impressions and clicks by rank only, so
        intervals take every impression for independent (errors "model"): clicks of one query belong
        together, so they are too narrow. From a tally they rest on buckets of queries.
    reference
        The rank whose propensity is 1.

    Returns
    -------
    Propensities
        Whose `pairs` are impressions. Ranks without a click are in `gaps`; from a tally, those with
        clicks in one bucket only too.
    """
    if isinstance(found, Tally):
        return rates(found, "CTR by rank", reference)
    by_rank = found.pool().by_rank
    size = int(by_rank.rank.max(initial=0))
    table = np.zeros((2, 1, size), np.int64)
    table[:, 0, by_rank.rank - 1] = by_rank.impressions, by_rank.clicks
    about, keep, evidence = _clicked(Tally(table[0], table[1]), "CTR by rank", reference, 1)
    ranks = np.flatnonzero(keep).astype(np.int32) + 1
    place = place_of(reference, ranks, about.gaps)
    clicks, impressions = table[1, 0, keep], table[0, 0, keep]
    rate = clicks / impressions
    log_p = np.log(rate) - np.log(rate[place])
    error = np.sqrt((1 - rate) / clicks)
    deviations = np.diag(error)
    return by_deviations(
        ranks,
        log_p,
        deviations - deviations[place],
        evidence.at(keep),
        about,
        errors="model",
        df=np.inf,
    )


def rates(found: Tally, method: str, reference: int) -> Propensities:
    """CTR by rank with errors from leaving out each bucket of queries."""
    about, keep, evidence = _clicked(found, method, reference, 2)
    clicks, shown = found.clicks[:, keep], found.impressions[:, keep]
    ranks = np.flatnonzero(keep).astype(np.int32) + 1
    total_clicks, total_shown = clicks.sum(axis=0), shown.sum(axis=0)
    log_p = np.log(total_clicks / total_shown)
    influence = np.log((total_clicks - clicks) / (total_shown - shown)) - log_p
    return by_jackknife(ranks, log_p, influence, evidence.at(keep), about)


def _clicked(
    found: Tally, method: str, reference: int, least: int
) -> tuple[About, Bools, Evidence]:
    """Which ranks have clicks, in `least` buckets or more; the others are gaps."""
    shown, clicks = found.impressions.sum(axis=0), found.clicks.sum(axis=0)
    if not clicks.any():
        raise NoUsablePairs(
            f"There is not a single click in the {int(shown.sum()):,} rows that count here, so "
            "there is no click rate. Check the column of clicks, or add days."
        )
    spread = (found.clicks > 0).sum(axis=0)
    keep = spread >= least
    gaps = {
        rank: ONE_BUCKET if clicks[rank - 1] else NO_CLICKS
        for rank in (np.flatnonzero(~keep & (shown > 0)) + 1).tolist()
    }
    about = About(method, reference, parameters=int(keep.sum()) - 1, gaps=gaps)
    return about, keep, Evidence(shown, found.clicks)
