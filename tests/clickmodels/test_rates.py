"""The models without anything hidden: shares of what was counted, by hand."""

import numpy as np
import pytest

from rankdrift.clickmodels.doc_rank_rate import DocRankRate
from rankdrift.clickmodels.doc_rate import DocRate
from rankdrift.clickmodels.global_rate import RandomClicks
from rankdrift.clickmodels.rank_rate import RankRate
from rankdrift.clickmodels.searches import make_searches
from rankdrift.core.errors import BadOption

# Three searches of one query: docs a b, b a, a c; clicks on the first a and on c.
SEARCHES = make_searches(
    [2, 2, 2], [0, 1, 1, 0, 0, 2], [1, 2] * 3, [1, 0, 0, 0, 0, 1], [0, 0, 0, 0]
)
MEAN = 2 / 6


def by_key(model):
    """What it says at (pair, rank)."""
    given = model.conditional_click_probabilities(SEARCHES)
    keys = zip(SEARCHES.pair.tolist(), SEARCHES.rank.tolist(), strict=True)
    return dict(zip(keys, given.tolist(), strict=True))


def test_random_clicks_are_one_rate():
    model = RandomClicks.fit(SEARCHES)
    assert set(by_key(model).values()) == {MEAN}
    assert model.relevance().tolist() == [MEAN] * 4


def test_ranks_have_their_own():
    model = RankRate.fit(SEARCHES, strength=3.0)
    one = (1 + 3 * MEAN) / (3 + 3)  # one click of three at either rank
    assert model.rates[1:].tolist() == pytest.approx([one, one])


def test_docs_have_their_own():
    model = DocRate.fit(SEARCHES, strength=3.0)
    a, b, c = (1 + 3 * MEAN) / 6, (0 + 3 * MEAN) / 5, (1 + 3 * MEAN) / 4
    assert model.relevance().tolist() == pytest.approx([a, b, c, MEAN])


def test_docs_at_ranks_have_their_own_and_else_that_of_the_rank():
    model = DocRankRate.fit(SEARCHES, strength=3.0)
    rank = (1 + 3 * MEAN) / 6
    found = by_key(model)
    assert found[0, 1] == pytest.approx((1 + 3 * rank) / (2 + 3))
    assert found[0, 2] == pytest.approx((0 + 3 * rank) / (1 + 3))
    assert found[2, 2] == pytest.approx((1 + 3 * rank) / (1 + 3))
    unseen = make_searches([1], [3], [2], [0], [0, 0, 0, 0], 2)
    assert model.conditional_click_probabilities(unseen) == pytest.approx(rank)
    z = model.relevance()
    assert z[2] > z[0] > z[1]


def test_lists_that_do_not_fit_their_lengths_are_refused():
    with pytest.raises(BadOption, match="3 results"):
        make_searches([3], [0, 1], [1, 2], [0, 0], np.zeros(2))
