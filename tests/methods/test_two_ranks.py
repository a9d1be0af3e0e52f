from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from support.worlds import listed, power, simulate

import rankdrift.methods
from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.estimation import estimate
from rankdrift.methods.two_ranks import ratio, ratios
from rankdrift.propensities.intervals import Interval, t_quantile
from rankdrift.propensities.propensities import ENOUGH_CLICKS

ROUNDING = 1e-12
# Standard errors that the mean of SEEDS worlds may be off.
SEEDS, FAR = 20, 4.0
DOWN, UP = ((1, 1), (2, 0)), ((1, 0), (2, 1))


def rows(bucket, ones, twos):
    return [(DOWN, bucket, ones), (UP, bucket, twos)]


def test_once_at_each_rank_it_is_the_ratio_of_clicks():
    found = ratio(listed([*rows(0, 30, 10), *rows(1, 20, 15), (((1, 1), (2, 1)), 2, 5)]), 2, 1)
    assert found.value == pytest.approx(30 / 55, rel=ROUNDING)
    assert (found.pairs, found.clicks_i, found.clicks_j) == (80, 30, 55)
    assert isinstance(found, Interval)
    assert (found.compared_i, found.compared_j) == (0, 0)


def test_repeats_are_averaged_over_impressions():
    """Rank 1: 1/2 of 12 pairs and 1 of 10; rank 2: 2/3 of 12 pairs and 0 of 10."""
    counts = listed([
        (((1, 1), (1, 0), (2, 1), (2, 1), (2, 0)), 0, 12),
        (((1, 1), (2, 0), (5, 1)), 1, 10),
        (((2, 0), (1, 0), (5, 1)), 1, 99),  # a click elsewhere is 0 clicks at both
        (((1, 1), (5, 0)), 2, 99), (((2, 1), (5, 0)), 3, 99),  # not at both
        (((2, 1), (1, 0)), 4, 1), (((1, 1), (2, 0)), 4, 1),
    ])  # fmt: skip
    found = ratio(counts, 1, 2)
    assert found.value == pytest.approx((12 / 2 + 10 + 1) / (12 * 2 / 3 + 1), rel=ROUNDING)
    assert (found.pairs, found.clicks_i, found.clicks_j) == (123, 23, 25)


def test_errors_by_hand():
    """Three buckets: leave out each in turn, two degrees of freedom."""
    ones, twos = np.array([30.0, 20.0, 25.0]), np.array([10.0, 15.0, 10.0])
    counts = listed([r for b in range(3) for r in rows(b, int(ones[b]), int(twos[b]))], buckets=4)
    found = ratio(counts, 1, 2, level=0.9)
    without = np.log((75 - ones) / (35 - twos))
    error = np.sqrt(2 / 3 * ((without - without.mean()) ** 2).sum())
    assert (found.std_error, found.df) == (pytest.approx(error), 2)
    reach = t_quantile(0.9, 2) * error
    assert found.low == pytest.approx(75 / 35 * np.exp(-reach))
    assert found.high == pytest.approx(75 / 35 * np.exp(reach))
    assert found.level == 0.9
    back = ratio(counts, 2, 1, level=0.9)
    assert (back.value, back.low) == (pytest.approx(1 / found.value), pytest.approx(1 / found.high))


def test_two_ranks_are_the_likelihood():
    """With two ranks, each once: the maximum of the likelihood in closed form."""
    counts = simulate(600, 2, 3, level=0.3, buckets=32).counts
    found, curve = ratio(counts, 2, 1), estimate(counts, curve="direct")
    likely = curve.ratio(2, 1)
    assert found.value == pytest.approx(likely.value, rel=1e-8)
    # Both are jackknives over buckets, one of them by its first step.
    assert found.std_error == pytest.approx(curve.std_error[1], rel=0.02)
    assert found.df == curve.df


def test_it_agrees_with_the_likelihood_where_both_apply():
    """Many pairs at ranks 1 and 2, with repeats and other ranks, and frequent clicks."""
    world = simulate(8000, 5, 4, curve=power(0.6), shown=(2, 5), level=0.5)
    curve = estimate(world.counts, curve="direct")
    for i, j in ((2, 1), (5, 3), (4, 2)):
        found, likely = ratio(world.counts, i, j), curve.ratio(i, j)
        truth = np.exp(world.log_p[i - 1] - world.log_p[j - 1])
        assert found.low < truth < found.high
        # The ratio uses part of the same clicks: it differs from the likelihood by less than
        # its own error is beyond the likelihood's, roughly; twice its error is ample.
        assert abs(np.log(found.value / likely.value)) < 2 * found.std_error
        assert found.high / found.low > 0.9 * likely.high / likely.low


