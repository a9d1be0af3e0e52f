import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from rankdrift.core.errors import BadOption
from rankdrift.ranking.auc import auc, draw, sort

# Both add up some hundred products of doubles, in another order.
ROUNDING = 1e-12


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(3, 300), st.integers(1, 40))
def test_auc_is_scikit_learns_with_ties_and_weights(seed, n, values):
    rng = np.random.default_rng(seed)
    score, click, weight = rng.integers(0, values, n) / 7, rng.random(n) < 0.3, rng.random(n)
    click[:2] = True, False
    assert auc(score, click) == pytest.approx(roc_auc_score(click, score), abs=ROUNDING)
    expected = roc_auc_score(click, score, sample_weight=weight)
    assert auc(score, click, weight) == pytest.approx(expected, abs=ROUNDING)


def test_many_samples_at_once_are_the_same_as_one_by_one():
    rng = np.random.default_rng(1)
    score, click = rng.integers(0, 20, 200) / 3, rng.random(200) < 0.2
    drawn = draw(200, 40, rng)
    assert (drawn.sum(axis=0) == 200).all() and drawn.min() == 0
    expected = [roc_auc_score(click, score, sample_weight=w) for w in drawn.T]
    assert sort(score, click).auc(drawn) == pytest.approx(expected, abs=ROUNDING)


def test_influence_is_delongs_variance():
    """Written out from his definition, pair by pair, with ties."""
    rng = np.random.default_rng(4)
    score, click = rng.integers(0, 15, 120) / 2, rng.random(120) < 0.3
    ours = sort(score, click)
    x, y = score[click][:, None], score[~click][None]
    wins = (x > y) + 0.5 * (x == y)
    per_click, per_other = wins.mean(axis=1), wins.mean(axis=0)
    expected = per_click.var() / len(per_click) + per_other.var() / len(per_other)
    moved = ours.influence(np.arange(120), 120)
    assert (moved**2).sum() == pytest.approx(expected, rel=ROUNDING)
    assert moved.sum() == pytest.approx(0, abs=ROUNDING)
    # Each row, clicked or not, moves the AUC the way that a little more of it does.
    step = 1e-6
    more = 1 + step * np.eye(120)
    slopes = (ours.auc(more) - ours.auc(np.ones((120, 1)))) / step
    assert moved == pytest.approx(slopes, rel=1e-3, abs=1e-7)
    # Units of several rows add theirs up.
    unit = rng.integers(0, 30, 120)
    assert ours.influence(unit, 30) == pytest.approx(np.bincount(unit, moved, 30))


def test_counts_too_large_for_small_integers_do_not_overflow():
    rng = np.random.default_rng(2)
    score, click = rng.normal(size=100), rng.random(100) < 0.4
    one = draw(100, 3, rng)
    large = (one.astype(np.int64) * 100_000_000).astype(np.int64)
    assert sort(score, click).auc(large) == pytest.approx(sort(score, click).auc(one))


def test_a_sample_without_clicks_has_no_auc():
    found = sort([1, 2, 3], [0, 0, 1]).auc(np.array([[1, 1], [1, 1], [0, 1]]))
    assert np.isnan(found[0]) and found[1] == 1
    with np.errstate(all="raise"):  # and no warning either
        assert np.isnan(auc([1, 2], [True, True]))


def test_each_thing_is_drawn_once_on_average_with_the_spread_of_a_bootstrap():
    drawn = draw(50, 4000, np.random.default_rng(0))
    # Multinomial: mean 1, variance 1 - 1/50. 4,000 samples: ± 0.016 for the mean of one thing.
    assert np.abs(drawn.mean(axis=1) - 1).max() < 5 * 0.016
    assert drawn.var() == pytest.approx(1 - 1 / 50, rel=0.03)


@pytest.mark.parametrize(
    ("score", "click", "weight"),
    [([1, 2], [1], None), ([1, np.nan], [0, 1], None), ([1, 2], [0, 1], [1, -1]),
     ([1, 2], [0, 1], [1, np.nan]),
     ([1, 2], [0, 1], [np.inf, 1]), ([1, 2], [0, 1], [1, 1, 1]),
     ([[1]], [[1]], None)],
)  # fmt: skip
def test_bad_input_is_explained(score, click, weight):
    with pytest.raises(BadOption):
        auc(score, click, weight)
