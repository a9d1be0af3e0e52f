"""Rankers that learn while they serve: bandits, run against made-up users.

A policy orders docs of one query, search after search, and learns from the clicks. What it loses on
the way, beside the best order, is its regret; what its log is then worth for propensities, and for
judging other rankings, can be told from the log it leaves.

ranked    a bandit for each rank, which learns what is clicked there (Radlinski et al., ICML 2008)
cascade   one value a doc; users look down to the first click (Kveton et al., ICML 2015)
pbm       one value a doc; a click at rank r is worth 1 / p_r of exposure (Lagrée et al., NIPS 2016)

Each by UCB, the upper end of what a doc may be worth, or by Thompson sampling, a draw of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdrift.core.errors import BadOption
from rankdrift.core.notebook import brief
from rankdrift.core.registry import Registry
from rankdrift.core.types import Floats, Ints
from rankdrift.core.words import figure, many

Random = np.random.Generator
POINTS = 50  # of a curve of regret
_EXPLORE = 0.5  # of ranked and cascade, in UCB1's bonus √(c ln t / n)


@dataclass(frozen=True)
class Policy:
    """A way of choosing orders.

    Parameters
    ----------
    name, sentence
        What it is called, and what it does.
    choose
        State, searches so far, random -> docs shown (S, R), of S runs side by side.
    learn
        State, docs shown, clicks (S, R): the state is changed.
    """

    name: str
    sentence: str
    choose: Callable[[State, int, Random], Ints]
    learn: Callable[[State, Ints, NDArray[np.bool_]], None]


@dataclass
class State:
    """What S runs have learned: won and tried (S, D), or (S, R, D) of ranked; they change.

    p (R,) is what pbm takes the propensities for; order (D,) is the order that `fixed` shows;
    last (S, R), which docs ranked's bandits chose themselves.
    """

    p: Floats
    order: Ints
    won: Floats
    tried: Floats
    last: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class BanditRun:
    """What a policy did in many runs.

    Parameters
    ----------
    policy
        Its name.
    searches
        (POINTS,), after how many the regret is given.
    regret
        (POINTS,), clicks lost until then beside the best order, the mean over runs.
    error
        (POINTS,), its standard error.
    columns
        The log of all runs: arrays by name, a row a result shown; `query` is the run, and
        `probability` that with which the policy put the doc there, if it was asked for.
    """

    policy: str
    searches: Ints
    regret: Floats
    error: Floats
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        lost = f"clicks lost: {figure(max(float(self.regret[-1]), 0.0))}"
        return brief(self, self.policy, many(int(self.searches[-1]), "search", "searches"), lost)


POLICIES: Registry[Policy] = Registry("policy")


def run_bandit(
    policy: str,
    p: ArrayLike,
    z: ArrayLike,
    *,
    searches: int = 2_000,
    runs: int = 50,
    users: str = "pbm",
    known: ArrayLike | None = None,
    draws: int = 0,
    log: bool = False,
    seed: int = 1,
) -> BanditRun:
    """Let a policy serve made-up users, and see what it loses.

    Parameters
    ----------
    policy
        `POLICIES` has them all.
    p
        (R,), the propensities of the ranks shown.
    z
        (D,), the relevance of each doc, D at least R; `fixed` shows them in this order.
    searches
        Of each run.
    runs
        Side by side, each by itself.
    users
        "pbm": each rank is looked at by itself, Eq. (1), prob-click. "cascade": users look down to
        the first click, and p is not used.
    known
        (R,), what the policy takes the propensities for; by default the truth.
    draws
        Draw each order so many times more, to tell the probability with which each doc was put at
        its rank; 0 does not. Needed for judging other rankings by the log; probabilities below
        about 3 / draws are told too large.
    log
        Keep the log.
    seed
        Another makes other clicks.
    """
    chosen = POLICIES.get(policy)
    truth, worth = np.asarray(p, dtype=float), np.asarray(z, dtype=float)
    _check(truth, worth, searches, runs, users)
    random = np.random.default_rng(seed)
    ranks, docs = len(truth), len(worth)
    shape = (runs, ranks, docs) if policy.startswith("ranked") else (runs, docs)
    believed = truth if known is None else np.asarray(known, dtype=float)
    if believed.shape != truth.shape or not (believed > 0).all():
        raise BadOption("known must have a propensity above 0 for each rank.")
    state = State(believed / believed.max(), np.arange(docs), np.zeros(shape), np.zeros(shape))
    best = _expected(np.sort(worth)[::-1][:ranks][None], truth, users)[0]
    lost = np.zeros((searches, runs))
    kept: list[tuple[Ints, NDArray[np.bool_], Floats]] = []
    for time in range(searches):
        shown = chosen.choose(state, time, random)
        chance = np.zeros(shown.shape)
        if draws:
            for _ in range(draws):
                chance += chosen.choose(state, time, random) == shown
            chance = (chance + 1) / (draws + 1)
        clicks = _clicks(worth[shown], truth, users, random)
        lost[time] = best - _expected(worth[shown], truth, users)
        chosen.learn(state, shown, clicks)
        if log:
            kept.append((shown, clicks, chance))
    total = np.cumsum(lost, axis=0)
    at = np.unique(np.geomspace(1, searches, POINTS).astype(np.int64))
    return BanditRun(
        policy,
        at,
        total[at - 1].mean(axis=1),
        total[at - 1].std(axis=1, ddof=1) / np.sqrt(runs) if runs > 1 else np.full(len(at), np.inf),
        _columns(kept, draws > 0) if log else {},
    )


def _check(p: Floats, z: Floats, searches: int, runs: int, users: str) -> None:
    if p.ndim != 1 or z.ndim != 1 or not 1 <= len(p) <= len(z):
        raise BadOption(
            "p has a number a rank and z one a doc; there must be as many docs as ranks."
        )
    if not ((p > 0) & (p <= 1)).all() or not ((z >= 0) & (z <= 1)).all():
        raise BadOption("p must be above 0 and at most 1, z from 0 to 1.")
    if searches < 1 or runs < 1:
        raise BadOption("searches and runs must be 1 or more.")
    if users not in ("pbm", "cascade"):
        raise BadOption(f"users is {users!r}: use pbm or cascade.")


def _expected(z: Floats, p: Floats, users: str) -> Floats:
    """(S,): clicks that an order of relevances (S, R) gets."""
    if users == "cascade":
        return np.asarray(1 - np.prod(1 - z, axis=1))
    return np.asarray(z @ p)


def _clicks(z: Floats, p: Floats, users: str, random: Random) -> NDArray[np.bool_]:
    if users == "pbm":
        return np.asarray(random.random(z.shape) < z * p)
    wanted = random.random(z.shape) < z
    before: Ints = np.cumsum(wanted, axis=1) - wanted
    return np.asarray(wanted & (before == 0))


def _columns(
    kept: list[tuple[Ints, NDArray[np.bool_], Floats]], known: bool
) -> dict[str, NDArray[Any]]:
    shown, clicks, chance = (np.stack(parts) for parts in zip(*kept, strict=True))
    times, runs, ranks = shown.shape
    search = np.arange(times * runs).reshape(times, runs, 1)
    found: dict[str, NDArray[Any]] = {
        "search": np.broadcast_to(search, shown.shape).ravel(),
        "query": np.broadcast_to(np.arange(runs)[None, :, None], shown.shape).ravel(),
        "doc": shown.ravel(),
        "rank": np.broadcast_to(np.arange(1, ranks + 1), shown.shape).ravel(),
        "click": clicks.astype(np.int8).ravel(),
    }
    return found | ({"probability": chance.ravel()} if known else {})


# -- what docs may be worth ------------------------------------------------------------------------


def _upper(state: State, time: int, random: Random) -> Floats:
    """The mean, and the more the less often tried; docs not tried yet come first, by chance."""
    tried = np.maximum(state.tried, 1e-9)
    bonus = np.sqrt(_EXPLORE * np.log(time + 2) / tried)
    found = state.won / tried + bonus
    return np.where(state.tried > 0, found, 1e6) + 1e-9 * random.random(state.won.shape)


def _draw(state: State, time: int, random: Random) -> Floats:
    """One draw of what each may be worth: Beta, uniform to begin with."""
    return random.beta(1 + state.won, 1 + np.maximum(state.tried - state.won, 0.0))


Index = Callable[[State, int, Random], Floats]


def _top(index: Index) -> Callable[[State, int, Random], Ints]:
    """The docs with the highest index, in that order."""

    def choose(state: State, time: int, random: Random) -> Ints:
        values = index(state, time, random)
        return np.argsort(-values, axis=1)[:, : len(state.p)]

    return choose


def _by_rank(index: Index) -> Callable[[State, int, Random], Ints]:
    """The choice of each rank's own bandit; a doc that is above already gives way to one drawn."""

    def choose(state: State, time: int, random: Random) -> Ints:
        values = index(state, time, random)
        runs, ranks, docs = values.shape
        shown = np.zeros((runs, ranks), np.int64)
        own = np.zeros((runs, ranks), bool)
        taken = np.zeros((runs, docs), bool)
        each = np.arange(runs)
        for rank in range(ranks):
            wanted = np.argmax(values[:, rank], axis=1)
            own[:, rank] = ~taken[each, wanted]
            instead = np.argmax(np.where(taken, -1.0, random.random((runs, docs))), axis=1)
            shown[:, rank] = np.where(own[:, rank], wanted, instead)
            taken[each, shown[:, rank]] = True
        state.last = own
        return shown

    return choose


