"""Each rival finds the truth where what it assumes holds, and misses it where it does not."""

from functools import cache

import numpy as np
import pytest
from support.method_world import made, off
from support.recovery_check import Case, check_recovery
from support.worlds import power, simulate

from rankdrift.methods.click_rates import ctr
from rankdrift.methods.dual import dual_learning
from rankdrift.methods.em_features import regression_em
from rankdrift.methods.em_pairs import em
from rankdrift.methods.experiments import experiment, swaps
from rankdrift.methods.intervention_harvesting import adjacent_chain, all_pairs, pivot_one
from rankdrift.methods.interventions import find_interventions
from rankdrift.methods.tallies import clicked_pairs, tally
from rankdrift.methods.two_ranks import ratios
from rankdrift.ranking.matrix_reading import read_matrix

# Worlds are made once, by one worker.
pytestmark = pytest.mark.xdist_group("methods test_recovery")

# Nine ranks, each by itself: a curve that is right is this far off once in 500 times.
FAR = 3.6
# Trees for relevance that takes few values: ten half steps leave a thousandth of it unlearnt.
FEW_VALUES = {"trees": 10, "leaves": 12, "learning_rate": 0.5}


@cache
def world(seed=11, **options):
    return made(seed=seed, **options)


@cache
def sets(seed=11):
    return find_interventions(world(seed).log(), max_rank=10)


def shown_often(seed=11):
    """Every pair is shown hundreds of times, so that its relevance is known."""
    return world(seed, queries=70, searches=400, hidden=0.3)


def told_by_features(seed=11):
    """Relevance is in f_good and f_place, whatever the rank, and they have few values: trees can
    tell it exactly."""
    return world(seed, queries=150, searches=20, hidden=0.0, level=0.4, levels=3)


def by_experiment(seed):
    all_random = world(seed, randomised=1.0)
    return experiment(tally(all_random.log(), randomised="is_random")), all_random


def by_click_rates(seed):
    """The ranker's order has nothing to do with relevance."""
    aimless = world(seed, fall=0.0)
    return ctr(tally(aimless.log())), aimless


def by_regression_em(seed):
    told = told_by_features(seed)
    matrix = read_matrix(told.log(), features=["f_good", "f_place"])
    return regression_em(matrix, threads=1, **FEW_VALUES), told


def by_dual_learning(seed):
    told = told_by_features(seed)
    matrix = read_matrix(told.log(), features=["f_good", "f_place"])
    return dual_learning(matrix, bootstrap=5, threads=1), told


def by_pivot(seed):
    """Docs drift so far that every rank meets the first."""
    wide = world(seed, drift=4.0)
    return pivot_one(find_interventions(wide.log(), max_rank=10)), wide


def by_ratios(seed):
    """Appendix C: pairs in common with the third rank are many."""
    near = simulate(8_000, 6, seed, curve=power(0.6), shown=(2, 5), level=0.5)
    return ratios(near.counts, reference=3), near


def by_chains(seed):
    """The last ranks have hardly any pairs in common with the third; some pairs are shown so often
    that they are not listed."""
    wide = simulate(8_000, 15, seed, curve=power(0.6), shown=(2, 10), level=0.4)
    return ratios(wide.counts, reference=3), wide


def by_swaps(seed):
    swapped = world(seed, swapped=0.3, drift=0.0)
    return swaps(swapped.log(), original="original"), swapped


# Estimator, and in how many worlds: those that take long, in fewer.
CASES = {
    "AllPairs": (lambda seed: (all_pairs(sets(seed)), world(seed)), 8),
    "PivotOne": (by_pivot, 8),
    "AdjacentChain": (lambda seed: (adjacent_chain(sets(seed)), world(seed)), 8),
    "EM": (
        lambda seed: (
            em(clicked_pairs(shown_often(seed).log(), max_rank=10)),
            shown_often(seed),
        ),
        5,
    ),
    "regression EM": (by_regression_em, 5),
    "dual learning": (by_dual_learning, 5),
    "ratio": (by_ratios, 16),
    "ratio by way of others": (by_chains, 16),
    "CTR": (by_click_rates, 8),
    "experiment": (by_experiment, 8),
    "swaps": (by_swaps, 8),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_truth_is_found(name):
    estimator, worlds = CASES[name]
    cases = []
    for seed in range(11, 11 + worlds):
        curve, truth = estimator(seed)
        assert curve.ranks.tolist() == list(range(1, len(truth.log_p) + 1))
        assert curve.supported.all()
        assert not curve.gaps
        cases.append(Case(curve, truth.log_p))
    check_recovery(cases)


def test_pivot_one_finds_the_truth_of_ranks_that_met_the_first():
    curve = pivot_one(sets())
    near = curve.supported
    assert np.abs(off(curve, world())).max() < FAR
    assert set(range(1, 6)) <= set(curve.ranks[near].tolist())
    assert set(curve.ranks.tolist()) | set(curve.gaps) == set(range(1, 11))
    both = all_pairs(sets())
    # It has only the sets with rank 1: further down there are hardly any.
    assert curve.std_error[5] > 1.2 * both.std_error[5]


def test_click_rates_are_too_steep():
    """Better docs are shown higher, which click rates put down to the rank."""
    curve = ctr(tally(world().log()))
    assert off(curve, world())[3:].max() < -FAR
    assert curve.log_p[-1] < world().log_p[-1] - 0.15


def test_em_of_pairs_shown_twice_is_too_flat():
    """Each relevance is fitted to a click or two, and clicks deep down speak for p there."""
    truth = world(queries=4000, searches=2)
    curve = em(clicked_pairs(truth.log(), max_rank=10))
    assert (curve.log_p - truth.log_p[curve.ranks - 1])[curve.ranks > 3].min() > 0.4


def test_regression_em_without_what_the_ranker_knows_is_too_steep():
    """The place a doc belongs at is no feature here, and goes with its relevance."""
    truth = told_by_features()
    matrix = read_matrix(truth.log(), features="f_good")
    curve = regression_em(matrix, bootstrap=0, threads=1, **FEW_VALUES)
    assert curve.log_p[-1] < truth.log_p[-1] - 0.25
    assert curve.errors == "none"


def test_an_experiment_of_rows_that_were_not_randomised_is_click_rates():
    log = world().log()
    rows = tally(log)
    assert np.array_equal(experiment(rows).log_p, ctr(rows).log_p)
