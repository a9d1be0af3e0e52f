"""Curves of segments are shrunk towards the pool as far as the data say."""

import numpy as np
import pytest
from support.worlds import listed, power, simulate

from rankdrift.estimation import estimate
from rankdrift.estimation.shrinkage import SIZES, USUAL, anchors, chances, variance_between

SAME = {name: power(0.6) for name in ("app", "tv", "web")}


KNOTS = "loglog(1, 5, 30)"


ROUNDING = 1e-9


def restricted(values, variances):
    """log of the likelihood of values with these variances and an unknown mean, by matrices."""
    inverse, ones = np.diag(1 / variances), np.ones((len(values), 1))
    total = ones.T @ inverse @ ones
    left = inverse - inverse @ ones @ np.linalg.inv(total) @ ones.T @ inverse
    return -(np.log(variances).sum() + np.log(total.item()) + values @ left @ values) / 2


@pytest.mark.parametrize("curve", [KNOTS, "direct"])
@pytest.mark.parametrize("seed", range(3))
def test_leaning_curves_lie_between_their_own_and_the_pool(curve, seed):
    segments = {"app": power(1.0), "tv": power(0.7), "web": power(0.4)}
    world = simulate(2500, 8, seed, segments=segments, shares=[0.6, 0.1, 0.3], level=0.3)
    found = estimate(world.counts, by="device", curve=curve)
    assert set(found.shrunk) == set(found.by_segment)
    for segment, leaning in found.shrunk.items():
        own = found.by_segment[segment]
        pool = found.log_p[np.searchsorted(found.ranks, own.ranks)]
        low, high = np.minimum(own.log_p, pool), np.maximum(own.log_p, pool)
        assert (low - 1e-12 <= leaning.log_p).all()
        assert (leaning.log_p <= high + 1e-12).all()
        assert leaning.log_p[0] == leaning.std_error[0] == 0
        assert leaning.method.endswith("leaning on the pool")
        assert (leaning.std_error[1:] > 0).all()


def test_a_segment_that_lacks_ranks_leans_at_those_it_has():
    """On a smaller screen nothing is shown below rank 4."""
    rows = [
        (((high, won), (high + 1, 1 - won)), bucket, times + bucket % 5 * won, segment)
        for segment, deepest in enumerate((8, 4, 8))
        for high in range(1, deepest)
        for won, times in ((1, 20 + 5 * segment), (0, 12))
        for bucket in range(16)
    ]
    found = estimate(listed(rows, names=["app", "tv", "web"]), by="device", curve="direct")
    tv, own = found.shrunk[("tv",)], found.by_segment[("tv",)]
    assert tv.ranks.tolist() == own.ranks.tolist() == [1, 2, 3, 4]
    assert found.shrunk[("app",)].ranks.tolist() == found.ranks.tolist() == list(range(1, 9))
    pool = found.log_p[:4]
    low, high = np.minimum(own.log_p, pool), np.maximum(own.log_p, pool)
    assert ((low - 1e-12 <= tv.log_p) & (tv.log_p <= high + 1e-12)).all()


def test_a_tiny_segment_leans_mostly_and_a_large_one_hardly():
    """Large segments that differ a little, and one of a hundredth of the pairs."""
    segments = {"app": power(0.75), "tv": power(0.6), "web": power(0.45)}
    shares = [0.495, 0.01, 0.495]
    counts = simulate(12_000, 30, 2, segments=segments, shares=shares).counts
    found = estimate(counts, by="device", curve=KNOTS)

    def leans(name):
        own, leaning = found.by_segment[(name,)], found.shrunk[(name,)]
        return 1 - (leaning.log_p - found.log_p)[-1] / (own.log_p - found.log_p)[-1]

    assert leans("tv") > 0.7
    assert leans("app") < 0.4
    assert leans("web") < 0.4
    tiny = found.shrunk[("tv",)]
    assert (tiny.std_error[1:] < found.by_segment[("tv",)].std_error[1:]).all()
    assert (tiny.std_error[1:] >= found.std_error[1:]).all()  # surer than its pool it cannot be


def test_sizes_are_as_likely_as_segments_make_them():
    rng = np.random.default_rng(5)
    values, noise = rng.normal(0, 0.5, (4, 3)), rng.uniform(0.05, 0.3, (4, 3))
    found = chances(values, noise)
    wanted = []
    for size, width in zip(SIZES, np.gradient(SIZES), strict=True):
        fit = np.mean([restricted(v, n + size**2) for v, n in zip(values.T, noise.T, strict=True)])
        wanted.append(np.exp(fit) * width / (1 + (size / USUAL) ** 2))
    np.testing.assert_allclose(found, np.array(wanted) / sum(wanted))
    # Segments that hardly differ, or differ much more than by noise, leave little doubt.
    alike, apart = (chances(k * rng.normal(0, 1, (40, 1)), np.full((40, 1), 1e-4)) for k in (0, 1))
    assert alike @ SIZES < 0.05
    assert 0.7 < apart @ SIZES < 1.5


