"""Every estimator finds the truth where its assumptions hold; where not, the check sees it."""

from functools import cache

import numpy as np
import pytest
from support.recovery_check import Case, check_recovery

from rankdrift import estimate
from rankdrift.methods.click_rates import ctr
from rankdrift.methods.two_ranks import ratio
from rankdrift.simulate import pairs

# Worlds are made once, by one worker.
pytestmark = pytest.mark.xdist_group("recovery test_recovery")

SEEDS = 16
# Squared errors of 64 such worlds are 0.77 of those claimed; the first 16 of them happen to be
# lucky, with 0.26.
MORE_SEEDS = {"heads": 32}
RANKS = 40
KNOTS = np.array([1, 2, 4, 8, 20, 40])
# Standard errors that the mean of SEEDS ratios may be off.
FAR = 4.0
# Large click probabilities: over 20 worlds, ranks 1 to 3 are 0.63 off in log p by single clicks,
# 0.49 by those of pairs shown below rank 20, 0.01 by every click; the means of four worlds have
# deviations of about 0.04, 0.1 and 0.03.
FAR_OFF, STILL_OFF, NEAR = 0.5, 0.2, 0.12
HALF = 0.5  # the ratio of two errors, each of 16 worlds, has a deviation of about 0.2


def straight(ranks=RANKS):
    """A truth that loglog can follow, with knots as in the paper."""
    place = np.arange(1, ranks + 1)
    p = np.minimum(1, 1 / np.log(np.maximum(KNOTS, 2)))
    return np.exp(np.interp(np.log(place), np.log(KNOTS), np.log(p)))


def dipping():
    return straight() * np.where(np.arange(RANKS) % 10 >= 7, 0.4, 1.0)


@cache
def world(kind, seed):
    options = {
        "plain": {"propensities": straight()},
        "clustered": {"propensities": straight(), "query_effect": 0.7, "queries": 300},
        "dips": {"propensities": dipping()},
        "often": {"propensities": straight(), "appearances": 4, "relevance": 0.3},
        "heads": {"propensities": straight(), "appearances": 6, "max_shown": 4, "relevance": 0.3},
        "rare": {"propensities": straight(), "relevance": 0.01},
        "clicked": {"propensities": straight(), "relevance": 0.7},
    }[kind]
    return pairs(4_000, ranks=RANKS, seed=seed, **{"relevance": 0.1, **options})


def found(kind, **options):
    made = (world(kind, seed) for seed in range(MORE_SEEDS.get(kind, SEEDS)))
    return [Case(estimate(w.counts, **options), np.log(w.propensities)) for w in made]


ESTIMATORS = {
    "loglog": ("plain", {"curve": "loglog"}),
    "loglog, clicks that go together": ("clustered", {"curve": "loglog"}),
    "loglog, errors of the model": ("plain", {"curve": "loglog", "errors": "model"}),
    "loglog, errors by bootstrap": (
        "plain",
        {"curve": "loglog", "errors": "bootstrap", "samples": 100},
    ),
    "loglog, large click probabilities": ("clicked", {"curve": "loglog"}),
    "loglog, four appearances": ("often", {"curve": "loglog"}),
    "loglog, heads held as comparisons": ("heads", {"curve": "loglog"}),
    "direct": ("plain", {"curve": "direct", "reference": 10}),
    "direct, large click probabilities": ("clicked", {"curve": "direct", "reference": 10}),
    "single clicks, where they are rare": ("rare", {"clicks": "single"}),
    "periodic": ("dips", {"curve": "loglog + periodic(10)"}),
    "batch": ("dips", {"curve": "loglog + batch(10, 7, 8)"}),
    "auto": ("plain", {}),
    "auto, dips": ("dips", {}),
    "auto, dips, errors by bootstrap": ("dips", {"errors": "bootstrap", "samples": 100}),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_truth_comes_back(name):
    kind, options = ESTIMATORS[name]
    check_recovery(found(kind, **options))


WRONG = {
    "single clicks, many of them": lambda: found("clicked", clicks="single"),
    "a curve too stiff": lambda: found("dips", curve="loglog"),
    "click rates": lambda: [
        Case(ctr(world("plain", seed).counts), np.log(straight())) for seed in range(SEEDS)
    ],
}


@pytest.mark.parametrize("name", WRONG)
def test_the_check_sees_a_wrong_estimate(name):
    with pytest.raises(AssertionError, match=r"biased|hold the truth|errors are"):
        check_recovery(WRONG[name]())


def test_the_check_sees_intervals_too_short():
    cases = found("plain")
    for case in cases:
        case.found.deviations[:] *= 0.4
    with pytest.raises(AssertionError, match=r"hold the truth|errors are"):
        check_recovery(cases)


def test_pairs_shown_far_below_do_not_make_up_for_single_clicks():
    """The paper's advice, Appendix B: the odds of a pair's only click are p / (1 - p z) at each of
    its ranks, wherever the others are."""

    worlds = [pairs(20_000, ranks=100, relevance=0.6, spread=0.5, seed=s) for s in range(4)]

    def off(clicks, shown_below=None):
        means = []
        for w in worlds:
            counts = w.counts.restrict(shown_below=shown_below)
            found = estimate(counts, curve="loglog", clicks=clicks, reference=50, errors="model")
            top = found.ranks <= 3
            true = np.log(w.propensities / w.propensities[49])
            means.append((found.log_p[top] - true[found.ranks[top] - 1]).mean())
        return np.mean(means)

    assert off("single") > FAR_OFF
    assert off("single", shown_below=20) > STILL_OFF
    assert abs(off("every")) < NEAR


def test_a_ratio_comes_back():
    """Appendix C, over worlds: the truth is within its error."""
    true = np.log(straight()[9] / straight()[11])
    made = [ratio(world("often", seed).counts, 10, 12) for seed in range(SEEDS)]
    off = np.array([np.log(found.value) - true for found in made])
    assert abs(off.mean()) < FAR * off.std(ddof=1) / np.sqrt(SEEDS)
    claimed = np.array([found.std_error for found in made])
    assert 0.5 < np.sqrt((off**2).mean()) / np.sqrt((claimed**2).mean()) < 1.6


def test_four_times_the_pairs_half_the_error():
    def error(n):
        off = []
        for seed in range(SEEDS):
            w = pairs(n, ranks=RANKS, seed=seed, propensities=straight(), relevance=0.2)
            found, truth = estimate(w.counts, errors="model").log_p, np.log(w.propensities)
            off.append((found - truth) - (found - truth).mean())
        return np.sqrt(np.mean(np.square(off)))

    assert error(1_000) / error(4_000) == pytest.approx(2, abs=HALF)
