"""The posterior beside brute force: a grid over every parameter, and moments of relevance."""

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import multivariate_t, norm, t

from rankdrift.counts.tables import Pairs
from rankdrift.estimation.bayes import estimating
from rankdrift.estimation.bayes.cells import join, moved_terms, single_terms
from rankdrift.estimation.bayes.model import (
    BEND,
    CONCENTRATION,
    RELEVANCE,
    ROUGH,
    SLOPE,
    Layout,
    Posterior,
    knots_of,
)
from rankdrift.estimation.bayes.sampling import Sampler, find_mode
from rankdrift.simulate import pairs as simulated_pairs

RANKS = np.array([1, 2, 4], np.int32)
# 2 * rank + click of each appearance, and how many pairs.
MOVED = [((3, 4), 30), ((2, 5), 14), ((3, 5), 6), ((2, 8, 5), 4), ((3, 8), 9), ((2, 9), 2)]
# rank, shown, clicked, how many pairs.
SINGLES = [(1, 3, 0, 20), (1, 3, 1, 12), (1, 5, 4, 1), (2, 2, 0, 25), (2, 2, 1, 6), (4, 6, 1, 5)]
SHARES = np.array([[0.5, 0.3, 0.2]])
# 4,000 draws nearly independent: means to 0.016 deviations, deviations to 1.1%; four times that.
FAR, WIDE = 0.07, 0.05
ROUNDING = 1e-8  # of densities of some hundreds, and powers that cancel
SURE = 5.0  # standard errors that none of 380 means is off by chance, some of them of long tails


def tables(shown):
    width = max(len(codes) for codes, _ in shown)
    codes = np.array([sorted(c) + [0] * (width - len(c)) for c, _ in shown], np.int32)
    zeros = np.zeros(len(shown), np.int32)
    return Pairs(zeros, zeros, zeros, codes, np.array([n for _, n in shown]))


def target(singles):
    pairs = tables(MOVED)
    terms = [moved_terms(pairs, np.zeros(len(pairs), np.intp), RANKS)]
    clicks = np.zeros(3)
    for codes, n in MOVED:
        for code in codes:
            clicks[np.searchsorted(RANKS, code >> 1)] += n * (code & 1)
    if singles:
        rank, shown, clicked, many = np.array(SINGLES).T
        group = np.zeros(len(rank), np.intp)
        terms.append(single_terms(rank, group, shown, clicked, many, RANKS))
        np.add.at(clicks, np.searchsorted(RANKS, rank), clicked * many)
    layout = Layout(RANKS, RANKS, np.zeros(1, np.intp), SHARES if singles else 0 * SHARES)
    return Posterior(layout, join(terms), clicks)


def log_density(curve, logit_m, log_a, singles):
    """Straight from the model's words; curve: log p at ranks 2 and 4 less that at rank 1."""
    knots = np.array([0.0, *curve])
    p = np.exp(knots - np.log(np.exp(8 * knots).sum()) / 8)
    a = np.exp(log_a)
    b = a * np.exp(-logit_m)
    total = norm.logpdf(logit_m, *RELEVANCE) + norm.logpdf(log_a, *CONCENTRATION)
    first = knots[1] / np.log(2)
    bend = ((knots[2] - knots[1]) / np.log(2) - first) / np.sqrt(np.log(2))
    total += norm.logpdf(first, *SLOPE) + t.logpdf(bend / BEND[1], BEND[0])

    def chance(codes):
        """Multiplied out, for the mean of every power of z is known."""
        by_power = np.ones(1)
        for code in codes:
            at = p[np.searchsorted(RANKS, code >> 1)]
            by_power = np.convolve(by_power, [0, at] if code & 1 else [1, -at])
        return by_power @ np.exp(betaln(a + np.arange(len(by_power)), b) - betaln(a, b))

    for codes, n in MOVED:
        none = chance([2 * (code >> 1) for code in codes])
        total += n * np.log(chance(codes) / (1 - none))
    if singles:
        for rank, shown, clicked, n in SINGLES:
            codes = [2 * rank + (i < clicked) for i in range(shown)]
            total += n * np.log(chance(codes))
    return total


@pytest.mark.parametrize("singles", [False, True])
def test_the_density_is_that_of_the_model(singles):
    density = target(singles)
    rng = np.random.default_rng(3)
    curves = rng.normal(-0.5, 0.5, (12, 2))
    means, logs = rng.normal(-1, 0.7, 12), rng.normal(0.4, 0.4, 12)
    levels, changes = means + np.log1p(np.exp(-logs)), np.zeros(12)
    if singles:  # the level is the log of a click rate, not the logit of a mean
        log_p = density.layout.log_p(np.column_stack([curves, means, logs]))
        levels = -np.logaddexp(0, -means) + log_p @ SHARES[0]
        changes = np.logaddexp(0, means)
    found = density(np.column_stack([curves, levels, logs]))[0]
    wanted = [log_density(*x, singles) for x in zip(curves, means, logs, strict=True)]
    off = found - wanted - changes
    assert np.ptp(off) < ROUNDING  # a constant is free


