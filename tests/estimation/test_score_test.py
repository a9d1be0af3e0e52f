"""Contests: the pooled fit against statsmodels, the score test against its definition and by
lot."""

from types import SimpleNamespace

import numpy as np
import pytest

from rankdrift.core.errors import NotIdentified
from rankdrift.core.rank_blocks import HALF_OCTAVES, half_octave_of
from rankdrift.counts.tables import SPLITS, UNIT, Splits
from rankdrift.estimation.comparisons import (
    block_scale,
    mirrored_score,
    split_comparisons,
)
from rankdrift.estimation.score_test import (
    PRIOR,
    blended_test,
    fit_logistic,
    pooled_design,
    score_test,
    summarised,
)
from rankdrift.estimation.score_test import Tested as Outcome

# A penalty of 1e-6 of the information moves a fit by less than this share of its error.
RIDGE = 0.01
# Fixed point of the table: weights and distances are rounded to 2**-32.
ROUNDING = 1e-8
WORLDS = 200
# Of 200 p-values below 5%: 10 expected, more than 20 once in a thousand times.
BELOW_5 = 20


def contests(n, seed, *, slope=-0.7, extra=0.0, ranks=40, buckets=64, split="outcome", bunched=1):
    """`n` contests of two ranks each, as a table of splits: those of group 1 are won as by a curve
    that is steeper by `extra`. `bunched` of them are of one bucket and end alike."""
    rng = np.random.default_rng(seed)
    a = rng.integers(1, ranks + 1, n)
    b = np.clip(np.rint(a * np.exp(rng.normal(0, 0.5, n))), 1, ranks).astype(int)
    a, b = a[a != b], b[a != b]
    group = rng.integers(0, 2, len(a))
    own = slope + extra * group
    first = rng.random(len(a)) < 1 / (1 + (a / b) ** -own)
    won, lost = np.where(first, a, b), np.where(first, b, a)
    bucket = rng.integers(0, buckets, len(a))
    away = np.rint(np.log2(lost / won) * UNIT)
    return table(split, group, bucket, won, lost, np.full(len(a), bunched * UNIT), bunched * away)


def table(split, group, bucket, won, lost, weight, away, value=None):
    zero = np.zeros(len(won), np.int64)
    return SimpleNamespace(
        buckets=64,
        splits=Splits(
            zero,
            zero + SPLITS.index(split),
            group,
            bucket,
            half_octave_of(won),
            half_octave_of(lost),
            weight.astype(np.int64),
            away.astype(np.int64),
            zero if value is None else value.astype(np.int64),
        ).collapse(),
    )


def test_kinds_hold_what_was_counted():
    won, lost = np.array([2, 7, 9, 3]), np.array([7, 2, 3, 9])
    away = np.rint(np.log2(lost / won) * UNIT)
    counts = table("outcome", np.zeros(4, int), np.array([0, 1, 1, 2]), won, lost,
                   np.array([3, 1, 2, 1]) * UNIT, np.array([3, 1, 2, 1]) * away)  # fmt: skip
    rows = split_comparisons(counts, "outcome")
    assert rows.clicks == pytest.approx(7)
    assert len(rows) == 4 and rows.by_bucket.shape == (64, 4)
    first = np.flatnonzero((rows.clicked == half_octave_of(np.array(2))) & (rows.weight == 3))[0]
    assert rows.away[first] == pytest.approx(np.log(7 / 2), abs=ROUNDING)


def test_what_a_contest_was_about_does_not_tell_who_won():
    """A block of ranks 8 to 11 against one of 4 to 5: the winners of either side were nearer or
    further, but both kinds have the mean distance of all."""
    won, lost = np.array([8, 11, 4, 5]), np.array([5, 4, 11, 8])
    away = np.rint(np.log2(lost / won) * UNIT)
    counts = table("user", np.zeros(4, int), np.zeros(4, int), won, lost, np.full(4, UNIT), away)
    rows = split_comparisons(counts, "user")
    assert rows.away[0] == pytest.approx(-rows.away[1], abs=ROUNDING)
    assert abs(rows.away[0]) == pytest.approx(
        np.mean([np.log(8 / 5), np.log(11 / 4)]), abs=ROUNDING
    )


def test_contests_within_one_block_are_left_out():
    won, lost = np.array([8, 9]), np.array([9, 8])
    counts = table("user", np.zeros(2, int), np.zeros(2, int), won, lost, np.full(2, UNIT),
                   np.rint(np.log2(lost / won) * UNIT))  # fmt: skip
    assert not len(split_comparisons(counts, "user"))


