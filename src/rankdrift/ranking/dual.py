"""Dual learning: a ranker and propensities from each other, both renewed with every tree.

Ai et al., "Unbiased Learning to Rank with Unbiased Propensity Estimation", SIGIR 2018. Scores make
chances of the results of a list by softmax, and so do the log propensities of its ranks. A click
counts 1 / p in the loss of the scores and 1 / relevance, by the scores so far, in that of the
propensities: where the one is right, the other becomes so.

Relevance is that of trees grown on other queries, for those that saw a click think too well of it:
then p of deep ranks shrinks, their clicks count more, and so on without end. So there are trees of
each half of the queries besides those of the ranker, all in step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankdrift.core.errors import BadLog, NotIdentified
from rankdrift.core.types import Bools, Floats, Indices, Ints
from rankdrift.core.version import __version__
from rankdrift.propensities.propensities import ENOUGH_CLICKS, Propensities
from rankdrift.ranking.backends import EachTree, Grown, LightGBM, Settings, library, refusals
from rankdrift.ranking.gains import Lists, keys_of_rows
from rankdrift.ranking.matrix import Matrix

DUAL: Literal["dual"] = "dual"
"""In place of propensities: they are learnt along with the ranker."""
FOLDS = 2
# The largest weight of a click in the loss of the propensities.
LARGEST = 100.0
# Of the curvature: where one result takes nearly all of its list, softmax is next to flat.
LEAST = 1e-6
# Steps from equal propensities to the click rates, where lists are of different length.
FIRST_STEPS = 3
FEW_ROWS = 50_000
NEVER_CLICKED = "shown but never clicked: its propensity is small, but nobody knows how small"


class _Softmax:
    """The losses of a set of lists, whose rows are together.

    place (N,): the rank of each row, from 0; click (N,); search (N,) ascending; weight (N,): how
    much a row's list counts.
    """

    def __init__(self, place: Indices, click: Bools, search: Ints, weight: Floats) -> None:
        self.place = place
        self.start = np.flatnonzero(np.diff(search, prepend=-1))
        self.list = np.repeat(np.arange(len(self.start)), np.diff(self.start, append=len(search)))
        self.clicked = np.flatnonzero(click)
        self.weight = weight[self.clicked]
        self.of_click = self.list[self.clicked]

    def shares(self, score: Floats) -> Floats:
        """(N,): the softmax of each list's scores."""
        power = np.exp(score - np.maximum.reduceat(score, self.start)[self.list])
        power /= np.add.reduceat(power, self.start)[self.list]
        return np.asarray(power)

    def slopes(self, score: Floats, worth: Floats) -> tuple[Floats, Floats]:
        """Gradient and curvature (N,) of the loss of scores, with the worth (R,) of a click at
        each rank."""
        share, gain = self.shares(score), worth[self.place[self.clicked]] * self.weight
        gradient = np.bincount(self.of_click, gain, len(self.start))[self.list] * share
        curvature = np.maximum(gradient * (1 - share), LEAST)
        gradient[self.clicked] -= gain
        return gradient, curvature

    def inverse_relevance(self, score: Floats) -> Floats:
        """(C,): of each click, the mean relevance of its list over that of its result."""
        length = np.diff(self.start, append=len(score))[self.of_click]
        return np.minimum(1 / (length * self.shares(score)[self.clicked]), LARGEST)

    def renew(self, p: Floats, worth: Floats) -> Floats:
        """A step (R,) towards the p that minimises the loss of the propensities, with what clicks
        (C,) are worth; it gets there where all lists have the same ranks, and never goes astray:
        Hunter's (2004), for choices in proportion to p."""
        gain = worth * self.weight
        won = np.bincount(self.place[self.clicked], gain, len(p))
        by_list = np.bincount(self.of_click, gain, len(self.start))
        among = np.add.reduceat(p[self.place], self.start)
        due = np.bincount(self.place, (by_list / among)[self.list], len(p))
        return np.divide(won, due, out=np.zeros(len(p)), where=due > 0)


@dataclass(frozen=True, eq=False)
class _Half:
    """Trees of some of the queries, and the scores of the others: rows `own` and `other`."""

    booster: Any
    loss: _Softmax
    other: Indices

    def grow(self, worth: Floats, score: Floats) -> None:
        """One tree more; renews the scores (N,) of the other rows."""
        self.booster.update(fobj=lambda raw, _: self.loss.slopes(raw, worth))

        def keep(raw: Any, _: Any) -> tuple[str, float, bool]:
            score[self.other] = raw
            return "", 0.0, False

        self.booster.eval_valid(keep)  # hands over the scores that it has anyway


