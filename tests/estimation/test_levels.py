"""Curves of different forms: what they have in common is shrunk, and each keeps its detail."""

import numpy as np
import pytest
from support.worlds import power, simulate

from rankdrift.estimation import estimate
from rankdrift.estimation.curves import curve as parse_curve
from rankdrift.estimation.fitted_curve import to_propensities
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.levels import level_of
from rankdrift.simulate.true_curves import dipping, steady

EXACT = 1e-8  # the same numbers through other matrices
DEEP = 100
PAPER = "loglog(1, 2, 4, 8, 20, 50, 100)"


def levelled(counts, **more):
    options = Options(curve=parse_curve("auto"), **more)
    fitted = fit(counts, options)
    return level_of(to_propensities(counts, fitted, options), fitted), fitted


def off(curve, truth):
    return float(np.std(curve.log_p - truth[curve.ranks - 1]))


def test_a_curve_without_detail_is_all_level():
    found, _ = levelled(simulate(3_000, 60, 1, curve=power(0.6)).counts)
    assert not found.detail.any()
    np.testing.assert_array_equal(found.deviations, found.curve.deviations)
    np.testing.assert_allclose(found.error, found.curve.std_error)


def test_the_level_of_a_batch_is_its_log_log_part():
    counts = simulate(8_000, DEEP, 1, curve=dipping, level=0.3).counts
    found, fitted = levelled(counts)
    assert str(fitted.curve).startswith(f"{PAPER} + batch(40")
    many = len(fitted.curve.parts[0].numbers)
    level = fitted.fit.basis[:, : many - 1] @ fitted.fit.phi[: many - 1]
    np.testing.assert_allclose(found.level, level - level[0], atol=EXACT)
    np.testing.assert_allclose(found.detail[[0, 40, 80]], 0, atol=EXACT)  # first places
    np.testing.assert_allclose(found.detail[:60], found.detail[40:], atol=EXACT)
    # Its errors are the curve's own, put through the same matrices; columns of rivals come last.
    assert found.deviations.shape == found.curve.deviations.shape
    buckets = len(fitted.likelihood.touched)
    of_detail = (found.curve.deviations - found.deviations)[:, :buckets]
    np.testing.assert_allclose(of_detail[[0, 40, 80]], 0, atol=EXACT)
    assert of_detail[1:40].any(axis=1).all()


def test_the_level_of_a_jump_follows_the_paper_s_knots():
    def folded(ranks):
        return power(0.4)(ranks) * np.where(ranks > 25, 0.4, 1.0)

    found, fitted = levelled(simulate(12_000, DEEP, 2, curve=folded, level=0.3).counts)
    assert {25, 26} <= set(fitted.curve.parts[0].numbers)
    basis = parse_curve(PAPER).basis(found.curve.ranks)
    nearest = np.linalg.lstsq(basis, found.level, rcond=None)[0]
    np.testing.assert_allclose(basis @ nearest, found.level, atol=EXACT)
    assert found.detail[25] < -0.2 < 0.2 < found.detail[24] + 0.3


def test_levels_go_on_where_curves_do():
    counts = simulate(8_000, DEEP, 1, curve=dipping, level=0.3).counts
    near, far = (levelled(counts, **more)[0] for more in ({}, {"extrapolate_to": 140}))
    np.testing.assert_allclose(far.level[:DEEP], near.level, atol=EXACT)
    np.testing.assert_allclose(far.detail[DEEP:], near.detail[20:60], atol=EXACT)


def test_a_thin_segment_has_the_detail_of_the_pool():
    """300 pairs do not show dips that 6,000 do; nothing speaks against them either."""
    world = simulate(
        6_300, DEEP, 3, segments={"app": dipping, "tv": dipping}, shares=[0.95, 0.05], level=0.3
    )
    found = estimate(world.counts, by="device")
    own, shrunk = found.by_segment[("tv",)], found.shrunk[("tv",)]
    assert own.method == f"{PAPER}, every" and "batch(40" in found.method
    assert off(shrunk, world.by_segment["tv"]) < 0.6 * off(own, world.by_segment["tv"])


