"""How fast is a bootstrap of the fixed-rank AUC, beside scikit-learn in a loop?"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks import measure
from rankdrift.ranking.evaluation import RANKS, evaluate
from rankdrift.ranking.matrix import Matrix

QUERIES, SAMPLES, MODELS = 10_000, 1_000, 2
CLICK_RATE = 0.05
FASTER = 50
LOOPED = 25  # samples that scikit-learn is timed on


def run(rows: int) -> dict[str, Any]:
    """10,000 queries at six ranks, two models, whatever `rows`."""
    matrix, scores = _test_set()
    evaluate(scores, matrix, bootstrap=10)
    start = time.process_time()
    found = evaluate(scores, matrix, bootstrap=SAMPLES)
    ours = time.process_time() - start
    start = time.process_time()
    _loop(matrix, scores)
    theirs = (time.process_time() - start) * SAMPLES / LOOPED
    times = theirs / ours
    calls = SAMPLES * len(RANKS) * MODELS
    measure.show(
        f"{SAMPLES:,} samples of {QUERIES:,} queries at {len(RANKS)} ranks, {MODELS} models",
        ("", "seconds"),
        (("rankdrift.evaluate", ours), (f"scikit-learn, {calls:,} calls", theirs)),
        f"Processor time. scikit-learn's roc_auc_score with sample_weight was timed on {LOOPED} "
        "samples, their drawing included; rankdrift's time is that of the whole call.\n"
        f"Times as fast: {times:.0f}, wanted {FASTER}: {'met' if times >= FASTER else 'MISSED'}.",
    )
    return {
        "seconds": {"rankdrift": ours, "scikit-learn": theirs},
        "times as fast": times,
        "samples": found.bootstrap,
    }


def _test_set() -> tuple[Matrix, dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    n = QUERIES * len(RANKS)
    z = rng.normal(size=n)
    click = rng.random(n) < 2 * CLICK_RATE / (1 + np.exp(-z))
    matrix = Matrix.from_arrays(
        np.empty((n, 0)),
        rank=np.tile(RANKS, QUERIES),
        click=click,
        query=np.repeat(np.arange(QUERIES), len(RANKS)),
    )
    return matrix, {f"model {i}": z + (i + 1) * rng.normal(size=n) for i in range(MODELS)}


def _loop(matrix: Matrix, scores: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng(2)
    at = {rank: matrix.rank == rank for rank in RANKS}
    for _ in range(LOOPED):
        drawn = np.bincount(rng.integers(0, QUERIES, QUERIES), minlength=QUERIES)
        for rows in at.values():
            weight = drawn[matrix.query[rows]]
            for score in scores.values():
                roc_auc_score(matrix.click[rows], score[rows], sample_weight=weight)
