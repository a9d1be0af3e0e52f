"""The libraries' own ways to learn from biased clicks, as rivals: they estimate the bias of ranks
while they train. Number of trees, leaves and shrinkage are ours; all else is their default."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.ranker import Ranker, library, plain_names, sketch, xgboost_types


def lightgbm_positions(
    matrix: Matrix, *, trees: int = 100, learning_rate: float = 0.1, leaves: int = 31,
    seed: int = 0, threads: int | None = None,
) -> Ranker:  # fmt: skip
    """LambdaMART with LightGBM's `position` of each row: a bias of each, added to its score."""
    lightgbm = library("lightgbm")
    params = {
        "objective": "lambdarank", "learning_rate": learning_rate, "num_leaves": leaves,
        "seed": seed, "num_threads": threads or 0, "deterministic": True, "force_row_wise": True,
        "verbosity": -1,
    }  # fmt: skip
    data = lightgbm.Dataset(
        matrix.x, matrix.click.astype(np.int32), group=np.diff(matrix.starts),
        position=matrix.rank, feature_name=plain_names(matrix.features),
        categorical_feature=_words(matrix),
    )  # fmt: skip
    booster = lightgbm.train(params, data, trees)
    return _ranker("LightGBM positions", "lightgbm", booster.model_to_string(), matrix, trees)


def xgboost_unbiased(
    matrix: Matrix, *, trees: int = 100, learning_rate: float = 0.1, leaves: int = 31,
    seed: int = 0, threads: int | None = None,
) -> Ranker:  # fmt: skip
    """XGBoost's `lambdarank_unbiased`, which takes the order of a search's rows for their ranks."""
    xgboost = library("xgboost")
    params = {
        "objective": "rank:ndcg", "lambdarank_unbiased": True, "learning_rate": learning_rate,
        "grow_policy": "lossguide", "max_leaves": leaves, "max_depth": 0, "tree_method": "hist",
        "seed": seed, "verbosity": 0, **({"nthread": threads} if threads else {}),
    }  # fmt: skip
    data = xgboost.DMatrix(
        matrix.x, matrix.click.astype(np.float32), qid=matrix.search, missing=np.nan,
        **xgboost_types(matrix.features),
    )  # fmt: skip
    booster = xgboost.train(params, data, trees)
    text = booster.save_raw("json").decode()
    return _ranker("XGBoost unbiased", "xgboost", text, matrix, trees)


def _words(matrix: Matrix) -> list[int]:
    return [i for i, feature in enumerate(matrix.features) if feature.is_category]


def _ranker(name: str, backend: str, text: str, matrix: Matrix, trees: int) -> Ranker:
    told: dict[str, Any] = {"training": matrix.describe()}
    return Ranker(
        name, backend, text, matrix.features, queries=sketch(matrix.query_keys), trees=trees, **told
    )
