"""Pairs as in Appendix D: two ways to draw them, one law."""

import numpy as np
import pytest

from rankdrift import harvest, read_log
from rankdrift.core.errors import BadOption
from rankdrift.estimation.likelihood import likelihood_of
from rankdrift.simulate import inverse_log, pairs, pairs_log

# Clicks counted in two runs differ by chance: relative deviations as of Poisson numbers.
SURE = 4.5


def differs(a, b):
    """In standard deviations of the difference of two Poisson numbers."""
    return np.abs(a - b) / np.sqrt(np.maximum(a + b, 1))


def test_straight_to_counts_has_the_law_of_the_log(tmp_path):
    options = {"ranks": 30, "relevance": 0.4, "appearances": 3, "seed": 5, "query_effect": 0.4}
    n = 30_000
    pairs_log(tmp_path / "log.parquet", n, **options)
    harvested = harvest(read_log(str(tmp_path / "log.parquet")))
    straight = pairs(n, **options).counts
    assert harvested.n_pairs == straight.n_pairs == n
    of_log, of_pairs = (c.by_rank for c in (harvested, straight))
    assert of_log.rank.tolist() == of_pairs.rank.tolist() == list(range(1, 31))
    assert differs(of_log.impressions, of_pairs.impressions).max() < SURE
    assert differs(of_log.clicks, of_pairs.clicks).max() < SURE
    for clicks in (1, 2, 3):
        many = [c.pairs.pairs[c.pairs.clicks == clicks].sum() for c in (harvested, straight)]
        assert differs(*many) < SURE
    # Which ranks pairs had, and at which of them the click fell.
    codes = [
        np.bincount(c.pairs.shown[:, 0], weights=c.pairs.pairs, minlength=64)
        for c in (harvested, straight)
    ]
    assert differs(*codes).max() < SURE
    dropped = [c.funnel.dropped["one_rank"].pairs for c in (harvested, straight)]
    assert differs(*dropped) < SURE


def test_click_through_rates_follow_the_curve_given():
    def ctr(ranks):
        return 0.2 * ranks**-0.4

    found = pairs(60_000, ranks=60, ctr=ctr, seed=3).counts.by_rank
    inside = slice(3, 50)  # near the ends a rank's pairs have mean ranks to one side of it
    rate = found.clicks / found.impressions
    assert rate[inside] == pytest.approx(ctr(found.rank)[inside], rel=0.08)


def test_the_paper_is_the_default():
    world = pairs(2_000)
    assert world.propensities == pytest.approx(inverse_log(np.arange(1.0, 501)))
    assert world.counts.max_rank == 500
    assert world.counts.n_pairs == 2_000
    assert (world.counts.pairs.appearances == 2).all()
    mean = np.average(world.counts.pairs.shown[:, 0] >> 1, weights=world.counts.pairs.pairs)
    assert 100 < mean < 250


def test_a_seed_makes_the_same_pairs(tmp_path):
    first, again, other = (pairs(500, ranks=50, seed=seed).counts for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        pairs_log(path, 200, ranks=20)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize(
    "wrong",
    [
        {"ranks": 1}, {"appearances": 1}, {"queries": 0}, {"spread": 0}, {"relevance": 1.5},
        {"propensities": np.ones(3)}, {"propensities": lambda r: -r}, {"spread": 1e-7, "ranks": 5},
        {"ctr": lambda r: 0 * r + 0.9},
    ],
    ids=lambda options: ",".join(options),
)  # fmt: skip
def test_options_that_cannot_be(wrong):
    with pytest.raises(BadOption):
        pairs(100, **wrong)


def test_no_pairs_at_all():
    with pytest.raises(BadOption, match="at least 1 pairs, not 0"):
        pairs(0)


def test_no_rank_wins_more_clicks_than_it_should():
    """At the true propensities the slope of log L is chance, down to ranks cut off at either end,
    however large click probabilities are."""
    world = pairs(400_000, ranks=40, relevance=0.6, seed=6)
    terms = likelihood_of(world.counts, "every")
    by_bucket = terms.bucket_scores(np.log(world.propensities))
    off = by_bucket.sum(axis=0) / np.sqrt((by_bucket**2).sum(axis=0))
    assert np.abs(off).max() < SURE
    assert 0.4 < np.mean(off**2) < 1.8  # 1 but for chance; of 40 squares 0.22
    wrong = np.log(world.propensities)
    wrong[0] += 0.1
    by_bucket = terms.bucket_scores(wrong)
    assert abs(by_bucket[:, 0].sum()) > SURE * np.sqrt((by_bucket[:, 0] ** 2).sum())