class DualTrees(LightGBM):
    """LightGBM's trees, with the propensities learnt along with them."""

    def grow(
        self, train: Lists, valid: Lists | None, settings: Settings, each: EachTree | None
    ) -> Grown:
        clip = np.inf if train.clip is None else train.clip
        booster, log_p = learn(train.matrix, settings, clip=clip, each=each)
        return Grown(booster.model_to_string(), booster.num_trees(), (), log_p)


DUAL_TREES = DualTrees()


def learn(
    matrix: Matrix,
    settings: Settings,
    *,
    clip: float = np.inf,
    reference: int | None = None,
    weight: Floats | None = None,
    ranker: bool = True,
    each: EachTree | None = None,
) -> tuple[Any, Floats]:
    """Trees and propensities from each other.

    Parameters
    ----------
    matrix
        Searches with a click and two results or more.
    settings
        Of the trees; norm is of no use here.
    clip
        The largest weight of a click in the loss of the scores.
    reference
        The rank whose propensity is 1, for that limit; None: as of `usual_reference`.
    weight
        (N,): how much the list of each row counts; None: all the same.
    ranker
        Whether trees of all queries are wanted too.
    each
        Called with the number of each tree.

    Returns
    -------
    booster, log_p
        LightGBM's model, None without `ranker`; (R,) of ranks from 1, 0 at the reference and
        minus infinity where nothing was clicked.
    """
    lightgbm = library("lightgbm")
    if matrix.n_queries < FOLDS:
        raise BadLog(
            "Dual learning judges relevance by other queries, and there is only one. Add queries, "
            "or give propensities."
        )
    params = {
        "objective": "none",
        "metric": "none",
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.leaves,
        "min_data_in_leaf": settings.min_rows,
        "seed": settings.seed,
        "num_threads": _threads(matrix, settings),
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
        **settings.params,
    }
    place = (matrix.rank - 1).astype(np.intp)
    weight = np.ones(len(matrix)) if weight is None else weight
    first = (reference or usual_reference(matrix)) - 1
    fold = np.random.default_rng(settings.seed).permutation(matrix.n_queries) % FOLDS
    loss = _Softmax(place, matrix.click, matrix.search, weight)
    score = np.zeros(len(matrix))
    with refusals("LightGBM"):
        data = DUAL_TREES.dataset(matrix, matrix.click, params=params).construct()
        booster = lightgbm.Booster(params, data) if ranker else None
        halves = []
        for out in range(FOLDS):
            other = fold[matrix.query] == out
            own, rest = np.flatnonzero(~other), np.flatnonzero(other)
            half = lightgbm.Booster(params, data.subset(own).construct())
            half.add_valid(data.subset(rest).construct(), "others")
            part = _Softmax(place[own], matrix.click[own], matrix.search[own], weight[own])
            halves.append(_Half(half, part, rest))
        p = np.ones(int(matrix.rank.max()))
        for _ in range(FIRST_STEPS):
            p = loss.renew(p, np.ones(len(loss.clicked)))
        for tree in range(settings.trees):
            p = loss.renew(p / p[first], loss.inverse_relevance(score))
            with np.errstate(divide="ignore"):  # of ranks without a click
                worth = np.minimum(p[first] / p, clip)
            for half in halves:
                half.grow(worth, score)
            if booster:
                booster.update(fobj=lambda raw, _, worth=worth: loss.slopes(raw, worth))
            if each:
                each(tree + 1)
    p = loss.renew(p / p[first], loss.inverse_relevance(score))
    with np.errstate(divide="ignore"):
        return booster, np.log(p / p[first])


def _threads(matrix: Matrix, settings: Settings) -> int:
    """Of few rows threads would wait for each other longer than they work."""
    return settings.threads or (1 if len(matrix) < FEW_ROWS else 0)


def usual_reference(matrix: Matrix) -> int:
    """Rank 1, or where that has too few clicks the rank that has the most."""
    clicks = np.bincount(matrix.rank[matrix.click])
    return 1 if clicks[1] >= ENOUGH_CLICKS else int(np.argmax(clicks))


def learnt_propensities(
    matrix: Matrix, log_p: Floats, settings: Settings, clip: float | None
) -> Propensities:
    """What was learnt, as every estimate is told; without errors, which would take refits.

    Parameters
    ----------
    matrix
        The rows.
    log_p
        (R,), as `learn` gives it.
    settings, clip
        How it was learnt.
    """
    size = len(log_p)
    shown, clicks = (
        np.bincount(r - 1, minlength=size) for r in (matrix.rank, matrix.rank[matrix.click])
    )
    kept = clicks > 0
    return Propensities(
        ranks=np.flatnonzero(kept).astype(np.int32) + 1,
        log_p=log_p[kept],
        deviations=np.zeros((int(kept.sum()), 1)),
        pairs=shown[kept],
        clicks=clicks[kept],
        supported=clicks[kept] >= ENOUGH_CLICKS,
        reference=int(np.argmin(np.abs(np.where(kept, log_p, np.inf)))) + 1,
        method="dual learning",
        errors="none",
        gaps=dict.fromkeys((np.flatnonzero(~kept & (shown > 0)) + 1).tolist(), NEVER_CLICKED),
        provenance={
            "version": __version__,
            "features": list(matrix.names),
            "rows": len(matrix),
            "trees": settings.trees,
            "leaves": settings.leaves,
            "min_rows": settings.min_rows,
            "learning_rate": settings.learning_rate,
            "clip": clip,
            "seed": settings.seed,
        },
    )


