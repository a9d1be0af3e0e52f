"""One likelihood with a relevance for each stratum: against EM itself, and against refits."""

import numpy as np
import pytest

from rankdrift.core.errors import NotConverged
from rankdrift.methods import rank_times_stratum
from rankdrift.methods.rank_times_stratum import Strata, jackknife_buckets, maximise, solve_factor

RANKS = 5
# EM is this close after 6,000 steps; Newton is at the top.
EM_SHORT = 0.05
ROUNDING = 1e-9


def drawn(seed=0, pairs=300, shown=40, buckets=16):
    """Pairs shown at several ranks, Eq. (1)."""
    rng = np.random.default_rng(seed)
    p, z = np.arange(1.0, RANKS + 1) ** -0.8, rng.beta(1, 2, pairs)
    n = rng.poisson(shown / RANKS, (pairs, RANKS))
    clicks = rng.binomial(n, p * z[:, None])
    stratum, rank = np.nonzero(n)
    won = clicks[stratum, rank].astype(float)
    ranks = np.arange(1, RANKS + 1, dtype=np.int32)
    return Strata(ranks, stratum, rank, stratum % buckets, won, n[stratum, rank] - won, buckets)


def value(data, log_p, log_z):
    log_chance = log_p[data.rank] + log_z[data.stratum]
    some = data.misses > 0
    return float(data.clicks @ log_chance + data.misses[some] @ np.log1p(-np.exp(log_chance[some])))


def by_em(data, steps):
    """Dempster, Laird and Rubin, step by step."""
    p, z = np.linspace(0.9, 0.5, RANKS), np.full(data.n_strata, 0.5)
    shown = data.clicks + data.misses
    for _ in range(steps):
        a, b = p[data.rank], z[data.stratum]
        seen = data.clicks + data.misses * a * (1 - b) / (1 - a * b + 1e-300)
        relevant = data.clicks + data.misses * b * (1 - a) / (1 - a * b + 1e-300)
        p = np.bincount(data.rank, seen) / np.bincount(data.rank, shown)
        z = np.bincount(data.stratum, relevant) / np.bincount(data.stratum, shown)
    return np.log(p), np.log(np.maximum(z, 1e-300))


def test_newton_is_where_em_climbs_to():
    data = drawn()
    fit = maximise(data, data.click_rates())
    log_p, log_z = by_em(data, 6_000)
    assert 0 <= fit.log_likelihood - value(data, log_p, log_z) < EM_SHORT
    assert fit.log_p - fit.log_p[0] == pytest.approx(log_p - log_p[0], abs=0.01)
    assert len(fit.path) < 20
    assert fit.change < rank_times_stratum.STILL
    assert list(fit.path) == sorted(fit.path)


def test_nothing_near_is_higher():
    data = drawn(seed=1)
    fit = maximise(data, data.click_rates())
    rng = np.random.default_rng(0)
    for _ in range(20):
        near = np.minimum(fit.log_p + 0.05 * rng.normal(size=RANKS), 0)
        assert (
            rank_times_stratum._profile(rank_times_stratum._joined(data), near).value
            < fit.log_likelihood + ROUNDING
        )
    assert fit.log_p.max() <= 0
    assert fit.log_z.max() <= 0


def test_the_gradient_and_the_information_are_those_of_the_value():
    cells = rank_times_stratum._joined(drawn(seed=2))
    at = np.log(np.array([0.9, 0.6, 0.5, 0.4, 0.35]))
    look, step = rank_times_stratum._profile(cells, at), 1e-5
    for k in range(RANKS):
        move = step * (np.arange(RANKS) == k)
        above, below = (
            rank_times_stratum._profile(cells, at + move),
            rank_times_stratum._profile(cells, at - move),
        )
        assert (above.value - below.value) / (2 * step) == pytest.approx(look.gradient[k], abs=1e-4)
        slope = (below.gradient - above.gradient) / (2 * step)
        assert slope == pytest.approx(look.information[k], abs=1e-3)


def test_factors_solve_their_equation():
    rng = np.random.default_rng(3)
    group, other = rng.integers(0, 50, 400), np.log(rng.uniform(0.01, 1, 400))
    clicks, misses = rng.integers(0, 4, 400) * 1.0, rng.integers(1, 9, 400) * 1.0
    clicks[group == 7] = 0
    log_f = solve_factor(group, 51, other, clicks, misses)
    assert log_f[7] == -np.inf
    assert log_f[50] == -np.inf  # an empty group has no clicks
    chance = np.exp(other + log_f[group])
    expected = np.bincount(group, misses * chance / (1 - chance), minlength=51)
    assert expected == pytest.approx(np.bincount(group, clicks, minlength=51), rel=1e-9)


def test_leaving_out_a_bucket_is_nearly_a_refit():
    data = drawn(seed=4, pairs=600)
    fit = maximise(data, data.click_rates())
    moves = jackknife_buckets(data, fit)
    for bucket in (0, 5):
        again = maximise(data.take(data.bucket != bucket), fit.log_p)
        moved = again.log_p - again.log_p[0] - (fit.log_p - fit.log_p[0])
        assert moves[bucket] - moves[bucket, 0] == pytest.approx(
            moved, abs=0.1 * np.abs(moved).max()
        )


def test_strata_across_buckets_are_refitted_without_each():
    rng = np.random.default_rng(5)
    data = drawn(seed=5)
    spread = Strata(
        data.ranks, data.stratum % 6, data.rank, rng.integers(0, 8, len(data.rank)), data.clicks,
        data.misses, 8,
    )  # fmt: skip
    fit = maximise(spread, spread.click_rates())
    moves = jackknife_buckets(spread, fit)
    again = maximise(spread.take(spread.bucket != 3), fit.log_p)
    moved = again.log_p - again.log_p[0] - (fit.log_p - fit.log_p[0])
    assert moves[3] - moves[3, 0] == pytest.approx(moved, abs=0.1 * np.abs(moved).max())


def test_pairs_that_never_missed_leave_a_rank_loose():
    """A pair with one click and one miss at rank 2 only has a relevance for every p from 1/2."""
    ranks = np.array([1, 2], np.int32)
    cells = ((0, 0, 3, 1), (1, 1, 1, 1), (2, 0, 1, 0))  # stratum, rank, clicks, misses
    stratum, rank, clicks, misses = (np.array(column) for column in zip(*cells, strict=True))
    data = Strata(ranks, stratum, rank, stratum * 0, clicks * 1.0, misses * 1.0, 1)
    assert maximise(data, np.log([0.9, 0.8])).undetermined.tolist() == [False, True]


def test_what_there_was_comes_with_the_error(monkeypatch):
    data = drawn()
    monkeypatch.setattr(rank_times_stratum, "STEPS", 1)
    with pytest.raises(NotConverged, match="after 1 steps") as caught:
        maximise(data, data.click_rates())
    assert caught.value.partial.shape == (RANKS,)
    assert len(caught.value.path) == 2
