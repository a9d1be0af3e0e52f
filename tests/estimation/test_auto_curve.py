"""curve="auto" finds what is there, adds nothing to a straight line, and knows its doubts."""

import numpy as np
import pytest
from support.worlds import dips, power, simulate

from rankdrift import harvest, read_log
from rankdrift.counts.counts import merge
from rankdrift.estimation import estimate
from rankdrift.estimation.auto_curve import best_period, choose_curve, gains_of_bends
from rankdrift.estimation.curves import Curve, Part
from rankdrift.estimation.curves import curve as parse_curve
from rankdrift.estimation.fitted_curve import to_propensities
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.newton import maximise
from rankdrift.simulate import market, pairs
from rankdrift.simulate.true_curves import dipping, inverse_log

EXACT = 1e-8  # the same numbers summed in another order, through one Newton iteration
# A gain told to first order and the gain that is had: the likelihood is no parabola, but where
# there is little to gain it nearly is one.
NEARLY = 0.1
SEEDS = range(5)


def is_sane(found):
    assert np.isfinite(found.log_p).all()
    assert np.isfinite(found.deviations).all()
    assert np.abs(found.log_p).max() < 30  # no 0 in disguise
    assert found.log_p[found.ranks == found.reference].tolist() == [0]


def chosen(counts):
    return parse_curve(estimate(counts).provenance["curve"])


def batch_of(counts):
    """The numbers of the batch that was chosen: its size, then places."""
    return next((part.numbers for part in chosen(counts).parts[1:]), ())


def knots_of(counts):
    return set(chosen(counts).parts[0].numbers)


# What is found


def test_auto_finds_dips_every_forty_ranks_and_follows_them():
    world = simulate(12_000, 160, 3, curve=dips(power(0.4), 40, 2.0), level=0.2)
    auto, loglog = (estimate(world.counts, curve=c) for c in ("auto", "loglog"))
    assert "batch(40" in auto.method
    assert auto.log_likelihood > loglog.log_likelihood + 50
    assert auto.parameters < loglog.parameters + 5  # where periodic(40) would have 39

    def miss(found):
        off = found.log_p - world.log_p
        return np.std(off[10:])

    assert miss(auto) < 0.4 * miss(loglog)


@pytest.mark.parametrize("seed", SEEDS)
def test_auto_finds_where_the_dips_of_the_demo_begin(seed):
    """The demo's mobile profile: level up to place 25 of 40, and falling from there."""
    counts = pairs(6_000, ranks=100, propensities=dipping, relevance=0.3, seed=seed).counts
    size, *places = batch_of(counts)
    assert size == 40
    assert len(places) <= 2 and any(20 <= place <= 30 for place in places)


@pytest.mark.slow
def test_a_batch_on_the_counts_of_a_marketplace(tmp_path):
    """Mobile's counts of a log like the demo's, 6,000 pairs: a batch says nearly all that a level
    for each place does, with a tenth of its parameters, and is nearer to the truth."""
    made = market(tmp_path, rows=900_000, queries=200, click_rate=0.2, seed=1, features=False)
    log = read_log(
        [str(path) for path in made.paths],
        query=["keywords", "category", "aspects"],
        segment="platform",
        same="price",
        where="sort = 'best_match' AND NOT auction",
    )
    counts = harvest(log).restrict(segments=["mobile"])
    curves = ("loglog", "loglog + periodic(40)", "loglog + batch(40)", "auto")
    found = {curve: estimate(counts, curve=curve) for curve in curves}
    # What the method's prototype found, whose middle place was 20 instead of 21.
    told = {"loglog": (9, -11_858), "loglog + periodic(40)": (48, -11_645)}
    for curve, (parameters, log_likelihood) in told.items():
        assert found[curve].parameters == parameters
        assert found[curve].log_likelihood == pytest.approx(log_likelihood, abs=1)
    assert found["loglog + batch(40)"].parameters == 13
    assert found["loglog + batch(40)"].log_likelihood == pytest.approx(-11_664, abs=4)
    assert "batch(40, 25)" in found["auto"].method
    truth = np.log(made.propensities["mobile"][:100])
    off = [np.std(found[curve].log_p[:100] - truth) for curve in curves]
    assert off[3] < off[2] < off[1] < off[0]
    np.testing.assert_allclose(off[:3], [0.342, 0.076, 0.048], atol=0.01)
    for size in (20, 25, 50):
        other = estimate(counts, curve=f"loglog + batch({size})")
        assert other.log_likelihood < found["loglog + batch(40)"].log_likelihood - 100
    assert "batch" not in estimate(harvest(log).restrict(segments=["web"])).method


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [10, 24])
def test_auto_finds_a_step_within_the_batch(size, seed):
    """The last quarter of every batch is seldom looked at."""
    last = size * 3 // 4

    def stepped(ranks):
        return ranks**-0.3 * np.where((ranks - 1) % size >= last, 0.3, 1.0)

    counts = pairs(10_000, ranks=80, propensities=stepped, relevance=0.3, seed=seed).counts
    found, *places = batch_of(counts)
    assert found == size and {last, last + 1} <= set(places)


