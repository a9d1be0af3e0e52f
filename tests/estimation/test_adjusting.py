"""Curves corrected for why docs moved: planted reasons are found and taken out, and only those."""

from dataclasses import replace

import numpy as np
import pytest
from support.lab import lab_world
from support.worlds import power, simulate

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.rank_blocks import half_octave_of
from rankdrift.counts.tables import SPLITS, UNIT, Splits
from rankdrift.estimation import estimate
from rankdrift.estimation.adjusting import ADJUSTMENTS, by_ranker, by_score, score_and_time
from rankdrift.estimation.comparisons import split_comparisons
from rankdrift.estimation.fitting import Options, fit

SLOPE = -0.7  # of the true curve that contests follow
RANKS = 40
# Blocks of ranks, bins of scores and one step of Newton leave so much of log p.
CLOSE = 0.06


def coded(score, seconds):
    """As the harvest codes a difference of scores and of times: group, and the size in its bin."""
    k = np.clip(np.floor(np.log2(np.maximum(np.abs(score), 1e-30) * 1.37) / 2), -30, 30)
    s = np.where(score == 0, 0, np.sign(score) * (k + 32)).astype(int)
    t = np.searchsorted([3600, 6 * 3600, 24 * 3600], np.abs(seconds))
    size = np.where(score == 0, 0, np.abs(score) * 1.37 / 4.0**k)
    return (s + 64) * 8 + (np.sign(seconds) * t).astype(int) + 3, size


def planted(n, seed, *, gamma=0.0, tau=0.0, scale=1.0):
    """Counts of n clicks, each on one of two appearances, with chances that follow SLOPE, gamma
    times the score, which goes with the rank, and tau times the hour."""
    rng = np.random.default_rng(seed)
    tried = 4 * n
    ranks = rng.integers(1, RANKS + 1, tried)
    near = np.clip(np.rint(ranks * np.exp(rng.normal(0, 0.6, tried))), 1, RANKS).astype(int)
    rank = np.stack([ranks, near])
    score = -np.log(rank) + rng.normal(0, 0.5, rank.shape)  # higher scores are higher up
    moment = rng.random(rank.shape)
    log_chance = SLOPE * np.log(rank) + gamma * score + tau * moment
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
    plain = simulate(4000, RANKS, seed, curve=power(-SLOPE)).counts
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


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_the_score_is_taken_out(gamma):
    """A score that falls by 1 with log rank makes the plain curve steeper by gamma."""
    counts = planted(30_000, 1, gamma=gamma)
    found = by_score(counts, curve(counts), 1)
    truth = -gamma * np.log(np.arange(1, RANKS + 1)).mean()
    assert abs(found.bias - truth) < CLOSE + 3 * found.noise + 0.1 * abs(truth)
    assert (found.p_value < 1e-6) == (gamma > 0)


def test_the_unit_of_scores_makes_no_difference():
    one, two = (planted(20_000, 2, gamma=0.7, scale=scale) for scale in (1.0, 4.0**5))
    a, b = (by_score(counts, curve(counts), 1) for counts in (one, two))
    assert np.allclose(a.shift, b.shift, atol=1e-9)


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
