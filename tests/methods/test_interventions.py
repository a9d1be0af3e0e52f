"""Interventional sets against brute force, and what is refused."""

from collections import defaultdict
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from support.method_world import made

from rankdrift import harvest, read_log
from rankdrift.core.errors import BadLog, BadOption, NotIdentified, NoUsablePairs
from rankdrift.methods.em_pairs import em
from rankdrift.methods.intervention_harvesting import adjacent_chain, all_pairs, pivot_one
from rankdrift.methods.interventions import Interventions, find_interventions
from rankdrift.methods.tallies import clicked_pairs, tally

UNIT = 1e-6  # shares are kept in units of 2^-32


def by_hand(rows, max_rank):
    """(clicks, pairs), each (R, R), row by row."""
    cells = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for query, doc, rank, click in rows[["query", "doc", "rank", "click"]].itertuples(index=False):
        if rank <= max_rank:
            cell = cells[query, doc][rank]
            cell[0] += 1
            cell[1] += click
    clicks, pairs = (np.zeros((max_rank, max_rank)) for _ in range(2))
    for of_pair in cells.values():
        for k, other in permutations(of_pair, 2):
            shown, clicked = of_pair[k]
            clicks[k - 1, other - 1] += clicked / shown
            pairs[k - 1, other - 1] += 1
    return clicks, pairs


def test_sets_by_hand():
    world = made(3, queries=30, searches=6, ranks=6)
    found = find_interventions(world.log(), max_rank=4, buckets=16)
    clicks, pairs = by_hand(world.rows, 4)
    assert found.pairs.sum(axis=0) == pytest.approx(pairs)
    assert found.clicks.sum(axis=0) == pytest.approx(clicks, abs=UNIT)
    assert (found.pairs == found.pairs.transpose(0, 2, 1)).all()
    assert found.clicks.shape == (16, 4, 4)
    assert (found.pairs.sum(axis=(1, 2)) > 0).sum() > 5  # queries are spread over buckets


def test_without_pairs_that_got_no_click():
    world = made(4, queries=40, searches=5, ranks=5, level=0.05)
    both = find_interventions(world.log(), max_rank=5)
    clicked = find_interventions(world.log(), max_rank=5, unclicked=False)
    assert clicked.clicks == pytest.approx(both.clicks)
    assert clicked.pairs.sum() < both.pairs.sum()
    assert pivot_one(both).log_p == pytest.approx(pivot_one(clicked).log_p)
    with pytest.raises(BadOption, match="unclicked=True"):
        all_pairs(clicked)


def test_a_doc_shown_twice_in_a_search_is_left_out():
    rows = pd.DataFrame({
        "search": [1, 1, 2, 3], "query": ["a"] * 4, "doc": [7, 7, 7, 7], "rank": [1, 2, 1, 3],
        "click": [1, 0, 1, 0],
    })  # fmt: skip
    log = read_log(rows, query="query", doc="doc", rank="rank", click="click", search="search",
                   day="")  # fmt: skip
    found = find_interventions(log, max_rank=3)
    assert found.pairs.sum(axis=0)[0].tolist() == [0, 0, 1]  # search 1 says nothing


def test_one_ranker_makes_no_interventions():
    world = made(5, queries=20, searches=5, drift=0.0)
    with pytest.raises(NoUsablePairs, match="one ranker whose order never changes"):
        find_interventions(world.log(), max_rank=10)
    with pytest.raises(NotIdentified, match=r"Rank 1 can be compared with no other.*one ranker"):
        em(clicked_pairs(world.log(), max_rank=10))


def test_a_rank_without_clicks_is_no_rank_of_em():
    world = made(5, queries=60, searches=40)
    quiet = world.rows["click"].mask(world.rows["rank"] == 4, 0)
    log = type(world)(world.rows.assign(click=quiet), world.log_p).log()
    found = em(clicked_pairs(log, max_rank=10))
    assert found.gaps[4] == "shown with clicked pairs, but never clicked itself"
    assert 4 not in found.ranks


