"""The rankers that are compared: biased and unbiased ones, and the libraries' own ways.

LightGBM and XGBoost have ways of their own to learn from biased clicks: they estimate the bias of
ranks while they train. Number of trees, leaves and shrinkage are ours; all else is their default.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankdrift.core.types import Floats
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.backends import LIGHTGBM, XGBOOST, Backend, library
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.ranker import Ranker, sketch
from rankdrift.ranking.training import train

BIASED, EM, OURS, ORACLE = "biased", "EM", "ours", "oracle"
# Ours with the libraries' own damping of gradients, to hold beside their own ways.
NORMED = "ours with norm"
# Propensities learnt along with the ranker.
DUAL = "dual learning"
POSITIONS, UNBIASED = "LightGBM positions", "XGBoost unbiased"
MODELS = (BIASED, EM, OURS, ORACLE, NORMED, DUAL, POSITIONS, UNBIASED)


def trained(
    model: str, rows: Matrix, curve: Propensities | None, options: dict[str, Any]
) -> Ranker:
    """One of MODELS, learnt from these rows.

    Parameters
    ----------
    model
        Its name.
    rows
        Searches with a click.
    curve
        The propensities that it is to use; None: every click is worth 1.
    options
        Trees, seed and threads, as of `train`.
    """
    if model == POSITIONS:
        return lightgbm_positions(rows, **options)
    if model == UNBIASED:
        return xgboost_unbiased(rows, **options)
    return train(
        rows,
        propensities="dual" if model == DUAL else curve,
        beyond="clip",
        name=model,
        norm=model == NORMED,
        fixed=True,
        **options,
    )


def true_curve(values: Floats) -> Propensities:
    """The truth in the form of an estimate, relative to rank 1."""
    n = len(values)
    none = np.zeros(n, np.int64)
    return Propensities(
        ranks=np.arange(1, n + 1, dtype=np.int32),
        log_p=np.log(values / values[0]),
        deviations=np.zeros((n, 1)),
        pairs=none,
        clicks=none,
        supported=np.ones(n, bool),
        reference=1,
        method="truth",
        errors="none",
    )


def lightgbm_positions(
    matrix: Matrix,
    *,
    trees: int = 100,
    learning_rate: float = 0.1,
    leaves: int = 31,
    min_rows: int = 20,
    seed: int = 0,
    threads: int | None = None,
) -> Ranker:
    """LambdaMART with LightGBM's `position` of each row: a bias of each, added to its score."""
    params = {
        "objective": "lambdarank",
        "learning_rate": learning_rate,
        "num_leaves": leaves,
        "min_data_in_leaf": min_rows,
        "seed": seed,
        "num_threads": threads or 0,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    data = LIGHTGBM.dataset(matrix, matrix.click.astype(np.int32), position=matrix.rank)
    booster = library("lightgbm").train(params, data, trees)
    return _ranker(POSITIONS, LIGHTGBM, booster.model_to_string(), matrix, trees)


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
    return _ranker(UNBIASED, XGBOOST, text, matrix, trees)


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
