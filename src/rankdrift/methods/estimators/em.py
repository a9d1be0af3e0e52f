"""EM of the position-based model: relevance from features, or one for each pair."""

from __future__ import annotations

from rankdrift.methods.estimators.features import by_features
from rankdrift.methods.method import METHODS, Estimate, Inputs, Kind, Method, Option

FAMILY = "EM"


def _with_features(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.em_features import regression_em

    return by_features(method, inputs, regression_em)


def _of_pairs(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.em_pairs import em
    from rankdrift.methods.tallies import clicked_pairs

    pairs = clicked_pairs(inputs.log, max_rank=inputs.log.rules.max_rank)
    curve = em(pairs, reference=inputs.reference)
    return method.made(curve, by_bucket=curve.deviations)


METHODS.register(
    Method(
        "em",
        "regression EM, relevance from features",
        FAMILY,
        Kind.FEATURES,
        assumes="features tell all that relevance and rank have in common",
        needs="features",
        fails="the ranker knows more than the features",
        run=_with_features,
        option=Option(
            "features",
            "Name columns or patterns, such as --features 'f_*', or use em-pairs, which needs "
            "none.",
        ),
    )
)
METHODS.register(
    Method(
        "em-pairs",
        "EM with a relevance for each pair",
        FAMILY,
        Kind.PAIRS,
        assumes="each pair has a relevance, and is shown often enough to tell it",
        needs="pairs shown dozens of times",
        fails="pairs are shown a few times",
        run=_of_pairs,
    )
)
