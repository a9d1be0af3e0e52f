"""Fewer or coarser counts of the same log."""

import pytest
from support.counts_example import by_device, example

from rankdrift.core.errors import BadCounts, BadOption


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
