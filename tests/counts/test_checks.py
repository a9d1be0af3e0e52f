"""Counts that cannot be right do not exist."""

import re
from dataclasses import replace

import pytest
from support.counts_example import Pairs, example, with_comparisons

from rankdrift.core.errors import BadCounts
from rankdrift.counts.counts import ByRank, Overflow, RankPairs
from rankdrift.counts.funnel import Funnel, Used


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"buckets": 48}, "buckets is 48, which is not a power of two. Use 64."),
        (
            {"buckets": 4},
            "1 of 2 listed pairs has a bucket outside 0 to 3, for example: segment 0",
        ),
        ({"max_rank": 8}, "1 of 2 listed pairs has a rank outside 1 to max_rank 8"),
        ({"max_rank": 0}, "max_rank is 0."),
        ({"max_rank": "9"}, "max_rank is '9'."),
        ({"max_shown": 1}, "max_shown is 1."),
        ({"max_shown": 2}, "more appearances than max_shown 2"),
        ({"days": ("20240101",)}, "'20240101'"),
        ({"options": {"x": {1, 2}}}, "not plain values"),
        ({"segment_columns": ("a",)}, "Segment () has 0 values for 1 segment columns"),
        ({"segment_columns": ("a", "A"), "segments": ()}, "repeat a name"),
        ({"segments": ()}, "an unknown segment"),
        ({"funnel": Funnel(9, 4, {}, Used(7, 4, 3))}, "difference of 2"),
        (
            {"funnel": Funnel(7, 4, {}, Used(7, 4, 4))},
            "says 4 pairs, 7 rows and 4 clicks were used",
        ),
        ({"funnel": Funnel(8, 4, {}, Used(8, 4, 3))}, "Rows were lost or counted twice"),
        ({"funnel": Funnel(7, 5, {}, Used(7, 5, 3))}, "Rows were lost or counted twice"),
        ({"funnel": Funnel(7, 4, {}, Used(7, 4, 2))}, "Rows were lost or counted twice"),
        ({"rank_pairs": RankPairs([0], [1], [2], [3], [False], [9])}, "with 1 comparison for"),
        ({"rank_pairs": RankPairs([0], [1], [2], [2], [False], [9])}, "the same rank twice"),
        ({"rank_pairs": RankPairs([0], [1], [2], [0], [False], [9])}, "a rank outside 1 to"),
        ({"rank_pairs": RankPairs([0], [64], [2], [1], [False], [9])}, "a bucket outside 0 to"),
        ({"rank_pairs": RankPairs([0], [1], [2], [1], [False], [-9])}, "a negative number"),
        (
            {"overflow": Overflow([0], [501], [True], [1], [1], [1])},
            "a rank outside 1 to max_rank 500",
        ),
        ({"overflow": Overflow([0], [5], [True], [-1], [1], [1])}, "a negative number"),
        (
            {"overflow": Overflow([0], [5], [True], [2], [1], [1])},
            "more pairs that have it as their first",
        ),
        (
            {"overflow": Overflow([0], [5], [True], [1], [1], [2])},
            "more clicks than pairs with a single",
        ),
        ({"overflow": Overflow([1], [5], [True], [1], [1], [1])}, "an unknown segment"),
        (
            {"overflow": Overflow([0], [5], [True], [1], [1], [1])},
            "which are 1 pair with 1 click. Rows",
        ),
        ({"by_rank": ByRank([0], [501], [1], [1])}, "a rank outside 1 to max_rank 500"),
        ({"by_rank": ByRank([0], [5], [1], [2])}, "more clicks than impressions"),
    ],
)
def test_what_cannot_be_is_refused(change, words):
    with pytest.raises(BadCounts, match=re.escape(words)):
        example(**change)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (
            [15, 6, 0],
            "not ascending, for example: segment 0, bucket 7, drift 0, shown 15 6, pairs 1.",
        ),
        ([6, 0, 15], "not ascending"),
        ([0, 6, 15], "not ascending"),
        ([1, 6, 15], "a rank outside 1"),
        ([-3, 6, 15], "a rank outside 1"),
        ([6, 14, 0], "no click, or one rank only"),
        ([6, 7, 7], "no click, or one rank only"),
        ([7, 0, 0], "no click, or one rank only"),
        ([0, 0, 0], "no click, or one rank only"),
    ],
)
def test_what_cannot_be_shown_is_refused(shown, words):
    with pytest.raises(BadCounts, match=re.escape(words)):
        example(pairs=Pairs([0, 0], [3, 7], [[6, 15, 0], shown], [3, 1]))


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(BadCounts, match="'bucket' of Pairs has values that do not fit int32"):
        Pairs([0], [2**32 + 5], [[6, 15]], [1])
    with pytest.raises(BadCounts, match="'pairs' of Pairs"):
        Pairs([0], [5], [[6, 15]], [1.5])
    with pytest.raises(BadCounts, match="differ in length"):
        Pairs([0, 0], [5], [[6, 15]], [1])


def test_comparisons_need_long_pairs_behind_them():
    assert with_comparisons().n_pairs == 5
    for used in (Used(16, 6, 5), Used(17, 5, 5), Used(17, 6, 2)):  # 2 pairs of at least 5 rows each
        with pytest.raises(BadCounts, match="Rows were lost or counted twice"):
            replace(with_comparisons(), funnel=Funnel(used.rows, used.clicks, {}, used))
