"""True NDCG of rankers on later days of the market, each with the same choice of capacity.

Sizes, seeds and models were fixed before there were results; the grid that `train` chooses from was
fixed on seeds 1 to 3, which are not among these.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure
from rankdrift.estimation import estimate
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import Log, read_log
from rankdrift.methods.em_features import regression_em
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.matrix_reading import read_matrix
from rankdrift.ranking.measures import measures
from rankdrift.ranking.training import train
from rankdrift.reproduce.models import lightgbm_positions, xgboost_unbiased
from rankdrift.simulate import market
from rankdrift.simulate.marketplace import MARKET_QUERY, SAME_QUERY_SAME_RELEVANCE

SIZES = (2_000, 8_000, 40_000)
SEEDS = (11, 12, 13, 14, 15)
TEST = 3_000  # searches
ROWS_A_SEARCH = 400  # of all platforms and sorts, for a search with a click that can be used
TEST_ROWS = 900_000
SEARCHES_A_QUERY = 4
OURS, BEFORE = "ours", "ours, fixed"


def run(rows: int) -> dict[str, Any]:
    """At sizes that need no more than `rows` results shown to learn from."""
    threads = os.cpu_count()
    return {
        str(size): judged(size, SEEDS, threads) for size in SIZES if size * ROWS_A_SEARCH <= rows
    }


def judged(size: int, seeds: tuple[int, ...], threads: int | None) -> dict[str, Any]:
    """True NDCG by model and seed, and what was chosen."""
    found: dict[str, list[float]] = {}
    chosen = []
    for seed in seeds:
        values, capacity = _one(size, seed, threads)
        chosen.append(capacity)
        for model, value in values.items():
            found.setdefault(model, []).append(value)
        print(size, seed, capacity, {m: round(v, 4) for m, v in values.items()}, flush=True)
    ours = np.array(found[OURS])
    measure.show(
        f"Rankers learnt from {size:,} searches",
        ("model", "true NDCG", "ours above", "±"),
        (
            (model, *(f"{n:.4f}" for n in (np.mean(v), (ours - v).mean(), half_width(ours - v))))
            for model, v in found.items()
        ),
        f"{len(seeds)} seeds; ± is half of a 95% interval of the difference over seeds.",
    )
    return {"NDCG": found, "chosen": chosen}


def half_width(differences: np.ndarray) -> float:
    """Of the 95% interval of their mean, by Student's t."""
    from scipy.stats import t

    n = len(differences)
    return float(t.ppf(0.975, n - 1) * np.std(differences, ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def _one(size: int, seed: int, threads: int | None) -> tuple[dict[str, float], dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="rankdrift-rankers-") as folder:
        options: dict[str, Any] = {
            "queries": max(size // SEARCHES_A_QUERY, 300), "seed": seed, "days": 4, "labels": True,
        }  # fmt: skip
        made = market(Path(folder) / "a", rows=size * ROWS_A_SEARCH, start="2024-01-01", **options)
        later = market(Path(folder) / "b", rows=TEST_ROWS, start="2024-01-05", **options)
        log = _log(made.paths)
        rows = _some(read_matrix(log, searches="clicked"), size)
        curve = estimate(harvest(log), curve="loglog", errors="model")
        em = regression_em(_some(read_matrix(log), size), bootstrap=0, seed=seed, threads=threads)
        test = _some(read_matrix(_log(later.paths), relevance="relevance"), TEST)
    common: dict[str, Any] = {"seed": seed, "threads": threads}
    ours = train(rows, propensities=curve, beyond="clip", **common)
    same = {name: ours.options[name] for name in ("leaves", "min_rows")}
    own = {**same, "norm": ours.options["norm"]}
    rankers = {
        OURS: ours,
        BEFORE: train(rows, propensities=curve, beyond="clip", fixed=True, **common),
        "biased": train(rows, **common),
        "biased, as ours": train(rows, fixed=True, **own, **common),
        "EM, as ours": train(
            rows, propensities=em, beyond="clip", fixed=True, clip=ours.options["clip"], **own,
            **common,
        ),
        "LightGBM positions, as ours": lightgbm_positions(rows, **same, **common),
        "XGBoost unbiased, as ours": xgboost_unbiased(rows, leaves=same["leaves"], **common),
    }  # fmt: skip
    values = {
        name: measures(test, ranker.predict(test), None)["true NDCG"].value
        for name, ranker in rankers.items()
    }
    return values, {**own, "clip": ours.options["clip"]}


def _log(paths: Any) -> Log:
    return read_log(
        paths, query=MARKET_QUERY, doc="doc", rank="rank", click="click", same="price", day="day",
        time="time", search="search", max_rank=100,
        where=f"{SAME_QUERY_SAME_RELEVANCE} AND platform = 'web'",
    )  # fmt: skip


def _some(matrix: Matrix, searches: int) -> Matrix:
    """So many searches, by lot."""
    kept = np.zeros(matrix.n_searches, bool)
    kept[np.random.default_rng(0).permutation(matrix.n_searches)[:searches]] = True
    return matrix.take(kept[matrix.search])
