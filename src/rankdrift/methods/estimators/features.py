"""What methods that learn from features have in common: the rows, read once, and refits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankdrift.methods.method import Estimate, Inputs, Method

if TYPE_CHECKING:
    from rankdrift.propensities.propensities import Propensities
    from rankdrift.ranking.matrix import Matrix


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


def _matrix(inputs: Inputs) -> Matrix:
    from rankdrift.ranking.matrix_reading import read_matrix

    assert inputs.features is not None
    return read_matrix(inputs.log, features=inputs.features, say=inputs.say)
