"""What a pair's relevance is expected to be before its own clicks are looked at.

By default the same for all: clicks over exposure. The other docs of its query tell more, and so do
features, or the score of an old ranker, by trees that are learnt on other queries.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.types import Floats
from rankdrift.judging.statistics import Statistics
from rankdrift.log.log import Log
from rankdrift.ranking.backends import library
from rankdrift.ranking.matrix_reading import NUMBERS, Wanted, as_number, resolve_features

FOLDS = 5  # of queries: the trees for one are learnt on the others
TREES, LEAVES, RATE, MIN_ROWS = 100, 8, 0.1, 100
_WORTH = np.geomspace(0.25, 256, 11)  # clicks that the mean of all pairs may be worth, for a query
_HIGHEST = 0.98  # no pair is expected to be more relevant
_LOWEST = 1e-6
_FEW = 50_000  # pairs for which threads would wait for each other longer than they work


def feature_sql(log: Log, features: Wanted) -> dict[str, str]:
    """Name -> SQL of each feature on the source; BadOption for one that is no number.

    Parameters
    ----------
    log
        From `read_log`.
    features
        Names of columns or patterns, such as `f_*`.
    """
    columns, d = log.engine.columns, log.engine.dialect
    wanted = resolve_features(log, features)
    words = [name for name in wanted if columns[name].kind not in NUMBERS]
    if words:
        raise BadOption(
            f"The feature {words[0]!r} is no number ({columns[words[0]].kind}), and has no mean "
            "over a pair's appearances. Leave it out, or make a number of it."
        )
    return {
        name: as_number(f"CAST({d.quote(*columns[name].path)} AS {d.double})") for name in wanted
    }


def query_level(found: Statistics) -> tuple[Floats, Floats]:
    """What the *other* pairs of its query say of each pair: a mean (N,), and the variance (N,) of
    its log.

    It is their clicks over their exposure, as if the mean of all pairs had been seen besides, as
    much of it as tells the clicks best: a Gamma prior of queries, whose posterior has as its shape
    the clicks and those that the mean of all is worth.
    """
    from scipy.special import digamma, polygamma

    mean = found.click_rate
    totals = [
        np.bincount(found.query, values, minlength=len(found.queries))[found.query] - values
        for values in (found.clicks, found.exposure)
    ]
    clicks, exposure = (np.maximum(total, 0.0) for total in totals)
    others = [(clicks + worth) / (exposure + worth / mean) for worth in _WORTH]
    fits = [(found.clicks * np.log(m) - found.exposure * m).sum() for m in others]
    worth = _WORTH[int(np.argmax(fits))]
    shape = clicks + worth
    typical = np.exp(digamma(shape)) / (exposure + worth / mean)
    return _bounded(typical), np.asarray(polygamma(1, shape))


def learnt_means(found: Statistics, start: Floats, seed: int = 0) -> Floats:
    """(N,): what features say, by trees that were learnt on other queries.

    Parameters
    ----------
    found
        With features.
    start
        (N,): the mean that is expected without features.
    seed
        Of the folds and the trees.
    """
    lightgbm = library("lightgbm")
    # Exposure is of other ranks and numbers of them for each pair; the trees learn clicks by it.
    offset = np.log(found.exposure * start)
    order = np.random.default_rng(seed).permutation(len(found.queries))
    fold = (order % FOLDS)[found.query]
    if len(np.unique(fold)) < FOLDS:
        raise BadOption(
            f"{len(found.queries):,} queries are too few to learn from features: at least {FOLDS} "
            "are needed. Judge without --features."
        )
    params: Mapping[str, object] = {
        "objective": "poisson",
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "min_data_in_leaf": MIN_ROWS,
        "seed": seed,
        "num_threads": 1 if len(found) < _FEW else 0,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
    means = np.empty(len(found))
    for held in range(FOLDS):
        learn = fold != held
        data = lightgbm.Dataset(
            found.features[learn], found.clicks[learn], init_score=offset[learn]
        )
        trees = lightgbm.train(dict(params), data, TREES)
        raw = trees.predict(found.features[~learn], raw_score=True)
        means[~learn] = start[~learn] * np.exp(raw)
    return _bounded(means)


def _bounded(means: Floats) -> Floats:
    return np.asarray(np.clip(means, _LOWEST, _HIGHEST))
