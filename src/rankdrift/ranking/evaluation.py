"""Rankers, Log -> Comparison: who tells clicked results from others, when all had the same rank?

At a fixed rank every result was as likely to be looked at as any other, so no propensity is
needed to judge, and none can flatter the model that was trained with it. Section 5, Table 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rankdrift.core.errors import BadLog, BadOption, did_you_mean
from rankdrift.core.naming import names_checked
from rankdrift.core.types import Bools, Floats, Indices
from rankdrift.log.log import Log
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.auc import Sorted, draw, sort
from rankdrift.ranking.comparison import (
    ROBUST_DCG,
    WEIGHTED_DCG,
    AtRank,
    Comparison,
    Improvement,
    Measure,
)
from rankdrift.ranking.doubting import Robust, by_steepness, make_robust
from rankdrift.ranking.gains import (
    Beyond,
    OtherCurves,
    as_propensities,
    fingerprint,
    other_curves,
    refuse_trust,
    weigh,
)
from rankdrift.ranking.matrix import Feature, Matrix
from rankdrift.ranking.matrix_reading import read_matrix
from rankdrift.ranking.measures import Sums, measures
from rankdrift.ranking.ranker import Ranker, shared_queries

RANKS = (1, 2, 4, 8, 16, 32)
# Samples drawn at once: so many that arrays stay within the processor's caches.
CHUNK = 64
# Fewer samples with a value than this, and there is no spread to speak of.
ENOUGH = 20
# Other curves to see how far off weighted measures may be, where queries are not sampled.
CURVES = 1000

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
        Samples of queries; 0: none, but deviations to first order, DeLong's for AUC, which are the
        same for many queries and take no time.
    baseline
        The models to improve on; by default the first.
    propensities
        With them there are DCG, MRR and mean rank of clicks, each weighted by 1 / p, too, and
        robust DCG, whose clicks weigh 2 at most and which takes the rest from what features
        expect. Each sample of queries is weighed by another curve, drawn from the errors of the
        propensities, so that deviations have both in them.
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
    if not isinstance(bootstrap, int) or bootstrap < 0 or bootstrap == 1:
        raise BadOption(
            f"bootstrap must be a whole number of 2 or more, or 0 for DeLong's deviations without "
            f"samples, not {bootstrap!r}."
        )
    if not isinstance(seed, int) or seed < 0:
        raise BadOption(f"seed must be a whole number from 0, not {seed!r}.")
    curve = as_propensities(propensities)
    refuse_trust(curve, "evaluate")
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
    how: dict[str, Any] = {"clip": clip, "beyond": beyond, "pool": pool}
    gains = weigh(matrix, curve, **how).gain if curve else None
    others = other_curves(matrix, curve, **how) if curve else None
    places = {rank: np.flatnonzero(matrix.rank == rank) for rank in wanted}
    gaps = {rank: _gap(matrix.click[rows], rank) for rank, rows in places.items()}
    order = {
        (rank, name): sort(score[places[rank]], matrix.click[places[rank]])
        for rank in wanted
        if not gaps[rank]
        for name, score in scores.items()
    }
    sums = {name: measures(matrix, score, gains, seed, others) for name, score in scores.items()}
    robust = make_robust(models, matrix, curve, pool=pool, seed=seed) if curve else None
    if robust:
        sums = {
            name: {
                WEIGHTED_DCG: found[WEIGHTED_DCG],
                ROBUST_DCG: robust.dcg(matrix, scores[name], seed),
                **found,
            }
            for name, found in sums.items()
        }
    if bootstrap:
        spread = _by_samples(matrix, places, order, sums, others, robust, bootstrap, seed)
    else:
        spread = _by_influence(matrix, places, order, sums, others, robust, seed)
    steepness = {}
    if curve:
        unlimited = weigh(matrix, curve, beyond=beyond, pool=pool).gain
        steepness = by_steepness(matrix, scores, unlimited, baselines, clip, seed)
    at_rank = tuple(
        AtRank(
            rank,
            rows=len(places[rank]),
            clicks=int(matrix.click[places[rank]].sum()),
            gap=gaps[rank],
            auc={n: _auc(order[rank, n]) for n in models if (rank, n) in order},
            improvements=_improvements(
                {n: spread.auc[rank, n] for n in models if (rank, n) in order}, baselines
            ),
        )
        for rank in wanted
    )
    return Comparison(
        models=tuple(models),
        baselines=baselines,
        at_rank=at_rank,
        overall=_overall(spread.auc, at_rank, tuple(models), baselines),
        measures=_measures(sums, spread.measures, baselines),
        bootstrap=bootstrap,
        seed=seed,
        queries=matrix.n_queries,
        data=matrix.describe(),
        propensities=fingerprint(curve) if curve else None,
        with_curve_errors=others is not None,
        remarks=tuple(_remarks(models, matrix, curve)),
        by_steepness=steepness,
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


# -- how far off it may be ------------------------------------------------------------------------


class _Value(Protocol):
    """A model's AUC or measure with what tells how far off it may be."""

    def over(self, base: Any, sign: float) -> Improvement | None:
        """The relative improvement over the same of another model; sign: -1 if less is better."""
        ...

    def __mul__(self, factor: float) -> Any: ...

    def __add__(self, other: Any) -> Any: ...


