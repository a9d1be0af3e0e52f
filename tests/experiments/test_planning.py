"""Plans: what is foretold of precision and cost is what happens."""

import numpy as np
import pytest
from support.worlds import listed

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.experiments.designs import allocation, fairpairs, random_pair, shuffle, swap
from rankdrift.experiments.planning import CHEAPEST, CONNECTING, plan, variance
from rankdrift.methods.rank_times_stratum import Strata, maximise
from rankdrift.simulate import pairs

R = 8
P = np.arange(1, R + 1) ** -0.6
Z = 0.3 * np.arange(1, R + 1) ** -0.35
RATES = P * Z
SEEDS = 250
# The deviation of 250 draws is known to 4.5%; a plan is to be right within a tenth.
WITHIN = 0.10
PLAN = plan(RATES, ratio=(R, 1))
DESIGNS = {
    "swap": swap(1, R),
    "fairpairs": fairpairs(1, R),
    "random pair": random_pair(1, R),
    "shuffle": shuffle(1, R),
    "cheapest": next(each.design for each in PLAN.designs if each.name == CHEAPEST),
}


def drawn(design, searches, random):
    """What docs of each rank got at each: shown and clicked (R, R)."""
    shown = np.stack([random.multinomial(searches, row) for row in allocation(design, R)])
    return shown, random.binomial(shown, np.outer(Z, P))


@pytest.mark.parametrize("name", DESIGNS)
def test_precision_and_cost_are_as_foretold(name):
    design, random = DESIGNS[name], np.random.default_rng(1)
    foretold = variance(design, P, Z, R, 1)
    searches = int(foretold / 0.06**2)
    ratios, clicks = [], 0
    for _ in range(SEEDS):
        shown, clicked = drawn(design, searches, random)
        clicks += clicked.sum()
        before, rank = np.nonzero(shown)
        won = clicked[before, rank].astype(float)
        lost = shown[before, rank] - won
        data = Strata(np.arange(1, R + 1), before, rank, 0 * before, won, lost, 1)
        log_p = maximise(data, data.click_rates()).log_p
        ratios.append(log_p[R - 1] - log_p[0])
    assert abs(np.std(ratios) / 0.06 - 1) < WITHIN
    assert abs(np.mean(ratios) - np.log(P[-1])) < 4 * 0.06 / np.sqrt(SEEDS) + 0.06**2
    # With the propensities known the loss is what Eq. (1) says; the clicks counted have an error.
    lost = 1 - clicks / SEEDS / searches / RATES.sum()
    foretold_loss = 1 - (Z @ allocation(design, R) @ P) / RATES.sum()
    error = 1 / np.sqrt(clicks)
    assert abs(lost - foretold_loss) < 4 * error


def test_the_cheapest_swaps_are_cheaper_than_every_chain_of_one_or_two():
    cheapest = next(each for each in PLAN.designs if each.name == CHEAPEST)
    assert PLAN.best is cheapest
    p, z = PLAN.p, PLAN.rates / PLAN.p

    def price(first, second):
        """Clicks lost, times the variance reached, with the better of 99 mixes of two swaps."""
        costs = []
        for share in np.linspace(0.01, 0.99, 99):
            mixed = {
                "kind": "swaps",
                "swaps": [first, second],
                "chances": [share, 1 - share],
            }
            lost = float(z @ p - z @ allocation(mixed, R) @ p)
            costs.append(lost * variance(mixed, p, z, R, 1))
        return min(costs)

    lost = float(z @ p - z @ allocation(cheapest.design, R) @ p)
    ours = lost * variance(cheapest.design, p, z, R, 1)
    assert all(ours <= 1.001 * price([1, k], [k, R]) for k in range(2, R))


def test_precision_costs_as_its_square():
    wide, close = (plan(RATES, ratio=(R, 1), within=within) for within in (0.2, 0.1))
    more = (np.log(1.2) / np.log(1.1)) ** 2
    for a, b in zip(wide.designs, close.designs, strict=True):
        assert abs(b.searches / a.searches - more) < 0.001 * more
        assert np.isclose(a.at(0.1, 0.2)[1], b.clicks_lost_in_all, rtol=0.001)