def test_scores_and_times_seen_from_the_other_side():
    group = np.array([(s + 64) * 8 + t + 3 for s in (-40, 0, 33) for t in (-3, 0, 1)])
    back = [(s + 64) * 8 + t + 3 for s in (40, 0, -33) for t in (3, 0, -1)]
    assert mirrored_score(group).tolist() == back
    assert mirrored_score(group + 1024).tolist() == [one + 1024 for one in back]
    assert mirrored_score(mirrored_score(group)).tolist() == group.tolist()


def test_blocks_are_joined_until_each_can_be_told():
    rows = split_comparisons(contests(4000, 1), "outcome")
    scale = block_scale(rows)
    assert (scale.first[0], scale.last[-1]) == (
        1,
        HALF_OCTAVES[half_octave_of(np.array(40)) + 1] - 1,
    )
    assert (scale.first[1:] == scale.last[:-1] + 1).all()
    few = block_scale(split_comparisons(contests(60, 1), "outcome"))
    assert 1 <= len(few) < len(scale)


def test_the_pooled_fit_is_that_of_statsmodels():
    import statsmodels.api as sm

    rows = split_comparisons(contests(6000, 2), "outcome")
    design = pooled_design(rows, block_scale(rows))
    found = fit_logistic(rows, design)
    glm = sm.GLM(
        np.ones(len(rows)), design, family=sm.families.Binomial(), freq_weights=rows.weight
    ).fit()
    assert (np.abs(found.phi - glm.params) < RIDGE * glm.bse).all()


def test_the_test_of_one_column_is_the_squared_score_over_its_variance():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(50, 1))
    found = blended_test(scores, np.array([[40.0]]))
    variance = 50 / 49 * ((scores - scores.mean()) ** 2).sum()
    assert found.statistic == pytest.approx(scores.sum() ** 2 / variance)
    assert found.effect[0] == pytest.approx(scores.sum() / 40)
    assert found.covariance[0, 0] == pytest.approx(variance / 40**2)


def test_columns_that_nothing_tells_apart_are_one():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(50, 1))
    one = blended_test(scores, np.array([[40.0]]))
    two = blended_test(np.repeat(scores, 2, axis=1), np.full((2, 2), 40.0))
    assert two.df == 1 and two.p_value == pytest.approx(one.p_value)


@pytest.mark.parametrize("bunched", [1, 4])
def test_p_values_of_parts_that_are_alike(bunched):
    """Also where contests come in bunches that end alike, which the model's variance knows not."""
    p = np.array(
        [
            score_test(rows, rows.group.astype(float)).p_value
            for seed in range(WORLDS)
            for rows in [split_comparisons(contests(1500, seed, bunched=bunched), "outcome")]
        ]
    )
    assert (p < 0.05).sum() <= BELOW_5
    assert (p < 0.001).sum() <= 2
    assert (p > 0.5).sum() >= WORLDS / 4  # two tests in one, so somewhat less than half


def test_a_steeper_part_is_found_and_measured():
    rows = split_comparisons(contests(40_000, 5, extra=-0.3), "outcome")
    found = score_test(rows, rows.group.astype(float))
    assert found.p_value < 1e-4
    assert abs(found.slope + 0.3) < 3 * found.slope_error
    assert found.slope_error < 0.05
    assert found.mean == pytest.approx(found.slope * found.depth)
    assert found.beyond_noise > 0.3
    assert found.difference[-1] < found.difference[1] < 0


def test_too_few_to_tell_anything():
    with pytest.raises(NotIdentified, match="too few"):
        rows = split_comparisons(contests(12, 1), "outcome")
        score_test(rows, rows.group.astype(float))


# What several tests come to, as one


def made(p, effect, covariance, by_bucket=(1.0, 2.0)):
    size = len(effect)
    return Outcome(
        p, 10 * p, size, 30.0, np.array(effect), np.array(covariance), np.array(by_bucket)
    )