def test_how_deep():
    with pytest.raises(BadOption, match="from 2 to 100 here, not 101"):
        find_interventions(made(5, queries=2, searches=2).log(), max_rank=101)


def test_ranks_from_zero_are_not_dropped_without_a_word():
    world = made(6, queries=5, searches=3)
    zero = world.rows.assign(rank=world.rows["rank"] - 1)
    roles = {"query": "query", "doc": "doc", "rank": "rank", "click": "click", "day": ""}
    for collected in (find_interventions, tally):
        with pytest.raises(BadLog, match=r"15 rows have rank 0.*--first-rank 0"):
            collected(read_log(zero, **roles))
    moved = find_interventions(read_log(zero, **roles, first_rank=0))
    assert (moved.pairs == find_interventions(read_log(world.rows, **roles)).pairs).all()


def test_every_layout_says_the_same(tmp_path):
    world = made(9, queries=20, searches=10, randomised=0.3)
    world.rows.to_csv(tmp_path / "log.csv", index=False)
    by_search = world.rows.assign(doc=world.rows["doc"].astype(str)).groupby("search")
    clicked = by_search.apply(lambda of: of["doc"][of["click"] > 0].tolist(), include_groups=False)
    lists = by_search.agg(
        query=("query", "first"), is_random=("is_random", "first"), shown=("doc", list)
    ).assign(clicked=clicked)
    roles = {"query": "query", "search": "search", "day": ""}
    logs = [
        world.log(),
        read_log(tmp_path / "log.csv", doc="doc", rank="rank", click="click", **roles),
        read_log(lists.reset_index(), shown="shown", clicked="clicked", **roles),
    ]
    found = [find_interventions(log, max_rank=5) for log in logs]
    rows = [tally(log, randomised="is_random") for log in logs]
    for other in (1, 2):
        assert (found[other].clicks == found[0].clicks).all()
        assert (found[other].pairs == found[0].pairs).all()
        assert (rows[other].clicks == rows[0].clicks).all()
        assert (rows[other].impressions == rows[0].impressions).all()


def sets(clicks, pairs, buckets=4):
    """The same in every bucket but for a click here and there."""
    clicks, pairs = np.asarray(clicks, float), np.asarray(pairs, float)
    of = np.stack([clicks * (1 + 0.05 * b) for b in range(buckets)])
    many = np.broadcast_to(pairs, of.shape).copy()
    shown = many.max(axis=2).astype(int)
    return Interventions(of, many, shown, np.ceil(of.max(axis=2)).astype(int))


def test_one_bucket_tells_no_error():
    clicks = np.array([[0, 30], [20, 0]])
    with pytest.raises(NotIdentified, match="one bucket of queries"):
        all_pairs(sets(clicks, np.full((2, 2), 99), buckets=1))


def test_each_two_ranks_have_a_relevance_of_their_own():
    """Ranks 2 and 6 and ranks 3 and 4 have the same product. Chances that fit exactly are found."""
    p = np.arange(1.0, 7) ** -0.5
    rng = np.random.default_rng(0)
    r = np.triu(rng.uniform(0.1, 0.9, (6, 6)), 1)
    r = r + r.T
    pairs = np.full((6, 6), 1e6) * (1 - np.eye(6))
    exact = Interventions(
        np.stack([pairs * p[:, None] * r] * 4), np.stack([pairs] * 4),
        np.full((4, 6), 10**6), np.full((4, 6), 10**5),
    )  # fmt: skip
    found = all_pairs(exact)
    assert found.values == pytest.approx(p, rel=1e-6)
    assert found.std_error == pytest.approx(0, abs=1e-6)  # all buckets say the same
    assert found.provenance["sets"] == 15


