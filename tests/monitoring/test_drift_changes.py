"""Where a page changed, and by how much: by hand, and against known curves."""

import numpy as np
import pytest
from scipy import stats
from support.worlds import listed, simulate

from rankdrift.core.errors import NotIdentified
from rankdrift.estimation.likelihood import likelihood_of
from rankdrift.monitoring.drift_changes import _blocks, page_change
from rankdrift.simulate.true_curves import dipping, dips, steady

RANKS = np.arange(1, 101)
SEEDS = range(4)


def of_two_ranks(first, second):
    """So many clicks at either of two ranks, of pairs that were shown at both."""
    clicks = [((1, 1), (2, 0))] * first + [((1, 0), (2, 1))] * second
    buckets = np.random.default_rng(first).integers(0, 64, len(clicks)).tolist()
    return listed(list(zip(clicks, buckets, strict=True)))


def test_two_ranks_by_hand():
    """The odds of the first were 120 to 80 and are 90 to 90: by half as much for the second."""
    found = page_change(of_two_ranks(120, 80), of_two_ranks(90, 90), 0.95)
    assert [(block.first, block.last) for block in found.blocks] == [(1, 1), (2, 2)]
    # 0 in the mean over the clicks before, of which the first had .6.
    change = np.log(1.5) * np.array([-0.4, 0.6])
    assert np.log([block.ratio for block in found.blocks]) == pytest.approx(change)
    assert found.clicks == 180
    wide = [np.log(block.high / block.ratio) for block in found.blocks]
    error = np.sqrt(1 / 120 + 1 / 80 + 2 / 90) * np.array([0.4, 0.6])  # were clicks independent
    assert np.all(np.array(wide) > 1.8 * error) and np.all(np.array(wide) < 3 * error)


def test_the_same_again_is_no_change():
    counts = simulate(4000, 100, 1, curve=steady).counts
    found = page_change(counts, counts, 0.95)
    assert [block.ratio for block in found.blocks] == pytest.approx([1.0] * len(found.blocks))
    assert found.size == 0 and not any(block.sure for block in found.blocks)


def told(seed, before, after, pairs=6000):
    """What is found of a change, and the truth (J,) of the same blocks."""
    old = simulate(4 * pairs, 100, 2 * seed, curve=before, query_slope=0.1).counts
    new = simulate(pairs, 100, 2 * seed + 1, curve=after, query_slope=0.1).counts
    found = page_change(old, new, 0.95)
    change = np.log(after(RANKS) / before(RANKS))
    clicks = likelihood_of(old, ranks=RANKS.astype(np.int32)).wins
    change = change - np.average(change, weights=clicks)
    return found, np.array([change[b.first - 1 : b.last].mean() for b in found.blocks])


CHANGES = {
    "batches of 40 become 24": (dipping, lambda r: steady(r) * dips(r, 24)),
    "a carousel of 4": (steady, lambda r: steady(r + 4)),
    "a carousel of 4 where results load 40 at a time": (dipping, lambda r: dipping(r + 4)),
    "the rest of the page pushed down": (dipping, lambda r: dipping(np.where(r > 20, r + 4, r))),
    "nothing": (dipping, dipping),
}


@pytest.mark.parametrize("words", CHANGES)
def test_a_known_change_is_told_where_it_is_and_with_its_size(words):
    off, sizes, wrong = [], [], 0
    for seed in SEEDS:
        found, truth = told(seed, *CHANGES[words])
        ratio, low, high = np.log([(b.ratio, b.low, b.high) for b in found.blocks]).T
        off += ((ratio - truth) / (high - low) * 2).tolist()
        sizes.append([ratio @ truth, truth @ truth])
        wrong += sum(
            b.sure and b.ratio < 1 and t > 0.05 for b, t in zip(found.blocks, truth, strict=True)
        )
        wrong += sum(
            b.sure and b.ratio > 1 and t < -0.05 for b, t in zip(found.blocks, truth, strict=True)
        )
    # Intervals that hold for some fifteen blocks at once are three standard errors to either side.
    assert np.mean(np.abs(off) > 1) <= 1 / len(off) and np.sqrt(np.mean(np.square(off))) < 0.45
    assert wrong == 0
    got, wanted = np.sum(sizes, axis=0)
    if wanted > 0.3:
        assert got / wanted == pytest.approx(1, abs=0.2)


def test_intervals_hold_for_all_blocks_at_once():
    edges, difference, error = np.array([1, 4, 10]), np.array([0.1, -0.4]), np.array([0.2, 0.05])
    wide = stats.t.ppf(1 - 0.05 / 2 / 2, 30)  # Bonferroni, two blocks
    found = _blocks(edges, difference, error, 30.0, 0.95)
    assert [(block.first, block.last) for block in found] == [(1, 3), (4, 9)]
    for block, d, e in zip(found, difference, error, strict=True):
        np.testing.assert_allclose(
            (block.ratio, block.low, block.high), np.exp([d, d - wide * e, d + wide * e])
        )


def test_few_clicks_make_fewer_blocks_or_none():
    many = simulate(6000, 100, 1, curve=steady).counts
    some, hardly = (simulate(pairs, 100, 2, curve=steady).counts for pairs in (250, 40))
    blocks = page_change(many, some, 0.95).blocks
    assert 2 <= len(blocks) < len(page_change(many, many, 0.95).blocks)
    assert blocks[0].first == 1 and blocks[-1].last == 100
    assert [b.last + 1 for b in blocks[:-1]] == [b.first for b in blocks[1:]]
    with pytest.raises(NotIdentified, match="too few to say where"):
        page_change(many, hardly, 0.95)


def test_pages_of_two_depths_are_compared_down_to_the_deeper_rank():
    deep, short = (simulate(4000, size, 1, curve=steady).counts for size in (100, 60))
    for before, newest in ((deep, short), (short, deep)):
        blocks = page_change(before, newest, 0.95).blocks
        assert (blocks[0].first, blocks[-1].last) == (1, 100)


def test_one_bucket_of_queries_says_nothing_of_chance():
    counts = listed([(((1, 1), (2, 0)), 5)] * 50 + [(((1, 0), (2, 1)), 5)] * 50)
    with pytest.raises(NotIdentified, match="100 clicks are too few"):
        page_change(counts, counts, 0.95)