def test_a_summary_by_hand():
    """Ranks 1 to 6 in blocks 1, 2–3 and 4–6; rank 5 is not there, and stands for no one."""
    ranks = np.array([1, 2, 3, 4, 6])
    shape = np.array([[0.0], [1.0], [2.0], [3.0], [5.0]])
    straight = made(0.03, [0.5], [[0.04]])
    shaped, other = made(0.01, [2.0], [[0.25]]), made(0.2, [9.0], [[9.0]])
    found = summarised(
        straight, [other, shaped], [7 * shape, shape], ranks, np.array([1, 2, 4, 7]), 123.0
    )
    assert found.p_value == pytest.approx(3 * 0.01) and found.straight_p == 0.03
    assert (found.statistic, found.df, found.df_error) == pytest.approx((0.1, 1, 30.0))
    assert (found.slope, found.slope_error) == pytest.approx((0.5, 0.2))
    assert found.first.tolist() == [1, 2, 4] and found.last.tolist() == [1, 3, 6]
    # The mean of the shape in each block, less that of the first: 0, 1.5 and 4.
    assert found.difference == pytest.approx([0, 3, 8])
    assert found.error == pytest.approx([0, 0.75, 2.0])
    # Three ranks of the last block are two: each stands for one and a half.
    logs = np.log(ranks)
    assert found.depth == pytest.approx((logs @ [1, 1, 1, 1.5, 1.5]) / 6)
    assert (found.mean, found.noise) == pytest.approx((0.5 * found.depth, 0.2 * found.depth))
    assert found.by_bucket.tolist() == [1.0, 2.0] and found.clicks == 123.0


def test_a_summary_without_a_straight_line():
    ranks, shape = np.array([2, 3, 4]), np.array([[0.0], [1.0], [2.0]])
    found = summarised(
        None, [made(0.6, [0.3], [[1.0]])] * 2, [shape, shape], ranks, np.array([2, 4, 5]), 9.0
    )
    assert found.p_value == 1.0 and found.straight_p == 1.0
    assert (found.slope, found.slope_error, found.straight) == (0.0, 0.0, 0.0)
    assert found.beyond_noise == 0.0 and found.by_bucket.size == 0
    assert found.first.tolist() == [2, 4] and found.last.tolist() == [3, 4]


def test_logs_that_stand_for_blocks():
    ranks, shape = np.array([1, 4]), np.array([[0.0], [1.0]])
    found = summarised(
        made(0.5, [1.0], [[1.0]]), [made(0.5, [1.0], [[1.0]])], [shape], ranks,
        np.array([1, 4, 8]), 9.0, np.array([0.5, 1.5]),
    )  # fmt: skip
    assert found.depth == pytest.approx(4 / 7)


def test_how_large_a_difference_is_beyond_noise():
    """In whatever shape it is larger: 0.3² and 0.4² less 0.1² each, or 0.5² - 0.3²."""
    ranks, shape = np.array([1, 2, 3]), np.array([[0.0, 0], [1, 0], [0, 1]])
    shaped = made(0.01, [0.3, 0.4], np.diag([0.01, 0.01]))
    found = summarised(None, [shaped], [shape], ranks, np.array([1, 2, 3, 4]), 9.0)
    rest = (0.09 + 0.16 - 0.02) / 2
    assert found.beyond_noise == pytest.approx(np.expm1(np.sqrt(rest)))
    line = summarised(
        made(0.02, [0.5], [[0.09]]), [shaped], [shape], ranks, np.array([1, 2, 3, 4]), 9.0
    )
    assert line.straight == pytest.approx(np.expm1(np.sqrt(0.25 - 0.09) * line.depth))


def test_few_buckets_that_say_most_count_for_few():
    """Two columns, three large buckets among many small ones: squares of two normal numbers make
    their effective number half of what equal ones would be, so it is doubled."""
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(40, 2)) * np.where(np.arange(40) < 3, 10.0, 0.5)[:, None]
    length = (scores**2).sum(axis=1)
    effective = 2 * length.sum() ** 2 / (length**2).sum()
    assert effective < 10
    # The shape is worth PRIOR buckets, of which half are known to be there with two columns.
    found = blended_test(scores, np.eye(2) * 4.0)
    assert found.df == 2 and found.df_error == pytest.approx(effective - 1 + 32 / 2 - 1)


def test_the_test_of_two_columns_by_its_definition():
    """What buckets say, blended with their mean in each direction; few buckets, so that this counts
    for something."""
    rng = np.random.default_rng(6)
    scores = rng.normal(size=(30, 2)) * [3.0, 6.0]
    found = blended_test(scores, np.diag([4.0, 16.0]))
    unit = scores / [2.0, 4.0]
    between = 30 / 29 * (unit - unit.mean(axis=0)).T @ (unit - unit.mean(axis=0))
    seen = found.df_error + 2 - 1 - PRIOR / 2
    alike = np.eye(2) * (between[0, 0] + between[1, 1]) / 2
    blended = (seen * between + PRIOR * alike) / (seen + PRIOR)
    square = unit.sum(axis=0) @ np.linalg.inv(blended) @ unit.sum(axis=0)
    assert found.statistic == pytest.approx(square * found.df_error / ((found.df_error + 1) * 2))
    np.testing.assert_allclose(found.covariance, blended / np.outer([2, 4], [2, 4]))
