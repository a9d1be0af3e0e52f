"""How wide intervals are, against scipy and against draws, and how they are printed."""

import numpy as np
import pytest
from scipy import stats

from rankdrift.core.errors import BadOption
from rankdrift.propensities.intervals import (
    Interval,
    credible,
    credible_band,
    simultaneous_quantile,
    t_quantile,
)

# 20,000 draws: the quantile at 95% has a standard error of 0.015 at most, here three of them.
DRAWN = 0.045


def test_quantiles_are_those_of_scipy():
    assert t_quantile(0.95, np.inf) == pytest.approx(stats.norm.ppf(0.975))
    assert t_quantile(0.9, 7) == pytest.approx(stats.t.ppf(0.95, 7))


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, np.nan])
def test_a_level_is_between_0_and_1(level):
    with pytest.raises(BadOption, match="between 0 and 1"):
        t_quantile(level, 7)


def test_ranks_that_are_independent_share_the_level():
    """All of k independent normals are inside with the k-th power of what one is inside with."""
    k, level = 5, 0.95
    errors = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    found = simultaneous_quantile(np.diag(errors), errors, level, np.inf)
    assert found == pytest.approx(stats.norm.ppf((1 + level ** (1 / k)) / 2), abs=DRAWN)


def test_ranks_that_move_together_need_no_more_than_one():
    errors = np.array([0.0, 0.1, 0.2, 0.3])  # the reference is sure
    found = simultaneous_quantile(errors[:, None], errors, 0.95, np.inf)
    assert stats.norm.ppf(0.975) <= found < stats.norm.ppf(0.975) + DRAWN


def test_few_degrees_of_freedom_widen_the_band():
    """Of one rank, what is drawn is |t| with so many degrees of freedom."""
    df, level = 4, 0.8
    found = simultaneous_quantile(np.array([[0.2]]), np.array([0.2]), level, df)
    assert found == pytest.approx(stats.t.ppf((1 + level) / 2, df), abs=DRAWN)


def test_the_band_is_never_narrower_than_of_one_rank_and_comes_again():
    one = (np.array([[0.2]]), np.array([0.2]), 0.9, 6.0)
    drawn = {simultaneous_quantile(*one, seed=seed, draws=1_000) for seed in range(8)}
    assert min(drawn) == t_quantile(0.9, 6.0) and len(drawn) > 1
    assert simultaneous_quantile(*one) == simultaneous_quantile(*one)


def test_as_many_draws_lie_below_as_above():
    low, high = credible(np.arange(1001.0)[:, None] * [1.0, -2.0], 0.9)
    np.testing.assert_allclose(low, [50, -1900])
    np.testing.assert_allclose(high, [950, -100])


def test_the_band_of_draws_holds_whole_draws_and_the_interval_of_each():
    """Of draws with a long tail above: there the interval reaches further than as many deviations
    as hold whole draws, and below it does not."""
    draws = np.random.default_rng(3).lognormal(sigma=1.0, size=(4_000, 1))
    (low,), (high,) = credible_band(draws, 0.95)
    assert high == credible(draws, 0.95)[1][0] == np.quantile(draws, 0.975)
    assert draws.mean() - low == pytest.approx(np.quantile(abs(draws - draws.mean()), 0.95))
    draws = np.random.default_rng(4).normal(size=(4_000, 30)) * np.linspace(0, 3, 30)
    low, high = credible_band(draws, 0.9)
    assert np.mean(((draws >= low) & (draws <= high)).all(axis=1)) == pytest.approx(0.9, abs=0.01)
    assert low[0] == high[0] == 0


def test_a_curve_without_errors():
    none = np.zeros(3)
    assert simultaneous_quantile(np.zeros((3, 1)), none, 0.95, 9.0) == t_quantile(0.95, 9.0)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (1.0, "1.00"), (0.1, "0.10"), (0.54321, "0.54"), (0.0954, "0.095"), (0.01, "0.010"),
        (0.00123, "0.0012"), (1e-12, "0.000000000"), (0.0, "0.00"), (-0.004, "-0.00"),
        (1234.5, "1,234.50"), (999_999.0, "999,999.00"), (1e6, "1e+06"), (2.5e7, "2.5e+07"),
        (np.inf, "inf"), (np.nan, "nan"),
    ],
)  # fmt: skip
def test_two_digits_or_as_many_as_say_something(value, printed):
    assert str(Interval(value, 0.2, 0.3, 0.9)) == f"{printed} (90%: 0.20 to 0.30)"


def test_an_interval_in_a_notebook():
    shown = Interval(0.54, 0.49, 0.58, 0.95)._repr_html_()
    assert shown == "<span>0.54 (95%: 0.49 to 0.58)</span>"
