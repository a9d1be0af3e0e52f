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
from rankdrift.ranking.comparison import TRUE_NDCG, WEIGHTED_DCG
from rankdrift.ranking.gains import OtherCurves, ideal_dcg
from rankdrift.ranking.matrix import Matrix


@dataclass(frozen=True)
class ByPlace:
    """A measure of clicks before they are weighed: above, below (K, Q), sparse, for each place of
    `OtherCurves` and query; None where it has nothing to do with weights. expected (K, Q): what
    features expect there, of which the share that clicks tell is taken off."""

    above: Any
    below: Any
    expected: Any = None


@dataclass(frozen=True)
class Sums:
    """above, below (Q,): the measure is the sum of the one over the sum of the other.

    by_place: the same before clicks are weighed, if there are several ways to weigh them.
    """

    above: Floats
    below: Floats
    less_is_better: bool = False
    by_place: ByPlace | None = None

    @property
    def value(self) -> float:
        """Of all queries, each once."""
        return float(self.of(np.ones((len(self.above), 1)))[0])

    def of(
        self, drawn: NDArray[Any], weight: Floats | None = None, seen: Floats | None = None
    ) -> Floats:
        """(B,) from how often each query was drawn (Q, B), and the weights (K, B) of clicks in
        each sample, if they differ, with the share (K, B) that clicks then tell."""
        above, below = self.above @ drawn, self.below @ drawn
        if weight is not None and self.by_place is not None:
            above = (weight * (self.by_place.above @ drawn)).sum(axis=0)
            if seen is not None and self.by_place.expected is not None:
                above = above + ((1 - seen) * (self.by_place.expected @ drawn)).sum(axis=0)
            if self.by_place.below is not None:
                below = (weight * (self.by_place.below @ drawn)).sum(axis=0)
        return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)

    def influence(self) -> Floats:
        """(Q,): how much the measure moves with each query, to first order."""
        return (self.above - self.value * self.below) / float(self.below.sum())


def new_ranks(matrix: Matrix, score: Floats, seed: int = 0) -> Ints:
    """(N,): the rank of each result in its search by score; ties are broken at random, since the
    order in which they were shown would tell of clicks."""
    key = np.random.default_rng(seed).random(len(matrix))
    order = np.lexsort((key, -score, matrix.search))
    ranks = np.empty(len(matrix), np.int64)
    ranks[order] = np.arange(len(matrix)) - matrix.starts[matrix.search[order]] + 1
    return ranks


def measures(
    matrix: Matrix,
    score: Floats,
    gain: Floats | None,
    seed: int = 0,
    others: OtherCurves | None = None,
) -> dict[str, Sums]:
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
    others
        Other ways to weigh the clicks.
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

        def by_place(values: Floats, per_click: bool = True) -> ByPlace | None:
            if others is None:
                return None
            from scipy.sparse import csr_array

            at = (others.place, matrix.query[others.rows])
            shape = (len(others.log_p), matrix.n_queries)
            ones = np.ones(len(others.rows))
            return ByPlace(
                csr_array((values[others.rows], at), shape=shape),
                csr_array((ones, at), shape=shape) if per_click else None,
            )

        found[WEIGHTED_DCG] = Sums(
            by_query(gain * discount), searches, by_place=by_place(discount, per_click=False)
        )
        found["weighted MRR"] = Sums(by_query(gain / rank), worth, by_place=by_place(1 / rank))
        found["weighted mean rank of clicks"] = Sums(
            by_query(gain * rank), worth, True, by_place(rank.astype(float))
        )
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


def robust_dcg(
    matrix: Matrix,
    discount: Floats,
    *,
    of_click: Floats,
    of_features: Floats,
    seen: Floats,
    others: OtherCurves | None,
) -> Sums:
    """DCG of clicks with bounded weights, and of what features expect for the rest.

    Parameters
    ----------
    matrix
        The rows.
    discount
        (N,), by the model's order.
    of_click
        (N,): what a click on the row is worth.
    of_features
        (N,): the relevance that features expect.
    seen
        (N,): the share of it that clicks tell.
    others
        Other ways to weigh, of all rows.
    """
    clicked = matrix.click * discount
    expected = of_features * discount
    first = np.searchsorted(matrix.search, np.arange(matrix.n_searches))
    searches = np.bincount(matrix.query[first], minlength=matrix.n_queries).astype(float)
    total = of_click * clicked + (1 - seen) * expected
    by_place = None
    if others is not None:
        from scipy.sparse import csr_array

        at = (others.place, matrix.query[others.rows])
        shape = (len(others.log_p), matrix.n_queries)
        above, given = (csr_array((v[others.rows], at), shape=shape) for v in (clicked, expected))
        by_place = ByPlace(above, None, given)
    above_all = np.bincount(matrix.query, total, matrix.n_queries).astype(np.float64)
    return Sums(above_all, searches, by_place=by_place)
