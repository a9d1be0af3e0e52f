"""Measures of whole lists: DCG, MRR and mean rank of clicks by weight, true DCG and NDCG.

Each is a ratio of sums over queries, so that a bootstrap sample of queries is a product with how
often each was drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.types import Floats, Ints
from rankdrift.ranking.comparison import TRUE_NDCG
from rankdrift.ranking.gains import ideal_dcg
from rankdrift.ranking.matrix import Matrix


@dataclass(frozen=True)
class Sums:
    """above, below (Q,): the measure is the sum of the one over the sum of the other."""

    above: Floats
    below: Floats
    less_is_better: bool = False

    @property
    def value(self) -> float:
        """Of all queries, each once."""
        return float(self.of(np.ones((len(self.above), 1)))[0])

    def of(self, drawn: NDArray[Any]) -> Floats:
        """(B,) from how often each query was drawn (Q, B)."""
        above, below = self.above @ drawn, self.below @ drawn
        return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)


def new_ranks(matrix: Matrix, score: Floats, seed: int = 0) -> Ints:
    """(N,): the rank of each result in its search by score; ties are broken at random, since the
    order in which they were shown would tell of clicks."""
    key = np.random.default_rng(seed).random(len(matrix))
    order = np.lexsort((key, -score, matrix.search))
    ranks = np.empty(len(matrix), np.int64)
    ranks[order] = np.arange(len(matrix)) - matrix.starts[matrix.search[order]] + 1
    return ranks


def measures(matrix: Matrix, score: Floats, gain: Floats | None, seed: int = 0) -> dict[str, Sums]:
    """What can be measured of a model's order of each search, by name.

    Parameters
    ----------
    matrix
        The rows; true measures need their relevance.
    score
        (N,), by the model.
    gain
        (N,), for measures by weight; None: without.
    seed
        Of breaking ties.
    """
    found: dict[str, Sums] = {}
    if gain is None and matrix.relevance is None:
        return found
    rank = new_ranks(matrix, score, seed)
    discount = 1 / np.log2(rank + 1)
    of_search = np.zeros(matrix.n_searches, np.int64)
    of_search[matrix.search] = matrix.query

    def by_query(values: Floats) -> Floats:
        return np.bincount(matrix.query, values, matrix.n_queries).astype(np.float64)

    searches = np.bincount(of_search, minlength=matrix.n_queries).astype(float)
    if gain is not None:
        worth = by_query(gain)
        found["weighted DCG"] = Sums(by_query(gain * discount), searches)
        found["weighted MRR"] = Sums(by_query(gain / rank), worth)
        found["weighted mean rank of clicks"] = Sums(by_query(gain * rank), worth, True)
    if matrix.relevance is not None:
        known = np.nan_to_num(matrix.relevance)
        dcg = np.bincount(matrix.search, known * discount, matrix.n_searches)
        ideal = ideal_dcg(known, matrix.search, matrix.n_searches)
        good = ideal > 0
        ndcg = np.divide(dcg, ideal, out=np.zeros_like(dcg), where=good)
        found["true DCG"] = Sums(by_query(known * discount), searches)
        found[TRUE_NDCG] = Sums(
            np.bincount(of_search, ndcg, matrix.n_queries).astype(float),
            np.bincount(of_search, good, matrix.n_queries).astype(float),
        )
    return found
