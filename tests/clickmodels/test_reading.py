"""From a log to searches: lists by rank, what is left out and counted, and what is held out."""

from itertools import pairwise
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankdrift
from rankdrift.clickmodels import lists as listing
from rankdrift.clickmodels.arranging import arrange
from rankdrift.clickmodels.lists import last_marked, lay_out
from rankdrift.clickmodels.numbering import MARK_BITS
from rankdrift.clickmodels.reading import read_searches
from rankdrift.core.errors import BadLog, BadOption

N, LENGTH, QUERIES = 600, 5, 40


def table(seed=0, **changes):
    """Columns of a log: searches one after the other, some shorter."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, QUERIES, N)
    doc = np.argsort(rng.random((N, 9)), axis=1)[:, :LENGTH]
    keep = np.arange(LENGTH) < rng.integers(2, LENGTH + 1, N)[:, None]
    made = {
        "search": np.repeat(np.arange(N), LENGTH).reshape(N, LENGTH)[keep],
        "query": np.repeat(query, LENGTH).reshape(N, LENGTH)[keep],
        "doc": doc[keep],
        "rank": np.tile(np.arange(1, LENGTH + 1), (N, 1))[keep],
        "click": (rng.random((N, LENGTH)) < 0.3).astype(int)[keep],
        "day": np.repeat(np.arange(N) * 10 // N, LENGTH).reshape(N, LENGTH)[keep]
        + np.datetime64("2024-01-01"),
    }
    return made | changes


def frame(columns):
    import pyarrow as pa

    return pa.table(columns)


def lists(read):
    """Every search as ((pair, rank, click), …), sorted: what was read, in any order."""
    found = []
    for part in (read.train, read.test):
        of = part.lists.list_of_rows()
        rows = np.lexsort((part.rank, of))
        for own in np.split(rows, np.flatnonzero(np.diff(of[rows])) + 1):
            found.append(
                tuple((int(part.pair[i]), int(part.rank[i]), bool(part.click[i])) for i in own)
            )
    return sorted(found)


def expected(columns):
    """The same by hand."""
    keys = sorted(set(zip(columns["query"].tolist(), columns["doc"].tolist(), strict=True)))
    number = {key: i for i, key in enumerate(keys)}
    of = {}
    for s, q, d, r, c in zip(
        *(columns[name].tolist() for name in ("search", "query", "doc", "rank", "click")),
        strict=True,
    ):
        of.setdefault((s, q), []).append((number[q, d], r, c > 0))
    return sorted(tuple(sorted(rows, key=lambda row: row[1])) for rows in of.values())


def test_searches_are_lists_by_rank():
    columns = table()
    read = read_searches(rankdrift.read_log(frame(columns)))
    assert lists(read) == expected(columns)
    assert len(read.train) + len(read.test) == N
    assert 0.1 < len(read.test) / N < 0.3
    assert not read.remarks
    read.funnel.check()
    assert read.funnel.used.rows == len(columns["rank"])


def test_the_order_of_rows_changes_nothing():
    columns = table()
    mixed = np.random.default_rng(1).permutation(len(columns["rank"]))
    shuffled = {name: values[mixed] for name, values in columns.items()}
    a, b = (read_searches(rankdrift.read_log(frame(c))) for c in (columns, shuffled))
    assert lists(a) == lists(b)
    for name in ("pair", "rank", "click", "query_of_pair"):
        for part in ("train", "test"):
            x, y = (getattr(getattr(read, part), name) for read in (a, b))
            np.testing.assert_array_equal(np.sort(x), np.sort(y))


def test_names_of_searches_and_queries_may_be_text():
    columns = table()
    texts = columns | {n: np.char.add("x", columns[n].astype(str)) for n in ("search", "doc")}
    texts["query"] = np.char.add("q", np.char.zfill(columns["query"].astype(str), 4))
    log = rankdrift.read_log(frame({n: v.tolist() for n, v in texts.items()}))
    assert lists(read_searches(log)) == expected(columns)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_reads_the_same(tmp_path):
    import pyarrow.parquet as pq
    from support.spark_session import session

    path = tmp_path / "log.parquet"
    pq.write_table(frame(table()), path)
    ours = read_searches(rankdrift.read_log(str(path)))
    theirs = read_searches(rankdrift.read_log(str(path), engine="spark", session=session()))
    assert lists(ours) == lists(theirs)
    np.testing.assert_array_equal(ours.test.pair, theirs.test.pair)
    assert ours.funnel == theirs.funnel


def with_others(search, doc, rank, click):
    """A search and sixty plain ones of two results each."""
    return {
        "search": [*search, *(i // 2 + 2 for i in range(120))],
        "query": [7] * (len(search) + 120),
        "doc": [*doc, *["a", "b"] * 60],
        "rank": [*rank, *[1, 2] * 60],
        "click": [*click, *[0, 1, 1] * 40],
    }


def test_two_rows_at_one_rank_are_one_and_the_click_stays():
    columns = with_others([1] * 4, "abcd", [1, 2, 2, 4], [0, 1, 0, 0])
    read = read_searches(rankdrift.read_log(frame(columns)))
    assert ((0, 1, False), (1, 2, True), (2, 4, False)) in lists(read)
    lost = read.funnel.dropped["same_rank"]
    assert (lost.rows, lost.clicks) == (1, 0)
    read.funnel.check()


def test_a_doc_twice_is_left_out_at_both_ranks():
    columns = with_others([1] * 4, "abca", [1, 2, 3, 4], [0, 3, 0, 1])
    read = read_searches(rankdrift.read_log(frame(columns)))
    assert ((1, 2, True), (2, 3, False)) in lists(read)
    lost = read.funnel.dropped["doc_twice"]
    assert (lost.rows, lost.clicks) == (2, 1)
    assert read.funnel.dropped["repeat_click"].clicks == 2
    read.funnel.check()


def test_rows_without_a_search_are_counted():
    columns = table()
    search = columns["search"].astype(object)
    search[:7] = None
    read = read_searches(rankdrift.read_log(frame(columns | {"search": search.tolist()})))
    assert read.funnel.dropped["no_search"].rows == 7
    read.funnel.check()


def test_lists_are_cut_at_the_deepest_rank_asked_for():
    read = read_searches(rankdrift.read_log(frame(table()), max_rank=3))
    assert read.train.ranks == 3
    assert read.funnel.dropped["deep_rank"].rows > 0
    read.funnel.check()


def test_of_a_large_log_queries_are_drawn_with_all_their_searches():
    columns = table()
    read = read_searches(rankdrift.read_log(frame(columns)), searches=150)
    assert 30 < len(read.train) + len(read.test) < 400
    assert "drawn at random" in read.remarks[0]
    read.funnel.check()
    assert read.funnel.dropped["not_drawn"].rows > 0
    of_queries = np.bincount(columns["query"][columns["rank"] == 1])
    parts = (read.train, read.test)
    tops = np.concatenate([part.query_of_pair[part.pair[part.rank == 1]] for part in parts])
    assert set(np.bincount(tops)) <= set(of_queries)


def test_the_last_days_are_held_out():
    columns = table()
    read = read_searches(rankdrift.read_log(frame(columns)), split="time", held_out=0.25)
    assert len(read.test) == N * 3 // 10
    read = read_searches(rankdrift.read_log(frame(columns)), split="time", held_out=0.2)
    assert len(read.test) == N * 2 // 10


def test_what_is_held_out_is_another_with_another_seed():
    log = rankdrift.read_log(frame(table()))
    one, same, other = (read_searches(log, seed=seed).test for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.pair, same.pair)
    assert len(one) != len(other) or (one.pair != other.pair).any()


def test_what_cannot_be_is_refused_with_what_to_do():
    columns = table()
    without = {name: values for name, values in columns.items() if name != "search"}
    with pytest.raises(BadLog, match="--search"):
        read_searches(rankdrift.read_log(frame(without)))
    log = rankdrift.read_log(frame(columns))
    with pytest.raises(BadOption, match="'search' or 'time'"):
        read_searches(log, split="query")
    with pytest.raises(BadOption, match="share"):
        read_searches(log, held_out=1.5)
    with pytest.raises(BadOption, match="1 or more"):
        read_searches(log, searches=0)
    with pytest.raises(BadOption, match="--day"):
        read_searches(rankdrift.read_log(frame(columns), day=""), split="time")
    one_day = columns | {"day": np.full(len(columns["day"]), np.datetime64("2024-01-01"))}
    with pytest.raises(BadLog, match="one day"):
        read_searches(rankdrift.read_log(frame(one_day)), split="time")
    with pytest.raises(BadOption, match="--where"):
        read_searches(rankdrift.read_log(frame(columns), segment="rank"))
    none = columns | {"click": 0 * columns["click"]}
    with pytest.raises(BadLog, match="nothing to explain"):
        read_searches(rankdrift.read_log(frame(none)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_lists_are_laid_out_whole(sizes, random):
    """Every element is there once, the lists of a block are the longest first, blocks are in the
    order asked for, and places are in order."""
    lengths = np.array([*sizes, 1])
    by = np.array([random.randrange(5) for _ in lengths])
    with mock.patch.object(listing, "BLOCK_ROWS", random.choice([8, 1 << 15])):
        made, order, rows = lay_out(lengths, by)
    assert sorted(rows.tolist()) == list(range(int(lengths.sum())))
    for block in made.blocks:
        assert (np.diff(made.lengths[block.lists]) <= 0).all()
    for one, next_one in pairwise(made.blocks):
        assert by[order[one.lists]].max() <= by[order[next_one.lists]].min()
    np.testing.assert_array_equal(made.lengths, lengths[order])
    of = made.list_of_rows()
    first = (np.cumsum(lengths) - lengths)[order]
    for i in range(len(made)):
        np.testing.assert_array_equal(rows[of == i], np.arange(made.lengths[i]) + first[i])
    mark = np.array([random.random() < 0.3 for _ in rows])
    last, many = last_marked(made, mark)
    for i in range(len(made)):
        own = np.flatnonzero(of == i)
        marked = own[mark[own]]
        assert last[i] == (marked[-1] if len(marked) else -1)
        assert many[i] == (own > last[i]).sum()


def test_whole_numbers_are_numbered_as_texts_are(tmp_path):
    """Those of the one are handed out as they are, those of the other numbered by the engine."""
    rng = np.random.default_rng(4)
    n = 4_000
    query, doc = rng.integers(-3, 9, n), rng.integers(100, 130, n)
    search = np.repeat(np.arange(n // 5), 5) * 7
    columns = {
        "search": search,
        "query": np.repeat(query[::5], 5),
        "doc": doc,
        "rank": np.tile(np.arange(1, 6), n // 5),
        "click": (rng.random(n) < 0.3).astype(int),
    }
    texts = {"query": [f"{v + 3:03}" for v in columns["query"]], "doc": [f"d{v}" for v in doc]}
    for name, made in (("whole", columns), ("text", columns | texts)):
        pq.write_table(frame(made), tmp_path / f"{name}.parquet")
    whole, text = (
        read_searches(rankdrift.read_log(tmp_path / f"{x}.parquet")) for x in ("whole", "text")
    )
    assert whole.funnel == text.funnel and whole.funnel.dropped["doc_twice"].rows > 100
    for a, b in ((whole.train, text.train), (whole.test, text.test)):
        for name in ("pair", "rank", "click", "query_of_pair"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        np.testing.assert_array_equal(a.lists.lengths, b.lists.lengths)


def shown_of(doc, rank, click):
    return (np.asarray(doc) << MARK_BITS) + 2 * np.asarray(rank) + np.asarray(click)


@pytest.mark.parametrize("docs", [40, 2**44])
def test_numbers_of_pairs(docs, monkeypatch):
    """Block by block, of docs that are there again and again, and of docs that hardly are."""
    monkeypatch.setattr("rankdrift.clickmodels.numbering._BLOCK", 97)
    rng = np.random.default_rng(5)
    query, doc = rng.integers(-5, 50, 3_000), rng.integers(0, docs, 3_000)
    rank, click = rng.integers(1, 2**16, 3_000), rng.integers(0, 2, 3_000)
    made = arrange(np.arange(3_000), shown_of(doc, rank, click), query, None)
    part = rng.random(3_000) < 0.3
    found, docs_of_pair = made.searches(part[made.s], ~part[made.s])
    keys, expected = np.unique(np.stack([query, doc]), axis=1, return_inverse=True)
    queries = np.unique(keys[0], return_inverse=True)[1]
    np.testing.assert_array_equal(docs_of_pair, keys[1])
    for each, own in zip(found, (part, ~part), strict=True):
        ours = sorted(zip(expected.ravel()[own], rank[own], click[own], strict=True))
        assert sorted(zip(each.pair, each.rank, each.click, strict=True)) == ours
        np.testing.assert_array_equal(each.query_of_pair, queries)
        np.testing.assert_array_equal(made.queries[each.query_of_pair], keys[0])
        assert each.ranks == rank.max()


def test_rows_are_brought_together_from_the_top_down():
    """Two searches in four runs: one has a rank twice, the other a doc."""
    # search, query, pair, rank, clicked
    rows = [
        (7, 0, 1, 2, 0), (7, 0, 0, 1, 1), (5, 1, 4, 1, 0), (5, 1, 5, 2, 1),
        (7, 0, 2, 3, 0), (7, 0, 3, 3, 1), (5, 1, 4, 3, 1), (5, 1, 6, 4, 0),
    ]  # fmt: skip
    s, q, pair, rank, click = (np.array(column) for column in zip(*rows, strict=True))
    made = arrange(s, shown_of(pair, rank, click), q, None)
    assert {name: (lost.rows, lost.clicks) for name, lost in made.lost.items()} == {
        "same_rank": (1, 0), "doc_twice": (2, 1),
    }  # fmt: skip
    [found], docs = made.searches(np.ones(2, bool))
    of = found.lists.list_of_rows()
    pair = docs[found.pair]
    lists = {
        tuple(zip(pair[of == i], found.rank[of == i], found.click[of == i], strict=True))
        for i in range(2)
    }
    assert lists == {((0, 1, True), (1, 2, False), (3, 3, True)), ((5, 2, True), (6, 4, False))}
