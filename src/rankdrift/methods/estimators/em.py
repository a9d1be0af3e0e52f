"""EM of the position-based model: relevance from features, or one for each pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankdrift.methods.method import METHODS, Estimate, Inputs, Kind, Method, Option

if TYPE_CHECKING:
    from rankdrift.propensities.propensities import Propensities
    from rankdrift.ranking.matrix import Matrix

FAMILY = "EM"


def _matrix(inputs: Inputs) -> Matrix:
    from rankdrift.ranking.matrix_reading import read_matrix

    assert inputs.features is not None
    return read_matrix(inputs.log, features=inputs.features, say=inputs.say)


def _with_features(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.em_features import regression_em

    return by_features(method, inputs, regression_em)


def by_features(method: Method, inputs: Inputs, estimator: Callable[..., Propensities]) -> Estimate:
    """By an estimator that learns from features, with refits for its intervals."""
    from rankdrift.methods.em_features import bucket_weights

    curve = estimator(
        inputs.once(_matrix),
        reference=inputs.reference,
        bootstrap=inputs.bootstrap,
        seed=inputs.seed,
        say=inputs.say,
    )
    if not inputs.bootstrap:
        return method.made(curve)
    weights = bucket_weights(inputs.bootstrap, inputs.counts.buckets, inputs.seed)
    return method.made(curve, drawn=curve.deviations, weights=weights)


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