def test_unclicked_pairs_would_change_nothing():
    """As a log has them: all pairs at both ranks, clicked or not, give the same ratio of sums."""
    rng = np.random.default_rng(3)
    log = [
        (((1, rng.random() < z), (2, rng.random() < z / 2)), int(rng.integers(0, 16)), 1)
        for z in rng.random(400)
    ]
    total = np.array([[shown[0][1], shown[1][1]] for shown, *_ in log]).mean(axis=0)
    counts = listed(log)
    assert counts.n_pairs < 400
    assert ratio(counts, 1, 2).value == pytest.approx(total[0] / total[1], rel=ROUNDING)


def test_pairs_that_are_not_listed_count_as_comparisons():
    """Shown m times: c_i n_j / (m - 1) clicks at i, which a pair shown twice has too."""
    often = (((1, 1), (1, 1), (1, 0), (2, 1), (2, 0)), 1, 10)
    counts = listed([*rows(0, 30, 10), *rows(1, 20, 15), often], max_shown=4)
    found = ratio(counts, 1, 2)
    assert (found.pairs, found.clicks_i, found.clicks_j) == (75, 50, 25)
    assert found.compared_i == pytest.approx(10 * 2 * 2 / 4, rel=ROUNDING)
    assert found.compared_j == pytest.approx(10 * 1 * 3 / 4, rel=ROUNDING)
    assert found.value == pytest.approx((50 + 10) / (25 + 7.5), rel=ROUNDING)


@pytest.mark.parametrize("shown", [(2, 12), (9, 12)])
def test_comparisons_have_the_same_ratio(shown):
    """Of pairs of which many, or all, are shown too often to be listed."""
    off = []
    for seed in range(SEEDS):
        counts = simulate(500, 4, seed, curve=power(0.6), shown=shown, level=0.4).counts
        found = ratio(counts, 2, 1)
        assert found.compared_i > ENOUGH_CLICKS
        off.append((np.log(found.value) + 0.6 * np.log(2)) / found.std_error)
    assert abs(np.mean(off)) < FAR / np.sqrt(SEEDS)


def test_intervals_hold_the_truth_as_often_as_they_say():
    held = 0
    for seed in range(100):
        world = simulate(300, 3, seed, curve=power(1), shown=(2, 3), level=0.3, queries=100)
        found = ratio(world.counts, 3, 1)
        held += found.low <= 1 / 3 <= found.high
    assert held >= 88  # of 100 at 95%, fewer than once in 200 times


def test_too_few():
    some = [*rows(0, ENOUGH_CLICKS, 5), *rows(1, ENOUGH_CLICKS, 4)]
    with pytest.raises(NotIdentified) as error:
        ratio(listed(some), 1, 2)
    words = str(error.value)
    assert "29 listed pairs" in words
    assert "with 20 clicks at the one (in 2 buckets of queries) and 9 at the other (in 2)" in words
    assert "comparisons" not in words
    one_bucket = [*rows(0, 50, 50), (DOWN, 1, 50)]
    with pytest.raises(NotIdentified, match=r"50 at the other \(in 1\).*two buckets or more"):
        ratio(listed(one_bucket), 1, 2)
    with pytest.raises(NotIdentified, match=r"^0 listed pairs with a click appeared"):
        ratio(listed(some, max_rank=9), 1, 9)
    long = (((1, 1), (2, 1), (2, 0)), 0, 4)
    with pytest.raises(NotIdentified, match=r"to be listed add 4\.0 and 2\.0 by weight"):
        ratio(listed([long], max_shown=2), 1, 2)


@pytest.mark.parametrize(
    ("i", "j", "level", "words"),
    [
        (1, 1, 0.95, "rank 1 to itself"),
        (0, 1, 0.95, "Rank 0 is not one of the ranks counted, 1 to 2"),
        (1, 3, 0.95, "Rank 3 is not one"),
        (1.5, 2, 0.95, "Rank 1.5 is not one"),
        (1, 2, 95, "level must lie between 0 and 1"),
    ],
)
def test_options_that_make_no_sense(i, j, level, words):
    with pytest.raises(BadOption, match=words):
        ratio(listed(rows(0, 20, 20)), i, j, level)


def test_segments_are_summed():
    counts = simulate(900, 4, 2, segments={"app": power(0.5), "web": power(0.5)}).counts
    assert ratio(counts, 1, 2) == ratio(counts.pool(), 1, 2)


