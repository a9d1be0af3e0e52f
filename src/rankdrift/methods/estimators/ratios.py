"""Ratios of two ranks from the pairs that appeared at both: the paper's Appendix C."""

from __future__ import annotations

from rankdrift.methods.method import METHODS, Estimate, Inputs, Kind, Method


def _ratio(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.two_ranks import ratios

    curve = ratios(inputs.counts, reference=inputs.reference)
    return method.made(curve, by_bucket=curve.deviations)


METHODS.register(
    Method(
        "ratio",
        "ratios of two ranks, directly or by way of others",
        "ratios",
        Kind.INTERVENTIONS,
        assumes="a pair's relevance does not go along with its rank",
        needs="ranks with dozens of clicks of the same pairs",
        fails="docs rise when they become better",
        run=_ratio,
        of_counts=True,
    )
)
