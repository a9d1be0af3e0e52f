"""Dual learning: a ranker and propensities from each other."""

from __future__ import annotations

from rankdrift.methods.estimators.features import by_features
from rankdrift.methods.method import METHODS, Estimate, Inputs, Kind, Method, Option


def _dual(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.dual import dual_learning

    return by_features(method, inputs, dual_learning)


METHODS.register(
    Method(
        "dual",
        "dual learning, a ranker and propensities from each other",
        "dual learning",
        Kind.FEATURES,
        assumes="features tell all that relevance and rank have in common, and not the rank itself",
        needs="features",
        fails="the ranker knows more than the features, or these tell the rank",
        run=_dual,
        option=Option("features", "Name columns or patterns, such as --features 'f_*'."),
    )
)
