"""What AUC at fixed ranks is worth, seen by a truth that only a simulation has.

It judges relevance among results of one rank. There, what the old ranker knew and the features do
not tell is fixed, which changes what a feature says about relevance. In random order, the
rank says nothing, and AUC at fixed ranks is that of the true order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rankdrift.core.types import Floats
from rankdrift.ranking.auc import auc
from rankdrift.ranking.evaluation import RANKS
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.ranker import Ranker


@dataclass(frozen=True)
class FixedRanks:
    """AUC at fixed ranks by model, without the luck of clicks: of results as they were shown, of
    the same with the mean score of each query taken away, and of results in random order.

    slopes: how much the log odds of relevance grow with the log of the rank, by itself and among
    results whose features are alike.
    """

    shown: Mapping[str, float]
    centred: Mapping[str, float]
    mixed: Mapping[str, float]
    slopes: tuple[float, float]


def judge_fixed_ranks(
    rankers: Mapping[str, Ranker], shown: Matrix, mixed: Matrix, propensities: Floats
) -> FixedRanks:
    """AUC at fixed ranks of each ranker, on results as shown and in random order.

    Parameters
    ----------
    rankers
        By name.
    shown, mixed
        Results with their true relevance.
    propensities
        The true ones (R,), of ranks from 1 on.
    """

    scores = {name: ranker.predict(shown) for name, ranker in rankers.items()}
    return FixedRanks(
        {name: expected_auc(shown, found, propensities) for name, found in scores.items()},
        {
            name: expected_auc(shown, _centred(shown, found), propensities)
            for name, found in scores.items()
        },
        {
            name: expected_auc(mixed, ranker.predict(mixed), propensities)
            for name, ranker in rankers.items()
        },
        slopes(shown),
    )


def _centred(matrix: Matrix, score: Floats) -> Floats:
    """Scores without their query's mean: the order of a query's results, and nothing else."""
    rows = np.bincount(matrix.query, minlength=matrix.n_queries)
    mean = np.bincount(matrix.query, score, matrix.n_queries) / rows
    return np.asarray(score - mean[matrix.query])


def expected_auc(matrix: Matrix, score: Floats, propensities: Floats) -> float:
    """As `evaluate`, the mean over ranks weighted by clicks, but every result is clicked as much
    as it has a chance to be, and not clicked for the rest."""
    chance = propensities[matrix.rank - 1] * _relevance(matrix)
    at = [rows for rank in RANKS if len(rows := np.flatnonzero(matrix.rank == rank))]
    found = [_auc_of_chances(score[rows], chance[rows]) for rows in at]
    return float(np.average(found, weights=[chance[rows].sum() for rows in at]))


def _auc_of_chances(score: Floats, chance: Floats) -> float:
    clicked = np.repeat([True, False], len(score))
    return auc(np.tile(score, 2), clicked, np.concatenate([chance, 1 - chance]))


def slopes(matrix: Matrix) -> tuple[float, float]:
    """How much the log odds of relevance grow with the log of the rank: see `FixedRanks`."""
    z = _relevance(matrix)
    logit, rank = np.log(z / (1 - z)), np.log(matrix.rank.astype(float))
    x = matrix.x.astype(float)
    return _last_slope(logit, rank[:, None]), _last_slope(logit, np.column_stack([x, rank]))


def _last_slope(y: Floats, x: Floats) -> float:
    return float(np.linalg.lstsq(x - x.mean(axis=0), y - y.mean())[0][-1])


def _relevance(matrix: Matrix) -> Floats:
    assert matrix.relevance is not None
    return matrix.relevance.astype(np.float64)
