"""The posterior is that of the exact likelihood's grid, the prior that of the world, and intervals
cover what they say."""

import numpy as np
import pytest

from rankdrift.judging.shrinkage import Evidence, Prior, fit_prior, posterior

FINE = np.linspace(-25, 15, 400_001)  # logits: a grid so fine that its sums are exact
MEAN_OFF = 1e-3  # relative: what 97 points leave
HELD_OFF = 2e-3  # of what an interval holds: between points lines are drawn
LENGTH_OFF = 0.02  # of the shortest interval, which is looked for among ten
# Of a spread of 1.3 fitted to 6,000 pairs: over 20 seeds it was within 0.06 of the truth.
SPREAD_OFF = 0.12
# Shares covered of 95%: with 6,000 pairs one bin has some 1,000, whose share varies by 0.007.
COVERED = (0.925, 0.975)


def by_hand(c, n, q, location, spread, trust=0.0):
    """mean, the mass below any relevance, and the shortest interval by a plain sum."""
    z = 1 / (1 + np.exp(-FINE))
    seems = z + trust / (n * q)
    missed = np.log(np.maximum(1 - q * seems, 1e-12))
    log = c * np.log(seems) + max(n - c, 0) * missed - ((FINE - location) / spread) ** 2 / 2
    weight = np.exp(log - log.max())
    below = np.cumsum(weight) / weight.sum()
    first = np.arange(0, np.searchsorted(below, 0.05))
    lengths = z[np.minimum(np.searchsorted(below, below[first] + 0.95), len(z) - 1)] - z[first]
    return (weight * z).sum() / weight.sum(), lambda at: np.interp(at, z, below), lengths.min()


@pytest.mark.parametrize(
    ("clicks", "rows", "q", "location", "spread"),
    [
        (0, 1, 0.3, -3.0, 1.5),
        (1, 1, 0.05, -3.0, 1.5),
        (3, 40, 0.5, -2.0, 0.2),
        (0, 5_000, 0.2, -2.0, 2.0),
        (90_000, 100_000, 1.0, -4.0, 0.7),  # far from the prior, and very sure
        (500, 500, 1.0, -5.0, 0.8),  # always clicked
        (50, 50, 1.0, 3.0, 2.5),  # and no wonder
        (2.5, 30.7, 0.4, -2.0, 1.0),  # old days count less
    ],
)
def test_the_posterior_is_the_sum_over_a_fine_grid(clicks, rows, q, location, spread):
    one = np.ones(1)
    evidence = Evidence(clicks * one, rows * q * one, rows * q * q * one, one)
    found = posterior(evidence, location * one, Prior((1.0,), (0.0,), (spread,)))
    mean, below, shortest = by_hand(clicks, rows, q, location, spread)
    assert found.mean[0] == pytest.approx(mean, rel=MEAN_OFF)
    held = below(found.high[0]) - below(found.low[0])
    assert held == pytest.approx(0.95, abs=HELD_OFF)
    assert found.high[0] - found.low[0] == pytest.approx(shortest, rel=LENGTH_OFF)


@pytest.mark.parametrize(
    ("clicks", "rows", "q", "trust"),
    [(9, 40, 0.5, 3.0), (1, 12, 0.2, 1.5), (18, 20, 0.9, 7.0)],  # at most 0.9 · (1 + 0.4) clicks
)
def test_clicks_that_need_no_relevance_are_taken_off(clicks, rows, q, trust):
    """Some are expected at its ranks whatever the doc: the others tell of its relevance."""
    one, prior = np.ones(1), Prior((1.0,), (0.0,), (1.2,))
    sums = (clicks * one, rows * q * one, rows * q * q * one, one)
    found = posterior(Evidence(*sums, trust * one), -1.0 * one, prior)
    mean, below, _ = by_hand(clicks, rows, q, -1.0, 1.2, trust)
    assert found.mean[0] == pytest.approx(mean, rel=MEAN_OFF)
    assert below(found.high[0]) - below(found.low[0]) == pytest.approx(0.95, abs=HELD_OFF)
    assert found.mean[0] < posterior(Evidence(*sums), -1.0 * one, prior).mean[0]


def test_without_clicks_nothing_speaks_against_nothing():
    """However narrow the prior: that it does not reach further down was told by no clicks."""
    two = np.ones(2)
    evidence = Evidence(np.array([0.0, 1.0]), 0.3 * two, 0.09 * two, two)
    found = posterior(evidence, -1.0 * two, Prior((1.0,), (0.0,), (0.2,)))
    below = by_hand(0, 1, 0.3, -1.0, 0.2)[1]
    assert found.low[0] == 0 and below(found.high[0]) == pytest.approx(0.95, abs=HELD_OFF)
    assert found.low[1] > 0.15


def world(pairs=6_000, seed=0, middle=-3.0, spread=1.3, relevance=None):
    """Pairs shown at ranks of their own, and their relevances."""
    rng = np.random.default_rng(seed)
    z = 1 / (1 + np.exp(-rng.normal(middle, spread, pairs)))
    if relevance:
        z = relevance(rng, pairs)
    shown = np.ceil(rng.lognormal(1.8, 1.6, pairs)).astype(int)
    pair = np.repeat(np.arange(pairs), shown)
    p = rng.integers(1, 20, len(pair)) ** -0.7
    sums = (np.bincount(pair, w, pairs) for w in (rng.random(len(pair)) < p * z[pair], p, p * p))
    return Evidence(*sums, np.ones(pairs)), z