def test_leaning_by_hand():
    """own and pool, weighted by trust; the pool holds the segment itself, by its share."""
    segments = {"app": power(1.2), "tv": power(0.6), "web": power(0.3)}
    counts = simulate(3000, 30, 1, segments=segments).counts
    found = estimate(counts, by="device", curve=KNOTS)
    at = anchors(found.ranks, 1, 2) - 1
    values = np.stack([own.log_p[at] for own in found.by_segment.values()])
    errors = np.stack([own.std_error[at] for own in found.by_segment.values()])
    assert variance_between(values, errors**2) == pytest.approx(found.difference.spread**2)
    logs = np.log(found.ranks[1:])
    chance = chances(values / logs[at - 1], (errors / logs[at - 1]) ** 2)
    noise = np.stack([own.std_error[1:] ** 2 for own in found.by_segment.values()])
    share = (1 / noise) / (1 / noise).sum(axis=0)
    pool = found.std_error[1:] ** 2
    for place, (segment, leaning) in enumerate(found.shrunk.items()):
        # pool − own = Σ share·deviation − own deviation, each of variance (size·log rank)².
        weights = share - (np.arange(3) == place)[:, None]
        own, extra = found.by_segment[segment], np.maximum(noise[place] - pool, 0)
        curves, variances = [], []
        for size in SIZES:
            apart = (size * logs) ** 2 * (weights**2).sum(axis=0)
            trust = apart / (apart + extra)
            curves.append(trust * own.log_p[1:] + (1 - trust) * found.log_p[1:])
            # The pool's error, that of own beyond it, and what trust leaves open.
            variances.append(pool + trust**2 * extra + (1 - trust) ** 2 * apart)
        wanted = chance @ np.array(curves)
        np.testing.assert_allclose(leaning.log_p[1:], wanted)
        variance = chance @ (np.array(variances) + (np.array(curves) - wanted) ** 2)
        np.testing.assert_allclose(leaning.std_error[1:] ** 2, variance, rtol=ROUNDING)


def test_the_variance_between_segments_is_found_whatever_the_noise():
    """Ranks of unequal noise; the average over draws is the truth."""
    rng = np.random.default_rng(3)
    noise = np.array([[0.01, 0.5], [0.04, 2.0], [0.02, 1.0], [0.09, 4.0]])
    truth = 0.04
    drawn = (rng.normal(0, np.sqrt(truth + noise)) for _ in range(2000))
    found = [variance_between(values, noise) for values in drawn]
    # Cut off at 0, so a little above; counting both ranks alike would leave 1.3 of noise.
    assert truth < np.mean(found) < 1.4 * truth
    assert np.std(found) < 2 * truth


def test_segments_that_do_not_differ_gain_from_the_pool():
    counts = simulate(900, 30, 4, segments=SAME, queries=300).counts
    found = estimate(counts, by="device", curve=KNOTS)
    assert found.difference.spread == 0
    for segment, leaning in found.shrunk.items():
        own = found.by_segment[segment]
        assert (leaning.std_error[1:] < own.std_error[1:]).all()
        assert (np.abs(leaning.log_p - found.log_p) <= np.abs(own.log_p - found.log_p)).all()


@pytest.mark.slow
def test_intervals_of_leaning_curves_hold_the_truth():
    """Segments whose slopes are drawn; of 100 such worlds, 97.2% of intervals held the truth."""
    held = []
    for seed in range(25):
        drawn = np.random.default_rng(1000 + seed).normal(0.7, 0.1, 3)
        slopes = {name: power(s) for name, s in zip(("app", "tv", "web"), drawn, strict=True)}
        world = simulate(1500, 30, seed, segments=slopes, queries=300)
        found = estimate(world.counts, by="device", curve=KNOTS)
        for (name,), leaning in found.shrunk.items():
            low, high = (np.log(bound)[[4, 29]] for bound in leaning.interval(0.95))
            truth = world.by_segment[name][[4, 29]]
            held.append((low <= truth) & (truth <= high))
    # 150 intervals, of which those of one curve go together: three deviations of about 2.5%.
    assert np.mean(held) > 0.88
