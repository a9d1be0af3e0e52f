"""Small logs with a known truth, as DataFrames: a row for each result shown."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rankdrift import read_log


@dataclass(frozen=True, eq=False)
class Made:
    """rows, and log p (R,) of ranks 1 to R, 0 at rank 1."""

    rows: pd.DataFrame
    log_p: np.ndarray

    def log(self, **options):
        return read_log(self.rows, query="query", doc="doc", rank="rank", click="click", day="",
                        search="search", **options)  # fmt: skip


def made(
    seed=0,
    *,
    queries=200,
    searches=50,
    ranks=10,
    slope=0.7,
    level=0.3,
    drift=1.5,
    fall=0.6,
    hidden=0.5,
    spread=0.8,
    levels=None,
    randomised=0.0,
    swapped=0.0,
    chase=0.0,
) -> Made:
    """`searches` of each query, each showing its docs in an order of their own.

    Doc i of a query belongs at place i and is shown near it: its place plus normal noise of
    deviation `drift` is sorted. z = level * exp(0.8 f_good - fall (i - 1) / ranks + hidden part),
    where f_good is a feature, normal or one of so many `levels`, and f_place is i; that the ranker
    prefers good docs is `fall`. `randomised` share of searches is in random order; in a `swapped`
    share two ranks have changed places, and `original` tells the rank before. `chase`: how much
    more relevant a doc is, in log z, in a search that shows it a deviation higher, which breaks
    what harvested interventions assume. p = rank ** -slope.
    """
    rng = np.random.default_rng(seed)
    size = (queries, ranks)
    good = spread * (
        rng.integers(levels, size=size) - levels // 2 if levels else rng.normal(size=size)
    )
    unseen = hidden * rng.normal(size=size)
    place = np.arange(ranks)
    z = np.minimum(level * np.exp(0.8 * good - fall * place / ranks + unseen), 0.99)
    query = np.repeat(np.arange(queries), searches)
    n = len(query)
    at_random = rng.random(n) < randomised
    noise = np.where(at_random[:, None], 1e6, drift) * rng.normal(size=(n, ranks))
    before = np.argsort(place + noise, axis=1)  # doc by rank
    order, original = before.copy(), np.tile(place + 1, (n, 1))
    chosen = np.flatnonzero(rng.random(n) < swapped)
    a, b = rng.integers(0, ranks, (2, len(chosen)))
    order[chosen, a], order[chosen, b] = before[chosen, b], before[chosen, a]
    original[chosen, a], original[chosen, b] = b + 1, a + 1
    p = (place + 1.0) ** -slope
    luck = np.where(at_random[:, None], 0.0, -chase * noise / max(drift, 1e-9))
    luck = np.take_along_axis(luck, order, axis=1)
    chance = np.minimum(p * z[query[:, None], order] * np.exp(luck), 1.0)
    rows = pd.DataFrame({
        "search": np.repeat(np.arange(n), ranks),
        "query": np.repeat([f"q{q}" for q in query], ranks),
        "doc": (query[:, None] * 1000 + order).ravel(),
        "rank": np.tile(place + 1, n),
        "click": (rng.random((n, ranks)) < chance).ravel().astype(int),
        "f_good": good[query[:, None], order].ravel(),
        "f_place": order.ravel() + 1,
        "f_noise": rng.normal(size=n * ranks),
        "is_random": np.repeat(at_random, ranks),
        "original": original.ravel(),
    })  # fmt: skip
    return Made(rows, np.log(p))


def off(curve, truth):
    """How far log p is off at every rank but the reference, in its own standard errors."""
    here = truth.log_p[curve.ranks - 1] - truth.log_p[curve.reference - 1]
    other = curve.ranks != curve.reference
    return ((curve.log_p - here) / np.where(other, curve.std_error, 1.0))[other]
