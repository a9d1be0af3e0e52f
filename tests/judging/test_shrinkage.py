"""The posterior is that of the exact likelihood's grid, the prior that of the world, and intervals
cover what they say."""

import numpy as np
import pytest

from rankdrift.judging.shrinkage import Evidence, fit_spread, posterior

FINE = np.linspace(-25, 15, 400_001)  # logits: a grid so fine that its sums are exact
MEAN_OFF = 1e-3  # relative: what 97 points leave
ENDS_OFF = 1e-2  # the same of ends of intervals, between whose points lines are drawn
# Of a spread of 1.3 fitted to 6,000 pairs: over 20 seeds it was within 0.06 of the truth.
SPREAD_OFF = 0.12
# Shares covered of 95%: with 6,000 pairs one bin has some 1,000, whose share varies by 0.007.
COVERED = (0.925, 0.975)


def by_hand(c, n, q, location, spread):
    """mean, low, high by a plain sum."""
    z = 1 / (1 + np.exp(-FINE))
    log = c * np.log(z) + max(n - c, 0) * np.log1p(-q * z) - ((FINE - location) / spread) ** 2 / 2
    weight = np.exp(log - log.max())
    below = np.cumsum(weight) / weight.sum()
    low, high = (1 / (1 + np.exp(-FINE[np.searchsorted(below, a)])) for a in (0.025, 0.975))
    return (weight * z).sum() / weight.sum(), low, high


@pytest.mark.parametrize(
    ("clicks", "rows", "q", "location", "spread"),
    [
        (0, 1, 0.3, -3.0, 1.5),
        (1, 1, 0.05, -3.0, 1.5),
        (3, 40, 0.5, -2.0, 0.2),
        (0, 5_000, 0.2, -2.0, 2.0),
        (90_000, 100_000, 1.0, -4.0, 0.7),  # far from the prior, and very sure
        (500, 500, 1.0, -5.0, 0.8),  # always clicked
        (2.5, 30.7, 0.4, -2.0, 1.0),  # old days count less
    ],
)
def test_the_posterior_is_the_sum_over_a_fine_grid(clicks, rows, q, location, spread):
    one = np.ones(1)
    evidence = Evidence(clicks * one, rows * q * one, rows * q * q * one, one)
    found = posterior(evidence, location * one, spread)
    mean, *ends = by_hand(clicks, rows, q, location, spread)
    assert found.mean[0] == pytest.approx(mean, rel=MEAN_OFF)
    assert [found.low[0], found.high[0]] == pytest.approx(ends, rel=ENDS_OFF)


def world(pairs=6_000, seed=0, middle=-3.0, spread=1.3):
    """Pairs shown at ranks of their own, and their relevances."""
    rng = np.random.default_rng(seed)
    z = 1 / (1 + np.exp(-rng.normal(middle, spread, pairs)))
    shown = np.ceil(rng.lognormal(1.8, 1.6, pairs)).astype(int)
    pair = np.repeat(np.arange(pairs), shown)
    p = rng.integers(1, 20, len(pair)) ** -0.7
    sums = (np.bincount(pair, w, pairs) for w in (rng.random(len(pair)) < p * z[pair], p, p * p))
    return Evidence(*sums, np.ones(pairs)), z


def test_the_prior_is_found_and_intervals_cover():
    evidence, z = world()
    location = np.full(len(z), -2.0)
    prior = fit_spread(evidence, location)
    assert prior.spread == pytest.approx(1.3, abs=SPREAD_OFF)
    assert -2.0 + prior.shift == pytest.approx(-3.0, abs=SPREAD_OFF)
    found = posterior(evidence, location + prior.shift, prior.spread)
    inside = (found.low <= z) & (z <= found.high)
    for least, most in ((0, 1), (1, 5), (5, 50), (50, np.inf)):
        chosen = (evidence.exposure >= least) & (evidence.exposure < most)
        assert chosen.sum() > 100
        assert COVERED[0] - 0.03 * (chosen.sum() < 500) <= inside[chosen].mean() <= COVERED[1]
    largest = found.mean >= np.quantile(found.mean, 0.9)
    assert inside[largest].mean() > COVERED[0] - 0.015  # 600 pairs
    bare = evidence.clicks / evidence.exposure
    assert np.mean((found.mean - z) ** 2) < np.mean((bare - z) ** 2) / 5


def test_bins_of_pairs_shape_the_prior_as_the_pairs_do():
    evidence, _ = world(seed=1)
    rare = (evidence.clicks == 0) & (evidence.exposure < 1)
    assert rare.sum() > 1_000
    of = np.floor(8 * np.log2(evidence.exposure[rare]))
    _, of = np.unique(of, return_inverse=True)
    many = np.bincount(of)
    means = [
        np.bincount(of, values[rare]) / many for values in (evidence.exposure, evidence.squares)
    ]
    kept = evidence.take(~rare)
    joined = Evidence(
        np.concatenate([kept.clicks, np.zeros(len(many))]),
        np.concatenate([kept.exposure, means[0]]),
        np.concatenate([kept.squares, means[1]]),
        np.concatenate([kept.pairs, many]),
    )
    whole = fit_spread(evidence, np.full(len(evidence), -3.0))
    binned = fit_spread(joined, np.full(len(joined), -3.0))
    assert (binned.shift, binned.spread) == pytest.approx((whole.shift, whole.spread), abs=0.02)


def test_a_draw_of_pairs_is_enough_for_the_prior(monkeypatch):
    evidence, _ = world(seed=2)
    location = np.full(len(evidence), -3.0)
    monkeypatch.setattr("rankdrift.judging.shrinkage._TO_FIT", 3_000)
    drawn = fit_spread(evidence, location)
    assert drawn.spread == pytest.approx(1.3, abs=2 * SPREAD_OFF)
    assert drawn == fit_spread(evidence, location)  # the same draw every time
    assert drawn != fit_spread(evidence, location, seed=1)