def test_auto_gives_every_place_a_level_where_that_pays():
    """No line, and no few lines, between places that alternate."""
    level = np.random.default_rng(3).normal(0, 0.6, 8)

    def rough(ranks):
        found = ranks**-0.3 * np.exp(level[(ranks.astype(int) - 1) % 8])
        return found / found.max()

    counts = pairs(30_000, ranks=64, propensities=rough, relevance=0.3, seed=1).counts
    assert "periodic(8)" in estimate(counts).method


@pytest.mark.parametrize("seed", SEEDS)
def test_auto_finds_a_jump_and_no_batch(seed):
    def folded(ranks):
        return ranks**-0.3 * np.where(ranks > 25, 0.4, 1.0)

    counts = pairs(10_000, ranks=100, propensities=folded, relevance=0.3, seed=seed).counts
    assert {25, 26} <= knots_of(counts)
    assert not batch_of(counts)


def test_auto_finds_a_kink():
    """Appendix D's, at rank e: the paper's knots have none between 2 and 4."""
    counts = pairs(300_000, ranks=60, propensities=inverse_log, relevance=0.3, seed=1).counts
    assert 3 in knots_of(counts)


@pytest.mark.parametrize("seed", range(3))
def test_auto_is_never_less_likely_than_loglog_and_adds_nothing_to_a_straight_line(seed):
    counts = simulate(3000, 60, seed, curve=power(0.7)).counts
    auto, loglog = (estimate(counts, curve=c) for c in ("auto", "loglog"))
    assert auto.log_likelihood >= loglog.log_likelihood - EXACT
    assert auto.parameters <= loglog.parameters + 1
    assert "batch" not in auto.method and "periodic" not in auto.method


@pytest.mark.parametrize("first", range(1, 8))
def test_auto_with_few_ranks(first):
    counts = simulate(900, 8, 1).counts.only(np.arange(first, 9, dtype=np.int32))
    found = estimate(counts, curve="auto", reference=first)
    assert found.ranks.tolist() == list(range(first, 9))
    is_sane(found)


def test_auto_where_ranks_do_not_begin_at_the_first():
    """Places of a batch count from rank 1 on, wherever the data begin."""
    made = pairs(10_000, ranks=100, propensities=dipping, relevance=0.3, seed=2)
    counts = made.counts.only(np.arange(8, 101, dtype=np.int32))
    found = estimate(counts, reference=8)
    assert "batch(40" in found.method
    truth = np.log(made.propensities[7:])
    assert np.std(found.log_p - truth) < 0.15  # dips are 1.2 deep; the paper's knots miss by 0.35


def test_auto_can_be_drawn_on():
    """Whatever it chooses, and with what it might have chosen in its errors."""
    counts = pairs(6_000, ranks=100, propensities=dipping, relevance=0.3, seed=1).counts
    found = estimate(counts, extrapolate_to=160)
    assert found.ranks[-1] == 160 and "batch(40" in found.method
    assert (found.supported == (found.ranks <= 100)).all()
    assert (found.std_error[120:160] > found.std_error[40:80]).all()
    # Ranks 121 to 160 are the fourth batch: it dips where the second did.
    fall = found.log_p[[159, 144]] - found.log_p[[79, 64]]
    assert abs(fall[0] - fall[1]) < 0.2


def test_the_choice_is_the_same_whichever_way_counts_are_merged():
    days = [simulate(2_000, 100, day, curve=dipping, level=0.2).counts for day in range(4)]
    one, other = (estimate(merge(way)) for way in (days, days[::-1]))
    assert one.method == other.method
    np.testing.assert_allclose(one.log_p, other.log_p, atol=EXACT)
    np.testing.assert_allclose(one.std_error, other.std_error, atol=EXACT)


def test_the_same_clicks_again_do_not_make_a_choice():
    """Six copies of a log are no more evidence than one, and their queries tell. Taken for six
    times the clicks, each of these straight lines would get a bend."""
    worlds = (simulate(2_000, 60, seed, curve=power(0.5), level=0.2) for seed in range(8))
    copied = (merge([world.counts] * 6) for world in worlds)
    plain = [str(chosen(counts)) == "loglog(1, 2, 4, 8, 20, 50, 60)" for counts in copied]
    assert np.count_nonzero(plain) >= 6


