"""Matrix -> Ranker: LambdaMART on clicks worth 1 / propensity. Section 5 and Appendix A."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankdrift.core.errors import BadLog, BadOption, did_you_mean
from rankdrift.core.naming import names_checked
from rankdrift.core.version import __version__
from rankdrift.core.words import many
from rankdrift.log.log import Log
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.backends import BACKENDS, EachTree, Settings
from rankdrift.ranking.choosing import SHARE_OF_ROWS, SMALL, candidates, choose
from rankdrift.ranking.dual import DUAL, DUAL_TREES, check_told_apart, learn, learnt_propensities
from rankdrift.ranking.expecting import expect_clicks
from rankdrift.ranking.gains import (
    Beyond,
    GainKind,
    Gains,
    Lists,
    Weighting,
    as_propensities,
    fingerprint,
)
from rankdrift.ranking.judged import Judged, judged_relevance
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.matrix_reading import Wanted, read_matrix
from rankdrift.ranking.ranker import Ranker, sketch

# What one processor compares; measured with both libraries, to tell how long it will take.
PAIRS_A_SECOND = 4e8
BY_NAME: tuple[GainKind, ...] = ("ipw", "dr", "poisson")
"""Gains that have a name; judgments are given themselves."""
# What is not chosen with such gains: 2 is the clip of a doubly robust gain, others have no weights.
GIVEN_BY_KIND: Mapping[GainKind, Mapping[str, Any]] = {
    "dr": {"clip": 2.0},
    "poisson": {"clip": None, "norm": False},
    "judgments": {"clip": None},
    "dual": {"norm": False},
}


@names_checked
def train(
    data: Log | Matrix,
    *,
    propensities: Propensities | str | os.PathLike[str] | None = None,
    gains: GainKind | Judged = "ipw",
    features: Wanted = ("f_*",),
    categorical: str | Sequence[str] = (),
    trees: int = 100,
    learning_rate: float = 0.1,
    leaves: int | None = None,
    min_rows: int | None = None,
    norm: bool | None = None,
    clip: float | None = None,
    fixed: bool = False,
    beyond: Beyond = "error",
    pool: bool = False,
    validation: Log | Matrix | float | None = None,
    early_stopping: int | None = None,
    backend: str = "lightgbm",
    seed: int = 0,
    threads: int | None = None,
    params: Mapping[str, Any] | None = None,
    name: str | None = None,
    each: EachTree | None = None,
    say: Callable[[str], None] | None = None,
) -> Ranker:
    """Learn a ranker that maximises DCG, where a click at rank r is worth 1 / p_r.

    That is LambdaMART on Eq. (5) with the gains of Eq. (6), loss-unbiased. What is not given of
    `leaves`, `min_rows`, `norm` and `clip` is chosen by the clicks of queries held out.

    Parameters
    ----------
    data
        The results shown, clicked or not. Only searches with a click and two results or more
        teach something; the others are left out.
    propensities
        Those of `estimate`, or their file. Without them every click is worth 1: the
        biased model. Those with segments are used by segment. With trust (`estimate --adjust
        trust`) a row is worth (click - trust) / p, clicked or not, and searches without a click
        teach something too. "dual": learnt along with the ranker (Ai et al., 2018), from features
        alone; the ranker's `learnt` has them.
    gains
        What is learnt from. "ipw": clicks worth 1 / p. "dr", doubly robust: no click is worth
        more than 2 (or `clip`), and what that takes away is given back as features expect it, by
        trees on other queries. "poisson": counts of clicks instead of lists, with the log of the
        propensity as offset. Or judgments, as `judge` makes them: each row is worth its doc's
        relevance.
    features, categorical
        How to read a log, as in `read_matrix`; a Matrix has its own.
    trees
        How many.
    learning_rate
        What each tree's scores are multiplied by.
    leaves
        Of a tree, at most; None: chosen.
    min_rows
        In a leaf, at least (LightGBM only); None: chosen.
    norm
        Tame the pull of pairs that are far apart and of searches with many clicks, as the
        libraries do by default; it is not the paper's DCG any more, but often ranks better.
        None: chosen.
    clip
        The largest weight that a click may have; None: chosen, infinity: no limit.
    fixed
        Choose nothing: what is not given is as in the paper, 31 leaves, 20 rows in a leaf, no
        norm and no clip.
    beyond
        A click at a rank without propensity is an error, or "clip" takes the propensity of
        the nearest rank.
    pool
        Use one curve for all, though the propensities have segments.
    validation
        Another log or matrix, or the share of queries to set apart.
    early_stopping
        End after so many trees without a better DCG, weighted alike, on `validation`.
    backend
        Whose trees, "lightgbm" or "xgboost".
    seed
        Of all that is random.
    threads
        Of the library; None: all cores.
    params
        Go to the library as they are; those that make the method are refused.
    name
        Of the ranker; by default "biased" or "unbiased".
    each
        Called with the number of each tree, from 1, when it is grown; those that were grown to
        choose by come first.
    say
        Called with remarks.

    Returns
    -------
    Ranker
        The model, with the options, the rows and the propensities it comes from; its `choice`
        has what was tried and what that was worth.

    Raises
    ------
    BadLog
        If no search has a click and something to compare it with.
    NotIdentified
        If a click is at a rank, or in a segment, that the propensities say nothing about; or if
        they are to be learnt and features tell the rank.
    """
    dual = isinstance(propensities, str) and propensities == DUAL
    if dual:
        _check_dual(gains, norm=norm, validation=validation, backend=backend)
    curve = None if dual else as_propensities(propensities)
    kind = DUAL if dual else _kind(gains, curve, clip=clip, norm=norm, validation=validation)
    given: dict[str, Any] = {
        name: value
        for name, value in (("leaves", leaves), ("min_rows", min_rows), ("norm", norm))
        if value is not None
    }
    given |= GIVEN_BY_KIND.get(kind, {})
    if clip is not None:
        given["clip"] = None if clip == np.inf else clip
    settings = Settings(
        **{name: value for name, value in given.items() if name != "clip"},
        trees=trees,
        learning_rate=learning_rate,
        early_stopping=early_stopping,
        seed=seed,
        threads=threads,
        params=dict(params or {}),
    )
    if backend not in BACKENDS:
        raise BadOption(
            f"No backend {backend!r}.{did_you_mean(backend, BACKENDS.names)} There are "
            f"{' and '.join(BACKENDS.names)}."
        )
    if early_stopping is not None and validation is None:
        raise BadOption(
            "early_stopping needs queries to judge by: give validation= a share, such as 0.1, or "
            "another log."
        )
    say = say or (lambda _: None)
    trust = curve is not None and curve.trust is not None
    whole = rows_to_learn(
        data, features, categorical, say, docs=kind == "judgments", unclicked=trust
    )
    kept, apart = _validation(whole, validation, seed, say, trust)
    # Results with equal scores keep the order of the rows: the order in which they were shown
    # would let the ranks back in.
    rows = kept.shuffled(seed)
    _say_time(say, rows, trees)
    library = DUAL_TREES if dual else BACKENDS.get(backend)
    if dual:
        check_told_apart(rows, settings, say)
        curve = _to_choose_by(rows, settings, fixed, each, say)
    weighting = Weighting(curve, clip, beyond, pool, kind)
    if kind == "dr":
        say("Learning what features expect of each result, from the clicks of other queries.")
        weighting = replace(
            weighting, relevance=expect_clicks(rows, weighting, settings, library, each)
        )
    elif not isinstance(gains, str):
        relevance, judged_rows = judged_relevance(rows, gains)
        say(f"{judged_rows:,} of {len(rows):,} rows show a doc that was judged for their query.")
        weighting = replace(weighting, relevance=relevance)
    choice = choose(
        rows,
        candidates(
            given,
            rows=len(weighting.weigh(rows)[0].together().gain),
            weighted=curve is not None or dual,
            counts_rows=library.counts_rows,
            fixed=fixed,
            largest=np.inf if curve is None else weighting.largest(rows),
        ),
        weighting,
        settings,
        library,
        each=each,
        say=say,
    )
    capacity = choice.capacity
    weighting = replace(weighting, clip=capacity.clip)
    settings = replace(
        settings, leaves=capacity.leaves, min_rows=capacity.min_rows, norm=capacity.norm
    )
    learnt, worth = weighting.weigh(rows)
    judged = None
    if apart:
        judge = apart.shuffled(seed)
        judged = Lists(judge, weighting.by_clicks(judge).gain)
    _say_clicks(say, kept, worth, weighted=curve is not None and kind in ("ipw", "dr"))
    grown = library.grow(learnt.together(), judged, settings, each)
    if grown.log_p is not None:
        curve = learnt_propensities(rows, grown.log_p, settings, capacity.clip)
        worth = replace(weighting, propensities=curve).by_clicks(rows)
    return Ranker(
        name=name or _usual_name(kind, curve),
        backend=backend,
        text=grown.text,
        features=kept.features,
        options={
            "trees": trees,
            "learning_rate": learning_rate,
            "leaves": capacity.leaves,
            "min_rows": capacity.min_rows,
            "norm": capacity.norm,
            "clip": capacity.clip,
            "gains": kind,
            "fixed": fixed,
            "choice": choice.to_dict(),
            "beyond": beyond,
            "pool": pool,
            "early_stopping": early_stopping,
            "backend": backend,
            "seed": seed,
            "params": dict(params or {}),
            "version": __version__,
        },
        gains=worth.to_dict(),
        training=whole.describe() | {"queries": kept.n_queries, "clicks": kept.n_clicks},
        propensities=fingerprint(curve) if curve else None,
        queries=sketch(whole.query_keys),
        trees=grown.trees,
        history=grown.history,
        learnt=curve if dual else None,
    )


def _usual_name(kind: GainKind, curve: Propensities | None) -> str:
    if kind == DUAL:
        return DUAL
    return "biased" if curve is None and kind == "ipw" else "unbiased"


def _check_dual(
    gains: GainKind | Judged, *, norm: bool | None, validation: Any, backend: str
) -> None:
    """Whether the other options go with propensities that are learnt along with the ranker."""
    if backend != DUAL_TREES.name:
        raise BadOption(
            f"Propensities are learnt along with trees of {DUAL_TREES.title} only: leave the "
            "backend out, or use what was learnt, the propensities saved beside that model."
        )
    if gains != "ipw":
        raise BadOption(
            "Dual learning has a loss of its own, so there are no other gains to learn from. Leave "
            "gains out, or give propensities that are known."
        )
    if norm:
        raise BadOption("norm damps what pairs pull, and dual learning compares no pairs.")
    if validation is not None:
        raise BadOption(
            "validation watches clicks that are weighted alike, and dual learning changes the "
            "weights with every tree. Leave it out, or give propensities that are known."
        )


def _to_choose_by(
    rows: Matrix,
    settings: Settings,
    fixed: bool,
    each: EachTree | None,
    say: Callable[[str], None],
) -> Propensities | None:
    """Propensities by small trees, for held-out clicks to be weighted with; None: no choice."""
    if fixed:
        return None
    say("Learning propensities by small trees, to weigh held-out clicks with.")
    least = min(SMALL.min_rows, max(1, int(SHARE_OF_ROWS * len(rows))))
    own = replace(settings, leaves=SMALL.leaves, min_rows=least)
    return learnt_propensities(rows, learn(rows, own, ranker=False, each=each)[1], own, None)


def _kind(
    gains: GainKind | Judged,
    curve: Propensities | None,
    *,
    clip: float | None,
    norm: bool | None,
    validation: Any,
) -> GainKind:
    """What is learnt from, if it goes with the other options."""
    if isinstance(gains, str) and gains not in BY_NAME:
        raise BadOption(
            f"No gains {gains!r}.{did_you_mean(gains, BY_NAME)} There are {', '.join(BY_NAME)}, "
            "and judgments as `judge` makes them."
        )
    kind: GainKind = gains if isinstance(gains, str) else "judgments"
    if curve is not None and curve.trust is not None and kind in ("dr", "poisson"):
        raise BadOption(
            f"Gains by {kind} do not know of clicks that need no relevance, which these "
            "propensities have (trust). Use gains by ipw, or judgments made with them."
        )
    if kind == "ipw":
        return kind
    if curve is None:
        raise BadOption(
            f"Gains by {kind} need propensities (--propensities): without them every click is "
            "worth the same, and there is nothing to correct."
        )
    if kind in ("poisson", "judgments") and clip is not None:
        raise BadOption(f"clip limits the weight of clicks, and gains by {kind} have none.")
    if kind == "poisson" and norm:
        raise BadOption("norm damps what pairs pull, and gains by poisson compare no pairs.")
    if kind == "poisson" and validation is not None:
        raise BadOption(
            "validation watches DCG while lists are learnt, and gains by poisson have no lists. "
            "Leave it out, or use other gains."
        )
    return kind


def rows_to_learn(
    data: Log | Matrix,
    features: Wanted,
    categorical: str | Sequence[str],
    say: Callable[[str], None],
    docs: bool = False,
    unclicked: bool = False,
) -> Matrix:
    """The searches that teach something: with a click and something to compare it with.

    Parameters
    ----------
    data
        A log, which is read, or a matrix.
    features, categorical
        How to read a log, as in `read_matrix`; a matrix has its own.
    say
        Called with what there is to remark about the rows.
    docs
        Keep the docs of a log too.
    unclicked
        Searches without a click teach something too.

    Returns
    -------
    Matrix
        Rows of searches with a click and two results or more.

    Raises
    ------
    BadLog
        If there is no such search.
    """
    if isinstance(data, Log):
        matrix = read_matrix(
            data,
            features=features,
            categorical=categorical,
            docs=docs,
            searches="all" if unclicked else "clicked",
            say=say,
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
    clicked = matrix if unclicked else matrix.only_clicked()
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
    matrix: Matrix,
    validation: Log | Matrix | float | None,
    seed: int,
    say: Callable[[str], None],
    unclicked: bool,
) -> tuple[Matrix, Matrix | None]:
    """The rows to learn from, and those to validate on."""
    if validation is None:
        return matrix, None
    if isinstance(validation, float | int):
        return matrix.split(float(validation), seed)
    apart = rows_to_learn(validation, matrix.features, (), say, unclicked=unclicked).with_features(
        matrix.features
    )
    share = float(np.isin(apart.query_keys, matrix.query_keys).mean())
    if share > 0:
        say(
            f"{share:.0%} of the validation queries are training queries too, which makes the "
            "model look better there than it is."
        )
    return matrix, apart


def _say_clicks(
    say: Callable[[str], None], matrix: Matrix, gains: Gains, *, weighted: bool
) -> None:
    say(
        f"Learning from {many(matrix.n_clicks, 'click')} in "
        f"{many(matrix.n_searches, 'search', 'searches')} of "
        f"{many(matrix.n_queries, 'query', 'queries')}, {many(len(matrix), 'row')}."
    )
    if not weighted:
        return
    say(
        f"Weighted by 1 / propensity (at most {gains.largest:.3g}), they are worth "
        f"{gains.effective:,.0f} equal ones."
    )
    if gains.clipped:
        say(f"{gains.clipped:,} clicks were clipped to that weight.")
    if gains.borrowed:
        say(
            f"{gains.borrowed:,} clicks are at ranks without propensity and took that of the "
            "nearest rank."
        )


def _say_time(say: Callable[[str], None], matrix: Matrix, trees: int) -> None:
    """Each tree compares every result of a search with every other."""
    sizes = np.diff(matrix.starts)
    pairs = float((sizes.astype(float) ** 2).sum()) / 2
    minutes = trees * pairs / PAIRS_A_SECOND / 60
    if minutes >= 1:
        say(
            f"Searches of up to {sizes.max():,} results have {pairs:,.0f} pairs to compare, "
            f"for each of {trees} trees: about {minutes:,.0f} minutes of one processor. Leaving "
            "deep ranks out (--max-rank) makes that less."
        )
