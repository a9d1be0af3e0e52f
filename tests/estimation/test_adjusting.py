"""Curves corrected for why docs moved: planted reasons are found and taken out, and only those."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.curve_example import small_counts
from support.lab import lab_world
from support.worlds import dips, power, simulate

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.rank_blocks import half_octave_of
from rankdrift.counts.tables import SPLITS, UNIT, Splits
from rankdrift.estimation import estimate
from rankdrift.estimation.adjusting import (
    ADJUSTMENTS,
    _expected,
    _lacking,
    _places,
    by_ranker,
    by_score,
    on_one_scale,
    score_and_time,
)
from rankdrift.estimation.comparisons import Comparisons, split_comparisons
from rankdrift.estimation.fitting import Options, fit

SLOPE = -0.7  # of the true curve that contests follow
TRUE = power(-SLOPE)
RANKS = 40
# Blocks of ranks, bins of scores and one step of Newton leave so much of log p.
CLOSE = 0.06
# What buckets do to the plain curve adds up to nothing, but for where Newton stopped.
SETTLED = 1e-3


def coded(score, seconds):
    """As the harvest codes a difference of scores and of times: group, and the size in its bin."""
    k = np.clip(np.floor(np.log2(np.maximum(np.abs(score), 1e-30) * 1.37) / 2), -30, 30)
    s = np.where(score == 0, 0, np.sign(score) * (k + 32)).astype(int)
    t = np.searchsorted([3600, 6 * 3600, 24 * 3600], np.abs(seconds))
    size = np.where(score == 0, 0, np.abs(score) * 1.37 / 4.0**k)
    return (s + 64) * 8 + (np.sign(seconds) * t).astype(int) + 3, size


def planted(n, seed, *, gamma=0.0, tau=0.0, scale=1.0, true=TRUE, drift=0.6, deepest=RANKS):
    """Counts of n clicks, each on one of two appearances whose log ranks are about `drift` apart,
    with chances that follow the `true` curve, gamma times the score, which goes with the rank, and
    tau times the hour."""
    rng = np.random.default_rng(seed)
    tried = 4 * n
    ranks = rng.integers(1, deepest + 1, tried)
    near = np.clip(np.rint(ranks * np.exp(rng.normal(0, drift, tried))), 1, deepest).astype(int)
    rank = np.stack([ranks, near])
    score = -np.log(rank) + rng.normal(0, 0.5, rank.shape)  # higher scores are higher up
    moment = rng.random(rank.shape)
    log_chance = np.log(true(rank)) + gamma * score + tau * moment
    chance = np.exp(log_chance)
    one = rng.choice(tried, n, p=chance.sum(axis=0) / chance.sum())  # clicks fall where they may
    first = rng.random(n) < (chance[0] / chance.sum(axis=0))[one]
    (a, b), seconds = rank[:, one], 86_400 * (moment[0] - moment[1])[one]
    score = (score[0] - score[1])[one]
    won, lost = np.where(first, a, b), np.where(first, b, a)
    group, size = coded(scale * np.where(first, score, -score), np.where(first, seconds, -seconds))
    zero = np.zeros(n, np.int64)
    splits = Splits(
        zero, zero + SPLITS.index("score"), group, rng.integers(0, 64, n), half_octave_of(won),
        half_octave_of(lost), zero + UNIT, np.rint(np.log2(lost / won) * UNIT).astype(np.int64),
        np.rint(size * UNIT).astype(np.int64),
    )  # fmt: skip
    plain = simulate(4000, deepest, seed, curve=true).counts
    return replace(plain, splits=splits.collapse(), options={"restrict": {"planted": True}})


def curve(counts):
    return fit(counts, Options(curve="loglog"))


def test_what_a_code_means():
    score, seconds = np.array([0.02, -3.0, 0.0, 40.0]), np.array([0.0, 4000.0, -30_000.0, 90_000.0])
    group, size = coded(score, seconds)
    zero, ones = np.zeros(4, int), np.full(4, UNIT)
    counts = simulate(300, 10, 1).counts
    table = Splits(zero, zero + SPLITS.index("score"), group, zero, zero + 1, zero + 3, ones, ones,
                   np.rint(size * UNIT).astype(np.int64))  # fmt: skip
    rows = split_comparisons(replace(counts, splits=table), "score")
    won = rows.weight > 0
    found = score_and_time(rows)[won]
    unit = np.sqrt(np.mean(score**2))
    assert np.allclose(np.sort(found[:, 0]), np.sort(score / unit), rtol=1e-6)
    assert sorted(found[:, 1]) == [-1, 0, 1, 1]
    assert sorted(found[:, 2]) == [-1, 0, 0, 1] and sorted(found[:, 3]) == [0, 0, 0, 1]


def test_where_contests_were_about():
    """Between the middles of their blocks, 4–5 and 8–11, and as far apart as they were."""
    rows = SimpleNamespace(
        clicked=np.array([3, 0]), other=np.array([5, 5]), away=np.log([11 / 4, 40.0])
    )
    at, rival = _places(rows, 40)
    assert rival[0] - at[0] == pytest.approx(np.log(11 / 4))
    assert at[0] + rival[0] == pytest.approx((np.log(4 * 5) + np.log(8 * 11)) / 2)
    assert at[1] == 0.0 and rival[1] <= np.log(40)  # never above the first rank
    at, rival = _places(rows, 9)  # where the page ends the block ends
    middles = (np.log(4 * 5) + np.log(8 * 9)) / 2
    assert at[0] == pytest.approx((middles - np.log(11 / 4)) / 2)
    assert rival.tolist() == pytest.approx([np.log(9)] * 2)


def test_what_the_plain_curve_expects_of_contests():
    """Ranks 4 and 5 are one block: a line through what is expected of them against rank 1, and of
    one against the other, wherever in the block the curve falls. Nothing is known of 1 and 2."""
    theta = np.array([0.0, -0.3, -0.4, -0.5, -2.0])
    often = np.zeros((5, 5))
    for (a, b), weight in {(1, 4): 3.0, (1, 5): 1.0, (4, 5): 2.0}.items():
        often[a - 1, b - 1] = often[b - 1, a - 1] = weight
    at = SimpleNamespace(information=lambda: np.diag(often.sum(axis=0)) - often)
    plain = SimpleNamespace(
        likelihood=SimpleNamespace(ranks=np.arange(1, 6), at=lambda theta: at),
        fit=SimpleNamespace(theta=theta),
    )
    rows = SimpleNamespace(
        clicked=np.array([0, 0, 3, 3, 0]), other=np.array([3, 3, 0, 3, 1]),
        away=np.log([4, 4**0.75 * 5**0.25, 1 / 5, 5 / 4, 2]),
    )  # fmt: skip
    found = _expected(rows, plain, np.full(5, 7.0))
    assert found == pytest.approx([0.5, 0.75 * 0.5 + 0.25 * 2.0, -2.0, 1.5, 7.0])


def test_dips_within_blocks_are_not_taken_for_the_score():
    """Results load in tens; nothing but the rank decides, and score and rank go together."""
    counts = planted(60_000, 6, true=dips(power(-SLOPE), 10), drift=0.2)
    found = by_score(counts, fit(counts, Options(curve="direct")), 1)
    assert abs(found.bias) < CLOSE + found.noise


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_the_score_is_taken_out(gamma):
    """A score that falls by 1 with log rank makes the plain curve steeper by gamma."""
    counts = planted(30_000, 1, gamma=gamma)
    found = by_score(counts, curve(counts), 1)
    truth = -gamma * np.log(np.arange(1, RANKS + 1)).mean()
    assert abs(found.bias - truth) < CLOSE + 3 * found.noise + 0.1 * abs(truth)
    assert (found.p_value < 1e-6) == (gamma > 0)


def test_the_score_is_taken_out_of_a_curve_of_two_ranks():
    counts = planted(30_000, 1, gamma=1.0, deepest=2)
    found = by_score(counts, fit(counts, Options(curve="direct")), 1)
    assert found.shift[1] == pytest.approx(np.log(2), abs=CLOSE + 3 * found.error[1])


def test_the_unit_of_scores_makes_no_difference():
    one, two = (planted(20_000, 2, gamma=0.7, scale=scale) for scale in (1.0, 4.0**5))
    a, b = (by_score(counts, curve(counts), 1) for counts in (one, two))
    assert np.allclose(a.shift, b.shift, atol=1e-9)


@pytest.mark.parametrize(("times", "more"), [(1.0, 0.0), (1.0, 10.0), (5.0, 0.0)])
def test_scores_of_two_rankers_on_two_scales_are_not_compared(times, more):
    """Each appearance has a ranker; the second gives `times` the score, and `more`."""
    rng = np.random.default_rng(1)
    n = 20_000
    rank = np.exp2(rng.uniform(0, 5, n)).round()[:, None] * np.exp(rng.normal(0, 0.3, (n, 2)))
    rank = rank.round().clip(1, 32).astype(int)
    second = rng.random((n, 2)) < 0.5
    score = -np.log(rank) + rng.normal(0, 0.2, rank.shape)
    score = np.where(second, times * score + more, score)
    group, size = coded(score[:, 0] - score[:, 1], np.zeros(n))
    across, zero = second[:, 0] != second[:, 1], np.zeros(n, np.int64)
    table = Splits(
        zero, zero + SPLITS.index("score"), group + 1024 * across, rng.integers(0, 64, n),
        half_octave_of(rank[:, 0]), half_octave_of(rank[:, 1]), zero + UNIT,
        np.rint(np.log2(rank[:, 1] / rank[:, 0]) * UNIT).astype(np.int64),
        np.rint(size * UNIT).astype(np.int64),
    )  # fmt: skip
    counts = replace(simulate(300, 32, 1).counts, splits=table.collapse())
    rows = split_comparisons(counts, "score")
    kept = on_one_scale(rows)
    assert (len(kept) == len(rows)) is (times == 1 and not more)
    assert (kept.group < 1024).sum() == (rows.group < 1024).sum()


def test_scores_that_ranks_tell_wholly_are_compared_across_rankers():
    """Two ranks apart by one and the same, and scores by the same: nothing is left unexplained."""
    group, size = coded(np.array([1.0, -1.0]), np.zeros(2))
    rows = Comparisons(
        np.concatenate([group, group + 1024]), np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0]),
        np.array([1.0, -1.0, 1.0, -1.0]), np.tile(size, 2), np.ones((1, 4)),
    )  # fmt: skip
    assert len(on_one_scale(rows)) == 4


def test_time_alone_changes_nothing():
    counts = planted(40_000, 3, tau=1.0)
    found = by_score(counts, curve(counts), 1)
    assert abs(found.bias) < 3 * found.noise and found.p_value > 0.001


def test_the_reference_has_no_shift_and_no_error():
    counts = planted(20_000, 4, gamma=0.7)
    found = by_score(counts, curve(counts), 5)
    assert found.shift[4] == 0 and found.error[4] == 0
    assert (found.error[:4] > 0).all()


@pytest.mark.parametrize("name", ADJUSTMENTS.names)
def test_counts_without_the_column(name):
    with pytest.raises(NotIdentified, match=f"--{name}"):
        estimate(simulate(2000, 20, 1).counts, adjust=name)


def test_options_that_do_not_go_together():
    counts = simulate(500, 20, 1).counts
    with pytest.raises(BadOption, match="Did you mean 'score'"):
        estimate(counts, adjust="scor")
    for more in ({"clicks": "single"}, {"errors": "model"}):
        with pytest.raises(BadOption, match="adjust goes with"):
            estimate(counts, adjust="score", **more)


def in_two_arms(seed, *, slope=SLOPE, many=60):
    """Counts whose plain curve is a straight line, and an A/B test without noise: each of `many`
    docs is at one rank under A and at another under B, and clicked by the line with `slope`."""
    rng = np.random.default_rng(seed)
    ranks = np.exp2(rng.uniform(0, 4, (many, 2))).round().astype(int)
    ranks = ranks[ranks[:, 0] != ranks[:, 1]]
    depth = np.log2(ranks) / 1.5  # in units of the hats
    mean = depth.mean(axis=1)
    usual = np.rint(3 * mean).astype(int)  # in half octaves
    low = np.floor(depth).astype(int)
    hat = np.zeros((*ranks.shape, 7))
    at = np.indices(ranks.shape)
    hat[(*at, low)], hat[(*at, low + 1)] = 1 - (depth - low), depth - low
    clicks = 1000 * rng.uniform(0.5, 2, (len(ranks), 1)) * ranks.astype(float) ** slope
    weight = clicks[..., None] * (hat - hat.mean(axis=1, keepdims=True))
    doc, arm, group = np.nonzero(weight)
    zero = np.zeros(len(doc), np.int64)
    table = Splits(
        zero, zero + SPLITS.index("ranker"), group, doc % 64, ranks[doc, arm], usual[doc],
        np.rint(weight[doc, arm, group] * UNIT).astype(np.int64), zero, zero,
    )  # fmt: skip
    plain = simulate(4000, RANKS, seed, curve=power(1.2)).counts
    return replace(plain, splits=table.collapse())


def straight(counts):
    return fit(counts, Options(curve=f"loglog(1, {RANKS})"))


def test_the_arms_of_an_ab_test_find_the_slope():
    """The plain curve is too steep; without noise in the test the true line is found."""
    counts = in_two_arms(1)
    plain = straight(counts)
    found = by_ranker(counts, plain, 5)
    logs = np.log(np.arange(1, RANKS + 1))
    own = float(np.polyfit(logs, plain.fit.theta, 1)[0])
    assert own < -1.0
    np.testing.assert_allclose(found.shift, (SLOPE - own) * (logs - logs[4]), atol=SETTLED)
    assert found.p_value < 0.01
    again = by_ranker(in_two_arms(1, slope=own), plain, 5)
    np.testing.assert_allclose(again.shift, 0.0, atol=SETTLED)


def test_a_bucket_moves_the_slope_by_what_is_told():
    """One part in a thousand more of a bucket, in the A/B test and in the pairs of the curve."""
    whole = in_two_arms(2)
    plain = straight(whole)
    influence = by_ranker(whole, plain, 1).influence[:, -1]

    def with_more_of(bucket):
        pairs, splits = whole.pairs, whole.splits
        times = np.where(pairs.bucket == bucket, 1001, 1000)
        weight = splits.weight * np.where(splits.bucket == bucket, 1001, 1000)
        more = replace(
            whole,
            pairs=replace(pairs, pairs=pairs.pairs * times),
            splits=replace(splits, weight=weight // 1000),
            options={"restrict": {"planted": True}},
        )
        return by_ranker(more, straight(more), 1).shift[-1]

    base = with_more_of(-1)
    moved = np.array([1000 * (with_more_of(bucket) - base) for bucket in range(6)])
    np.testing.assert_allclose(moved, influence[:6], rtol=0.02, atol=1e-4)


def test_docs_whose_usual_rank_is_in_the_lower_half_do_not_count():
    counts = in_two_arms(3)
    plain = straight(counts)
    table = counts.splits
    deep = replace(table, other=np.full_like(table.other, 9))  # 2 ** 4.5 > 40 / 2
    with pytest.raises(NotIdentified, match="ranker"):
        by_ranker(replace(counts, splits=deep), plain, 1)
    inside = replace(table, other=np.full_like(table.other, 8))  # 16 <= 20
    assert by_ranker(replace(counts, splits=inside), plain, 1).clicks > 100


def test_rankers_that_place_docs_alike_are_refused():
    counts = simulate(3000, 20, 1).counts
    rng = np.random.default_rng(1)
    n, zero = 4000, np.zeros(4000, np.int64)
    table = Splits(zero, zero + SPLITS.index("ranker"), rng.integers(0, 4, n),
                   rng.integers(0, 64, n), rng.integers(1, 21, n), zero,
                   rng.integers(-UNIT, UNIT, n), zero, zero).collapse()  # fmt: skip
    counts = replace(counts, splits=table)
    with pytest.raises(NotIdentified, match="hardly place docs differently"):
        by_ranker(counts, curve(counts), 1)


@pytest.mark.slow
def test_a_personalised_ranker_is_seen_through():
    """The plain curve is off by some −0.8; by the score, and by the arms, the truth is found."""
    made, counts = lab_world("personalised", 35_000, 3)
    truth = np.log(made.truth)[1:]
    off = {}
    for how in (None, "score", "ranker"):
        found = estimate(counts, curve="loglog", adjust=how)
        off[how] = float((found.log_p[1:] - truth).mean())
        low, high = np.log(found.interval())
        inside = (low[1:] <= truth) & (truth <= high[1:])
        assert inside.mean() < 0.1 if how is None else inside.mean() > 0.7
    assert off[None] < -0.6
    assert abs(off["score"]) < 0.25 and abs(off["ranker"]) < 0.6  # two errors of one estimate
    assert "adjusted for the old ranker's score" in estimate(counts, adjust="score").method


def test_an_adjusted_curve_can_be_drawn_on():
    counts = planted(20_000, 5, gamma=0.7)
    found = estimate(counts, curve="loglog", adjust="score", extrapolate_to=50)
    assert found.ranks[-1] == 50 and found.provenance["adjust"] == "score"
    plain = estimate(counts, curve="loglog", extrapolate_to=50)
    moved = found.log_p - plain.log_p
    assert moved[39] == pytest.approx(moved[49]) and moved[39] > 0.3


@pytest.mark.parametrize(
    ("clicks", "words"),
    [(0.6, "1 click bears on it"), (1234.0, "1,234 clicks bear on it")],
)
def test_too_few_clicks_are_told_as_many_as_there_are(clicks, words):
    said = _lacking(small_counts(pairs=50), "ranker", clicks)
    assert said.startswith("The curve cannot be adjusted by ranker: only ")
    assert said.endswith(f"only {words}. Harvest more days at once.")
