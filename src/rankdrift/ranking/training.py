"""Matrix -> Ranker: LambdaMART on clicks worth 1 / propensity. Section 5 and Appendix A."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rankdrift.core.errors import BadLog, BadOption, did_you_mean
from rankdrift.core.version import __version__
from rankdrift.log.log import Log
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.backends import Lists, Settings, grow_lightgbm, grow_xgboost
from rankdrift.ranking.gains import Beyond, as_propensities, fingerprint, weigh
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.matrix_reading import Wanted, read_matrix
from rankdrift.ranking.ranker import BACKENDS, Ranker, sketch

# What one processor compares; measured with both libraries, to tell how long it will take.
PAIRS_A_SECOND = 4e8
# Changing one of these would be another method.
FIXED = (
    "objective", "label_gain", "lambdarank_truncation_level", "sigmoid", "ndcg_exp_gain",
    "lambdarank_pair_method", "lambdarank_num_pair_per_sample", "metric", "eval_metric",
)  # fmt: skip
OWN = {
    "num_iterations": "trees", "n_estimators": "trees", "num_leaves": "leaves",
    "eta": "learning_rate", "learning_rate": "learning_rate", "max_leaves": "leaves",
    "min_data_in_leaf": "min_rows", "lambdarank_norm": "norm",
    "lambdarank_normalization": "norm", "lambdarank_score_normalization": "norm",
    "seed": "seed", "random_state": "seed", "num_threads": "threads", "nthread": "threads",
}  # fmt: skip


def train(
    data: Log | Matrix,
    *,
    propensities: Propensities | str | os.PathLike[str] | None = None,
    features: Wanted = ("f_*",),
    categorical: str | Sequence[str] = (),
    trees: int = 100,
    learning_rate: float = 0.1,
    leaves: int = 31,
    min_rows: int = 20,
    norm: bool = False,
    clip: float | None = None,
    beyond: Beyond = "error",
    pool: bool = False,
    validation: Log | Matrix | float | None = None,
    early_stopping: int | None = None,
    backend: str = "lightgbm",
    seed: int = 0,
    threads: int | None = None,
    params: Mapping[str, Any] | None = None,
    name: str | None = None,
    each: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Ranker:
    """A ranker that maximises DCG, Eq. (5), where a click at rank r is worth 1 / p_r, Eq. (6).

    Without `propensities` every click is worth 1: the biased model. Those with segments are used
    by segment, or the `pool` of all. `clip` is the largest weight a click may have. A click at a
    rank without propensity is an error, or `beyond="clip"` takes that of the nearest rank.
    `norm` tames the pull of pairs that are far apart and of searches with many clicks, as the
    libraries do by default; it is not the paper's DCG any more, but often ranks better.

    `validation`: another log or matrix, or the share of queries to set apart. With it,
    `early_stopping` ends after so many trees without a better DCG there, weighted alike.
    `params` go to the library as they are; those that make the method are refused.

    `features` and `categorical` tell how to read a log; a Matrix has its own. `each` is called
    after each tree, `say` with remarks.
    """
    settings = _settings(trees, learning_rate, leaves, min_rows, early_stopping, seed, threads,
                         norm, params)  # fmt: skip
    if backend not in BACKENDS:
        raise BadOption(
            f"No backend {backend!r}.{did_you_mean(backend, BACKENDS)} There are "
            f"{' and '.join(BACKENDS)}."
        )
    if early_stopping is not None and validation is None:
        raise BadOption(
            "early_stopping needs queries to judge by: give validation= a share, such as 0.1, or "
            "another log."
        )
    curve = as_propensities(propensities)
    told = say or (lambda _: None)
    whole = rows_to_learn(data, features, categorical, told)
    kept, apart = _validation(whole, validation, seed, told)
    # Results with equal scores keep the order of the rows: the order in which they were shown
    # would let the ranks back in.
    kept, apart = kept.shuffled(seed), apart.shuffled(seed) if apart else None
    weighed = weigh(kept, curve, clip=clip, beyond=beyond, pool=pool)
    learnt = Lists(kept, weighed.gain)
    judged = None
    if apart is not None:
        judged = Lists(apart, weigh(apart, curve, clip=clip, beyond=beyond, pool=pool).gain)
    _tell(told, kept, weighed.to_dict(), curve)
    _tell_time(told, learnt, trees)
    grow = grow_lightgbm if backend == "lightgbm" else grow_xgboost
    grown = grow(learnt, judged, settings, each)
    return Ranker(
        name=name or ("biased" if curve is None else "unbiased"),
        backend=backend,
        text=grown.text,
        features=kept.features,
        options={
            "trees": trees, "learning_rate": learning_rate, "leaves": leaves,
            "min_rows": min_rows, "norm": norm, "clip": clip, "beyond": beyond, "pool": pool,
            "early_stopping": early_stopping, "backend": backend, "seed": seed,
            "params": dict(params or {}), "version": __version__,
        },
        gains=weighed.to_dict(),
        training=whole.describe() | {"queries": kept.n_queries, "clicks": kept.n_clicks},
        propensities=fingerprint(curve) if curve else None,
        queries=sketch(whole.query_keys),
        trees=grown.trees,
        history=grown.history,
    )  # fmt: skip


def _settings(
    trees: int,
    learning_rate: float,
    leaves: int,
    min_rows: int,
    early_stopping: int | None,
    seed: int,
    threads: int | None,
    norm: bool,
    params: Mapping[str, Any] | None,
) -> Settings:
    whole = {"trees": (trees, 1), "leaves": (leaves, 2), "min_rows": (min_rows, 0),
             "early_stopping": (early_stopping, 1)}  # fmt: skip
    for name, (value, least) in whole.items():
        if value is not None and (not isinstance(value, int) or value < least):
            raise BadOption(f"{name} must be a whole number of {least} or more, not {value!r}.")
    if not 0 < learning_rate <= 1:
        raise BadOption(f"learning_rate must be above 0 and at most 1, not {learning_rate}.")
    if not 0 <= seed < 2**31:
        raise BadOption(f"seed must be from 0 to {2**31 - 1}, not {seed}.")
    for name in params or {}:
        if name in FIXED:
            raise BadOption(
                f"params may not set {name!r}: it is what makes gains count by propensity."
            )
        if name in OWN:
            raise BadOption(f"Set {OWN[name]}= rather than {name!r} in params.")
    return Settings(
        trees, learning_rate, leaves, min_rows, early_stopping, seed, threads or 0, norm,
        params or {},
    )  # fmt: skip


def rows_to_learn(
    data: Log | Matrix, features: Wanted, categorical: Any, say: Callable[[str], None]
) -> Matrix:
    """The searches that teach something: with a click and something to compare it with."""
    if isinstance(data, Log):
        matrix = read_matrix(
            data, features=features, categorical=categorical, searches="clicked", say=say
        )
    elif isinstance(data, Matrix):
        matrix = data
    else:
        raise BadOption(f"Cannot train on a {type(data).__name__}: give a Log or a Matrix.")
    for remark in matrix.remarks:
        say(remark)
    if not matrix.features:
        raise BadOption("The matrix has no features to learn from.")
    if not matrix.n_clicks:
        raise BadLog(
            f"None of the {len(matrix):,} results shown was clicked, so there is nothing to learn "
            "from. Check the column of clicks (--click)."
        )
    clicked = matrix.only_clicked()
    alone = np.diff(clicked.starts) == 1
    if alone.all():
        raise BadLog(
            f"All {len(alone):,} searches with a click show a single result, so there is nothing "
            "to compare a click with. Check the column of searches (--search)."
        )
    if alone.any():
        say(f"{alone.sum():,} of {len(alone):,} searches show a single result and were left out.")
        clicked = clicked.take(~alone[clicked.search])
    return clicked


def _validation(
    matrix: Matrix, validation: Log | Matrix | float | None, seed: int, say: Callable[[str], None]
) -> tuple[Matrix, Matrix | None]:
    if validation is None:
        return matrix, None
    if isinstance(validation, float | int):
        return matrix.split(float(validation), seed)
    apart = rows_to_learn(validation, matrix.features, (), say).with_features(matrix.features)
    share = float(np.isin(apart.query_keys, matrix.query_keys).mean())
    if share > 0:
        say(
            f"{share:.0%} of the validation queries are training queries too, which makes the "
            "model look better there than it is."
        )
    return matrix, apart


def _tell(
    say: Callable[[str], None], matrix: Matrix, gains: Mapping[str, Any], p: Propensities | None
) -> None:
    say(
        f"Learning from {matrix.n_clicks:,} clicks in {matrix.n_searches:,} searches of "
        f"{matrix.n_queries:,} queries, {len(matrix):,} rows."
    )
    if p is None:
        return
    say(
        f"Weighted by 1 / propensity (at most {gains['largest']:.3g}), they are worth "
        f"{gains['effective']:,.0f} equal ones."
    )
    if gains["clipped"]:
        say(f"{gains['clipped']:,} clicks were clipped to that weight.")
    if gains["borrowed"]:
        say(
            f"{gains['borrowed']:,} clicks are at ranks without propensity and took that of the "
            "nearest rank."
        )


def _tell_time(say: Callable[[str], None], lists: Lists, trees: int) -> None:
    """Each tree compares every result of a search with every other."""
    pairs = float((lists.sizes.astype(float) ** 2).sum()) / 2
    minutes = trees * pairs / PAIRS_A_SECOND / 60
    if minutes >= 1:
        say(
            f"Searches of up to {lists.sizes.max():,} results have {pairs:,.0f} pairs to compare, "
            f"for each of {trees} trees: about {minutes:,.0f} minutes of one processor. Leaving "
            "deep ranks out (--max-rank) makes that less."
        )
