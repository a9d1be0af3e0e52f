"""Propensities to test with: made by hand, and estimated from a small simulation."""

from dataclasses import replace

import numpy as np

from rankdrift.counts.counts import ByRank, Counts, Pairs, RankPairs
from rankdrift.counts.funnel import Funnel, Used
from rankdrift.propensities.propensities import Difference, Propensities

DEVICES = (("web",), (None,), ("a/b\\",))


def hand(**more):
    """p = 1, 1/2, 1/4, 1/10 at ranks 1, 2, 3, 5; rank 4 has no estimate and rank 5 thin data."""
    given = {
        "ranks": np.array([1, 2, 3, 5], dtype=np.int32),
        "log_p": np.log([1, 0.5, 0.25, 0.1]),
        "deviations": np.array([[0, 0], [0.1, 0], [0.1, 0.2], [0.3, -0.4]]),
        "pairs": np.array([100, 80, 60, 2]),
        "clicks": np.array([40, 20, 10, 1]),
        "supported": np.array([True, True, True, False]),
        "reference": 1,
        "method": "direct, every",
        "errors": "buckets",
        "df": 7.0,
        "log_likelihood": -12.5,
        "parameters": 3,
        "gaps": {4: "no clicked pair moved there or away"},
        "provenance": {"version": "0.1.0", "counts": {"days": ["2024-01-01"], "pairs": 121}},
    }
    return Propensities(**{**given, **more})


def by_device():
    """The curve by hand with three segments: an ordinary one, NULL, and one to be escaped."""
    own = {
        segment: hand(log_p=hand().log_p * (1 + 0.1 * i), df=np.inf)
        for i, segment in enumerate(DEVICES)
    }
    return hand(
        segment_columns=("device",),
        by_segment=own,
        shrunk={s: replace(c, log_p=c.log_p * 0.9, method="leaning") for s, c in own.items()},
        difference=Difference(3.5, 6.0, 0.74, 0.05, {("tv",): "The counts hold no usable pair."}),
    )


def small_counts(pairs=4000, deepest=12, buckets=16, segments=1, seed=0):
    """Pairs shown twice, with p = 1 / rank."""
    rng = np.random.default_rng(seed)
    rank = np.sort(rng.integers(1, deepest + 1, (pairs * 8, 2)), axis=1)
    clicked = rng.random(rank.shape) < rng.beta(2, 2, (len(rank), 1)) / rank
    usable = clicked.any(axis=1) & (rank[:, 0] < rank[:, 1])
    rank, clicked = rank[usable][:pairs], clicked[usable][:pairs]
    n, clicks = len(rank), int(clicked.sum())
    every = np.arange(1, deepest + 1)
    return Counts(
        pairs=Pairs(
            rng.integers(0, segments, n), rng.integers(0, buckets, n), np.zeros(n, int),
            2 * rank + clicked, np.ones(n, int),
        ),
        rank_pairs=RankPairs.empty(),
        by_rank=ByRank(
            np.zeros(deepest, int), every,
            np.bincount(rank.ravel(), minlength=deepest + 1)[1:],
            np.bincount(rank[clicked], minlength=deepest + 1)[1:],
        ),
        funnel=Funnel(2 * n, clicks, {}, Used(2 * n, clicks, n)),
        buckets=buckets, max_rank=deepest, max_shown=4,
        segment_columns=("device",) if segments > 1 else (),
        segments=DEVICES[:segments] if segments > 1 else ((),),
    )  # fmt: skip