def test_the_errors_of_a_curve_that_shares_the_detail_of_the_pool():
    """Its own errors, as it has no detail; by the chance of the pool's detail those of that; and
    the doubt between the two, whose square is chance (1 - chance) of how far they are apart."""
    pool, _ = levelled(simulate(8_000, DEEP, 1, curve=dipping, level=0.3).counts)
    counts = simulate(200, DEEP, 6, curve=steady, level=0.3).counts
    own, fitted = levelled(counts)
    assert not own.detail.any()
    found = own.sharing(pool, fitted, own.curve)
    width = own.deviations.shape[1]
    parts, doubt = found.curve.deviations[:, :-1], found.curve.deviations[:, -1]
    np.testing.assert_allclose(parts[:, :width], own.deviations, atol=EXACT)
    moved = found.curve.log_p - own.curve.log_p
    far = np.abs(moved) > 0.05
    (odds,) = {round(float(value), 6) for value in (doubt[far] / moved[far]) ** 2}
    chance = 1 / (1 + odds)
    assert 0.1 < chance < 0.9
    at = np.searchsorted(pool.curve.ranks, own.curve.ranks)
    of_detail = (pool.curve.deviations - pool.deviations)[at]
    np.testing.assert_allclose(parts[:, width:], chance * of_detail, atol=1e-5)
    assert found.deviations.shape == found.curve.deviations.shape
    np.testing.assert_allclose(found.error, own.error, atol=EXACT)
    np.testing.assert_allclose(found.detail, chance * pool.detail[at], atol=1e-5)


def test_a_curve_with_a_detail_of_its_own_gives_up_as_much_as_it_takes():
    """Of the errors of its detail there is left the chance that it is right; of a segment that
    lacks the first ranks, the pool's detail at its own ranks is taken."""
    pool, _ = levelled(simulate(8_000, DEEP, 1, curve=dipping, level=0.3).counts)
    counts = simulate(3_000, DEEP, 5, curve=dipping, level=0.3).counts
    counts = counts.only(np.arange(8, DEEP + 1, dtype=np.int32))
    own, fitted = levelled(counts, reference=8)
    assert own.detail.any()
    began = to_propensities(counts, fitted.began, Options(curve=fitted.began.curve, reference=8))
    found = own.sharing(pool, fitted, began)
    width = own.deviations.shape[1]
    moved, doubt = found.curve.log_p - own.curve.log_p, found.curve.deviations[:, -1]
    far = int(np.argmax(np.abs(doubt)))
    chance = 1 / (1 + (doubt[far] / moved[far]) ** 2)
    left = found.curve.deviations[:, :width] - own.deviations
    of_detail = own.curve.deviations - own.deviations
    np.testing.assert_allclose(left, (1 - chance) * of_detail, atol=1e-6)
    taken = (pool.curve.deviations - pool.deviations)[7:]
    np.testing.assert_allclose(found.curve.deviations[:, width:-1], chance * taken, atol=1e-6)
    assert 0.001 < chance < 0.999
    detail = (1 - chance) * own.detail + chance * pool.detail[7:]
    np.testing.assert_allclose(found.detail, detail, atol=1e-6)


def test_a_segment_without_dips_is_given_none():
    """The pool's are half as deep as the other segment's, and it refuses them."""
    world = simulate(12_000, DEEP, 4, segments={"app": dipping, "web": steady}, level=0.3)
    found = estimate(world.counts, by="device")
    assert "batch(40" in found.method
    web = found.shrunk[("web",)]
    dip = web.log_p[[39, 79]] - web.log_p[[23, 63]]
    straight = np.log(steady(np.array([40.0, 80.0])) / steady(np.array([24.0, 64.0])))
    np.testing.assert_allclose(dip, straight, atol=0.1)  # the pool's are 0.5 deep, the app's 1.2
    app = found.shrunk[("app",)]
    assert app.log_p[39] - app.log_p[23] < -0.9


@pytest.mark.slow
def test_intervals_of_shrunk_curves_of_different_forms_hold_the_truth():
    """Three segments with dips and three without, 400 pairs each: of 12 such worlds 98.8% of
    intervals held the truth, with two thirds of the error that own curves have."""
    forms = {f"s{k}": dipping if k < 3 else steady for k in range(6)}
    held, square = [], {"own": [], "shrunk": []}
    for seed in range(8):
        world = simulate(2_400, DEEP, seed, segments=forms, level=0.3)
        found = estimate(world.counts, by="device")
        for (name,), curve in found.shrunk.items():
            truth = world.by_segment[name][curve.ranks - 1]
            low, high = (np.log(bound) for bound in curve.interval())
            held.append(((low <= truth) & (truth <= high))[1:].mean())
            square["shrunk"].append(off(curve, world.by_segment[name]) ** 2)
            square["own"].append(off(found.by_segment[(name,)], world.by_segment[name]) ** 2)
    # 48 curves, whose shares differ by 0.1 or so: three deviations of their mean are 0.04.
    assert np.mean(held) > 0.95 - 0.04
    assert np.mean(square["shrunk"]) < 0.7 * np.mean(square["own"])
