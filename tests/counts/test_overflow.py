"""Pairs shown too often to be listed: they become comparisons, and are counted by rank."""

import duckdb
import numpy as np
import pytest
from support.counts_example import Pairs, example, with_comparisons

from rankdrift.core.errors import BadCounts
from rankdrift.counts.counts import UNIT, ByRank, Counts, Overflow, RankPairs
from rankdrift.counts.funnel import Funnel, Used


def test_a_long_pair_becomes_comparisons_by_the_rule():
    # Shown 5 times: at 1 (not clicked), 2 (clicked twice of 3 times), 6 (clicked).
    counts = example(
        max_shown=5,
        pairs=Pairs([0], [9], [[2, 4, 5, 5, 13]], [10]),
        funnel=Funnel(50, 30, {}, Used(50, 30, 10)),
    ).restrict(max_shown=4)
    cells = zip(*(column.tolist() for column in counts.rank_pairs.columns()), strict=True)
    assert list(cells) == [
        (0, 9, 2, 1, False, 10 * UNIT * 2 * 1 // 4),
        (0, 9, 2, 6, False, 10 * UNIT * 2 * 1 // 4),
        (0, 9, 6, 1, False, 10 * UNIT * 1 * 1 // 4),
        (0, 9, 6, 2, False, 10 * UNIT * 1 * 3 // 4),
    ]
    by_rank = zip(*(column.tolist() for column in counts.overflow.columns()), strict=True)
    assert list(by_rank) == [
        (0, 1, False, 10, 10, 0),
        (0, 2, False, 0, 10, 20),
        (0, 6, False, 0, 10, 10),
    ]
    assert len(counts.pairs) == 0
    assert counts.n_pairs == counts.n_overflow == 10


def test_single_tells_of_the_whole_pair():
    counts = example(
        pairs=Pairs([0, 0], [0, 0], [[2, 4, 7], [3, 4, 7]], [1, 1]),
        funnel=Funnel(6, 3, {}, Used(6, 3, 2)),
    ).restrict(max_shown=2)
    cells = {
        (a, b, one): w for _, _, a, b, one, w in zip(*counts.rank_pairs.columns(), strict=True)
    }
    assert cells == {
        (3, 1, True): UNIT // 2,
        (3, 2, True): UNIT // 2,
        (1, 2, False): UNIT // 2,
        (1, 3, False): UNIT // 2,
        (3, 1, False): UNIT // 2,
        (3, 2, False): UNIT // 2,
    }
    held = {(rank, one): n for _, rank, one, *n in zip(*counts.overflow.columns(), strict=True)}
    assert held == {
        (1, True): [1, 1, 0],
        (2, True): [0, 1, 0],
        (3, True): [0, 1, 1],
        (1, False): [1, 1, 1],
        (2, False): [0, 1, 0],
        (3, False): [0, 1, 1],
    }


def test_weights_are_those_of_sql_to_the_last_bit():
    rng = np.random.default_rng(0)
    log, shown = [], np.zeros((400, 60), int)
    for pair in range(400):
        m = int(rng.integers(8, 60))
        ranks, clicks = rng.integers(1, 9, m), rng.random(m) < (pair % 2) * 0.3
        ranks[:2], clicks[0] = (1 + pair % 7, 8), True  # usable
        log += [(pair, rank, click) for rank, click in zip(ranks.tolist(), clicks, strict=True)]
        shown[pair, :m] = np.sort(2 * ranks + clicks)
    pairs = Pairs([0] * 400, [0] * 400, shown, [1] * 400)
    total = pairs.total
    short = Counts(
        pairs, RankPairs.empty(), ByRank.empty(), Funnel(total.rows, total.clicks, {}, total),
        buckets=1, max_rank=8, max_shown=60,
    ).restrict(max_shown=2)  # fmt: skip
    with duckdb.connect() as con:
        con.execute("CREATE TABLE log (pair INT, rank INT, click INT)")
        pair, rank, click = (np.array(column) for column in zip(*log, strict=True))
        con.register("rows", {"pair": pair, "rank": rank, "click": click})
        con.execute("INSERT INTO log SELECT pair, rank, click::INT FROM rows")
        expected = con.sql("""
            WITH by_rank AS (
                SELECT pair, rank, count(*) AS n, sum(click) AS c FROM log GROUP BY ALL
            ), by_pair AS (SELECT pair, count(*) AS m, sum(click) AS k FROM log GROUP BY ALL)
            SELECT a.rank, b.rank, k = 1, sum(CAST(floor(CAST(a.c * b.n AS DOUBLE)
                * CAST(4294967296 AS DOUBLE) / CAST(m - 1 AS DOUBLE) + 0.5) AS BIGINT))
            FROM by_rank a JOIN by_rank b USING (pair) JOIN by_pair USING (pair)
            WHERE a.c > 0 AND a.rank <> b.rank GROUP BY ALL ORDER BY ALL""").fetchall()
    _, _, *columns = (column.tolist() for column in short.rank_pairs.columns())
    assert list(zip(*columns, strict=True)) == expected
    assert {single for _, _, single, _ in expected} == {True, False}


@pytest.mark.parametrize(
    "held",
    [
        Overflow([0, 0], [2, 3], [True, True], first=[1, 0], pairs=[2, 2], clicks=[2, 0]),
        Overflow([0, 0], [2, 3], [True, True], first=[2, 0], pairs=[2, 2], clicks=[1, 0]),
        Overflow([0, 0], [2, 4], [True, True], first=[2, 0], pairs=[2, 2], clicks=[2, 0]),
        Overflow([0, 0], [2, 3], [False, True], first=[2, 0], pairs=[2, 2], clicks=[2, 0]),
        Overflow([0], [2], [True], first=[2], pairs=[2], clicks=[2]),
    ],
)
def test_pairs_held_are_those_of_the_comparisons(held):
    with pytest.raises(BadCounts, match=r"which are . pairs? with . clicks?\. Rows were lost"):
        with_comparisons(overflow=held)


def test_restricted_counts_know_the_pairs_they_hold():
    counts = with_comparisons(segment_columns=("device",), segments=(("web",),))
    web = counts.restrict(segments=["web"])
    assert (web.n_pairs, web.n_clicks, web.n_overflow) == (5, 6, 2)
    first = counts.only(np.array([2, 4, 9], np.int32))
    assert first.overflow.rank.tolist() == [2]
    assert counts.drifting([0]).n_overflow == counts.restrict(strict=True).n_overflow == 0
    assert counts.regroup([]).overflow.equals(counts.pool().overflow)


def test_counts_that_do_not_know_the_pairs_they_hold():
    """As read from a file of format 1."""
    unknown = with_comparisons(overflow=Overflow.empty())
    assert (
        not unknown.overflow_known
        and with_comparisons().overflow_known
        and example().overflow_known
    )
    assert (unknown.n_pairs, unknown.n_clicks, unknown.n_overflow) == (5, 6, 2)  # the funnel knows
    shallow = unknown.restrict(max_rank=4)
    assert (shallow.n_pairs, shallow.n_clicks, shallow.n_overflow) == (1, 1, None)
    assert shallow.summary()["pairs_compared"] is None
    assert not unknown.restrict(max_shown=2).overflow_known
    for both in (unknown + with_comparisons(), with_comparisons() + unknown):
        assert len(both.overflow) == 0 < len(both.rank_pairs)
        assert (both.n_pairs, both.n_overflow) == (10, 4)
    assert not (unknown + example()).overflow_known
    assert unknown.restrict(strict=True).overflow_known  # for there are none
