"""Small searches for the tests of click models."""

from __future__ import annotations

import numpy as np

from rankdrift.clickmodels.searches import Searches, make_searches

DOCS = 8


def made_searches(
    n: int, queries: int, *, seed: int = 0, longest: int = 6, gaps: bool = False
) -> Searches:
    """Lists of different lengths and orders, without clicks."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, queries, n)
    lengths = rng.integers(1, longest + 1, n) if longest > 1 else np.ones(n, int)
    order = np.argsort(rng.random((n, DOCS)), axis=1)
    keep = np.arange(DOCS) < lengths[:, None]
    rank = np.tile(np.arange(1, DOCS + 1), (n, 1))
    if gaps:
        rank = np.cumsum(rng.integers(1, 3, (n, DOCS)), axis=1)
    pair = query[:, None] * DOCS + order
    return make_searches(
        lengths,
        pair[keep],
        rank[keep],
        np.zeros(keep.sum(), bool),
        np.repeat(np.arange(queries), DOCS),
        int(rank[keep].max()),
    )
