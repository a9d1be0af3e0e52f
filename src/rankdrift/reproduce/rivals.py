"""The libraries' own ways to learn from biased clicks, as rivals: they estimate the bias of ranks
while they train. Number of trees, leaves and shrinkage are ours; all else is their default."""

from __future__ import annotations

import numpy as np

from rankdrift.ranking.backends import LIGHTGBM, XGBOOST, Backend, library
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.ranker import Ranker, sketch


def lightgbm_positions(
    matrix: Matrix,
    *,
    trees: int = 100,
    learning_rate: float = 0.1,
    leaves: int = 31,
    seed: int = 0,
    threads: int | None = None,
) -> Ranker:
    """LambdaMART with LightGBM's `position` of each row: a bias of each, added to its score."""
    params = {
        "objective": "lambdarank",
        "learning_rate": learning_rate,
        "num_leaves": leaves,
        "seed": seed,
        "num_threads": threads or 0,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    data = LIGHTGBM.dataset(matrix, matrix.click.astype(np.int32), position=matrix.rank)
    booster = library("lightgbm").train(params, data, trees)
    return _ranker("LightGBM positions", LIGHTGBM, booster.model_to_string(), matrix, trees)


def xgboost_unbiased(
    matrix: Matrix,
    *,
    trees: int = 100,
    learning_rate: float = 0.1,
    leaves: int = 31,
    seed: int = 0,
    threads: int | None = None,
) -> Ranker:
    """XGBoost's `lambdarank_unbiased`, which takes the order of a search's rows for their ranks."""
    params = {
        "objective": "rank:ndcg",
        "lambdarank_unbiased": True,
        **XGBOOST.TREES,
        "learning_rate": learning_rate,
        "max_leaves": leaves,
        "seed": seed,
        **({"nthread": threads} if threads else {}),
    }
    booster = library("xgboost").train(params, XGBOOST.dataset(matrix, matrix.click), trees)
    text = booster.save_raw("json").decode()
    return _ranker("XGBoost unbiased", XGBOOST, text, matrix, trees)


def _ranker(name: str, backend: Backend, text: str, matrix: Matrix, trees: int) -> Ranker:
    return Ranker(
        name,
        backend.name,
        text,
        matrix.features,
        training=matrix.describe(),
        queries=sketch(matrix.query_keys),
        trees=trees,
    )
