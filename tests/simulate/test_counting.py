"""Counts straight from arrays are those of a harvest of the same appearances."""

import numpy as np
import pandas as pd
import pytest

from rankdrift import harvest, read_log
from rankdrift.simulate.clicks import draw_clicked, shown_codes
from rankdrift.simulate.counting import count_pairs

RANKS = 9


def appearances(seed=0, pairs=400, most=5):
    """rank, click (N, K), rank 0 where a pair was not shown any more."""
    rng = np.random.default_rng(seed)
    rank = rng.integers(1, RANKS + 1, (pairs, most))
    rank[np.arange(most) >= rng.integers(1, most + 1, (pairs, 1))] = 0
    return rank, (rng.random(rank.shape) < 0.3) & (rank > 0)


@pytest.mark.parametrize("max_shown", [2, 4, 8])
def test_the_same_as_a_harvest(max_shown):
    rank, click = appearances()
    pair, place = np.nonzero(rank)
    log = pd.DataFrame({
        "query": [f"q{n % 20}" for n in pair], "doc": pair, "day": "2024-01-01",
        "rank": rank[pair, place], "click": click[pair, place].astype(int),
    })  # fmt: skip
    # One bucket: which one a query is in, a harvest decides by a hash.
    wanted = harvest(read_log(log, max_rank=RANKS), buckets=1, max_shown=max_shown)
    found = count_pairs(
        rank, click, np.zeros(len(rank), int), buckets=1, max_rank=RANKS, max_shown=max_shown
    )
    assert found.n_pairs == wanted.n_pairs > 100
    for name in ("rank_pairs", "overflow", "by_rank"):
        assert getattr(found, name).equals(getattr(wanted, name))
    assert np.array_equal(found.pairs.shown, wanted.pairs.shown)
    assert found.pairs.pairs.tolist() == wanted.pairs.pairs.tolist()
    assert found.funnel.used == wanted.funnel.used
    for reason in ("never_clicked", "one_rank"):
        ours, theirs = found.funnel.dropped[reason], wanted.funnel.dropped[reason]
        assert (ours.rows, ours.clicks) == (theirs.rows, theirs.clicks)


def test_segments_and_pairs_that_were_never_clicked():
    rank, click = np.array([[1, 2], [3, 1]]), np.array([[True, False], [False, True]])
    unclicked = np.zeros(2 * 4, int)
    unclicked[4 + 3] = 7  # of the second segment, at rank 3
    counts = count_pairs(
        rank, click, np.array([0, 1]), buckets=2, max_rank=3, segment=np.array([0, 1]),
        segments={"device": ("app", "web")}, unclicked=unclicked, options={"made": "up"},
    )  # fmt: skip
    assert counts.segments == (("app",), ("web",)) and counts.options == {"made": "up"}
    assert counts.by_rank.impressions.tolist() == [1, 1, 1, 8]
    assert counts.funnel.dropped["never_clicked"].rows == 7 and counts.funnel.rows == 11


def test_codes_are_sorted_with_nothing_at_the_end():
    rank, click = np.array([[3, 0, 1], [2, 2, 5]]), np.array([[1, 0, 0], [1, 0, 0]], bool)
    assert shown_codes(rank, click).tolist() == [[2, 7, 0], [4, 5, 10]]


def test_clicks_are_those_of_eq_1_given_that_there_is_one():
    """Drawn until one is kept; beside z and clicks drawn plainly, of which those without are not
    taken."""
    rng = np.random.default_rng(0)
    n, p, mean = 200_000, np.array([0.9, 0.4, 0.0]), 0.3
    click = np.zeros((n, 3), bool)
    todo = np.arange(n)
    while len(todo):
        drawn, kept = draw_clicked(rng, np.tile(p, (len(todo), 1)), np.full(len(todo), mean))
        click[todo[kept]] = drawn[kept]
        todo = todo[~kept]
    z = rng.beta(1, 1 / mean - 1, (4 * n, 1))
    plain = rng.random((4 * n, 3)) < p * z
    plain = plain[plain.any(axis=1)]
    # Shares of 200,000: deviations of 0.001 each.
    for which in ([1, 0, 0], [0, 1, 0], [1, 1, 0]):
        shares = [(rows == np.array(which, bool)).all(axis=1).mean() for rows in (click, plain)]
        assert shares[0] == pytest.approx(shares[1], abs=0.006)
    assert not click[:, 2].any() and click.any(axis=1).all()
