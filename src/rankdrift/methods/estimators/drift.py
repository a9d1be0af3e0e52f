"""rankdrift's own likelihood, with any curve: what pairs that moved between ranks tell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rankdrift.core.errors import RankdriftError
from rankdrift.methods.method import METHODS, Estimate, Inputs, Kind, Method

if TYPE_CHECKING:
    from rankdrift.core.types import Floats
    from rankdrift.counts.counts import Counts
    from rankdrift.propensities.propensities import Propensities

FAMILY = "drift"


def curve_method(curve: str, label: str = "a curve", *, default: bool = False) -> Method:
    """The method that is `estimate` with this curve, such as "loglog(1,2,5,10)"."""
    return Method(
        curve,
        label,
        FAMILY,
        Kind.DRIFT,
        assumes="a pair's relevance does not go along with its rank",
        needs="pairs that moved and were clicked",
        fails="docs rise when they become better",
        run=_estimate,
        default=default,
        of_counts=True,
    )


def _estimate(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.estimation import estimate

    curve = estimate(inputs.counts, curve=method.name, reference=inputs.reference)
    return method.made(curve, by_bucket=_jackknife(inputs.counts, curve))


def _jackknife(counts: Counts, whole: Propensities) -> Floats | None:
    """(R, G): deviations by bucket, from estimates without each; None where one has no estimate."""
    import numpy as np

    from rankdrift.estimation import estimate
    from rankdrift.methods.making_propensities import bucket_deviations

    influence = np.zeros((counts.buckets, len(whole.ranks)))
    used = np.zeros(counts.buckets, bool)
    used[counts.pairs.bucket] = used[counts.rank_pairs.bucket] = True
    for bucket in np.flatnonzero(used).tolist():
        rest = replace(
            counts,
            pairs=counts.pairs.take(counts.pairs.bucket != bucket),
            rank_pairs=counts.rank_pairs.take(counts.rank_pairs.bucket != bucket),
            options={**counts.options, "restrict": {"without_bucket": bucket}},
        )
        try:
            curve = estimate(
                rest,
                curve=str(whole.provenance["curve"]),
                reference=whole.reference,
                errors="model",
            )
        except RankdriftError:
            return None
        shared = np.isin(whole.ranks, curve.ranks)
        there = np.searchsorted(curve.ranks, whole.ranks[shared])
        influence[bucket, shared] = curve.log_p[there] - whole.log_p[shared]
    return bucket_deviations(influence, used)


METHODS.register(
    curve_method("auto", "rankdrift's default: a curve chosen by the data", default=True)
)
METHODS.register(
    curve_method("direct", "the same likelihood, a parameter for each rank", default=True)
)
METHODS.register(curve_method("loglog", "the same likelihood, the paper's log-log curve"))
