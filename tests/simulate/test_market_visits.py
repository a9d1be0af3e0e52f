"""Who visits a marketplace: sessions, what they search for, and when."""

import numpy as np
import pytest

from rankdrift.simulate.market_visits import (
    BATCH,
    BOTS,
    SORT_SHARES,
    clock,
    popularity,
    visit,
)
from rankdrift.simulate.searches import ZIPF

MANY, USERS, DEPTH = 20_000, 500, 500
# A share of 20,000 has a deviation of 0.004 at most; shares of sessions, twice that.
NEAR = 0.03


@pytest.fixture(scope="module")
def visits():
    return visit(
        np.random.default_rng(0), MANY, popular=popularity(100), users=USERS, depth=DEPTH,
        randomised=0.25, bots=0.1,
    )  # fmt: skip


def test_popular_queries_are_searched_more(visits):
    shares = np.diff(popularity(100), prepend=0)
    assert shares.sum() == pytest.approx(1)
    assert shares[9] / shares[0] == pytest.approx(10**-ZIPF)
    found = np.bincount(visits.query, minlength=100) / MANY
    assert found[0] == pytest.approx(shares[0], abs=NEAR)


def test_a_session_has_one_user_and_one_platform(visits):
    starts = np.flatnonzero(np.diff(visits.session, prepend=0))
    for column in (visits.user, visits.platform, visits.bot):
        first = np.repeat(column[starts], np.diff(starts, append=MANY))
        assert np.array_equal(column, first)


def test_results_come_in_batches(visits):
    people = ~visits.bot
    size = np.array(BATCH)[visits.platform]
    assert ((visits.loaded % size == 0) | (visits.loaded == DEPTH))[people].all()
    assert (visits.loaded[visits.bot] == DEPTH).all()
    assert (visits.user[visits.bot] >= USERS).all() and len(set(visits.user[visits.bot])) <= BOTS


def test_shares_are_those_asked_for(visits):
    found = np.bincount(visits.sort, minlength=len(SORT_SHARES)) / MANY
    assert found == pytest.approx(np.array(SORT_SHARES), abs=NEAR)
    best = (visits.sort == 0) & ~visits.bot
    assert visits.randomised[best].mean() == pytest.approx(0.25, abs=NEAR)
    assert not visits.randomised[~best].any()
    assert visits.bot.mean() == pytest.approx(0.1, abs=NEAR)


def test_searches_of_a_session_follow_on_each_other(visits):
    ends = np.cumsum(visits.loaded) / visits.loaded.sum()
    moment = clock(np.random.default_rng(1), visits.session, np.append(0, ends[:-1]), ends)
    same = np.diff(visits.session) == 0
    assert (np.diff(moment)[same] >= 0).all()
    assert moment.min() >= 0 and moment.max() < 1
