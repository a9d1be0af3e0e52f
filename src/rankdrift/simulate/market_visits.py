"""Who visits a made-up marketplace: users, sessions, what they search and how far they load."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.types import Bools, Floats, Ints
from rankdrift.simulate.searches import ZIPF

PLATFORMS = ("web", "mobile")
BATCH = (50, 40)  # results a page on the web, results loaded at a time on mobile
SORTS = ("best_match", "price", "newest", "ending_soonest")
SORT_SHARES = (0.88, 0.06, 0.04, 0.02)
ON = 1.2  # a user loads k batches or more in a share k ** -ON of searches
NEW_SESSION, SAME_QUERY = 0.55, 0.35
BETWEEN = 90 / 86_400  # mean time between searches of a session, in days
BOTS = 5  # users that are none


@dataclass(frozen=True)
class Visits:
    """Searches (N,) in the order they were made. platform and sort are indices; moment is a share
    of the day; loaded is how many results came on the screen."""

    user: Ints
    session: Ints
    query: Ints
    platform: Ints
    sort: Ints
    loaded: Ints
    moment: NDArray[np.float32]
    randomised: Bools
    bot: Bools

    def take(self, which: Bools | Ints) -> Visits:
        """Some of them."""
        columns: list[NDArray[Any]] = [getattr(self, f.name)[which] for f in fields(self)]
        return Visits(*columns)


def popularity(queries: int) -> Floats:
    """How many searches the queries up to each get, as a share (Q,)."""
    many = np.cumsum(np.arange(1.0, queries + 1) ** -ZIPF)
    return np.asarray(many / many[-1])


def visit(
    random: np.random.Generator,
    many: int,
    *,
    popular: Floats,
    users: int,
    depth: int,
    randomised: float,
    bots: float,
) -> Visits:
    """Make up searches; their moments are for `clock` to say.

    Parameters
    ----------
    random
        Where all that is random comes from.
    many
        Searches.
    popular
        (Q,), what `popularity` returns.
    users
        Who search.
    depth
        The most results a search loads.
    randomised
        Share of best-match searches in random order.
    bots
        Share of sessions by bots.
    """
    first = random.random(many) < NEW_SESSION
    first[0] = True
    session = np.cumsum(first, dtype=np.int64)
    of_session = np.maximum.accumulate(np.where(first, np.arange(many), 0))
    again = (random.random(many) < SAME_QUERY) & ~first
    of_query = np.maximum.accumulate(np.where(again, 0, np.arange(many)))
    bot = (random.random(many) < bots)[of_session]
    platform = random.integers(len(PLATFORMS), size=many)[of_session]
    user = random.integers(users, size=many)[of_session]
    batches = np.floor((1 - random.random(many)) ** (-1 / ON))
    loaded = np.minimum(depth, np.array(BATCH)[platform] * np.minimum(batches, depth))
    sort = np.searchsorted(np.cumsum(SORT_SHARES[:-1]), random.random(many), side="right")
    return Visits(
        user=np.where(bot, users + user % BOTS, user),
        session=session,
        query=np.searchsorted(popular, random.random(many))[of_query],
        platform=platform,
        sort=sort,
        loaded=np.where(bot, depth, loaded).astype(np.int64),
        moment=np.zeros(many, np.float32),
        randomised=(random.random(many) < randomised) & (sort == 0) & ~bot,
        bot=bot,
    )


def clock(
    random: np.random.Generator, session: Ints, begun: Floats, ended: Floats
) -> NDArray[np.float32]:
    """When each search was made: `begun` to `ended` (N,) are shares of the day's rows.

    Nights are quiet. The searches of a session follow on its first.
    """
    turn = begun + random.random(len(begun)) * (ended - begun)
    turn = turn + 0.08 * np.sin(2 * np.pi * turn)
    starts = np.flatnonzero(np.diff(session, prepend=0))
    start = np.repeat(starts, np.diff(starts, append=len(session)))
    wait = np.cumsum(random.exponential(BETWEEN, len(session)))
    return np.minimum(turn[start] + wait - wait[start], 1 - 1e-5).astype(np.float32)