def test_the_frontier_is_what_nothing_beats():
    for each in PLAN.designs:
        beaten = any(
            o.searches <= each.searches and o.clicks_lost_in_all < each.clicks_lost_in_all
            for o in PLAN.designs
        )
        assert each.frontier != beaten


def test_without_propensities_the_cost_is_the_largest_that_the_rates_allow():
    unknown = {each.name: each for each in PLAN.designs}[f"swap 1-{R}"]
    for share in np.linspace(0, 1, 21):
        p = (RATES / RATES[0]) ** share
        z = RATES / p
        lost = float(z @ p - z @ allocation(swap(1, R), R) @ p) / RATES.sum()
        assert lost <= unknown.clicks_lost + 1e-12


def test_from_counts_it_knows_the_traffic_and_which_lists_are_long_enough():
    counts = pairs(4_000, ranks=20, seed=3).counts
    found = plan(counts, ratio=(5, 1), share=0.1)
    assert all(0 < each.long_enough <= 1 for each in found.designs)
    per_day = counts.by_rank.impressions[counts.by_rank.rank == 1].sum() / max(len(counts.days), 1)
    best = found.best
    if best.days is not None:
        assert np.isclose(best.days, best.searches / (per_day * 0.1 * best.long_enough))
    told = plan(counts, ratio=(5, 1), share=0.1, searches_a_day=1_000).best
    assert np.isclose(told.days, told.searches / (100 * told.long_enough))


def test_ranks_that_the_log_leaves_apart_are_joined_by_the_cheapest_swaps():
    # Ranks 1 and 2 were compared, and 3 and 4; nothing compares the two pairs.
    counts = listed(
        [
            (((a, clicked), (b, not clicked)), 0, 50)
            for a, b in ((1, 2), (3, 4))
            for clicked in (0, 1)
        ]
    )
    found = plan(counts, ratio=(4, 1))
    joined = next(each for each in found.designs if each.name == CONNECTING)
    (pair,) = joined.design["swaps"]
    assert min(pair) <= 2 < max(pair)
    # What is known already needs no experiment.
    within = plan(counts, ratio=(2, 1))
    assert CONNECTING not in {each.name for each in within.designs}


@pytest.mark.parametrize(
    ("rates", "options", "told"),
    [
        (RATES, {"ratio": (3, 3)}, "two different ranks"),
        (RATES, {"ratio": (20, 1)}, "ranks 9–20"),
        (RATES, {"ratio": (5, 1), "never": [1]}, "Rank 1 must stay"),
        (RATES, {"ratio": (5, 1), "within": 0}, "within is 0"),
        (RATES, {"ratio": (5, 1), "share": 2}, "share is 2"),
        ([0.1, 0.0, 0.1], {"ratio": (3, 1)}, "above 0 and below 1"),
        ([1e-300, 1e-300], {"ratio": (2, 1)}, "more searches than anybody has"),
        (RATES, {"ratio": (5, 1), "searches_a_day": float("nan")}, "searches_a_day is nan"),
        (RATES, {"ratio": (5, 1), "searches_a_day": -4}, "searches_a_day is -4"),
        ({1: 0.2, 3: 0.1}, {"ratio": (3, 1)}, "rank 2"),
    ],
)
def test_what_cannot_be_planned_is_told(rates, options, told):
    with pytest.raises((BadOption, NotIdentified), match=told):
        plan(rates, **options)


def test_ranks_that_must_stay_do():
    found = plan(RATES, ratio=(6, 2), never=[1, 4])
    for each in found.designs:
        assert {1, 4}.isdisjoint(np.flatnonzero(np.diag(allocation(each.design, R)) < 1) + 1)
    assert {"shuffle", "fairpairs"} <= set(found.left_out)
    made = found.experiment("x", "cheapest swaps", never=[1, 4])
    assert made.never == (1, 4) and made.share == 0.01
    with pytest.raises(BadOption, match="No design 'shuffle'"):
        found.experiment("x", "shuffle")
