"""Which ranks a curve can cover at all, and where the data are too thin to be sure of it.

Only ratios of propensities are identified, and only between ranks that clicks link: a rank that
shares no clicked pair with the reference has no propensity, whatever the curve.
"""

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.types import Bools, Clicks, Floats, Ranks
from rankdrift.core.words import named_ranks, ranges, verb
from rankdrift.counts.connection import connect
from rankdrift.counts.counts import Counts
from rankdrift.estimation.curves import Curve
from rankdrift.estimation.likelihood import Likelihood, likelihood_of
from rankdrift.propensities.propensities import ENOUGH_BUCKETS, ENOUGH_CLICKS


def covered_ranks(
    counts: Counts, terms: Likelihood, curve: Curve, reference: int
) -> tuple[Ranks, dict[int, str]]:
    """The ranks that the curve covers; those that were shown but are left out, with the reason."""
    shown = counts.by_rank.rank[counts.by_rank.impressions > 0]
    if not curve.is_direct:
        first, last = int(terms.ranks[0]), int(terms.ranks[-1])
        why = "deeper or higher than any pair that moved"
        outside = np.unique(shown[(shown < first) | (shown > last)])
        gaps = dict.fromkeys(outside.tolist(), why)
        if not first <= reference <= last:
            raise NotIdentified(
                f"The reference rank {reference} is outside the ranks that pairs moved between "
                f"({first}–{last}). Choose one of them with --reference."
            )
        return terms.ranks, gaps
    linked = connect(*terms.victories())
    seen = {rank for block in linked.blocks for rank in block} | set(linked.alone)
    main = next((block for block in linked.blocks if reference in block), None)
    if main is None:
        others = ranges(linked.main) if linked.blocks else "none"
        raise NotIdentified(
            f"Rank {reference}, the reference, cannot be compared with any other rank one by one: "
            f"it must win a click over another and lose one. Ranks that can: {others}. Choose one "
            "with --reference, use a loglog curve, or add days."
        )
    gaps = {}
    for rank in sorted({*shown.tolist(), *seen} - set(main)):
        block = next((b for b in linked.blocks if rank in b), None)
        if block:
            gaps[rank] = f"compares only with {named_ranks(block)}"
        elif rank in linked.alone:
            gaps[rank] = "never won a click over the other ranks, or never lost one"
        else:
            gaps[rank] = "no clicked pair moved there or away"
    return np.array(main, dtype=np.int32), gaps


THIN_REFERENCE = (
    "Too few clicks were won or lost at rank 1 to be the unit of all others. Propensities are "
    "relative to rank {}, which has the most."
)


def best_reference(counts: Counts, clicks: Clicks = "every") -> int:
    """Rank 1, unless too few clicks were won and lost there, or in too few buckets, and enough at
    another: then the rank where the most were.

    All propensities are relative to the reference: where it is thin, nothing is sure.

    Parameters
    ----------
    counts
        In which a rank was shown.
    clicks
        Which clicks are choices.
    """
    terms = likelihood_of(counts, clicks)
    evidence = terms.bucket_wins, terms.bucket_losses
    least = np.minimum(*(each.sum(axis=0) for each in evidence))
    buckets = np.minimum(*((each > 0).sum(axis=0) for each in evidence))
    enough = (least >= ENOUGH_CLICKS) & (buckets >= min(ENOUGH_BUCKETS, terms.buckets))
    if not len(terms.ranks) or (terms.ranks[0] == 1 and (enough[0] or not enough.any())):
        return 1
    return int(terms.ranks[int(np.argmax(np.where(enough, least + least.max(), least)))])


def refuse_empty_knots(terms: Likelihood, basis: Floats, curve: Curve) -> None:
    """Raise NotIdentified if the curve has parameters that no comparison touches."""
    if curve.is_direct:
        return
    information = terms.at(np.zeros(terms.size)).information(basis)
    # Each in its own unit: few comparisons deep down are few, not none, beside millions at the top.
    unit = np.sqrt(np.diag(information)) + 1e-300
    values, vectors = np.linalg.eigh(information / unit / unit[:, None])
    if values[0] > 1e-9 * values[-1]:
        return
    loose = np.abs(basis @ (vectors[:, 0] / unit))
    at = terms.ranks[loose > 0.5 * loose.max()]
    raise NotIdentified(
        f"The data say nothing of the curve {str(curve)!r} around {named_ranks(at.tolist())}: no "
        f"comparison involves {verb(len(at), 'it', 'them')}. Leave out the knots there "
        "(loglog(KNOTS)), use a smaller "
        "--max-rank, or add days."
    )


def supported_ranks(terms: Likelihood, curve: Curve) -> Bools:
    """(R,): ranks with enough clicks won and lost, in enough buckets, for what is estimated there.

    On a curve a rank shares the evidence of the ranks that its parameters serve.
    """
    serves = curve.basis(terms.ranks) > 0
    enough_at = []
    for evidence in (terms.bucket_wins, terms.bucket_losses):
        by_parameter = evidence if curve.is_direct else evidence @ serves
        enough_at.append(by_parameter.sum(axis=0) >= ENOUGH_CLICKS)
        enough_at.append((by_parameter > 0).sum(axis=0) >= min(ENOUGH_BUCKETS, terms.buckets))
    enough = np.logical_and.reduce(enough_at)
    return np.asarray(enough if curve.is_direct else (~serves | enough).all(axis=1))