# -- is there anything to learn from? --------------------------------------------------------------

# Share of how ranks differ within lists that features tell: beyond, any propensities would do with
# scores to match; and beyond that, errors of the scores come back several times as large.
TOLD, NEARLY_TOLD = 0.95, 0.8
# Rows to ask.
MOST_ROWS = 50_000
ASKED = Settings(trees=50, learning_rate=0.2)


def check_told_apart(matrix: Matrix, settings: Settings, say: Callable[[str], None]) -> float:
    """Whether rank and relevance can be told apart: not where features tell the rank, as where
    each query has one fixed order and a feature knows it.

    Parameters
    ----------
    matrix
        Searches with a click.
    settings
        Seed and threads.
    say
        Called with a remark where it is nearly so.

    Returns
    -------
    float
        How much features tell of how ranks differ within lists, 1 for all.

    Raises
    ------
    NotIdentified
        If that is more than TOLD.
    """
    told = features_tell_ranks(matrix, settings)
    how = f"Features tell {told:.0%} of how ranks differ within a list"
    if told > TOLD:
        raise NotIdentified(
            f"{how}, so nobody can say what of a click is due to the one and what to the other: "
            "any propensities would do, with scores to match. Leave out features that know the "
            "old order, add traffic of another ranker, or give propensities (`rankdrift estimate`)."
        )
    if told > NEARLY_TOLD:
        say(
            f"{how}: what the scores get wrong comes back in the propensities about "
            f"{1 / (1 - told):.0f} times as large. Compare with `rankdrift estimate`."
        )
    elif has_fixed_order(matrix):
        say(
            "Results of a query are always at the same rank. Then rank and relevance are told "
            "apart by results of different queries with like features alone: right only if "
            "features tell all that relevance and rank have in common."
        )
    return told


def features_tell_ranks(matrix: Matrix, settings: Settings) -> float:
    """The share of the variance of log rank within lists that trees on other queries know."""
    rows = _some(matrix, settings.seed)
    target = _centred(np.log(rows.rank), rows)
    half = (np.random.default_rng(settings.seed).permutation(rows.n_queries) % 2 == 0)[rows.query]
    told = np.zeros(len(rows))
    params = {
        "objective": "l2",
        "learning_rate": ASKED.learning_rate,
        "num_leaves": ASKED.leaves,
        "min_data_in_leaf": ASKED.min_rows,
        "seed": settings.seed,
        "num_threads": _threads(rows, settings),
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    for part in (half, ~half):
        if not part.any() or part.all():
            return 0.0
        others = rows.take(~part)
        data = DUAL_TREES.dataset(others, target[~part], params={"verbosity": -1})
        with refusals("LightGBM"):
            told[part] = library("lightgbm").train(params, data, ASKED.trees).predict(rows.x[part])
    left = target - _centred(told, rows)
    return 1 - float(left @ left) / max(float(target @ target), 1e-300)


def has_fixed_order(matrix: Matrix) -> bool:
    """Whether results of a query, as features tell them, come again, and always at one rank."""
    key = keys_of_rows(matrix)
    order = np.argsort(key, kind="stable")
    again = key[order][1:] == key[order][:-1]
    rank = matrix.rank[order]
    return bool(again.any() and not (again & (rank[1:] != rank[:-1])).any())


def _some(matrix: Matrix, seed: int) -> Matrix:
    """Whole queries, by lot, with about MOST_ROWS rows."""
    if len(matrix) <= MOST_ROWS:
        return matrix
    order = np.random.default_rng(seed).permutation(matrix.n_queries)
    rows = np.bincount(matrix.query, minlength=matrix.n_queries)[order]
    kept = np.zeros(matrix.n_queries, bool)
    kept[order[: max(2, int(np.searchsorted(np.cumsum(rows), MOST_ROWS)))]] = True
    return matrix.take(kept[matrix.query])


def _centred(values: Floats, matrix: Matrix) -> Floats:
    """(N,): less the mean of the list."""
    sizes = np.diff(matrix.starts)
    mean = np.add.reduceat(values, matrix.starts[:-1]) / sizes
    return np.asarray(values - np.repeat(mean, sizes))