# -- learning --------------------------------------------------------------------------------------


def _nothing(state: State, shown: Ints, clicks: NDArray[np.bool_]) -> None:
    """Nothing is learned."""


def _add(state: State, shown: Ints, won: Floats, tried: Floats) -> None:
    each = np.arange(len(shown))[:, None]
    state.won[each, shown] += won  # a search shows each doc once
    state.tried[each, shown] += tried


def _learn_ranked(state: State, shown: Ints, clicks: NDArray[np.bool_]) -> None:
    """A rank's bandit is told of the doc that it wanted: a click only if it was shown there."""
    assert state.last is not None
    runs, ranks = shown.shape
    run, rank = np.meshgrid(np.arange(runs), np.arange(ranks), indexing="ij")
    state.won[run, rank, shown] += clicks & state.last
    state.tried[run, rank, shown] += state.last


def _learn_cascade(state: State, shown: Ints, clicks: NDArray[np.bool_]) -> None:
    """Docs down to the first click were looked at; all, if there is none."""
    before: Ints = np.cumsum(clicks, axis=1) - clicks
    looked: NDArray[np.bool_] = before == 0
    _add(state, shown, (clicks & looked).astype(float), looked.astype(float))


def _learn_exposure(state: State, shown: Ints, clicks: NDArray[np.bool_]) -> None:
    """A doc at rank r was looked at p_r times."""
    _add(state, shown, clicks.astype(float), np.broadcast_to(state.p, shown.shape))


def _fixed(state: State, time: int, random: Random) -> Ints:
    return np.tile(state.order[: len(state.p)], (len(state.won), 1))


def _any_order(state: State, time: int, random: Random) -> Ints:
    return np.argsort(random.random(state.won.shape), axis=1)[:, : len(state.p)]


for _policy in (
    Policy("fixed", "one order for all", _fixed, _nothing),
    Policy("shuffle", "an order drawn anew for each search", _any_order, _nothing),
    Policy("ranked-ucb", "a bandit a rank, by upper bounds", _by_rank(_upper), _learn_ranked),
    Policy("ranked-ts", "a bandit a rank, by Thompson sampling", _by_rank(_draw), _learn_ranked),
    Policy(
        "cascade-ucb", "users look to the first click; upper bounds", _top(_upper), _learn_cascade
    ),
    Policy("cascade-ts", "users look to the first click; sampling", _top(_draw), _learn_cascade),
    Policy(
        "pbm-ucb", "a click at rank r is worth 1 / p_r; upper bounds", _top(_upper), _learn_exposure
    ),
    Policy("pbm-ts", "a click at rank r is worth 1 / p_r; sampling", _top(_draw), _learn_exposure),
):
    POLICIES.register(_policy)
