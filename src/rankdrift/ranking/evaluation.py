"""Rankers, Log -> Comparison: who tells clicked results from others, when all had the same rank?

At a fixed rank every result was as likely to be looked at as any other, so no propensity is
needed to judge, and none can flatter the model that was trained with it. Section 5, Table 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rankdrift.core.errors import BadLog, BadOption, did_you_mean
from rankdrift.core.naming import names_checked
from rankdrift.core.types import Bools, Floats, Indices
from rankdrift.log.log import Log
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.auc import Sorted, draw, sort
from rankdrift.ranking.comparison import AtRank, Comparison, Improvement, Measure
from rankdrift.ranking.gains import Beyond, as_propensities, fingerprint, weigh
from rankdrift.ranking.matrix import Feature, Matrix
from rankdrift.ranking.matrix_reading import read_matrix
from rankdrift.ranking.measures import Sums, measures
from rankdrift.ranking.ranker import Ranker, shared_queries

RANKS = (1, 2, 4, 8, 16, 32)
# Samples drawn at once: so many that arrays stay within the processor's caches.
CHUNK = 64
# Fewer samples with a value than this, and there is no spread to speak of.
ENOUGH = 20

Models = Ranker | Sequence[Ranker] | Mapping[str, Ranker | ArrayLike]
"""One ranker, several, or by name; a value may also be an array of scores, one a row."""
Named = Mapping[str, Ranker | ArrayLike]


@names_checked
def evaluate(
    rankers: Models,
    data: Log | Matrix,
    *,
    ranks: Sequence[int] = RANKS,
    bootstrap: int = 1000,
    baseline: str | Sequence[str] | None = None,
    propensities: Propensities | str | os.PathLike[str] | None = None,
    clip: float | None = None,
    beyond: Beyond = "error",
    pool: bool = False,
    relevance: str | None = None,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> Comparison:
    """Judge rankers among results shown at the same rank: who tells the clicked ones?

    That is the AUC of each model at each of `ranks`, and how much better each is than each
    `baseline`. Improvements are relative, with mean and standard deviation over samples of
    queries, the same samples for all models, and a two-sided p-value.

    Parameters
    ----------
    rankers
        One, several, or by name; a value may also be an array of scores, one a row of a
        Matrix.
    data
        Results shown that the rankers did not learn from, best on later days.
    ranks
        To judge at.
    bootstrap
        Samples of queries.
    baseline
        The models to improve on; by default the first.
    propensities
        With them there are DCG, MRR and mean rank of clicks, each weighted by 1 / p,
        too.
    clip, beyond, pool
        As in `train`, for the weights.
    relevance
        A column of true relevance: with it (or a Matrix that has it), there are true DCG
        and NDCG too.
    seed
        Of the samples.
    say
        Called with remarks.

    Returns
    -------
    Comparison
        By rank, over all ranks and by every measure.

    Raises
    ------
    BadLog
        If nothing was clicked.
    """
    models = _named(rankers)
    baselines = _baselines(models, baseline)
    wanted = _ranks(ranks)
    if not isinstance(bootstrap, int) or bootstrap < 2:
        raise BadOption(f"bootstrap must be a whole number of 2 or more, not {bootstrap!r}.")
    if not isinstance(seed, int) or seed < 0:
        raise BadOption(f"seed must be a whole number from 0, not {seed!r}.")
    curve = as_propensities(propensities)
    if curve is None and clip is not None:
        raise BadOption(
            "clip limits 1 / propensity in the weighted measures: give propensities too."
        )
    whole = curve is not None or relevance is not None
    matrix = _rows(models, data, relevance, None if whole else wanted, say)
    shown, clicks = len(matrix), matrix.n_clicks
    if isinstance(data, Log) and matrix.funnel:  # rows at other ranks were counted, but not read
        shown, clicks = matrix.funnel.used.rows, matrix.funnel.used.clicks
    if not clicks:
        raise BadLog(
            f"None of the {shown:,} results shown was clicked, so models cannot be judged. Check "
            "the column of clicks (--click)."
        )
    if matrix.relevance is not None and not (matrix.relevance > 0).any():
        raise BadOption(
            f"The relevance is 0 in all {len(matrix):,} rows, so that every order is as good as "
            "any. Name another column, or none (--relevance)."
        )
    scores = {name: _score(name, model, matrix) for name, model in models.items()}
    gains = weigh(matrix, curve, clip=clip, beyond=beyond, pool=pool).gain if curve else None
    places = {rank: np.flatnonzero(matrix.rank == rank) for rank in wanted}
    gaps = {rank: _gap(matrix.click[rows], rank) for rank, rows in places.items()}
    order = {
        (rank, name): sort(score[places[rank]], matrix.click[places[rank]])
        for rank in wanted
        if not gaps[rank]
        for name, score in scores.items()
    }
    sums = {name: measures(matrix, score, gains, seed) for name, score in scores.items()}
    samples = _samples(matrix, places, order, sums, bootstrap, seed)
    at_rank = tuple(
        AtRank(
            rank,
            rows=len(places[rank]),
            clicks=int(matrix.click[places[rank]].sum()),
            gap=gaps[rank],
            auc={n: _auc(order[rank, n]) for n in models if (rank, n) in order},
            improvements=_improvements(
                {n: samples.auc[rank, n] for n in models if (rank, n) in order}, baselines
            ),
        )
        for rank in wanted
    )
    return Comparison(
        models=tuple(models),
        baselines=baselines,
        at_rank=at_rank,
        overall=_overall(samples.auc, at_rank, tuple(models), baselines),
        measures=_measures(sums, samples.measures, baselines),
        bootstrap=bootstrap,
        seed=seed,
        queries=matrix.n_queries,
        data=matrix.describe(),
        propensities=fingerprint(curve) if curve else None,
        remarks=tuple(_remarks(models, matrix, curve)),
    )


# -- what was asked for ----------------------------------------------------------------------------


def _named(rankers: Models) -> dict[str, Ranker | ArrayLike]:
    """By name; a number tells equal names apart."""
    models: dict[str, Ranker | ArrayLike] = {}
    if isinstance(rankers, Mapping):
        models.update(rankers)
    else:
        several = [rankers] if isinstance(rankers, Ranker) else list(rankers)
        for ranker in several:
            if not isinstance(ranker, Ranker):
                raise BadOption(
                    f"Cannot judge a {type(ranker).__name__}. Give rankers, or by name a ranker or "
                    "an array of scores."
                )
            name, more = ranker.name, 2
            while name in models:
                name, more = f"{ranker.name} ({more})", more + 1
            models[name] = ranker
    if not models:
        raise BadOption("No model to judge was given.")
    return models


def _baselines(models: Named, baseline: str | Sequence[str] | None) -> tuple[str, ...]:
    if baseline is None:
        return (next(iter(models)),) if len(models) > 1 else ()
    names = (baseline,) if isinstance(baseline, str) else tuple(baseline)
    for name in names:
        if name not in models:
            raise BadOption(
                f"The baseline {name!r} is none of the models.{did_you_mean(name, models)} They "
                f"are {', '.join(models)}."
            )
    return names


def _ranks(ranks: Sequence[int]) -> tuple[int, ...]:
    found = tuple(ranks)
    if not found or not all(isinstance(r, int | np.integer) and r >= 1 for r in found):
        raise BadOption(f"ranks must be whole numbers from 1, not {ranks!r}.")
    return tuple(sorted({int(r) for r in found}))


def _rows(
    models: Named,
    data: Log | Matrix,
    relevance: str | None,
    ranks: tuple[int, ...] | None,
    say: Callable[[str], None] | None,
) -> Matrix:
    if isinstance(data, Matrix):
        if relevance is not None and data.relevance is None:
            raise BadOption(
                f"The matrix has no relevance, which {relevance!r} is asked for. Read it with "
                "relevance=, or give the log instead."
            )
        return data
    if not isinstance(data, Log):
        raise BadOption(f"Cannot judge on a {type(data).__name__}: give a Log or a Matrix.")
    features: dict[str, Feature] = {}
    for name, model in models.items():
        if not isinstance(model, Ranker):
            raise BadOption(f"Scores of {name!r} need a Matrix, whose rows they go with.")
        features |= {feature.name: feature for feature in model.features}
    words = [f.name for f in features.values() if f.is_category]
    return read_matrix(
        data, features=list(features), categorical=words, relevance=relevance, ranks=ranks, say=say
    )


def _score(name: str, model: Ranker | ArrayLike, matrix: Matrix) -> Floats:
    if isinstance(model, Ranker):
        return model.predict(matrix)
    score = np.asarray(model, dtype=float)
    if score.shape != matrix.rank.shape or not np.isfinite(score).all():
        raise BadOption(
            f"The scores of {name!r} must be one number a row ({len(matrix):,}), none missing; "
            f"their shape is {score.shape}."
        )
    return score


def _gap(click: Bools, rank: int) -> str | None:
    """Why there is no AUC at a rank, if so."""
    if not len(click):
        return f"no result was shown at rank {rank}"
    if not click.any():
        return f"none of {len(click):,} results at rank {rank} was clicked"
    if click.all():
        return f"all {len(click):,} results at rank {rank} were clicked"
    return None


# -- samples of queries ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Samples:
    """auc: (B,) by rank and model; measures: (B,) by measure and model."""

    auc: dict[tuple[int, str], Floats]
    measures: dict[tuple[str, str], Floats]


def _samples(
    matrix: Matrix,
    places: Mapping[int, Indices],
    order: Mapping[tuple[int, str], Sorted],
    sums: Mapping[str, Mapping[str, Sums]],
    bootstrap: int,
    seed: int,
) -> _Samples:
    rng = np.random.default_rng(seed)
    auc: dict[tuple[int, str], list[Floats]] = {key: [] for key in order}
    found: dict[tuple[str, str], list[Floats]] = {}
    for first in range(0, bootstrap, CHUNK):
        drawn = draw(matrix.n_queries, min(CHUNK, bootstrap - first), rng)  # (Q, b)
        for rank, rows in places.items():
            if not any(key[0] == rank for key in order):
                continue
            weight = drawn[matrix.query[rows]]
            for name in sums:
                auc[rank, name].append(order[rank, name].auc(weight))
        for name, by_measure in sums.items():
            for measure, total in by_measure.items():
                found.setdefault((measure, name), []).append(total.of(drawn))
    return _Samples(
        {key: np.concatenate(chunks) for key, chunks in auc.items()},
        {key: np.concatenate(chunks) for key, chunks in found.items()},
    )


def _auc(order: Sorted) -> float:
    ones = np.ones((len(order.clicked) + len(order.others), 1))
    return float(order.auc(ones)[0])


def _improvements(
    samples: Mapping[str, Floats], baselines: tuple[str, ...], less_is_better: bool = False
) -> dict[tuple[str, str], Improvement]:
    """By (model, baseline): the relative improvement, from both on the same samples."""
    sign = -1.0 if less_is_better else 1.0
    with np.errstate(divide="ignore", invalid="ignore"):  # a sample in which the baseline has 0
        return {
            (name, base): found
            for base in baselines
            if base in samples
            for name, values in samples.items()
            if name != base
            if (found := _improvement(sign * (values / samples[base] - 1))) is not None
        }


def _improvement(samples: Floats) -> Improvement | None:
    there = samples[np.isfinite(samples)]
    if len(there) < min(ENOUGH, len(samples)):
        return None
    # Twice the share of samples beyond zero on the side where fewer are; never below 1 / B.
    beyond = min(int((there <= 0).sum()), int((there >= 0).sum()))
    return Improvement(
        mean=float(there.mean()),
        sd=float(there.std(ddof=1)),
        p_value=min(1.0, 2 * (beyond + 1) / (len(there) + 1)),
        samples=len(there),
    )


def _overall(
    auc: Mapping[tuple[int, str], Floats],
    at_rank: Sequence[AtRank],
    models: tuple[str, ...],
    baselines: tuple[str, ...],
) -> dict[tuple[str, str], Improvement]:
    """Improvement of the mean AUC over ranks, weighted by their clicks."""
    judged = [at for at in at_rank if not at.gap]
    if not judged:
        return {}
    weight = np.array([at.clicks for at in judged], float)
    weight /= weight.sum()
    mean = {
        name: sum((w * auc[at.rank, name] for w, at in zip(weight, judged, strict=True)), 0.0)
        for name in models
    }
    return _improvements({n: np.asarray(v) for n, v in mean.items()}, baselines)


def _measures(
    sums: Mapping[str, Mapping[str, Sums]],
    samples: Mapping[tuple[str, str], Floats],
    baselines: tuple[str, ...],
) -> tuple[Measure, ...]:
    names = next(iter(sums.values()))
    return tuple(
        Measure(
            measure,
            value={name: by[measure].value for name, by in sums.items()},
            improvements=_improvements(
                {name: samples[measure, name] for name in sums}, baselines, first.less_is_better
            ),
            less_is_better=first.less_is_better,
        )
        for measure, first in names.items()
    )


def _remarks(models: Named, matrix: Matrix, curve: Propensities | None) -> list[str]:
    remarks = list(matrix.remarks)
    for name, model in models.items():
        if not isinstance(model, Ranker):
            continue
        share = shared_queries(model, matrix.query_keys)
        if share:
            remarks.append(
                f"About {share:.0%} of these queries are among those {name} was trained on, which "
                "flatters it. Judge on other queries, or at least on later days."
            )
        if curve is not None and model.propensities == fingerprint(curve):
            remarks.append(
                f"{name} was trained with these very propensities: measures weighted by them "
                "favour it if they are wrong. Rely on AUC at fixed ranks."
            )
    return remarks