@dataclass(frozen=True)
class _Sampled:
    """(B,): the value in each sample of queries, the same samples for all models."""

    values: Floats

    def over(self, base: _Sampled, sign: float) -> Improvement | None:
        with np.errstate(divide="ignore", invalid="ignore"):  # samples in which the base has 0
            return _improvement(sign * (self.values / base.values - 1))

    def __mul__(self, factor: float) -> _Sampled:
        return _Sampled(factor * self.values)

    def __add__(self, other: _Sampled) -> _Sampled:
        return _Sampled(self.values + other.values)


@dataclass(frozen=True)
class _Moved:
    """value; influence (Q,): how it moves with each query; by_curve (B,): what it would be by
    other curves, the same for all models, or nothing."""

    value: float
    influence: Floats
    by_curve: Floats = field(default_factory=lambda: np.empty(0))

    def over(self, base: _Moved, sign: float) -> Improvement | None:
        if not base.value > 0 or len(self.influence) < 2:
            return None
        moved = (self.influence - self.value / base.value * base.influence) / base.value
        n = len(moved)
        variance = float((moved**2).sum()) * n / (n - 1)
        if len(self.by_curve):
            variance += float((self.by_curve / base.by_curve).var(ddof=1))
        return Improvement.by_normal(sign * (self.value / base.value - 1), variance**0.5)

    def __mul__(self, factor: float) -> _Moved:
        return _Moved(factor * self.value, factor * self.influence)

    def __add__(self, other: _Moved) -> _Moved:
        return _Moved(self.value + other.value, self.influence + other.influence)


@dataclass(frozen=True)
class _Spread:
    """By rank and model, and by measure and model."""

    auc: Mapping[tuple[int, str], _Value]
    measures: Mapping[tuple[str, str], _Value]


def _by_samples(
    matrix: Matrix,
    places: Mapping[int, Indices],
    order: Mapping[tuple[int, str], Sorted],
    sums: Mapping[str, Mapping[str, Sums]],
    others: OtherCurves | None,
    robust: Robust | None,
    bootstrap: int,
    seed: int,
) -> _Spread:
    rng = np.random.default_rng(seed)
    of_curves = np.random.default_rng([seed, 1])
    of_robust = np.random.default_rng([seed, 2])
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
        weights = others.draw(drawn.shape[1], of_curves) if others else None
        calm = robust.draw(drawn.shape[1], of_robust) if robust else None
        for name, by_measure in sums.items():
            for measure, total in by_measure.items():
                how = (calm or ()) if measure == ROBUST_DCG else (weights,)
                found.setdefault((measure, name), []).append(total.of(drawn, *how))
    return _Spread(
        {key: _Sampled(np.concatenate(chunks)) for key, chunks in auc.items()},
        {key: _Sampled(np.concatenate(chunks)) for key, chunks in found.items()},
    )


def _by_influence(
    matrix: Matrix,
    places: Mapping[int, Indices],
    order: Mapping[tuple[int, str], Sorted],
    sums: Mapping[str, Mapping[str, Sums]],
    others: OtherCurves | None,
    robust: Robust | None,
    seed: int,
) -> _Spread:
    once = np.ones((matrix.n_queries, 1))
    weights = others.draw(CURVES, np.random.default_rng([seed, 1])) if others else None
    calm = robust.draw(CURVES, np.random.default_rng([seed, 2])) if robust else None
    return _Spread(
        {
            (rank, name): _Moved(
                _auc(of), of.influence(matrix.query[places[rank]], matrix.n_queries)
            )
            for (rank, name), of in order.items()
        },
        {
            (measure, name): _Moved(
                total.value,
                total.influence(),
                total.of(once, *((calm or ()) if measure == ROBUST_DCG else (weights,)))
                if total.by_place
                else np.empty(0),
            )
            for name, by_measure in sums.items()
            for measure, total in by_measure.items()
        },
    )


def _auc(order: Sorted) -> float:
    ones = np.ones((len(order.clicked) + len(order.others), 1))
    return float(order.auc(ones)[0])


def _improvements(
    values: Mapping[str, _Value], baselines: tuple[str, ...], less_is_better: bool = False
) -> dict[tuple[str, str], Improvement]:
    """By (model, baseline): the relative improvement."""
    sign = -1.0 if less_is_better else 1.0
    return {
        (name, base): found
        for base in baselines
        if base in values
        for name, value in values.items()
        if name != base
        if (found := value.over(values[base], sign)) is not None
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
    auc: Mapping[tuple[int, str], _Value],
    at_rank: Sequence[AtRank],
    models: tuple[str, ...],
    baselines: tuple[str, ...],
) -> dict[tuple[str, str], Improvement]:
    """Improvement of the mean AUC over ranks, weighted by their clicks."""
    judged = [at for at in at_rank if not at.gap]
    if not judged:
        return {}
    clicks = sum(at.clicks for at in judged)
    return _improvements(
        {
            name: reduce(add, (auc[at.rank, name] * (at.clicks / clicks) for at in judged))
            for name in models
        },
        baselines,
    )


def _measures(
    sums: Mapping[str, Mapping[str, Sums]],
    spread: Mapping[tuple[str, str], _Value],
    baselines: tuple[str, ...],
) -> tuple[Measure, ...]:
    names = next(iter(sums.values()))
    return tuple(
        Measure(
            measure,
            value={name: by[measure].value for name, by in sums.items()},
            improvements=_improvements(
                {name: spread[measure, name] for name in sums}, baselines, first.less_is_better
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
                "favour it if the curve is wrong by more than its errors tell. `rankdrift "
                "diagnose` asks whether it is."
            )
    return remarks
