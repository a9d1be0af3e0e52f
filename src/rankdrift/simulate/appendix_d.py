"""Pairs as in the paper's Appendix D, straight to Counts: a world whose truth is known.

A pair's mean rank is uniform on 1 to `ranks`; its ranks are normal around it with a fifth of it as
standard deviation; its click probability when seen, z, makes clicks rarer further down, so that
click-through rates fall with rank as they do in shops; clicks follow Eq. (1), prob-click.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdrift.counts import ByRank, Comparisons, Counts, Pairs
from rankdrift.funnel import Funnel, Used

Floats = NDArray[np.float64]
_BATCH = 200_000


@dataclass(frozen=True)
class World:
    counts: Counts
    propensities: Floats  # (ranks,), the truth


def appendix_d(ranks: int) -> Floats:
    """p_i = min(1 / log i, 1), Eq. (13), prop-true."""
    return np.minimum(1.0, 1 / np.log(np.maximum(np.arange(1, ranks + 1), 2)))


def pairs(
    n: int = 40_000,
    *,
    ranks: int = 500,
    propensities: ArrayLike | None = None,
    relevance: float = 0.1,
    appearances: int = 2,
    queries: int = 5_000,
    query_effect: float = 0.0,
    buckets: int = 64,
    seed: int = 0,
) -> World:
    """`n` usable pairs. `relevance` is the mean of z near the top; z falls with the mean rank to
    about half. With `query_effect` the log of z varies between queries with that standard
    deviation, so that clicks of one query go together."""
    truth = appendix_d(ranks) if propensities is None else np.asarray(propensities, float)
    rng = np.random.default_rng(seed)
    bucket_of = rng.integers(0, buckets, queries)
    effect = rng.normal(0.0, query_effect, queries) if query_effect else np.zeros(queries)
    found: list[tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]] = []
    have = 0
    while have < n:
        query = rng.integers(0, queries, _BATCH)
        mean = rng.uniform(1, ranks, _BATCH)
        rank = np.rint(rng.normal(mean[:, None], mean[:, None] / 5, (_BATCH, appearances)))
        inside = ((rank >= 1) & (rank <= ranks)).all(axis=1) & (rank.min(axis=1) < rank.max(axis=1))
        level = relevance / (1 + np.log(mean) / np.log(ranks)) * np.exp(effect[query])
        z = np.minimum(rng.beta(1, 1 / np.minimum(level, 0.9) - 1), 1.0)
        shown = rank[inside].astype(np.int64)
        click = rng.random(shown.shape) < truth[shown - 1] * z[inside, None]
        keep = click.any(axis=1)
        keep[np.flatnonzero(keep)[n - have :]] = False
        found.append((shown[keep], click[keep], bucket_of[query[inside][keep]]))
        have += int(keep.sum())
    shown, click, bucket = (np.concatenate(part) for part in zip(*found, strict=True))
    codes = np.sort(2 * shown + click, axis=1)
    zero = np.zeros(n, np.int32)
    by_rank = ByRank(
        segment=np.zeros(ranks, np.int32),
        rank=np.arange(1, ranks + 1, dtype=np.int32),
        impressions=np.bincount(shown.ravel(), minlength=ranks + 1)[1:],
        clicks=np.bincount(shown[click], minlength=ranks + 1)[1:],
    )
    rows, clicks = int(shown.size), int(click.sum())
    counts = Counts(
        pairs=Pairs(zero, bucket, zero, codes, np.ones(n, np.int64)),
        comparisons=Comparisons.empty(),
        by_rank=by_rank,
        funnel=Funnel(rows, clicks, {}, Used(rows, clicks, n)),
        buckets=buckets,
        max_rank=ranks,
        max_shown=max(appearances, 2),
        options={"simulated": "pairs", "seed": seed},
    )
    return World(counts, truth)
