"""Counts as the likelihood sees them."""

import pytest
from support.counts_example import Pairs, example

from rankdrift.core.errors import BadOption
from rankdrift.counts.funnel import Funnel, Used


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
