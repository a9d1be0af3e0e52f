"""Counts in memory: the arrays, merging, restricting, and what cannot be right."""

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support.counts_example import META, Pairs, by_device, example, with_comparisons

from rankdrift.core.errors import BadCounts, BadOption
from rankdrift.counts import counts as counts_module
from rankdrift.counts.counts import ByRank, Counts, Overflow, RankPairs, merge
from rankdrift.counts.counts import Pairs as AllPairs
from rankdrift.counts.funnel import Funnel, Used
from rankdrift.counts.tables import decode

# The arrays


def test_rows_are_sorted_summed_and_never_empty():
    counts = example(
        pairs=Pairs(
            segment=[0] * 5,
            bucket=[5, 3, 5, 3, 0],
            shown=[[5, 8, 19, 0], [6, 15, 0, 0], [4, 7, 0, 0], [6, 15, 0, 0], [6, 9, 0, 0]],
            pairs=[1, 1, 1, 1, 0],
        ),
        funnel=Funnel(9, 5, {}, Used(9, 5, 4)),
    )
    assert counts.pairs.bucket.tolist() == [3, 5, 5]
    assert counts.pairs.shown.tolist() == [[6, 15, 0], [4, 7, 0], [5, 8, 19]]
    assert counts.pairs.pairs.tolist() == [2, 1, 1]
    assert counts.by_rank.rank.tolist() == [1, 3]
    assert counts.ranks.tolist() == [2, 3, 4, 7, 9]


def test_rows_wider_than_a_machine_word_are_sorted_and_summed():
    rng = np.random.default_rng(0)
    shown = np.sort(2 * rng.choice([2, 7, 10**6 - 1], (500, 5)) + rng.integers(0, 2, (500, 5)))
    shown[:, 0], shown[:, 4] = 3, 2 * 10**6
    buckets = rng.integers(0, 2, 500)
    counts = Counts(
        Pairs([0] * 500, buckets, shown, [1] * 500),
        RankPairs.empty(),
        ByRank.empty(),
        Funnel(2500, clicks := int((shown & 1).sum()), {}, Used(2500, clicks, 500)),
        buckets=2, max_rank=10**6, max_shown=5,
    )  # fmt: skip
    expected = Counter((bucket, *row) for bucket, row in zip(buckets, shown.tolist(), strict=True))
    rows = np.column_stack([counts.pairs.bucket, counts.pairs.shown]).tolist()
    assert [tuple(row) for row in rows] == sorted(expected)
    assert counts.pairs.pairs.tolist() == [expected[row] for row in sorted(expected)]
    assert len(rows) < 500  # some were equal


def test_arrays_cannot_be_changed():
    given = np.array([1, 2])
    counts = example(pairs=Pairs([0, 0], [5, 3], [[5, 8, 19], [6, 15, 0]], given))
    with pytest.raises(ValueError, match="read-only"):
        counts.pairs.pairs[0] = 7
    given[0] = 1  # the caller's own array is still the caller's


def test_nothing_counted():
    nothing = Counts(AllPairs.empty(), RankPairs.empty(), ByRank.empty(), Funnel(), **META)
    assert nothing.n_pairs == nothing.n_clicks == len(nothing.ranks) == 0
    assert nothing.choices().shown.shape == (0, 2)
    assert nothing.segments == ((),)
    assert (nothing + example()).equals(example())


def test_sizes():
    assert (example().n_pairs, example().n_clicks) == (3, 4)
    assert (with_comparisons().n_pairs, with_comparisons().n_clicks) == (5, 6)
    summary = with_comparisons().summary()
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["pairs_listed"], summary["pairs_compared"]) == (3, 2)
    assert (summary["comparison_weight"], summary["deepest_rank"]) == (0.5, 9)


def test_importing_counts_is_light():
    code = "import sys, rankdrift.counts; print({'duckdb', 'pandas', 'pyarrow'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


# Merging


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_rank": 100}, "max_rank is 500 in one and 100 in another"),
        ({"options": {"where": "b"}}, "option 'where' is 'not set' in one and 'b' in another"),
        ({"segment_columns": ("x",), "segments": (("1",),)}, "segment columns is () in one"),
    ],
)
def test_different_things_do_not_merge(change, words):
    with pytest.raises(BadCounts, match=re.escape(words)):
        example() + example(**change)


def test_the_option_that_differs_is_named():
    a, b = (
        {"columns": {"query": name, "doc": "d"}, "buckets": n} for name, n in (("q", 1), ("k", 2))
    )
    with pytest.raises(BadCounts, match="option 'columns' 'query' is 'q' in one and 'k' in anoth"):
        example(options=a) + example(options=b)


def test_sizes_are_not_options():
    assert (example(options={"buckets": 64}) + example(options={"buckets": 8})).n_pairs == 6


