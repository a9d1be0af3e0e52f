"""Fewer or coarser counts of the same log."""

import warnings

import pytest
from support.counts_example import by_device, example, with_comparisons
from support.worlds import listed, simulate

from rankdrift.core.errors import BadCounts, BadOption, Remark


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


def test_pairs_shown_below_a_rank_are_kept_whole():
    """Wherever they were clicked; the rank itself is not below it."""
    counts = listed([
        (((1, 1), (2, 0)), 0, 7),
        (((1, 1), (5, 0)), 1, 3),
        (((1, 0), (1, 1), (6, 0)), 1, 2),
        (((2, 0), (9, 1)), 2, 1),
    ])  # fmt: skip
    kept = counts.restrict(shown_below=5)
    assert kept.pairs.shown.tolist() == [[2, 3, 12], [4, 19, 0]]
    assert (kept.n_pairs, kept.n_clicks) == (3, 3)
    assert counts.restrict(shown_below=4).n_pairs == 6
    assert kept.options["restrict"] == {"shown_below": 5}
    assert kept.funnel == counts.funnel
    assert kept.by_rank.equals(counts.by_rank)
    # What is cut off was not shown.
    assert counts.restrict(max_rank=6, shown_below=5).n_pairs == 2


def test_pairs_counted_by_two_ranks_are_not_known_to_be_shown_below():
    counts = with_comparisons()
    with pytest.warns(Remark, match=r"Left out: 2 pairs shown more than 4 times.*below rank 3"):
        kept = counts.restrict(shown_below=3)
    assert len(kept.rank_pairs) == len(kept.overflow) == 0
    assert kept.n_pairs == counts.pairs.total.pairs
    some = simulate(300, 30, 1, shown=(2, 6), max_shown=4).counts
    with pytest.warns(Remark, match=f"Left out: {some.n_overflow} pairs"):
        some.restrict(shown_below=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # None is left that way.
        some.restrict(strict=True, shown_below=8)


@pytest.mark.parametrize(("rank", "more"), [(0, {}), (500, {}), (8, {"max_rank": 8})])
def test_no_pair_is_shown_below_the_last_rank(rank, more):
    end = more.get("max_rank", 500)
    words = f"shown_below is {rank}, .* 1 to {end - 1} only: these counts end at rank {end}"
    with pytest.raises(BadOption, match=words):
        example().restrict(shown_below=rank, **more)