# How it is found


def test_gains_are_those_of_refitting():
    """A bend and a jump: told to first order, and had by fitting them."""
    counts = pairs(20_000, ranks=30, propensities=inverse_log, seed=2, relevance=0.3).counts
    plain = fit(counts, Options(curve="loglog(1, 30)")).fit
    point, ranks = plain.likelihood.at(plain.theta), plain.likelihood.ranks
    information = point.information()
    across = information @ plain.basis
    left = information - across @ np.linalg.solve(plain.basis.T @ across, across.T)
    bends, jumps = gains_of_bends(left, point.gradient, np.log(ranks), 1e-9)
    for at in (5, 12, 20):
        bend = np.maximum(np.log(ranks) - np.log(ranks[at]), 0.0)
        jump = (ranks > ranks[at]).astype(float)
        for told, column in ((bends[at], bend), (jumps[at], jump)):
            more = maximise(plain.likelihood, np.column_stack([plain.basis, column]))
            had = 2 * (more.log_likelihood - plain.log_likelihood)
            assert told == pytest.approx(had, rel=NEARLY, abs=NEARLY)


def test_the_best_period_of_a_fit():
    counts = pairs(6_000, ranks=100, propensities=dipping, relevance=0.3, seed=1).counts
    stiff, direct, auto = (
        best_period(fit(counts, Options(curve=c)).fit) for c in ("loglog", "direct", "auto")
    )
    assert stiff[0] == 40 and stiff[1] > 50
    assert direct[1] < 0 and auto[1] < 0  # nothing is left to gain
    assert best_period(fit(simulate(300, 3, 1).counts, Options(curve="loglog")).fit) == (None, 0.0)


# How sure it is


def test_a_choice_has_rivals_and_they_add_to_the_error():
    counts = pairs(3_000, ranks=100, propensities=dipping, relevance=0.3, seed=4).counts
    options = Options(curve=parse_curve("auto"), reference=20)
    found = fit(counts, options)
    first = fit(counts, Options(curve="loglog"))
    rivals = choose_curve(first.fit, first.curve).rivals
    assert [rival.curve for rival in rivals] == [rival.curve for rival in found.rivals]
    assert rivals and sum(rival.chance for rival in rivals) < 1
    assert found.curve not in [rival.curve for rival in rivals]
    auto = to_propensities(counts, found, options)
    known = estimate(counts, curve=found.curve, reference=20)
    np.testing.assert_allclose(auto.log_p, known.log_p, atol=EXACT)
    extra = auto.covariance - known.covariance
    by_hand = np.zeros_like(extra)
    for rival in rivals:
        off = rival.curve.basis(auto.ranks)[:, 1:] @ rival.phi - found.fit.theta
        off = (off - off[19])[:, None]
        by_hand += rival.chance * off @ off.T
    np.testing.assert_allclose(extra, by_hand, atol=EXACT)
    # Its phi is what a fit of the rival would give, nearly.
    likeliest = max(rivals, key=lambda rival: rival.chance)
    refitted = estimate(counts, curve=likeliest.curve, reference=20)
    off = likeliest.curve.basis(auto.ranks)[:, 1:] @ likeliest.phi
    np.testing.assert_allclose(off - off[19], refitted.log_p, atol=NEARLY)


@pytest.mark.slow
def test_intervals_hold_the_truth_where_the_data_hardly_show_it():
    """Thin dips, relative to a rank whose own noise hides nothing. Of 60 such worlds 92.1% of
    intervals held the truth, and 88.6% without the rivals."""
    held = []
    for seed in range(30):
        world = pairs(700, ranks=100, propensities=dipping, relevance=0.3, seed=seed)
        found = estimate(world.counts, reference=20)
        low, high = (np.log(bound) for bound in found.interval())
        truth = np.log(world.propensities / world.propensities[19])[found.ranks - 1]
        held.append(((low <= truth) & (truth <= high))[found.supported].mean())
    # Worlds are as far from each other as 0.12: three deviations of the mean of 30 are 0.07.
    assert np.mean(held) > 0.92 - 0.07


def test_a_curve_made_of_parts_is_given_as_it_is():
    """What was chosen can be asked for again, by its name or as it is."""
    counts = pairs(3_000, ranks=100, propensities=dipping, relevance=0.3, seed=4).counts
    auto = estimate(counts)
    name = auto.provenance["curve"]
    again = [estimate(counts, curve=c) for c in (name, parse_curve(name))]
    for found in again:
        np.testing.assert_allclose(found.log_p, auto.log_p, atol=EXACT)
    assert parse_curve(name) == Curve(
        (Part("loglog", tuple(sorted(knots_of(counts)))), Part("batch", batch_of(counts)))
    )
