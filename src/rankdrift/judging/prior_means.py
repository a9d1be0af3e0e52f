"""What a pair's relevance is expected to be before its own clicks are looked at.

By default it is what pairs are like that are usually shown at such ranks: where the ranker puts a
doc tells what the ranker knows of it. The other docs of its query tell more, and so do features, or
the score of an old ranker, by trees that are learnt on other queries.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.types import Bools, Floats
from rankdrift.core.words import verb
from rankdrift.judging.statistics import Statistics
from rankdrift.log.log import Log
from rankdrift.ranking.backends import library
from rankdrift.ranking.matrix_reading import NUMBERS, Wanted, as_number, resolve_features

FOLDS = 5  # of queries: the trees for one are learnt on the others
TREES, LEAVES, RATE, MIN_ROWS = 100, 8, 0.1, 100
_WORTH = np.geomspace(0.25, 256, 11)  # clicks that the level of all queries may be worth
_STEPS, _RIDGE = 50, 1.0  # of Newton; clicks' worth of doubt that ranks matter at all
_RANGE = (-30.0, 5.0)  # of logs, on the way
_SETTLED = 1e-8  # of a step of Newton
_HIGHEST = 0.98  # no pair is expected to be more relevant
_LOWEST = 1e-6
_LEAST = 0.1  # of clicks expected, however far below 0 those are that need no relevance
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


def rank_level(found: Statistics) -> tuple[Floats, Floats]:
    """What pairs are like that are usually shown at such ranks, and so often: for each of the pairs
    (N,), and for the bins of the rest (B,).

    A Poisson regression of clicks with exposure as its offset, on two logs and their squares: the
    mean propensity of a pair's appearances, and how often it was shown compared with other docs of
    its query. Five numbers for all pairs, so that none sees its own clicks in it.
    """
    rest = found.rest
    exposure = np.concatenate([found.exposure, rest["exposure"]])
    shown = np.concatenate([found.appearances, rest["appearances"]])
    share = np.concatenate([found.share, rest["share"] / rest["pairs"]])
    clicks = np.concatenate([found.clicks, np.zeros(len(rest["pairs"]))])
    usual, often = (_standard(np.log(x), exposure, clicks > 0) for x in (exposure / shown, share))
    basis = np.stack([np.ones(len(usual)), usual, usual**2, often, often**2], axis=1)
    doubt = np.diag([0.0, _RIDGE, _RIDGE, _RIDGE, _RIDGE])
    at = np.array([np.log(found.click_rate), 0.0, 0.0, 0.0, 0.0])
    trust = np.zeros(len(clicks))
    if found.trust is not None:
        trust = np.concatenate([found.trust, rest["trust"]])
    for _ in range(_STEPS):
        expected = exposure * np.exp(np.clip(basis @ at, *_RANGE))
        own = expected / np.maximum(expected + trust, _LEAST * expected)  # the share of relevance
        slope = basis.T @ (own * (clicks - trust - expected)) - doubt @ at
        step = np.linalg.solve((basis * (own * expected)[:, None]).T @ basis + doubt, slope)
        at = at + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < _SETTLED:
            break
    level = _bounded(np.exp(basis @ at))
    return level[: len(found)], level[len(found) :]


def _standard(x: Floats, weight: Floats, clicked: Bools) -> Floats:
    """In standard deviations from the mean, no further than pairs with clicks go."""
    mean = float((x * weight).sum() / weight.sum())
    spread = float(np.sqrt((weight * (x - mean) ** 2).sum() / weight.sum()))
    return np.asarray(np.clip(x, *np.quantile(x[clicked], (0.01, 0.99))) - mean) / max(spread, 1e-9)


def query_level(found: Statistics, start: Floats) -> tuple[Floats, Floats]:
    """What the *other* pairs of its query say of each pair: a mean (N,), and the variance (N,) of
    its log.

    It is `start` times their clicks over those that `start` expects of them, as if so many had been
    clicked as expected besides, as many as tell the clicks best: a Gamma prior of queries, whose
    posterior has as its shape the clicks and those besides.

    Parameters
    ----------
    found
        What the log says of every pair.
    start
        (N,): the mean that is expected whatever the query.
    """
    from scipy.special import digamma, polygamma

    expected = start * found.exposure
    totals = [
        np.bincount(found.query, values, minlength=len(found.queries))[found.query] - values
        for values in (found.clicks, expected)
    ]
    clicks, wanted = (np.maximum(total, 0.0) for total in totals)
    levels = [(clicks + worth) / (wanted + worth) for worth in _WORTH]
    fits = [(found.clicks * np.log(level) - expected * level).sum() for level in levels]
    worth = _WORTH[int(np.argmax(fits))]
    shape = clicks + worth
    level = np.exp(digamma(shape)) / (wanted + worth)
    return _bounded(start * level), np.asarray(polygamma(1, shape))


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
            f"Features are learnt from {FOLDS} queries or more, and there "
            f"{verb(len(found.queries), 'is', 'are')} {len(found.queries):,}: too few to learn "
            "from features. Judge without --features."
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
