"""Small made-up searches with known relevance and propensities, as frames and matrices."""

import numpy as np
import pandas as pd

from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.matrix import Matrix


def power(n, slope=0.7):
    return np.arange(1.0, n + 1) ** -slope


def curve(values, **more):
    """Propensities with these values at ranks 1, 2, …, and no errors."""
    n = len(values)
    none = np.zeros(n, np.int64)
    return Propensities(
        ranks=np.arange(1, n + 1, dtype=np.int32), log_p=np.log(values / values[0]),
        deviations=np.zeros((n, 1)), pairs=none, clicks=none, supported=np.ones(n, bool),
        reference=1, method="given", errors="none", **more,
    )  # fmt: skip


def frame(seed=0, searches=300, size=12, queries=60, p=None, prefix="q", presort=0.0):
    """Results with two features that tell relevance (f_1, f_2), one that does not (f_3), words,
    and a flag. `presort`: how strongly f_3 decides the rank, which makes clicks blame it."""
    rng = np.random.default_rng(seed)
    n = searches * size
    p = power(size) if p is None else p
    x = rng.normal(size=(searches, size, 3))
    order = np.argsort(-(presort * x[:, :, 2] + rng.normal(size=(searches, size))), axis=1)
    x = np.take_along_axis(x, order[:, :, None], axis=1).reshape(n, 3)
    z = 1 / (1 + np.exp(2.0 - 1.2 * x[:, 0] - 0.8 * x[:, 1]))
    rank = np.tile(np.arange(1, size + 1), searches)
    search = np.repeat(np.arange(searches), size)
    query = rng.integers(0, queries, searches)[search]
    return pd.DataFrame({
        "search": search, "query": [f"{prefix}{i}" for i in query], "doc": np.arange(n),
        "rank": rank, "click": (rng.random(n) < z * p[rank - 1]).astype(int),
        "platform": np.where(search % 3 == 0, "mobile", "web"),
        "f_1": x[:, 0], "f_2": x[:, 1], "f_3": x[:, 2],
        "f_word": rng.choice(["red", "green", None], n), "f_flag": rng.random(n) < 0.5,
        "relevance": z,
    })  # fmt: skip


def matrix(table, features=("f_1", "f_2", "f_3"), **more):
    return Matrix.from_arrays(
        table[list(features)], rank=table["rank"], click=table["click"], query=table["query"],
        search=table["search"], relevance=table["relevance"], **more,
    )  # fmt: skip