def test_ranks_are_off_the_line_by_deviations_with_a_joint_t_density():
    """And values and slopes of all of the posterior fit each other where there are some."""
    ranks = np.arange(1, 10, dtype=np.int32)
    layout = Layout(ranks, knots_of(ranks), np.zeros(1, np.intp), np.full((1, 9), 1 / 9))
    rank, shown, clicked, many = np.array(SINGLES).T
    terms = single_terms(rank, np.zeros(len(rank), np.intp), shown, clicked, many, ranks)
    density = Posterior(layout, terms, np.bincount(rank - 1, clicked * many, 9))
    rng = np.random.default_rng(1)
    x, y = rng.normal(-0.2, 0.2, (2, layout.size))
    x[layout.groups] = y[layout.groups] = -2.5
    off = slice(layout.at_knots.stop, layout.curve.stop)
    assert off.stop - off.start == 8
    y[: off.start] = x[: off.start]
    found = np.diff(layout.curve_prior(np.stack([x, y]))[0])[0]
    law = multivariate_t(np.zeros(8), ROUGH[1] ** 2 * np.eye(8), df=ROUGH[0])
    assert found == pytest.approx(law.logpdf(y[off]) - law.logpdf(x[off]))
    np.testing.assert_allclose(
        np.diff(layout.log_p(x) - layout.log_p(y))[1:], np.diff(x[off] - y[off]), atol=1e-12
    )
    step = 1e-5 * np.eye(layout.size)
    slope = (density(x + step)[0] - density(x - step)[0]) / 2e-5
    np.testing.assert_allclose(density(x[None])[1][0], slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("singles", [False, True])
def test_draws_have_the_moments_of_the_density(singles):
    """Means and deviations by a grid over all four parameters."""
    density = target(singles)
    mode = find_mode(density, np.array([-0.5, -1.0, -1.5, 0.0]))
    sampler = Sampler(density, mode, chains=8, seed=5)
    sampler.warm_up(200)
    drawn = sampler.draw(1000).reshape(-1, 4)
    steps = np.linspace(-4.2, 4.2, 13)
    grid = np.array(list(product(steps, repeat=4)))
    points = mode.x + grid @ mode.root.T
    log = np.concatenate([density(part)[0] for part in np.array_split(points, 400)])
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ points
    deviation = np.sqrt(weight @ (points - mean) ** 2)
    assert np.abs((drawn.mean(axis=0) - mean) / deviation).max() < FAR
    assert np.abs(drawn.std(axis=0) / deviation - 1).max() < WIDE


def test_without_clicks_the_posterior_is_the_prior():
    """What calibration takes for granted, by Stein's identities: over draws of a density, its slope
    is 0 in the mean, and the slope by a parameter times another's value is 0, its own -1. A group
    whose pairs were all clicked, one whose were not, and an a for each."""
    ranks = np.arange(1, 10, dtype=np.int32)
    shares = np.stack([np.zeros(9), np.full(9, 1 / 9)])
    layout = Layout(ranks, knots_of(ranks), np.arange(2), shares)
    none = np.zeros(0, np.intp)
    terms = single_terms(none, none, none, none, none, ranks)
    rng = np.random.default_rng(4)
    x = np.stack([layout.draw_prior(rng) for _ in range(8000)])
    slope = Posterior(layout, terms, np.zeros(9))(x)[1]
    off = x - x.mean(axis=0)
    products = off[:, :, None] * slope[:, None, :] + np.eye(layout.size)
    for found in (slope, products.reshape(len(x), -1)):
        error = found.std(axis=0) / np.sqrt(len(x))
        assert np.abs(found.mean(axis=0) / error).max() < SURE


def test_what_is_reported_is_relative_to_the_reference_rank(monkeypatch):
    monkeypatch.setattr(estimating, "WARM_UP", 60)
    p = np.array([1.0, 0.6, 0.4])
    counts = simulated_pairs(400, ranks=3, seed=1, relevance=0.3, propensities=p).counts
    found = estimating.estimate_posterior(counts, estimating.Options(draws=1200, reference=2))
    assert found.log_p[1] == 0 and not found.deviations[1].any()
    np.testing.assert_allclose(found.log_p, np.log(p / p[1]), atol=0.3)
