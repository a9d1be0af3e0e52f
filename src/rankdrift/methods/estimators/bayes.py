"""The posterior of the curve, with a prior of relevance that is learned along with it."""

from __future__ import annotations

from rankdrift.methods.method import METHODS, Estimate, Inputs, Kind, Method


def _bayes(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.estimation import estimate

    curve = estimate(inputs.counts, method="bayes", reference=inputs.reference, seed=inputs.seed)
    return method.made(curve)


METHODS.register(
    Method(
        "bayes",
        "the posterior, given a prior of relevance by usual rank",
        "bayes",
        Kind.DRIFT,
        assumes="a pair's relevance does not go along with its rank, and is Beta distributed",
        needs="pairs that moved and were clicked",
        fails="docs rise when they become better",
        run=_bayes,
        of_counts=True,
    )
)
