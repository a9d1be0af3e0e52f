"""The table of splits: added, folded, restricted, saved and checked like the others."""

from dataclasses import replace

import numpy as np
import pytest
from support.counts_example import by_device, example

from rankdrift.core.errors import BadCounts
from rankdrift.core.rank_blocks import HALF_OCTAVES, half_octave_of
from rankdrift.counts.counts import SPLITS, UNIT, Counts, Splits, merge
from rankdrift.counts.tables import QUERY_BUCKETS

R, Q, S, K = (SPLITS.index(name) for name in ("relevance", "queries", "score", "ranker"))


def table(*rows):
    """Rows of (segment, split, group, bucket, clicked, other, weight, away, value)."""
    return Splits(*zip(*rows, strict=True)) if rows else Splits.empty()


def rows(counts):
    return list(zip(*(column.tolist() for column in counts.splits.columns()), strict=True))


SOME = (
    (0, R, 3, 40, 0, 2, 5 * UNIT, -7, 0),
    (0, S, 522, 3, 7, 7, UNIT, 0, 9),
    (0, Q, 1, 4095, 0, 7, UNIT, 4, 0),
    (0, K, 6, 40, 500, 0, -UNIT, 0, 0),
)


def with_splits(*more, **given):
    return example(splits=table(*SOME, *more), **given)


def test_rows_are_summed_and_sorted():
    mixed = table(*SOME[::-1], SOME[0], (0, R, 3, 1, 0, 2, 0, 0, 0))
    counts = example(splits=mixed)
    first = (*SOME[0][:6], 10 * UNIT, -14, 0)
    assert rows(counts) == sorted([first, *SOME[1:]])
    assert rows(replace(counts, splits=counts.splits.of("ranker"))) == [SOME[3]]


def test_saved_and_loaded(tmp_path):
    counts = by_device(splits=table(*SOME, (1, *SOME[0][1:])))
    counts.save(tmp_path / "counts.parquet")
    again = Counts.load(tmp_path / "counts.parquet")
    assert again.equals(counts) and len(again.splits) == 5
    again.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "counts.parquet").read_bytes()


def test_added_and_folded_but_not_the_buckets_of_queries():
    fine = with_splits()
    coarse = fine.restrict(buckets=32)
    together = merge([fine, coarse])
    assert together.buckets == 32
    folded = [(*row[:3], row[3] if row[1] == Q else row[3] % 32, *row[4:]) for row in SOME]
    assert rows(coarse + fine) == rows(together)
    assert rows(together) == sorted(
        (*row[:6], *(2 * number for number in row[6:])) for row in folded
    )
    assert rows(fine.restrict(buckets=32)) == sorted(folded)


def test_segments_are_chosen_and_summed_away():
    counts = by_device(splits=table(*SOME, (1, *SOME[0][1:])))
    assert counts.segments == ((None,), ("web",))
    assert len(counts.restrict(segments=["web"]).splits) == 4
    assert rows(counts.restrict(segments=[None])) == [SOME[0]]
    assert rows(counts.pool())[0][6] == 10 * UNIT
    assert rows(counts.regroup([])) == rows(counts.pool())


@pytest.mark.parametrize(
    ("max_rank", "left"),
    [
        (500, {R, S, Q, K}),
        (499, {R, S, Q}),
        (31, {R, S, Q}),  # of queries, block 7 is 16 to 31
        (30, {R, S}),
        (23, {R, S}),  # of scores 16 to 23
        (22, {R}),
        (3, {R}),
        (2, set()),
    ],
)
def test_a_block_is_kept_if_all_its_ranks_are(max_rank, left):
    counts = with_splits()
    assert set(counts.restrict(max_rank=max_rank).splits.split) == left
    assert set(counts.only(np.arange(1, max_rank + 1, dtype=np.int32)).splits.split) == left


def test_ranks_that_were_not_counted_are_not_missed():
    """Counts down to rank 20 have some of the block from 16 to 23: all that there is."""
    counts = example(splits=table(*SOME[:3]), max_rank=20).only(np.arange(1, 21, dtype=np.int32))
    assert set(counts.splits.split) == {R, S, Q}


def test_what_depends_on_single_pairs_has_no_splits():
    for counts in (with_splits().restrict(strict=True), with_splits().drifting([0])):
        assert not len(counts.splits)


def test_parts_may_lack_a_column_but_not_differ_in_it():
    old = with_splits(options={"query": ["q"]})
    new = with_splits(options={"query": ["q"], "score": "points", "outcome_at_least": 30.0})
    other = with_splits(options={"query": ["q"], "score": "model_score"})
    for together in (old + new, new + old, merge([old, new, old])):
        assert together.options == new.options
    with pytest.raises(BadCounts, match=r"option 'score' is 'points' in one and 'model_score'"):
        merge([old, new, other])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((0, 8, 0, 0, 0, 0, 1, 0, 0), "a split outside 0 to 7"),
        ((0, R, 33, 0, 0, 0, 1, 0, 0), "a group that its split does not have"),
        ((0, R, -1, 0, 0, 0, 1, 0, 0), "a group that its split does not have"),
        ((0, R, 0, 64, 0, 0, 1, 0, 0), "a bucket outside 0 to 63"),
        ((0, Q, 0, QUERY_BUCKETS, 0, 0, 1, 0, 0), "of queries 4,096"),
        ((0, R, 0, 0, 17, 0, 1, 0, 0), "a block of ranks outside 0 to 16"),
        ((0, R, 0, 0, 0, 17, 1, 0, 0), "a block of ranks outside 0 to 16"),
        ((0, K, 0, 0, 0, 0, 1, 0, 0), "a rank outside 1 to max_rank 500"),
        ((0, K, 0, 0, 501, 0, 1, 0, 0), "a rank outside 1 to max_rank 500"),
        ((0, K, 0, 0, 1, 19, 1, 0, 0), "of ranker above 18"),
        ((0, R, 0, 0, 0, 1, -1, 0, 0), "a negative weight or value"),
        ((0, S, 514, 0, 0, 1, 1, 0, -1), "a negative weight or value"),
        ((1, R, 0, 0, 0, 0, 1, 0, 0), "an unknown segment"),
    ],
)
def test_what_cannot_be_is_refused(row, words):
    with pytest.raises(BadCounts, match=words):
        example(splits=table(row))


def test_half_octaves():
    ranks = np.arange(1, 100_001)
    blocks = half_octave_of(ranks)
    assert HALF_OCTAVES[:9] == (1, 2, 3, 4, 6, 8, 12, 16, 24)
    assert (np.array(HALF_OCTAVES)[blocks] <= ranks).all()
    assert (ranks < np.append(HALF_OCTAVES, 131_072)[blocks + 1]).all()
    assert half_octave_of(np.array([500]))[0] == 16