def test_nothing_is_counted_twice():
    day = example(sources=("a.parquet", "b.parquet"))
    with pytest.raises(BadCounts, match=r"1 of the inputs would be counted twice.* a\.parquet"):
        day + example(sources=("a.parquet",))
    assert (day + example(sources=("c.parquet",))).sources == (
        "a.parquet",
        "b.parquet",
        "c.parquet",
    )
    assert (example() + example()).n_pairs == 6  # no fingerprint, no way to tell


def test_nothing_to_merge():
    with pytest.raises(BadCounts, match="no counts to merge"):
        merge([])


def test_many_parts_are_merged_in_batches(monkeypatch):
    parts = [
        example(pairs=Pairs([0, 0], [i, 9], [[5, 8, 19], [6, 15, 0]], [1, 2])) for i in range(9)
    ]
    at_once = merge(parts)
    monkeypatch.setattr(counts_module, "_BATCH", 3)
    assert merge(iter(parts)).equals(at_once)
    assert at_once.n_pairs == 27


def test_a_sum_too_large_is_refused():
    cell = RankPairs([0], [1], [2], [3], [True], [2**62])
    full = replace(with_comparisons(), rank_pairs=cell)
    with pytest.raises(BadCounts, match="more than a 64-bit whole number holds"):
        full + full


# Restricting


def test_restricted_counts_say_so_and_keep_to_themselves():
    counts = example()
    strict = counts.restrict(strict=True).restrict(max_rank=8)
    assert counts.whole and not strict.whole
    assert strict.options["restrict"] == {"strict": True, "max_rank": 8}
    assert (strict.n_pairs, strict.n_clicks) == (2, 2)
    assert strict.funnel == counts.funnel
    with pytest.raises(BadCounts, match="option 'restrict'"):
        counts + counts.restrict(strict=True)
    assert counts.restrict(max_rank=500, buckets=64, max_shown=4).equals(counts)


def test_more_than_was_counted_cannot_be_had():
    for name, value in (("max_rank", 501), ("max_shown", 5), ("buckets", 128), ("max_rank", 0)):
        with pytest.raises(BadOption, match=f"{name} is {value}"):
            example().restrict(**{name: value})
    with pytest.raises(BadOption, match="power of two"):
        example().restrict(buckets=48)


def test_segments_are_chosen_by_value_or_tuple():
    counts = by_device()
    assert counts.segments == ((None,), ("web",))
    assert counts.restrict(segments=["web"]).equals(counts.restrict(segments=[("web",)]))
    assert counts.restrict(segments=[None]).pairs.shown.tolist() == [[6, 15]]
    with pytest.raises(
        BadOption, match=r"no segment wed\. Did you mean 'web'\? .*\(missing\); web"
    ):
        counts.restrict(segments=["wed"])


def test_choices_of_pairs_with_several_clicks():
    counts = example(
        pairs=Pairs([0, 0], [0, 1], [[5, 5, 8, 19], [6, 15, 0, 0]], [3, 2]),
        funnel=Funnel(16, 11, {}, Used(16, 11, 5)),
    )
    every = counts.choices()
    assert every.shown.tolist() == [[2, 2, 4, 9], [2, 2, 4, 9], [3, 7, 0, 0]]
    assert every.clicked.tolist() == [2, 9, 7]
    assert every.weight.tolist() == [6, 3, 2]
    assert every.pair.tolist() == [0, 0, 1]
    assert every.weight.sum() == counts.n_clicks
    single = counts.choices("single")
    assert (single.clicked.tolist(), single.weight.tolist()) == ([7], [2])
    with pytest.raises(BadOption, match="'all'"):
        counts.choices("all")


# What cannot be right


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"buckets": 48}, "buckets is 48, which is not a power of two. Use 64."),
        (
            {"buckets": 4},
            "1 of 2 listed pairs have a bucket outside 0 to 3, for example: segment 0",
        ),
        ({"max_rank": 8}, "1 of 2 listed pairs have a rank outside 1 to max_rank 8"),
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
        ({"rank_pairs": RankPairs([0], [1], [2], [3], [False], [9])}, "with 1 comparisons"),
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
            "which are 1 pairs with 1 clicks",
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


def test_ranks_that_a_plan_tells_are_spelt_out_as_appearances():
    """A cell is (rank * 32 + n) * 32 + c: n appearances there, c of them clicked."""

    def cell(rank, n, c):
        return (rank * 32 + n) * 32 + c

    cells = np.array([
        [cell(3, 1, 0), cell(7, 1, 1), 0],
        [cell(2, 3, 1), cell(4, 2, 2), cell(500, 16, 0)],
    ])  # fmt: skip
    expected = [[6, 15, *[0] * 19], [4, 4, 5, 9, 9, *[1000] * 16]]
    assert decode(cells).tolist() == expected
    assert decode(np.zeros((0, 2), int)).shape == (0, 2)
