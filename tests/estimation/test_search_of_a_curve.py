"""The search behind curve="auto", step by step: what a curve costs, what is next to it, rivals."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from support.worlds import dips, power, simulate

from rankdrift.estimation import auto_curve
from rankdrift.estimation.auto_curve import Criterion, Neighbour, State, criterion_of
from rankdrift.estimation.curves import Curve, curve, places_of
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.newton import maximise

# Worlds are made once, by one worker.
pytestmark = pytest.mark.xdist_group("estimation test_search_of_a_curve")

GIVEN = (1, 2, 4, 8, 20, 50, 60)
# A parabola is nearly the likelihood, in units of 2 log L, where little is to be gained.
NEARLY = 0.1


def criterion(deepest=60, first=1, price=5.0, scale=1.0):
    return Criterion(np.arange(first, deepest + 1), frozenset(GIVEN), price, scale)


@cache
def state(seed=1, start="loglog(1, 2, 4, 8, 20, 50, 60)"):
    found = fit(simulate(3000, 60, seed, curve=power(0.7)).counts, Options(curve=start))
    return State(found.curve, found.fit, criterion_of(found.fit, found.curve))


def written(curves):
    return sorted(str(each) for each in curves)


def test_what_may_become_a_knot():
    """Every rank near the top, steps of 4% further down, and the two sides of every ten; none that
    is given, none above the second rank, none in the last tenth."""
    knots = criterion().knots
    assert knots == sorted(set(knots)) and not set(knots) & set(GIVEN)
    assert set(range(2, 26)) - set(GIVEN) <= set(knots)
    assert {10, 11, 21, 30, 31, 40, 41, 51} <= set(knots)
    assert 51 < max(knots) <= 60 / 1.1
    assert 10 in criterion(deepest=11).knots  # at the very end of what is allowed
    steps = np.array(sorted({*knots, *GIVEN} - {60}))
    assert (steps[1:] / steps[:-1])[steps[1:] > 26].max() < 1.06
    deep = set(criterion(deepest=200).knots) | set(GIVEN)
    assert {*range(10, 181, 10), *range(11, 181, 10)} <= deep and not {185, 190, 200} & deep
    later = criterion(first=5).knots
    assert later == [knot for knot in knots if knot > 5]


def test_a_batch_must_be_there_twice():
    assert criterion(deepest=60).sizes == range(2, 31)
    assert criterion(deepest=61).sizes == range(2, 31)
    assert criterion(deepest=400).sizes == range(2, 121)
    assert not criterion(deepest=3).sizes


def test_what_a_curve_costs():
    """5 a parameter, and 2 log of the number of candidates for each choice; a jump is one."""
    now = criterion()
    pick = 2 * np.log(len(now.knots))
    plain = 5.0 * (len(GIVEN) - 1)
    assert now.fixed(curve("loglog(1, 2, 4, 8, 20, 50, 60)")) == plain
    one = now.fixed(curve("loglog(1, 2, 4, 8, 20, 30, 50, 60)"))
    assert one == pytest.approx(plain + 5 + pick)
    jump = now.fixed(curve("loglog(1, 2, 4, 8, 20, 30, 31, 50, 60)"))
    assert jump == pytest.approx(plain + 10 + pick)
    apart = now.fixed(curve("loglog(1, 2, 4, 8, 20, 30, 32, 50, 60)"))
    assert apart == pytest.approx(plain + 10 + 2 * pick)
    three = now.fixed(curve("loglog(1, 2, 4, 8, 20, 30, 31, 32, 50, 60)"))
    assert three == pytest.approx(plain + 15 + 2 * pick)  # a jump, and a knot beside it


def test_what_a_batch_costs():
    now, size = criterion(), 2 * np.log(29)
    (_, periodic), (_, usual), (_, bent), (_, jump) = (
        curve(f"loglog + {part}").parts
        for part in ("periodic(20)", "batch(20)", "batch(20, 7)", "batch(20, 7, 8)")
    )
    assert now.of_batch(periodic) == pytest.approx(size + 5 * 19)
    assert now.of_batch(usual) == pytest.approx(size + 5 * (len(places_of((20,))) - 1))
    assert now.of_batch(bent) == pytest.approx(size + 5 * 2 + 2 * np.log(20))
    assert now.of_batch(jump) == pytest.approx(size + 5 * 3 + 2 * np.log(20))
    whole = now.fixed(Curve((curve("loglog(1, 2, 4, 8, 20, 50, 60)").parts[0], bent)))
    assert whole == pytest.approx(5 * 6 + now.of_batch(bent))


def test_clicks_of_a_query_that_go_together_count_for_less():
    """Each pair four times over, in the bucket it was in: scores vary four times as much."""
    world = simulate(3000, 60, 1, curve=power(0.7)).counts
    first = fit(world, Options(curve="loglog"))
    one = criterion_of(first.fit, first.curve)
    assert one.given == {1, 2, 4, 8, 20, 50, 60} and one.price == 5.0
    terms, basis = first.likelihood, first.fit.basis
    by_bucket = terms.bucket_scores(first.fit.theta) @ basis
    n = len(terms.touched)
    between = n / (n - 1) * by_bucket.T @ by_bucket
    varied = np.trace(np.linalg.inv(first.fit.information) @ between) / basis.shape[1]
    assert one.scale == pytest.approx(max(1.0, varied))


def test_the_cost_counts_log_likelihood_twice_and_by_its_scale():
    now = state()
    for scale in (1.0, 2.0):
        same = Criterion(now.criterion.ranks, now.criterion.given, 5.0, scale)
        cost = State(now.curve, now.fit, same).cost
        assert cost == pytest.approx(5 * 6 - 2 * now.fit.log_likelihood / scale)


@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize(
    "other", ["loglog(1, 2, 4, 8, 14, 20, 50, 60)", "loglog(1, 2, 4, 8, 20, 50, 60) + batch(10)"]
)
def test_a_curve_is_told_nearly_as_it_would_be_fitted(other, scale):
    now, other = state(), curve(other)
    now = State(now.curve, now.fit, replace(now.criterion, scale=scale))
    told = now.estimate(other)
    had = maximise(now.fit.likelihood, other.basis(now.criterion.ranks)[:, 1:])
    cost = now.criterion.fixed(other) - 2 * had.log_likelihood / now.criterion.scale
    assert told.cost == pytest.approx(cost, abs=NEARLY)
    np.testing.assert_allclose(told.phi, had.phi, atol=NEARLY)
    assert told.cost > now.cost  # a straight line needs neither


def test_what_the_data_cannot_bear_is_no_neighbour():
    now = state()
    assert now.estimate(curve("loglog(1, 2, 4, 8, 20, 50, 60) + periodic(60)")) is None


def test_folded_sums_are_by_place_in_the_batch():
    now, size = state(), 7
    place = (now.criterion.ranks - 1) % size
    in_place = (place[:, None] == np.arange(size)).astype(float)
    information, score = now.folded(size)
    np.testing.assert_allclose(information, in_place.T @ now.remaining @ in_place, atol=1e-6)
    np.testing.assert_allclose(score, now.gradient @ in_place, atol=1e-6)


def at(text):
    return SimpleNamespace(curve=curve(text), criterion=criterion())


def test_simpler_curves_lack_one_thing():
    found = auto_curve._simpler(at("loglog(1, 2, 4, 8, 20, 30, 31, 40, 50, 60)"))
    given = "1, 2, 4, 8, 20"
    assert written(found) == sorted([
        f"loglog({given}, 31, 40, 50, 60)", f"loglog({given}, 30, 40, 50, 60)",
        f"loglog({given}, 30, 31, 50, 60)", f"loglog({given}, 40, 50, 60)",
    ])  # fmt: skip


def test_simpler_batches_lack_a_place_or_all():
    plain = "loglog(1, 2, 4, 8, 20, 50, 60)"
    found = written(auto_curve._simpler(at(f"{plain} + batch(10, 4, 5)")))
    assert found == sorted([
        plain, f"{plain} + batch(10, 5)", f"{plain} + batch(10, 4)", f"{plain} + batch(10, 10)",
    ])  # fmt: skip
    found = written(auto_curve._simpler(at(f"{plain} + periodic(10)")))
    assert found == sorted([plain, f"{plain} + batch(10)"])


def test_a_knot_is_moved_three_candidates_to_either_side():
    found = {
        tuple(c.parts[0].numbers)
        for c in auto_curve._moved(at("loglog(1, 2, 4, 8, 12, 20, 50, 60)"))
    }
    own = {next(iter(set(numbers) - set(GIVEN))) for numbers in found if len(numbers) == 8}
    assert own == {9, 10, 11, 12, 13, 14, 15}


def test_a_jump_is_moved_as_a_whole_and_rank_by_rank():
    text = "loglog(1, 2, 4, 8, 20, 36, 37, 50, 60)"
    found = [set(c.parts[0].numbers) - set(GIVEN) for c in auto_curve._moved(at(text))]
    assert sorted(map(sorted, found)) == [[k, k + 1] for k in range(33, 40)]


def test_places_of_a_batch_stay_inside():
    plain = "loglog(1, 2, 4, 8, 20, 50, 60)"
    found = {
        c.parts[1].numbers for c in auto_curve._moved(at(f"{plain} + batch(10, 3)")) if c.parts[1:]
    }
    assert {numbers[1:] for numbers in found} <= {(k,) for k in range(2, 7)} and len(found) == 5


def test_a_batch_with_its_usual_places_is_written_without_them():
    usual = set(places_of((20,)))
    assert auto_curve._batch(20, usual).numbers == (20,)
    assert auto_curve._batch(20, usual - {1, 20}).numbers == (20,)
    assert auto_curve._batch(20, {7, 8, 1, 20}).numbers == (20, 7, 8)
    assert auto_curve._batch(20, {1, 20}).numbers == (20, 20)  # a line from end to end


def test_a_batch_is_given_a_bend_or_a_jump_at_any_place_inside():
    plain = "loglog(1, 2, 4, 8, 20, 50, 60)"
    now = state(1, f"{plain} + batch(6, 6)")
    found = written(c for c in auto_curve._richer(now) if c.parts[0].numbers == GIVEN)
    assert found == sorted([
        *(f"{plain} + batch(6, {place})" for place in (2, 3, 4, 5)),
        *(f"{plain} + batch(6, {place}, {place + 1})" for place in (2, 3, 4)),
        f"{plain} + periodic(6)",
    ])  # fmt: skip


def test_rivals_share_what_is_left_by_their_costs():
    now = SimpleNamespace(cost=100.0)
    costs = {"loglog(1, 5)": 102.0, "loglog(1, 6)": 99.0, "loglog(1, 7)": 100.0 + 2 * np.log(101)}
    near = [Neighbour(curve(text), np.zeros(1), cost) for text, cost in costs.items()]
    found = auto_curve._rivals(now, near)
    total = 1 + np.exp(-1) + 1 + 1 / 101
    assert [str(rival.curve) for rival in found] == ["loglog(1, 5)", "loglog(1, 6)"]
    assert [r.chance for r in found] == pytest.approx([np.exp(-1) / total, 1 / total])


def test_only_what_is_better_once_fitted_is_taken(monkeypatch):
    """Those that seem better are tried, the five best of them and no more."""
    now = state()
    tried = []
    monkeypatch.setattr(auto_curve, "maximise", lambda terms, basis: tried.append(1) or now.fit)
    dear = curve("loglog(1, 2, 4, 8, 14, 20, 50, 60)")
    near = [Neighbour(dear, np.zeros(1), now.cost - 1)] * 9
    assert auto_curve._first_that_pays(now, near) is None and len(tried) == 5
    tried.clear()
    assert auto_curve._first_that_pays(now, [Neighbour(dear, np.zeros(1), now.cost)]) is None
    assert not tried
    cheap = Neighbour(curve("loglog(1, 2, 4, 8, 60)"), np.zeros(1), now.cost - 1)
    taken = auto_curve._first_that_pays(now, [cheap])
    assert taken.curve == cheap.curve and taken.cost == pytest.approx(now.cost - 10)


def test_batches_gain_what_is_told():
    """The usual places of each likely size, one bend and one jump: told, and had by fitting."""
    world = simulate(6000, 60, 2, curve=dips(power(0.5), 12, 0.4), level=0.2)
    found = fit(world.counts, Options(curve="loglog(1, 60)"))
    now = State(found.curve, found.fit, criterion_of(found.fit, found.curve))
    told = list(auto_curve._gains_of_batches(now))
    assert 12 in {part.numbers[0] for _, part in told}
    for size in {part.numbers[0] for _, part in told}:
        places = [len(part.numbers) - 1 for _, part in told if part.numbers[0] == size]
        assert places == ([0, 1, 2] if size > 5 else [0])
    for gain, part in told:
        basis = Curve((*now.curve.parts, part)).basis(now.criterion.ranks)[:, 1:]
        had = maximise(found.likelihood, basis).log_likelihood - found.fit.log_likelihood
        assert gain == pytest.approx(2 * had, rel=NEARLY, abs=NEARLY)


def test_the_batch_that_is_worth_most_is_the_first_to_be_tried():
    """By what it gains less what it costs, and so are the four behind it."""
    now = state(2)
    worth = sorted(
        (gain - now.criterion.of_batch(part) for gain, part in auto_curve._gains_of_batches(now)),
        reverse=True,
    )
    gains = {part: gain for gain, part in auto_curve._gains_of_batches(now)}
    tried = [c.parts[1] for c in auto_curve._richer(now) if len(c.parts) > 1]
    assert [gains[part] - now.criterion.of_batch(part) for part in tried] == worth[:5]


def test_where_there_is_one_candidate_nothing_was_picked():
    now = criterion(deepest=4)
    assert now.sizes == range(2, 3)
    (_, batch) = curve("loglog + batch(2)").parts
    assert now.of_batch(batch) == pytest.approx(5.0)
