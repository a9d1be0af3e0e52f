"""What every world of the lab is made of: docs, searches, and what may go on among them.

A doc has a score s, exponential as the gaps between the best are wide and those below narrow, so
that its usual rank is about C exp(-s). Of search to search its score moves by a normal number with
deviation 0.2, and its rank by about a fifth with it: the drift of Appendix D. Clicks follow
Eq. (1), prob-click, P(click) = p_rank * z, and z belongs to the pair (query, doc). A world changes
a small part of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.registry import Registry
from rankdrift.core.types import Bools, Floats, Ints
from rankdrift.simulate.true_curves import TrueCurve, steady

Singles = NDArray[np.float32]

FEWEST = 12  # queries
MORE = 1.4  # candidates of a query for each rank shown
AGAIN = 0.35  # chance that a user makes the same search once more, in a while
BETWEEN = 0.02  # mean wait until then, in days
LAST = 1 - 1e-5  # of a day, its last moment
EACH_USER = 8  # searches
PLATFORMS = ("web", "mobile")
RANKERS = ("A", "B")


@dataclass(frozen=True)
class Recipe:
    """What a world is made from, whatever goes on in it.

    Parameters
    ----------
    curve
        The propensities of an array of ranks.
    days
        Of the log, unless it is asked for others.
    pairs_a_query
        Usable pairs that a query is to give, all days together: with fewer there are more queries.
    zipf
        The k-th most popular query is searched k ** -zipf as often as the first.
    level
        Mean z of a doc in the middle.
    slope
        Rise of log z with the score: better docs are ranked higher.
    spread
        Deviation of log z among docs of one score.
    drift
        Deviation of a doc's score from search to search, that is, of its log rank.
    arms
        Deviation of ranker B's score of a doc from ranker A's.
    """

    curve: TrueCurve = steady
    days: int = 6
    pairs_a_query: float = 30.0
    zipf: float = 0.4
    level: float = 0.15
    slope: float = 0.06
    spread: float = 0.6
    drift: float = 0.2
    arms: float = 0.3

    def queries(self, pairs: int) -> int:
        """How many are searched for."""
        return max(FEWEST, round(pairs / self.pairs_a_query))

    def popularity(self, queries: int) -> Floats:
        """(Q,), the share of searches that are for each."""
        share = np.arange(1.0, queries + 1) ** -self.zipf
        return np.asarray(share / share.sum())


@dataclass(frozen=True, eq=False)
class Scene:
    """Docs and searches, in the order of time, before anything goes on.

    p (R,): the propensities. base (2, Q, C): the score of each ranker. log_z (Q, C). All others
    are of searches (S,): day and moment, a share of it; arm and platform are indices.
    """

    random: np.random.Generator
    p: Floats
    drift: float
    level: float
    base: Singles
    log_z: Singles
    query: Ints
    user: Ints
    day: Ints
    moment: Singles
    arm: Ints
    platform: Ints

    @property
    def shape(self) -> tuple[int, int]:
        """Searches, and candidates of each."""
        return len(self.query), self.base.shape[2]

    @cached_property
    def user_query(self) -> tuple[Ints, int]:
        """(S,), which combination of user and query a search is of; and how many there are."""
        both = self.user * self.base.shape[1] + self.query
        found, which = np.unique(both, return_inverse=True)
        return which, len(found)

    def of_days(self, values: NDArray[Any]) -> NDArray[Any]:
        """(S, C): what values (days, Q, C) say of the candidates of each search."""
        return np.asarray(values[self.day, self.query])

    def normal(self, *shape: int) -> Singles:
        """Standard normal numbers."""
        return self.random.standard_normal(shape, dtype=np.float32)

    def uniform(self, *shape: int) -> Singles:
        """Numbers from 0 to 1."""
        return self.random.random(shape, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Shown:
    """Results of some searches of a scene.

    search (S,): which. item, z, chance (S, R): the candidate at each rank, its relevance, and its
    chance of a click by Eq. (1), prob-click.
    """

    scene: Scene
    random: np.random.Generator
    search: Ints
    item: Ints
    z: Singles
    chance: Singles

    def draw(self, chance: NDArray[Any]) -> Bools:
        """Clicks with this chance each."""
        return np.asarray(self.random.random(chance.shape, dtype=np.float32) < chance)


@dataclass(frozen=True, eq=False)
class Looked:
    """What users made of what was shown.

    Parameters
    ----------
    click
        (S, R).
    genuine
        (S, R), the share of a click's chance that is due to relevance; only then may an outcome
        follow. None: all of it.
    truth
        (R,), the effect of rank on a click; None: that is p.
    parts
        Curves (R,) behind the truth, by name.
    """

    click: Bools
    genuine: Singles | None = None
    truth: Floats | None = None
    parts: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Change:
    """What goes on in a scene; nothing, unless it says otherwise. Arrays are (S, C).

    Parameters
    ----------
    score
        Added to the scores that rankers sort by.
    log_z
        Added to log z.
    drift
        By how much the drift is multiplied.
    listing
        Which of the docs that follow each other in its place a candidate is, from 0.
    price
        Logged, if there is one.
    look
        How users look and click, if not by Eq. (1), prob-click.
    boost
        Added to a doc's score for each doubling of 1 + its clicks so far on that day; not
        together with `look`.
    """

    score: Singles | None = None
    log_z: Singles | None = None
    drift: Singles | None = None
    listing: Ints | None = None
    price: Singles | None = None
    look: Callable[[Shown], Looked] | None = None
    boost: float = 0.0

    def __post_init__(self) -> None:
        if self.boost and self.look:
            raise ValueError("What goes on has a boost or a look of its own, not both.")


@dataclass(frozen=True)
class WorldKind:
    """A kind of world, by its name.

    Parameters
    ----------
    name
        As it is asked for.
    sentence
        What is going on.
    valid
        Whether the assumptions of the method hold in it.
    happens
        What goes on in a scene, at a strength.
    recipe
        What it is made from.
    bias
        Mean error of log p that the plain estimate has there at strength 1, over ranks 2 to 40,
        relative to rank 1: measured by `benchmarks/accuracy/world_biases.py`.
    """

    name: str
    sentence: str
    valid: bool
    happens: Callable[[Scene, float], Change] | None = None
    recipe: Recipe = Recipe()
    bias: float = 0.0


WORLDS: Registry[WorldKind] = Registry("world")
"""All worlds of the lab: those in which the curve comes out right, then those in which it does
not."""


def power(p: Floats, exponent: NDArray[Any]) -> Singles:
    """(N, R): curves that are p (R,) to a power (N,), the larger the steeper."""
    log_p = np.log(p).astype(np.float32)
    return np.asarray(np.exp(exponent.astype(np.float32)[:, None] * log_p))


def candidates(ranks: int) -> int:
    """How many docs a query has, of which so many are shown."""
    return round(MORE * ranks)


def make_scene(
    recipe: Recipe, p: Floats, share: Floats, days: int, searches: int, seed: tuple[int, ...]
) -> Scene:
    """Make up docs, and searches for them.

    Parameters
    ----------
    recipe
        What they are made from.
    p
        (R,), the propensities.
    share
        (Q,), how popular each query is.
    days
        Of the log.
    searches
        In all.
    seed
        Another makes others.
    """
    docs, visits, happens = (np.random.default_rng([*seed, stream]) for stream in range(3))
    size = len(share), candidates(len(p))
    score = docs.standard_exponential(size, dtype=np.float32)
    other = score + np.float32(recipe.arms) * docs.standard_normal(size, dtype=np.float32)
    log_z = recipe.spread * docs.standard_normal(size, dtype=np.float32)
    log_z += np.log(recipe.level) - recipe.spread**2 / 2 + recipe.slope * (score - 1)

    of = np.repeat(np.arange(searches), visits.geometric(1 - AGAIN, searches))[:searches]
    turn = np.arange(searches) - np.searchsorted(of, of)
    day = visits.integers(days, size=searches)[of]
    moment = visits.beta(2.0, 1.7, searches)[of] + turn * visits.exponential(BETWEEN, searches)
    moment = np.minimum(moment, LAST)
    upto = np.cumsum(share)
    query = np.searchsorted(upto, visits.random(searches) * upto[-1])[of]
    user = visits.integers(max(searches // EACH_USER, 1), size=searches)[of]
    platform = visits.integers(2, size=searches)[of]
    arm = visits.integers(2, size=searches)
    order = np.argsort(day + moment)
    return Scene(
        random=happens,
        p=p,
        drift=recipe.drift,
        level=recipe.level,
        base=np.stack([score, other]),
        log_z=log_z.astype(np.float32),
        query=query[order],
        user=user[order],
        day=day[order],
        moment=moment[order].astype(np.float32),
        arm=arm,
        platform=platform[order],
    )
