"""LambdaMART in two libraries, made to optimise DCG of given gains exactly, at native speed.

Both minimise over pairs of a search the logistic loss log(1 + exp(-(s_i - s_j))), weighted by how
much swapping the two changes the metric. Both only know NDCG, which divides by the search's
ideal DCG; a weight of the ideal DCG on the search takes that back, and the metric is DCG, Eq. (5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.types import Floats
from rankdrift.ranking.gains import ideal_dcg
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.ranker import library, plain_names, xgboost_types

# Of the logistic loss: both libraries' default, and fixed in XGBoost.
SIGMOID = 1.0
# LightGBM keeps a table of so many discounts.
LONGEST = 10_000


@dataclass(frozen=True)
class Lists:
    """Rows to learn from with the gain (N,) of each."""

    matrix: Matrix
    gain: Floats

    @property
    def sizes(self) -> Any:
        return np.diff(self.matrix.starts)

    @property
    def ideal(self) -> Floats:
        return ideal_dcg(self.gain, self.matrix.search, self.matrix.n_searches)


@dataclass(frozen=True)
class Settings:
    trees: int
    learning_rate: float
    leaves: int
    min_rows: int
    early_stopping: int | None
    seed: int
    threads: int
    norm: bool
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Grown:
    """The model's text, how many of its trees to use, and the metric after each tree."""

    text: str
    trees: int
    history: tuple[float, ...]


Each = Callable[[int], None]


def labels(gain: Floats, table: Floats) -> Any:
    """The place of each gain in the table: LightGBM takes labels that are whole numbers."""
    return np.searchsorted(table, gain).astype(np.int32)


def lightgbm_params(sizes: Any, table: Floats) -> dict[str, Any]:
    """What makes LightGBM's lambdarank optimise DCG of the gains in `table`."""
    return {
        "objective": "lambdarank",
        "label_gain": table.tolist(),
        "lambdarank_norm": False,
        # Pairs whose better one is deeper than this would be left out.
        "lambdarank_truncation_level": int(sizes.max()),
        "sigmoid": SIGMOID,
    }


def xgboost_params(sizes: Any) -> dict[str, Any]:
    return {
        "objective": "rank:ndcg",
        "ndcg_exp_gain": False,
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": int(sizes.max()),
        "lambdarank_normalization": False,
        "lambdarank_score_normalization": False,
    }


def grow_lightgbm(
    train: Lists, valid: Lists | None, settings: Settings, each: Each | None
) -> Grown:
    lightgbm = library("lightgbm")
    gains = [train.gain] + ([valid.gain] if valid else [])
    table = np.unique(np.concatenate([[0.0], *gains]))
    longest = train.sizes if valid is None else np.concatenate([train.sizes, valid.sizes])
    if longest.max() > LONGEST:
        raise BadOption(
            f"A search has {longest.max():,} results; LightGBM takes {LONGEST:,} at most. Leave "
            "deep ranks out (--max-rank), or name the column of searches (--search)."
        )
    params = lightgbm_params(longest, table) | {
        "lambdarank_norm": settings.norm,
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.leaves,
        "min_data_in_leaf": settings.min_rows,
        "seed": settings.seed,
        "num_threads": settings.threads,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
        # Weighted by the ideal DCG, the mean NDCG is the sum of DCG over the ideal sum.
        "metric": ["ndcg"] if valid else ["none"],
        "eval_at": [int(longest.max())],
        **settings.params,
    }
    names = plain_names(train.matrix.features)
    words = [i for i, f in enumerate(train.matrix.features) if f.is_category]

    def dataset(lists: Lists, **more: Any) -> Any:
        return lightgbm.Dataset(
            lists.matrix.x, labels(lists.gain, table), weight=lists.ideal[lists.matrix.search],
            group=lists.sizes, feature_name=names, categorical_feature=words,
            params={"verbosity": -1}, **more,
        )  # fmt: skip

    history: dict[str, dict[str, list[float]]] = {}
    callbacks: list[Any] = [lightgbm.record_evaluation(history)] if valid else []
    if each:
        callbacks.append(lambda env: each(env.iteration + 1))
    if valid and settings.early_stopping:
        callbacks.append(lightgbm.early_stopping(settings.early_stopping, verbose=False))
    learnt = dataset(train)
    with _refusals("LightGBM"):
        booster = lightgbm.train(
            params, learnt, settings.trees, callbacks=callbacks,
            valid_sets=[dataset(valid, reference=learnt)] if valid else None,
            valid_names=["validation"] if valid else None,
        )  # fmt: skip
    path = next(iter(history.get("validation", {"": []}).values()))
    trees = booster.best_iteration or booster.num_trees()
    return Grown(booster.model_to_string(num_iteration=trees), trees, tuple(map(float, path)))


def grow_xgboost(train: Lists, valid: Lists | None, settings: Settings, each: Each | None) -> Grown:
    xgboost = library("xgboost")
    longest = train.sizes if valid is None else np.concatenate([train.sizes, valid.sizes])
    params = xgboost_params(longest) | {
        "lambdarank_normalization": settings.norm,
        "lambdarank_score_normalization": settings.norm,
        "learning_rate": settings.learning_rate,
        # As LightGBM: leaf by leaf, no penalty. XGBoost cannot count the rows of a leaf.
        "grow_policy": "lossguide",
        "max_leaves": settings.leaves,
        "max_depth": 0,
        "reg_lambda": 0.0,
        "min_child_weight": 1e-3,
        "tree_method": "hist",
        "base_score": 0.0,
        "seed": settings.seed,
        "verbosity": 0,
        "eval_metric": "ndcg",
        **({"nthread": settings.threads} if settings.threads else {}),
        **settings.params,
    }

    def dataset(lists: Lists) -> Any:
        matrix = lists.matrix
        types = xgboost_types(train.matrix.features)
        found = xgboost.DMatrix(
            matrix.x, lists.gain.astype(np.float32), weight=lists.ideal, missing=np.nan,
            qid=matrix.search, **types,
        )  # fmt: skip
        return found

    # mypy does not know xgboost, which is imported where it is used.
    class Count(xgboost.callback.TrainingCallback):  # type: ignore[misc,name-defined]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            if each:
                each(epoch + 1)
            return False

    history: dict[str, dict[str, list[float]]] = {}
    with _refusals("XGBoost"):
        booster = xgboost.train(
            params, dataset(train), settings.trees,
            evals=[(dataset(valid), "validation")] if valid else [],
            evals_result=history, verbose_eval=False, callbacks=[Count()],
            early_stopping_rounds=settings.early_stopping if valid else None,
        )  # fmt: skip
    trees = settings.trees
    if valid and settings.early_stopping:
        trees = int(booster.best_iteration) + 1
    path = next(iter(history.get("validation", {"": []}).values()))
    text = booster[:trees].save_raw("json").decode()
    return Grown(text, trees, tuple(map(float, path)))


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    """What a library refuses, such as an unknown value of one of its params, said as our own."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ not in ("LightGBMError", "XGBoostError"):
            raise
        first = next(line for line in [*str(error).splitlines(), "no reason"] if line.strip())
        raise BadOption(f"{name} refuses: {first.strip()[:300]}") from None
