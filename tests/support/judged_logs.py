"""A small world with known relevances, as a table of results shown, and the curve behind it."""

import numpy as np
import pyarrow as pa
from support.curve_example import hand

RANKS = 10
TRUTH = np.arange(1, RANKS + 1) ** -0.8


def true_curve(error=0.0, ranks=RANKS):
    """The propensities of the world, known to a standard error of log p at the deepest rank."""
    every = np.arange(1, ranks + 1, dtype=np.int32)
    away = np.log(every) / np.log(ranks)
    return hand(
        ranks=every, log_p=-0.8 * np.log(every), deviations=error * away[:, None],
        pairs=np.full(ranks, 100), clicks=np.full(ranks, 100), supported=np.ones(ranks, bool),
        df=np.inf, gaps={},
    )  # fmt: skip


def world(queries=150, docs=16, shows=60, seed=0, middle=-2.5, spread=1.2, days=4):
    """(table, relevance by (query, doc)): queries are searched unequally often, `shows` times on
    average. A feature tells half of the variance of the relevance."""
    rng = np.random.default_rng(seed)
    told, own = rng.normal(size=(2, queries, docs)) * spread / np.sqrt(2)
    z = 1 / (1 + np.exp(-(middle + told + own)))
    searches = np.maximum(rng.poisson(shows * rng.gamma(0.5, 2, queries)), 1)
    q = np.repeat(np.arange(queries), searches)
    # Docs have places of their own, and drift about them.
    noise = rng.normal(size=(len(q), docs)) * 3
    order = np.argsort(np.arange(docs) + noise, axis=1)[:, :RANKS]
    rank = np.broadcast_to(np.arange(1, RANKS + 1), order.shape)
    query = np.repeat(q, RANKS)
    click = rng.random(len(query)) < TRUTH[rank.ravel() - 1] * z[query, order.ravel()]
    day = np.repeat(rng.integers(0, days, len(q)), RANKS)
    columns = {
        "query": pa.array([f"q{i:03}" for i in query]),
        "doc": pa.array([f"d{i:02}" for i in order.ravel()]),
        "rank": pa.array(rank.ravel().astype(np.int32)),
        "click": pa.array(click.astype(np.int8)),
        "day": pa.array(np.datetime64("2024-01-01", "D") + day),
        "f_told": pa.array(told[query, order.ravel()]),
    }
    names = {(f"q{i:03}", f"d{d:02}"): float(z[i, d]) for i in range(queries) for d in range(docs)}
    return pa.table(columns), names


def truth_of(judgments, names):
    """(N,): the relevance behind each pair judged."""
    texts, docs = judgments.texts[judgments.query], judgments.docs[judgments.doc]
    return np.array([names[pair] for pair in zip(texts, docs, strict=True)])
