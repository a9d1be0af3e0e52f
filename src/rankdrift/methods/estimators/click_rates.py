"""Click rates by rank: the baseline that everyone has."""

from __future__ import annotations

from rankdrift.methods.method import METHODS, Estimate, Inputs, Kind, Method


def _ctr(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.counts.counts import Counts
    from rankdrift.methods.click_rates import ctr
    from rankdrift.methods.tallies import tally

    if isinstance(inputs.source, Counts):
        return method.made(ctr(inputs.counts, reference=inputs.reference))
    curve = ctr(tally(inputs.log), reference=inputs.reference)
    return method.made(curve, by_bucket=curve.deviations)


METHODS.register(
    Method(
        "ctr",
        "clicks per impression, biased",
        "click rates",
        Kind.CLICK_RATES,
        assumes="results are equally relevant at every rank",
        needs="nothing",
        fails="there is a ranker",
        run=_ctr,
        default=True,
        of_counts=True,
    )
)
