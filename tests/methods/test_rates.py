"""Click rates, experiments and swaps by hand, and what they refuse."""

import numpy as np
import pytest
from support.method_world import Made, made
from support.worlds import simulate

from rankdrift.core.errors import BadOption, MissingColumns, NotIdentified, NoUsablePairs
from rankdrift.methods.click_rates import ctr
from rankdrift.methods.experiments import experiment, swaps
from rankdrift.methods.tallies import Tally, tally

SHOWN = np.array([[100, 80, 50], [60, 90, 40], [50, 50, 50]])
CLICKS = np.array([[20, 8, 3], [9, 12, 0], [11, 3, 2]])


def test_rates_and_their_errors_by_hand():
    found = ctr(Tally(SHOWN, CLICKS))
    rate = CLICKS.sum(axis=0) / SHOWN.sum(axis=0)
    assert found.values == pytest.approx(rate / rate[0])
    rest = np.log((CLICKS.sum(axis=0) - CLICKS) / (SHOWN.sum(axis=0) - SHOWN))
    rest -= rest[:, [0]]
    error = np.sqrt(2 / 3 * ((rest - rest.mean(axis=0)) ** 2).sum(axis=0))
    assert found.std_error == pytest.approx(error)
    assert (found.errors, found.df) == ("buckets", 2)
    assert found.clicks.tolist() == [40, 23, 5]
    assert found.supported.tolist() == [True, True, False]


def test_rates_of_counts_have_the_errors_of_independent_impressions():
    counts = simulate(2000, 10, 1, level=0.2).counts
    found, by_rank = ctr(counts), counts.by_rank
    rate = by_rank.clicks / by_rank.impressions
    assert found.values == pytest.approx(rate / rate[0])
    variance = (1 - rate) / by_rank.clicks
    assert found.std_error[3] == pytest.approx(np.sqrt(variance[0] + variance[3]))
    assert (found.errors, found.df) == ("model", np.inf)


def test_clicks_of_a_query_belong_together():
    """Impressions taken for independent promise more than buckets of queries keep."""
    rows = made(2, queries=40, searches=50, spread=1.5).log()
    from rankdrift import harvest

    assert ctr(tally(rows)).std_error[3] > 1.3 * ctr(harvest(rows)).std_error[3]


def test_ranks_without_clicks_are_named():
    clicks = CLICKS.copy()
    clicks[:, 2] = 0
    found = ctr(Tally(SHOWN, clicks))
    assert found.ranks.tolist() == [1, 2]
    assert "never clicked" in found.gaps[3]
    clicks[1, 2] = 4
    assert "one bucket" in ctr(Tally(SHOWN, clicks)).gaps[3]
    with pytest.raises(NotIdentified, match="Rank 3, the reference"):
        ctr(Tally(SHOWN, clicks), reference=3)
    with pytest.raises(NoUsablePairs, match=r"a single click in the rows that count here \(570\)"):
        ctr(Tally(SHOWN, 0 * CLICKS))


def test_no_randomised_rows():
    world = made(3, queries=10, searches=3)
    with pytest.raises(NoUsablePairs, match="No row is randomised"):
        experiment(tally(world.log(), randomised="is_random"))


def test_only_randomised_rows_count():
    world = made(4, queries=30, searches=10, randomised=0.3)
    found = tally(world.log(), randomised="is_random")
    rows = world.rows[world.rows["is_random"]]
    assert found.impressions.sum() == len(rows)
    assert found.clicks.sum(axis=0).tolist() == rows.groupby("rank")["click"].sum().tolist()


def test_the_column_of_randomised_rows():
    world = made(5, queries=10, searches=3, randomised=0.5)
    with pytest.raises(MissingColumns, match="Did you mean 'is_random'"):
        tally(world.log(), randomised="is_randm")
    arms = np.where(world.rows["is_random"], "shuffled", "control")
    log = Made(world.rows.assign(arm=arms), world.log_p).log()
    with pytest.raises(BadOption, match=r"says '(control|shuffled)' \("):
        tally(log, randomised="arm")
    answers = np.where(world.rows["is_random"], "yes", "no")
    log = Made(world.rows.assign(arm=answers), world.log_p).log()
    assert tally(log, randomised="arm").impressions.sum() == world.rows["is_random"].sum()


def test_swaps_between_two_ranks():
    """A share of docs moved each way: p_3 / p_1 without assuming that half of them were."""
    world = made(6, queries=100, searches=100, swapped=0.4, drift=0.0, ranks=4)
    found = swaps(world.log(), original="original", between=(1, 3))
    assert found.ranks.tolist() == [1, 3]
    off = found.log_p[1] - (world.log_p[2] - world.log_p[0])
    assert abs(off) < 3 * found.std_error[1]
    assert found.std_error[1] < 0.15
    assert swaps(world.log(), original="original").std_error[2] < found.std_error[1]
    with pytest.raises(BadOption, match="two different ranks"):
        swaps(world.log(), original="original", between=(2, 2))


def test_nothing_swapped():
    world = made(7, queries=10, searches=5)
    with pytest.raises(NoUsablePairs, match="nothing was swapped"):
        swaps(world.log(), original="original")
    with pytest.raises(MissingColumns, match="'origin'"):
        swaps(world.log(), original="origin")
    silent = Made(world.rows.assign(click=0), world.log_p).log()
    with pytest.raises(NoUsablePairs, match="no click"):
        swaps(silent, original="original")
