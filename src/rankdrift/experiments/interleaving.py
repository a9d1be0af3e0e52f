"""Two rankers in one list of results: which of them do clicks speak for?

Each search shows one list made of both rankings, so every search compares them, and users need not
be split. `interleave` makes the list, by chance that is read off the id of the search as in
`assigning`; `credit` says what a search's clicks are worth to each ranker.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.notebook import brief
from rankdrift.core.registry import Registry
from rankdrift.core.types import Bools, Floats
from rankdrift.core.words import many
from rankdrift.experiments.assigning import HALF, digits

Doc = Hashable
STEEPNESS = 3.0  # probabilistic: the chance of a doc falls as rank ** -3 (Hofmann et al., 2011)
LONGEST_OPTIMISED = 10  # there are up to 2 ** 10 lists to choose among


@dataclass(frozen=True)
class Draws:
    """What chance decides for one search: the same whenever it is asked.

    Parameters
    ----------
    salt
        Another decides otherwise.
    unit
        The id of the search.
    """

    salt: str
    unit: str

    def coin(self, what: object) -> bool:
        """Heads, half of the time."""
        return digits(f"coin {what}", self.salt, self.unit) < HALF

    def number(self, what: object) -> float:
        """From 0 to 1."""
        return int(digits(f"number {what}", self.salt, self.unit), 16) / 2**32


@dataclass(frozen=True)
class Interleaved:
    """One list of several rankings.

    Parameters
    ----------
    docs
        What to show.
    teams
        Which ranking each doc was taken from, from 0; log it with the result. -1 where a method
        has no teams, and clicks are told apart by the rankings themselves.
    rankings
        Those it was made from.
    """

    docs: tuple[Any, ...]
    teams: tuple[int, ...]
    rankings: tuple[tuple[Any, ...], ...]

    def __repr__(self) -> str:
        return brief(self, f"{many(len(self.docs), 'doc')} of {len(self.rankings)} rankings")


@dataclass(frozen=True)
class Interleaving:
    """A way of interleaving.

    Parameters
    ----------
    name, sentence
        What it is called, and what it does.
    merge
        Rankings, how many results to show, and draws -> docs and teams.
    credit
        The list and which results were clicked (N,) -> what that is worth to each ranking.
    most
        Rankings that it takes.
    """

    name: str
    sentence: str
    merge: Callable[[Sequence[Sequence[Doc]], int, Draws], tuple[list[Doc], list[int]]]
    credit: Callable[[Interleaved, Bools], Floats]
    most: int = 2


INTERLEAVINGS: Registry[Interleaving] = Registry("way of interleaving")


def interleave(
    rankings: Sequence[Sequence[Doc]],
    unit: str,
    *,
    method: str = "team-draft",
    length: int | None = None,
    salt: str = "interleaving",
) -> Interleaved:
    """One list of several rankings, to be shown.

    Parameters
    ----------
    rankings
        Of two rankers (team-draft takes more), each doc once, the best first.
    unit
        The id of the search: the same gives the same list.
    method
        balanced, team-draft, constraints, probabilistic or optimised.
    length
        How many results to show; by default as many as the shortest ranking has.
    salt
        Another draws otherwise.
    """
    way = INTERLEAVINGS.get(method)
    given = tuple(tuple(ranking) for ranking in rankings)
    if not 2 <= len(given) <= way.most:
        more = "" if way.most == 2 else " to " + str(way.most)
        raise BadOption(f"{method} takes 2{more} rankings, not {len(given)}.")
    for place, ranking in enumerate(given, 1):
        if len(set(ranking)) < len(ranking):
            raise BadOption(f"Ranking {place} has a doc twice. Each doc may be there once.")
    shortest = min(map(len, given))
    if length is None:
        length = shortest
    if not 1 <= length <= shortest:
        raise BadOption(
            f"{many(length, 'result')} cannot be shown of a ranking that has {shortest}. Give "
            "longer rankings, or a smaller length."
        )
    docs, teams = way.merge(given, length, Draws(salt, unit))
    return Interleaved(tuple(docs), tuple(teams), given)


def credit(shown: Interleaved, clicks: Sequence[bool], *, method: str = "team-draft") -> Floats:
    """What the clicks of one search are worth to each ranking; the larger wins the search.

    Parameters
    ----------
    shown
        From `interleave`.
    clicks
        Of each result shown, whether it was clicked.
    method
        As it was interleaved.
    """
    way = INTERLEAVINGS.get(method)
    clicked = np.asarray(clicks, dtype=bool)
    if clicked.shape != (len(shown.docs),):
        raise BadOption(
            f"clicks must say of each of {many(len(shown.docs), 'result')} whether it was clicked."
        )
    return way.credit(shown, clicked)


# -- balanced (Joachims, 2002) ---------------------------------------------------------------------


def _merge_balanced(
    rankings: Sequence[Sequence[Doc]], length: int, draws: Draws
) -> tuple[list[Doc], list[int]]:
    """The one that begins is a doc ahead; both take their best doc that is not there yet."""
    first = 0 if draws.coin("first") else 1
    docs: list[Doc] = []
    upto = [0, 0]
    while len(docs) < length:
        team = first if upto[first] <= upto[1 - first] else 1 - first
        doc = rankings[team][upto[team]]
        upto[team] += 1
        if doc not in docs:
            docs.append(doc)
    return docs, [-1] * len(docs)


def _credit_balanced(shown: Interleaved, clicked: Bools) -> Floats:
    """Clicks on docs among the first k of each ranking, k as small as holds the lowest click."""
    if not clicked.any():
        return np.zeros(2)
    lowest = shown.docs[int(np.flatnonzero(clicked)[-1])]
    depth = min(_place(ranking, lowest) for ranking in shown.rankings)
    chosen = {doc for doc, click in zip(shown.docs, clicked, strict=True) if click}
    return np.array([float(len(chosen & set(r[: int(depth)]))) for r in shown.rankings])


# -- team draft (Radlinski et al., 2008; for several Schuth et al., 2014) --------------------------


def _merge_teams(
    rankings: Sequence[Sequence[Doc]], length: int, draws: Draws
) -> tuple[list[Doc], list[int]]:
    """In every round each ranking, in an order drawn at random, adds its best doc that is left."""
    docs: list[Doc] = []
    teams: list[int] = []
    turn = 0
    while len(docs) < length:
        order = sorted(range(len(rankings)), key=lambda t: draws.number(f"{turn} {t}"))
        for team in order:
            doc = next((d for d in rankings[team] if d not in docs), None)
            if doc is not None and len(docs) < length:
                docs.append(doc)
                teams.append(team)
        turn += 1
    return docs, teams


def _credit_teams(shown: Interleaved, clicked: Bools) -> Floats:
    """Clicks on the docs that a ranking added."""
    teams = np.asarray(shown.teams)[clicked]
    return np.bincount(teams, minlength=len(shown.rankings)).astype(float)


# -- document constraints (He et al., 2009) --------------------------------------------------------


def _credit_constraints(shown: Interleaved, clicked: Bools) -> Floats:
    """Less the constraints that a ranking breaks: a clicked doc is better than those above it, and
    than the next one below, that were not clicked."""
    broken = np.zeros(2)
    passed: list[Doc] = []
    for (doc, click), (below, click_below) in pairwise(
        [*zip(shown.docs, clicked.tolist(), strict=True), (None, True)]
    ):
        if not click:
            passed.append(doc)
            continue
        for worse in [*passed, *([] if click_below else [below])]:
            for team, ranking in enumerate(shown.rankings):
                broken[team] += _place(ranking, doc) > _place(ranking, worse)
    return -broken


# -- probabilistic (Hofmann et al., 2011) ----------------------------------------------------------


def _merge_by_chance(
    rankings: Sequence[Sequence[Doc]], length: int, draws: Draws
) -> tuple[list[Doc], list[int]]:
    """A ranking drawn by a coin draws one of its docs, the likelier the higher it stands."""
    docs: list[Doc] = []
    teams: list[int] = []
    weights = [np.arange(1.0, len(r) + 1) ** -STEEPNESS for r in rankings]
    while len(docs) < length:
        team = 0 if draws.coin(len(docs)) else 1
        left = np.array([doc not in docs for doc in rankings[team]])
        if not left.any():
            team = 1 - team
            left = np.array([doc not in docs for doc in rankings[team]])
        upto = np.cumsum(weights[team] * left)
        place = int(np.searchsorted(upto, draws.number(len(docs)) * upto[-1], side="right"))
        docs.append(rankings[team][place])
        teams.append(team)
    return docs, teams


def _credit_by_chance(shown: Interleaved, clicked: Bools) -> Floats:
    """Each click is shared by how likely either ranking was to bring that doc there: the mean over
    all ways in which the list could have come about, not only the one that did."""
    found = np.zeros(2)
    weights = [
        dict(zip(r, np.arange(1.0, len(r) + 1) ** -STEEPNESS, strict=True)) for r in shown.rankings
    ]
    left = [sum(w.values()) for w in weights]
    for doc, click in zip(shown.docs, clicked, strict=True):
        own = [w.get(doc, 0.0) for w in weights]
        chance = np.array(
            [o / total if total > 0 else 0.0 for o, total in zip(own, left, strict=True)]
        )
        if click:
            found += chance / chance.sum()
        left = [max(total - o, 0.0) for total, o in zip(left, own, strict=True)]
    return found


# -- optimised (Radlinski and Craswell, 2013) ------------------------------------------------------


def _merge_optimised(
    rankings: Sequence[Sequence[Doc]], length: int, draws: Draws
) -> tuple[list[Doc], list[int]]:
    """Of all lists in which every doc is the best left of either ranking one is drawn, with chances
    by which clicks at random favour neither ranking, however deep users look, and which otherwise
    tell as much as can be."""
    if length > LONGEST_OPTIMISED:
        raise BadOption(
            f"optimised chooses among all lists, too many for {many(length, 'result')}. Use "
            f"{LONGEST_OPTIMISED} or fewer, or another way of interleaving."
        )
    lists = _allowed(rankings, length)
    upto = np.cumsum(_chances(lists, rankings))
    place = int(np.searchsorted(upto, draws.number("list") * upto[-1], side="right"))
    chosen = lists[min(place, len(lists) - 1)]
    return list(chosen), [-1] * len(chosen)


def _allowed(rankings: Sequence[Sequence[Doc]], length: int) -> list[tuple[Doc, ...]]:
    found: dict[tuple[Doc, ...], None] = {(): None}
    for _ in range(length):
        longer: dict[tuple[Doc, ...], None] = {}
        for docs in found:
            for ranking in rankings:
                doc = next(d for d in ranking if d not in docs)
                longer[(*docs, doc)] = None
        found = longer
    return list(found)


def _chances(lists: Sequence[Sequence[Doc]], rankings: Sequence[Sequence[Doc]]) -> Floats:
    """(L,): the chances of the lists, by linear programming."""
    from scipy.optimize import linprog

    worth = np.array([[_difference(rankings, doc) for doc in docs] for docs in lists])
    upto = np.cumsum(worth, axis=1)  # what a user is worth who clicks any of the first k alike
    spread = (worth**2).mean(axis=1) - worth.mean(axis=1) ** 2
    ones = np.ones((1, len(lists)))
    done = linprog(
        -spread,
        A_eq=np.concatenate([ones, upto.T]),
        b_eq=np.concatenate([[1.0], np.zeros(upto.shape[1])]),
        bounds=(0, 1),
        method="highs",
    )
    if done.status != 0:
        raise BadOption(
            "No chances of lists favour neither of these two rankings. Use team-draft for them."
        )
    return np.asarray(np.maximum(done.x, 0.0), dtype=float)


def _difference(rankings: Sequence[Sequence[Doc]], doc: Doc) -> float:
    """By how much the first ranking has the doc higher: 1 / rank of each."""
    first, second = (1 / _place(ranking, doc) for ranking in rankings)
    return first - second


def _credit_optimised(shown: Interleaved, clicked: Bools) -> Floats:
    worth = sum(
        _difference(shown.rankings, doc)
        for doc, click in zip(shown.docs, clicked, strict=True)
        if click
    )
    return np.array([max(worth, 0.0), max(-worth, 0.0)])


def _place(ranking: Sequence[Doc], doc: Doc) -> float:
    """The rank of a doc, from 1; infinite if it is not there."""
    return ranking.index(doc) + 1 if doc in ranking else np.inf


INTERLEAVINGS.register(
    Interleaving(
        "team-draft",
        "rankings take turns in adding their best doc left; a click is for who added the doc",
        _merge_teams,
        _credit_teams,
        most=10,
    )
)
INTERLEAVINGS.register(
    Interleaving(
        "balanced",
        "each is at most a doc ahead; clicks among as many of the best of each are counted",
        _merge_balanced,
        _credit_balanced,
    )
)
INTERLEAVINGS.register(
    Interleaving(
        "constraints",
        "the list is balanced; who contradicts fewer of the preferences that clicks tell wins",
        _merge_balanced,
        _credit_constraints,
    )
)
INTERLEAVINGS.register(
    Interleaving(
        "probabilistic",
        "docs are drawn, the likelier the higher; clicks are shared by who would have brought them",
        _merge_by_chance,
        _credit_by_chance,
    )
)
INTERLEAVINGS.register(
    Interleaving(
        "optimised",
        "of all lists that keep both orders, with chances that favour neither and tell the most",
        _merge_optimised,
        _credit_optimised,
    )
)
