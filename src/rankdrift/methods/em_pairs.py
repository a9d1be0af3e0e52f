"""EM of the position-based model with a relevance for each pair, and no features.

The model is Eq. (1) with one z for every pair of query and doc; EM climbs its likelihood. Here the
same maximum is reached by Newton's method (`strata`), and an EM step from there goes nowhere.

With few appearances a pair, each z is fitted to few clicks, and a pair clicked at its only
appearance deep down gets z = 1 and takes p there with it: the curve comes out too flat however
long the log. It needs pairs shown many times.
"""

from rankdrift.core.errors import NotIdentified, NoUsablePairs
from rankdrift.methods.assembled import ONE_BUCKET, About, Evidence, assemble, place_of
from rankdrift.methods.strata import Strata, jackknife_buckets, maximise
from rankdrift.propensities.propensities import Propensities

LOOSE = "the likelihood is the same for a range of propensities there: pairs were shown too rarely"


def em(pairs: Strata, *, reference: int = 1) -> Propensities:
    """Propensities from clicks and misses of pairs by rank (`collected.clicked_pairs`).

    Errors come from leaving out buckets of queries. Ranks without clicks, or with clicks in one
    bucket only, have no estimate.
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
    gaps |= dict.fromkeys(data.ranks[fit.loose].tolist(), LOOSE)
    about = About(
        "EM, a relevance for each pair", reference, fit.log_likelihood,
        data.n_strata + len(data.ranks) - 1, gaps,
        {"strata": data.n_strata, "start": "click rates by rank", "path": list(fit.path),
         "em_change": fit.change},
    )  # fmt: skip
    told = ~fit.loose
    place_of(reference, data.ranks[told], gaps)
    if told.sum() < 2:
        raise NotIdentified(
            f"Rank {reference} can be compared with no other: no clicked pair that was shown there "
            "was shown elsewhere too, or too rarely. With one ranker whose order never changes, "
            "what is due to a doc and what to its rank cannot be told apart. Add days or traffic "
            "from another ranker, or use features (regression EM)."
        )
    evidence = Evidence(data.appearances(), clicks[:, keep]).at(told)
    moves = jackknife_buckets(data, fit)[:, told]
    return assemble(data.ranks[told], fit.log_p[told], moves, evidence, about)