def link(a, b, at_a, at_b, bucket=None):
    """Pairs shown at ranks a and b: so many clicked at the one, so many at the other."""
    share = [(at_a // 2, at_b // 2), (at_a - at_a // 2, at_b - at_b // 2)]
    return [
        (((a, side == 0), (b, side == 1)), g if bucket is None else bucket, many)
        for g, part in enumerate(share)
        for side, many in enumerate(part)
        if many
    ]


def test_a_curve_goes_by_the_ranks_with_most_clicks_in_common():
    """Clicks go 6:4 or so between these ranks: 3 and 1, with 60 clicks in common, would have a
    variance of 0.07; by way of 2, with 200 and 100, it is 0.06."""
    some = [*link(1, 2, 120, 80), *link(2, 3, 60, 40), *link(1, 3, 45, 15), *link(3, 4, 30, 20)]
    curve = ratios(listed(some))
    assert curve.provenance["via"] == {"2": 1, "3": 2, "4": 3}
    true = np.log([1, 80 / 120, 80 / 120 * 40 / 60, 80 / 120 * 40 / 60 * 20 / 30])
    assert curve.log_p == pytest.approx(true, abs=ROUNDING)
    # On the thinner side of the weakest link; the reference has its best link.
    assert curve.clicks.tolist() == [80, 80, 40, 20]
    assert curve.pairs.tolist() == [260, 300, 210, 50]
    assert curve.parameters == 3 and not curve.gaps
    assert (curve.method, curve.errors, curve.df) == ("ratios of two ranks", "buckets", 1)
    more = [*some, *link(1, 3, 45, 15)]
    assert ratios(listed(more)).provenance["via"] == {"2": 1, "3": 1, "4": 3}
    assert ratios(listed(some), reference=3).provenance["via"] == {"1": 2, "2": 3, "4": 3}


def test_the_way_does_not_depend_on_how_the_clicks_fell():
    """Only on how many there were, and on click rates: here those of all impressions, which do not
    change."""
    one = listed([*link(1, 2, 60, 60), *link(2, 3, 60, 60), *link(1, 3, 30, 50)])
    two = listed([*link(1, 2, 60, 60), *link(2, 3, 60, 60), *link(1, 3, 78, 2)])
    two = replace(two, by_rank=one.by_rank)
    assert ratios(one).provenance["via"] == ratios(two).provenance["via"] == {"2": 1, "3": 1}


def test_a_direct_link_is_the_ratio_of_the_two():
    counts = simulate(3000, 4, 5, shown=(2, 12), level=0.4).counts
    assert len(counts.pairs) and len(counts.rank_pairs)
    curve = ratios(counts, reference=2)
    direct = [int(rank) for rank, via in curve.provenance["via"].items() if via == 2]
    assert len(direct) > 1
    for rank in direct:
        found, place = ratio(counts, rank, 2), int(np.searchsorted(curve.ranks, rank))
        assert curve.values[place] == pytest.approx(found.value, rel=ROUNDING)
        assert curve.std_error[place] == pytest.approx(found.std_error, rel=1e-6)


def test_ranks_that_no_way_leads_to_are_gaps():
    counts = listed([
        *link(1, 2, 50, 30), *link(5, 6, 30, 30), *link(2, 8, 12, 7),
        *link(1, 9, 30, 20, bucket=3), (((7, 0), (7, 1)), 0, 9),
    ])  # fmt: skip
    curve = ratios(counts)
    assert curve.ranks.tolist() == [1, 2]
    assert curve.gaps == {
        5: "compares only with ranks 5–6",
        6: "compares only with ranks 5–6",
        7: "no clicked pair moved there or away",
        8: "too few clicks of pairs shown there and elsewhere: its best ratio would have a "
        "deviation of 0.46 in its log, more than 0.32",
        9: "pairs shown there and elsewhere were clicked in one bucket on one side",
    }
    for reference in (7, 8, 99):
        with pytest.raises(NotIdentified, match=f"^Rank {reference}, .* too few clicks.* 1–2; 5–6"):
            ratios(counts, reference=reference)
    with pytest.raises(NotIdentified, match="with each other: none"):
        ratios(listed(link(1, 2, 9, 9)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_is_found_where_other_methods_are_and_where_it_was():
    assert rankdrift.methods.ratio is ratio
    assert rankdrift.methods.ratios is ratios
    assert import_module("rankdrift.baselines.ratio").ratio is ratio