def test_the_prior_is_found_and_intervals_cover():
    evidence, z = world()
    location = np.full(len(z), -2.0)
    prior = fit_prior(evidence, location)
    assert len(prior.weights) == 1  # one part is enough, and is what there is
    assert prior.spread == pytest.approx(1.3, abs=SPREAD_OFF)
    assert -2.0 + prior.shift == pytest.approx(-3.0, abs=SPREAD_OFF)
    found = posterior(evidence, location, prior)
    inside = (found.low <= z) & (z <= found.high)
    for least, most in ((0, 1), (1, 5), (5, 50), (50, np.inf)):
        chosen = (evidence.exposure >= least) & (evidence.exposure < most)
        assert chosen.sum() > 100
        assert COVERED[0] - 0.03 * (chosen.sum() < 500) <= inside[chosen].mean() <= COVERED[1]
    largest = found.mean >= np.quantile(found.mean, 0.9)
    assert inside[largest].mean() > COVERED[0] - 0.015  # 600 pairs
    bare = evidence.clicks / evidence.exposure
    assert np.mean((found.mean - z) ** 2) < np.mean((bare - z) ** 2) / 5


def two_kinds(rng, pairs):
    few = rng.random(pairs) < 0.2
    return np.where(few, rng.uniform(0.1, 0.5, pairs), rng.uniform(0.005, 0.03, pairs))


def mostly_nothing(rng, pairs):
    return np.where(rng.random(pairs) < 0.5, 0.0, rng.beta(1.0, 6.0, pairs))


def next_to_nothing(rng, pairs):
    return rng.beta(0.6, 6.0, pairs)


@pytest.mark.parametrize("relevance", [two_kinds, mostly_nothing, next_to_nothing])
def test_intervals_cover_where_relevances_are_far_from_logit_normal(relevance):
    evidence, z = world(seed=3, relevance=relevance)
    location = np.full(len(z), np.log(z.mean() / (1 - z.mean())))
    prior = fit_prior(evidence, location)
    assert relevance is next_to_nothing or len(prior.weights) == 2
    found = posterior(evidence, location, prior)
    inside = (found.low <= z) & (z <= found.high)
    assert COVERED[0] <= inside.mean() <= COVERED[1]
    assert inside[found.mean >= np.quantile(found.mean, 0.9)].mean() > COVERED[0] - 0.015
    assert (found.low <= found.mean).all() and (found.mean <= found.high).all()


@pytest.mark.parametrize(("pairs", "parts"), [(1_500, 1), (3_000, 2)])
def test_two_kinds_are_told_apart_by_as_many_pairs_as_pay_for_it(pairs, parts):
    """Three numbers cost 1.5 log of the pairs: 11.0 of 1,500 and 12.0 of 3,000, where they make the
    clicks likelier by 6.9 and by 18.4."""
    evidence, z = world(pairs, seed=3, relevance=two_kinds)
    location = np.full(pairs, np.log(z.mean() / (1 - z.mean())))
    assert len(fit_prior(evidence, location).weights) == parts


def test_few_clicks_leave_the_spread_in_doubt():
    """Where relevances hardly differ and clicks are few, the likeliest spread is often none at all;
    without doubt of that, 77% were covered."""
    covered = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        z = 1 / (1 + np.exp(-rng.normal(-5.5, 0.3, 160)))
        shown = rng.poisson(200.0, 160) + 1.0
        clicks = rng.binomial(shown.astype(int), z).astype(float)
        evidence = Evidence(clicks, shown, shown, np.ones(160))
        location = np.full(160, np.log(clicks.sum() / (shown - clicks).sum()))
        found = posterior(evidence, location, fit_prior(evidence, location))
        covered.append(((found.low <= z) & (z <= found.high)).mean())
    assert np.mean(covered) > COVERED[0]


def test_a_location_that_is_unsure_is_told_from_a_spread():
    """Half of the locations are off by a known deviation: the spread is that of the others."""
    rng = np.random.default_rng(0)
    location = rng.normal(-3.0, 0.9, 6_000)
    variance = np.where(np.arange(6_000) % 2, 0.81, 0.0)
    logit = location + rng.normal(0, np.sqrt(variance + 0.65**2))
    evidence, z = world(seed=4, relevance=lambda rng, pairs: 1 / (1 + np.exp(-logit)))
    prior = fit_prior(evidence, location, variance)
    assert prior.spread == pytest.approx(0.65, abs=SPREAD_OFF)
    found = posterior(evidence, location, prior, variance)
    inside = (found.low <= z) & (z <= found.high)
    for half in (slice(0, None, 2), slice(1, None, 2)):
        assert COVERED[0] <= inside[half].mean() <= COVERED[1]


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
    whole = fit_prior(evidence, np.full(len(evidence), -3.0))
    binned = fit_prior(joined, np.full(len(joined), -3.0))
    assert (binned.shift, binned.spread) == pytest.approx((whole.shift, whole.spread), abs=0.02)


def test_a_draw_of_pairs_is_enough_for_the_prior(monkeypatch):
    evidence, _ = world(seed=2)
    location = np.full(len(evidence), -3.0)
    monkeypatch.setattr("rankdrift.judging.shrinkage._TO_FIT", 3_000)
    drawn = fit_prior(evidence, location)
    assert drawn.spread == pytest.approx(1.3, abs=2 * SPREAD_OFF)
    assert drawn == fit_prior(evidence, location)  # the same draw every time
    assert drawn != fit_prior(evidence, location, seed=1)
