"""Weighted measures, doubted: what features expect beside clicks, and curves that are not as given.

Robust DCG gives no click more weight than CLIP and makes up for the rest by what features expect
(doubly robust): calmer, but what is expected was learnt with the same curve. Steepness asks who
would be ahead if the curve were flatter or steeper than given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from rankdrift.core.errors import MissingExtra, NotIdentified
from rankdrift.core.types import Floats
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.backends import BACKENDS, Settings
from rankdrift.ranking.comparison import Improvement, Pair
from rankdrift.ranking.expecting import FOLDS, expect_clicks
from rankdrift.ranking.gains import OtherCurves, Weighting, curves_of_rows
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.measures import Sums, new_ranks, robust_dcg
from rankdrift.ranking.ranker import Ranker

CLIP = 2.0  # weights of clicks: rows less likely to be looked at than half lean on features
TREES, RATE = 50, 0.2
FEW = 50_000  # rows for which threads would wait for each other longer than they work
STEEPNESS = (0.0, 0.5, 1.0, 1.5, 2.0)
"""What log p is multiplied by: 0 is a flat curve, 2 one that is twice as steep."""


@dataclass(frozen=True)
class Robust:
    """relevance (N,): what features expect of each row; weight (N,): of a click on it, at most
    CLIP; seen (N,): the share of a row's relevance that its clicks then tell; others: curves that
    the errors of the propensities allow, None if these have none."""

    relevance: Floats
    weight: Floats
    seen: Floats
    others: OtherCurves | None

    def dcg(self, matrix: Matrix, score: Floats, seed: int) -> Sums:
        """Robust DCG of a model's order."""
        discount = 1 / np.log2(new_ranks(matrix, score, seed) + 1)
        return robust_dcg(
            matrix,
            discount,
            of_click=self.weight,
            of_features=self.relevance,
            seen=self.seen,
            others=self.others,
        )

    def draw(self, samples: int, rng: np.random.Generator) -> tuple[Floats, Floats] | None:
        """(K, B) each: the weight of a click at each place of other curves, and the share seen."""
        if self.others is None:
            return None
        p = np.exp(self.others.draw_log_p(samples, rng))
        weight = np.minimum(1 / p, CLIP)
        return weight, p * weight


def make_robust(
    models: Mapping[str, Ranker | ArrayLike],
    matrix: Matrix,
    curve: Propensities,
    *,
    pool: bool,
    seed: int,
) -> Robust | None:
    """What robust DCG takes; None where nothing can be expected: no features, no library, fewer
    than five queries, or segments without a curve.

    Parameters
    ----------
    models
        By name; the library of the first ranker learns what to expect.
    matrix
        The rows.
    curve, pool
        As of `evaluate`; a rank without propensity takes that of the nearest.
    seed
        Of the trees.
    """
    libraries = [model.backend for model in models.values() if isinstance(model, Ranker)]
    if not libraries or not matrix.features or matrix.n_queries < FOLDS or not matrix.n_clicks:
        return None
    how = Weighting(curve, None, "clip", pool)
    settings = Settings(
        trees=TREES, learning_rate=RATE, seed=seed, threads=1 if len(matrix) < FEW else None
    )
    try:
        p = how.looked_at(matrix)
        relevance = expect_clicks(matrix, how, settings, BACKENDS.get(libraries[0]))
    except (MissingExtra, NotIdentified):
        return None
    weight = np.minimum(1 / p, CLIP)
    return Robust(relevance, weight, p * weight, curves_of_rows(matrix, curve, pool=pool))


def by_steepness(
    matrix: Matrix,
    scores: Mapping[str, Floats],
    weight: Floats,
    baselines: tuple[str, ...],
    clip: float | None,
    seed: int,
) -> dict[Pair, dict[float, Improvement]]:
    """Improvement of weighted DCG if the log of the curve were multiplied by each of STEEPNESS.

    Parameters
    ----------
    matrix
        The rows.
    scores
        (N,) by model.
    weight
        (N,): 1 / p of clicks by the curve as given, without limit; 0 without a click.
    baselines
        Models to improve on.
    clip
        The largest weight.
    seed
        Of breaking ties.
    """
    log = np.log(np.where(matrix.click, weight, 1.0))
    found: dict[Pair, dict[float, Improvement]] = {}
    discount = {
        name: 1 / np.log2(new_ranks(matrix, score, seed) + 1) for name, score in scores.items()
    }
    for steep in STEEPNESS:
        gain = np.where(matrix.click, np.minimum(np.exp(steep * log), clip or np.inf), 0.0)
        dcg = {
            name: np.bincount(matrix.query, gain * each, matrix.n_queries)
            for name, each in discount.items()
        }
        for base, name in product(baselines, scores):
            total = dcg[base].sum()
            if name == base or not total > 0 or matrix.n_queries < 2:
                continue
            ratio = dcg[name].sum() / total
            moved = (dcg[name] - ratio * dcg[base]) / total
            n = len(moved)
            sd = float(np.sqrt((moved**2).sum() * n / (n - 1)))
            found.setdefault((name, base), {})[steep] = Improvement.by_normal(ratio - 1, sd)
    return found
