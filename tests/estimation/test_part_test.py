"""Does a part follow the curve of the whole? Against brute force, by lot, and where it does not."""

import numpy as np
import pytest
from support.worlds import dips, power, simulate

from rankdrift.core.errors import NotIdentified
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.part_test import curve_test, part_test, segments_test, shapes_at

WORLDS = 60
# Of 60 p-values below 5%: 3 expected, more than 9 once in a thousand times.
BELOW_5 = 9


def by_segment(counts, curve="loglog", **options):
    return segments_test(counts, fit(counts, Options(curve=curve)), **options)


@pytest.fixture(scope="module")
def alike():
    """Segments of very different size with one curve, thin."""
    same = {"app": power(0.6), "web": power(0.6)}
    return [
        simulate(900, 30, seed, segments=same, shares=(0.1, 0.9)).counts for seed in range(WORLDS)
    ]


def test_segments_that_are_alike(alike):
    p = np.array([by_segment(counts).p_value for counts in alike])
    assert (p < 0.05).sum() <= BELOW_5
    assert (p < 0.001).sum() == 0
    assert (p > 0.5).sum() >= WORLDS / 5


def test_a_curve_that_can_follow(alike):
    found = [curve_test(fit(counts, Options(curve="loglog"))) for counts in alike]
    p = np.array([test.p_value for test in found])
    assert (p < 0.05).sum() <= BELOW_5
    assert (p < 0.001).sum() == 0


def test_a_curve_with_a_parameter_for_each_rank_leaves_nothing_to_test():
    counts = simulate(3000, 6, 1).counts
    assert curve_test(fit(counts, Options(curve="direct"))) is None


def test_a_curve_too_stiff_for_dips():
    counts = simulate(12_000, 60, 1, curve=dips(power(0.3), 20, depth=2.0), level=0.2).counts
    found = curve_test(fit(counts, Options(curve="loglog")))
    assert found.p_value < 1e-6 and found.beyond_noise > 0.1


def test_dips_of_one_segment_that_a_stiff_curve_would_smooth_over():
    """The same mean slope, but the app loads 20 at a time."""
    for seed in range(3):
        segments = {"app": dips(power(0.4), 20, depth=1.0), "web": power(0.5)}
        counts = simulate(30_000, 40, seed, segments=segments).counts
        found = by_segment(counts)
        assert found.p_value < 0.002 and found.beyond_noise > 0.08


def test_a_steeper_segment_is_found_and_measured():
    counts = simulate(30_000, 30, 2, segments={"app": power(0.5), "web": power(0.8)}).counts
    found = by_segment(counts)
    assert found.p_value < 1e-6
    assert abs(abs(found.slope) - 0.3) < 3 * found.slope_error + 0.03  # to first order


def test_many_segments_cost_what_looking_at_each_costs():
    same = {f"s{i}": power(0.6) for i in range(6)}
    p = [by_segment(simulate(2500, 20, seed, segments=same).counts).p_value for seed in range(25)]
    assert (np.array(p) < 0.05).sum() <= 5
    different = same | {"s3": power(1.3)}
    assert by_segment(simulate(20_000, 20, 1, segments=different).counts).p_value < 1e-4


def test_one_segment_is_nothing_to_compare():
    counts = simulate(500, 20, 1, segments={"app": power(0.6)}).counts
    assert by_segment(counts) is None


def test_a_part_without_clicks():
    counts = simulate(500, 20, 1, drift=True).counts
    fitted = fit(counts, Options(curve="loglog"))
    with pytest.raises(NotIdentified, match="nothing to compare"):
        part_test(counts, counts, fitted)


def test_the_score_and_its_variance_by_brute_force():
    """One straight line, few ranks: the adjusted score of a part, from its definition."""
    counts = simulate(2000, 5, 4, segments={"app": power(0.5), "web": power(0.7)}).counts
    part = counts.restrict(segments=["app"])
    direct = fit(counts, Options(curve="direct"))
    theta, ranks = direct.fit.theta, direct.likelihood.ranks
    logs = np.log(ranks)
    choices = {name: each.choices("every") for name, each in (("all", counts), ("part", part))}

    def score_and_information(c):
        place = np.where(c.shown > 0, np.searchsorted(ranks, c.shown), -1)
        chance = np.where(place >= 0, np.exp(theta[place]), 0.0)
        chance /= chance.sum(axis=1, keepdims=True)
        ones = (place[..., None] == np.arange(len(ranks))).astype(float)  # (T, K, R)
        mean = (chance[..., None] * ones).sum(axis=1)
        won = np.eye(len(ranks))[np.searchsorted(ranks, c.clicked)]
        second = np.einsum("tk,tkr,tks,t->rs", chance, ones, ones, c.weight)
        return (c.weight @ (won - mean)), second - np.einsum("tr,ts,t->rs", mean, mean, c.weight)

    total, information = score_and_information(choices["all"])
    own, own_information = score_and_information(choices["part"])
    assert np.allclose(total, 0, atol=1e-6)
    free = np.eye(len(ranks))[:, 1:]
    along = np.linalg.solve(free.T @ information @ free, free.T @ own_information @ logs)
    variance = logs @ own_information @ (logs - free @ along)
    found = part_test(counts, part, direct)
    assert found.slope == pytest.approx(own @ logs / variance, rel=1e-4)


@pytest.mark.parametrize(("curve", "kept"), [("loglog(1, 8, 90)", 2), ("direct", 0)])
def test_the_shapes_of_the_curve_are_shared_unless_they_are_very_many(curve, kept):
    """90 ranks with a parameter each are more than all pairs can be asked for."""
    fitted = fit(simulate(20_000, 90, 1).counts, Options(curve=curve))
    ranks = np.array([1, 5, 90])
    assert shapes_at(fitted, ranks).shape == (3, kept)
    if kept:
        np.testing.assert_allclose(shapes_at(fitted, ranks), fitted.fit.basis[[0, 4, 89]])


def test_a_straight_line_leaves_every_block_but_one_to_be_tested():
    found = curve_test(fit(simulate(3000, 30, 1).counts, Options(curve="loglog(1, 30)")))
    assert found.df == len(found.first) - 1
