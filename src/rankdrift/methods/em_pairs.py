"""EM of the position-based model with a relevance for each pair, and no features.

The model is Eq. (1) with one z for every pair of query and doc; EM climbs its likelihood. Here the
same maximum is reached by Newton's method (`rank_times_stratum`), and an EM step from there goes
nowhere.

With few appearances a pair, each z is fitted to few clicks, and a pair clicked at its only
appearance deep down gets z = 1 and takes p there with it: the curve comes out too flat however
long the log. It needs pairs shown many times.
"""

from rankdrift.core.errors import NotIdentified, NoUsablePairs
from rankdrift.methods.making_propensities import (
    ONE_BUCKET,
    About,
    Evidence,
    by_jackknife,
    place_of,
)
from rankdrift.methods.rank_times_stratum import Strata, jackknife_buckets, maximise
from rankdrift.propensities.propensities import Propensities

UNDETERMINED = (
    "the likelihood is the same for a range of propensities there: pairs were shown too rarely"
)

AT_BOUND = "the likelihood is largest at the bound, p = 1: pairs were shown too rarely"


def em(pairs: Strata, *, reference: int = 1) -> Propensities:
    """Propensities by EM with a relevance for each pair of query and doc, and no features.

    It assumes that each pair has a relevance and was shown often enough to tell it; where pairs
    were shown a few times, the curve is too flat however long the log. Errors come from leaving
    out buckets of queries.

    Parameters
    ----------
    pairs
        Clicks and misses of pairs by rank, from `clicked_pairs`.
    reference
        The rank whose propensity is 1.

    Returns
    -------
    Propensities
        Ranks without clicks, or with clicks in one bucket only, or whose propensity the likelihood
        leaves open, are in `gaps`.
    """
    clicks = pairs.clicks_by_bucket()
    if not clicks.any():
        raise NoUsablePairs("No pair of query and doc got a click, so there is nothing to learn.")
    spread = (clicks > 0).sum(axis=0)
    keep = spread > 1
    gaps = {
        int(rank): ONE_BUCKET if many else "shown with clicked pairs, but never clicked itself"
        for rank, many in zip(pairs.ranks[~keep], spread[~keep], strict=True)
    }
    data = pairs.only(keep)
    place_of(reference, data.ranks, gaps)
    fit = maximise(data, data.click_rates())
    gaps |= dict.fromkeys(data.ranks[fit.undetermined].tolist(), UNDETERMINED)
    provenance = {
        "strata": data.n_strata,
        "start": "click rates by rank",
        "path": list(fit.path),
        "em_change": fit.change,
    }
    about = About(
        "EM, a relevance for each pair",
        reference,
        fit.log_likelihood,
        data.n_strata + len(data.ranks) - 1,
        gaps,
        provenance,
    )
    # Where p stops at 1 for several ranks, it is its bound that holds it there, not the clicks.
    at_bound = fit.at_one & (data.ranks != reference) & (fit.at_one.sum() > 1)
    gaps |= dict.fromkeys(data.ranks[at_bound].tolist(), AT_BOUND)
    known = ~fit.undetermined & ~at_bound
    place_of(reference, data.ranks[known], gaps)
    if known.sum() < 2:
        raise NotIdentified(
            f"Rank {reference} can be compared with no other: no clicked pair that was shown there "
            "was shown elsewhere too, or too rarely. With one ranker whose order never changes, "
            "what is due to a doc and what to its rank cannot be told apart. Add days or traffic "
            "from another ranker, or use features (regression EM)."
        )
    evidence = Evidence(data.appearances(), clicks[:, keep]).at(known)
    influence = jackknife_buckets(data, fit)[:, known]
    return by_jackknife(data.ranks[known], fit.log_p[known], influence, evidence, about)