def test_ranks_in_two_islands_are_named():
    clicks = np.zeros((6, 6))
    for a, b in ((0, 1), (1, 2), (3, 4)):
        clicks[a, b], clicks[b, a] = 30, 20
    found = all_pairs(sets(clicks, 200 * (clicks > 0)))
    assert found.ranks.tolist() == [1, 2, 3]
    assert found.gaps == {4: "compares only with ranks 4–5", 5: "compares only with ranks 4–5",
                          6: "no pair moved there or away"}  # fmt: skip
    assert all_pairs(sets(clicks, 200 * (clicks > 0)), reference=4).ranks.tolist() == [4, 5]
    with pytest.raises(NotIdentified, match=r"Rank 6, the reference.*1–3; 4–5"):
        all_pairs(sets(clicks, 200 * (clicks > 0)), reference=6)
    chain = adjacent_chain(sets(clicks, 200 * (clicks > 0)))
    assert chain.ranks.tolist() == [1, 2, 3]
    assert chain.gaps[4] == "the chain is broken between 3 and 4"
    pivot = pivot_one(sets(clicks, 200 * (clicks > 0)))
    assert pivot.ranks.tolist() == [1, 2]
    assert pivot.gaps[3] == "no pair was shown both there and at rank 1"


def test_a_rank_with_no_clicks_is_named_and_never_zero():
    clicks = np.array([[0, 30, 40], [20, 0, 25], [0, 0, 0]])
    pairs = np.full((3, 3), 200)
    for method in (all_pairs, pivot_one, adjacent_chain):
        found = method(sets(clicks, pairs))
        assert found.ranks.tolist() == [1, 2]
        assert list(found.gaps) == [3]
        assert (found.values > 0).all()


def test_ratios_by_hand():
    clicks = np.array([[0, 30, 40], [20, 0, 25], [10, 15, 0]])
    found = sets(clicks, np.full((3, 3), 200))
    assert pivot_one(found).values == pytest.approx([1, 20 / 30, 10 / 40])
    assert adjacent_chain(found).values == pytest.approx([1, 20 / 30, 20 / 30 * 15 / 25])
    assert adjacent_chain(found, reference=2).values == pytest.approx([30 / 20, 1, 15 / 25])


def test_clicked_pairs_and_tally_by_hand():
    world = made(8, queries=25, searches=8, ranks=5)
    found = clicked_pairs(world.log(), max_rank=4, buckets=8)
    rows = world.rows[world.rows["rank"] <= 4]
    kept = rows[rows.groupby(["query", "doc"])["click"].transform("sum") > 0]
    assert found.clicks.sum() == rows["click"].sum()
    assert found.misses.sum() == len(kept) - kept["click"].sum()
    by_rank = kept.groupby("rank")["click"].agg(["sum", "size"])
    assert found.clicks_by_bucket().sum(axis=0) == pytest.approx(by_rank["sum"].to_numpy())
    assert found.appearances() == pytest.approx(by_rank["size"].to_numpy())
    whole = tally(world.log(), buckets=8)
    counts = harvest(world.log()).by_rank
    assert whole.impressions.sum(axis=0).tolist() == counts.impressions.tolist()
    assert whole.clicks.sum(axis=0).tolist() == counts.clicks.tolist()
    # A bucket has whole queries, the same ones as a harvest's.
    assert (found.clicks_by_bucket() <= whole.clicks[:, :4]).all()


def test_a_log_that_ends_before_max_rank_has_no_deeper_ranks():
    world = made(9, queries=40, searches=6, ranks=5)
    found = find_interventions(world.log(), max_rank=50)
    assert found.ranks.tolist() == [1, 2, 3, 4, 5]
    assert max(all_pairs(found).gaps, default=0) <= 5


def test_em_on_its_bound_is_no_estimate():
    """Pairs shown twice, clicked once: a relevance of 1 and p = 1 at both ranks explain the clicks
    as well as anything, so it is the bound that holds p there."""
    rows = [(f"q{i}", "d", rank, int(rank == 1 + i % 2)) for i in range(60) for rank in (1, 2)]
    rows += [(f"q{i}", f"e{rank}", rank, 1) for i in range(60) for rank in (1, 2) for _ in range(3)]
    log = read_log(pd.DataFrame(rows, columns=["query", "doc", "rank", "click"]))
    with pytest.raises(NotIdentified, match="too rarely"):
        em(clicked_pairs(log, max_rank=10))
