"""Counts in memory: the arrays, merging, restricting, and what cannot be right."""

import json
import re
import subprocess
import sys
import weakref
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support.counts_example import META, Pairs, example, with_comparisons

from rankdrift.core.errors import BadCounts
from rankdrift.counts import counts as counts_module
from rankdrift.counts.counts import ByRank, Counts, RankPairs, merge
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


def test_parts_are_let_go_as_they_are_added_up(monkeypatch):
    monkeypatch.setattr(counts_module, "_BATCH", 1)
    made, alive = [], []

    def parts():
        for _ in range(20):
            part = example()
            made.append(weakref.ref(part))
            yield part
            del part
            alive.append(sum(each() is not None for each in made))

    assert merge(parts()).n_pairs == 60
    assert max(alive) <= 3


def test_a_sum_too_large_is_refused():
    cell = RankPairs([0], [1], [2], [3], [True], [2**62])
    full = replace(with_comparisons(), rank_pairs=cell)
    with pytest.raises(BadCounts, match="more than a 64-bit whole number holds"):
        full + full


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


@pytest.mark.parametrize(("many", "said"), [(10, ""), (12, " and 2 more")])
def test_segments_named_in_a_notebook(many, said):
    counts = example(
        segment_columns=("site",),
        segments=tuple((f"s{i:02}",) for i in range(many)),
        by_rank=ByRank(list(range(many)), [1] * many, [30] * many, [9] * many),
    )
    named = "; ".join(f"s{i:02}" for i in range(10))
    assert f"Segments: {named}{said}<" in counts._repr_html_()


def test_a_summary_names_the_first_day_and_the_last():
    counts = example(days=("2024-01-01", "2024-01-02", "2024-01-05"))
    found = counts.summary()
    assert (found["first_day"], found["last_day"], found["days"]) == ("2024-01-01", "2024-01-05", 3)
    assert "2024-01-01 to 2024-01-05" in repr(counts)
    assert "2024-01-02" not in repr(counts)
    assert example().summary()["last_day"] is None
    assert found["window"] is None


def test_windows_are_not_told_as_days():
    weeks = example(days=("2024-01-01", "2024-01-08"), options={"window": "7d"})
    assert weeks.summary()["window"] == 7
    assert "2 windows of 7 days from 2024-01-01 to 2024-01-08" in repr(weeks)
