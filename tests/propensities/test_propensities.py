"""Curves are looked up, changed and tabled."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.curve_example import by_device, hand
from support.worlds import listed

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.counts.counts import Overflow
from rankdrift.estimation import estimate
from rankdrift.propensities.table import label, parse_label

T7_95 = 2.364624251592785  # scipy.special.stdtrit(7, 0.975)


# Look up


def test_lookup_keeps_the_shape_asked_for():
    np.testing.assert_allclose(hand().at([[1, 5], [2, 2]]), [[1, 0.1], [0.5, 0.5]])
    assert hand().at(3) == pytest.approx(0.25)


def test_a_rank_without_estimate_is_refused_by_name():
    with pytest.raises(NotIdentified, match=r"ranks 4, 6; the curve covers ranks 1–3, 5\."):
        hand().at([1, 4, 6])


def test_a_ratio_uses_the_covariance_of_both_ranks():
    found = hand().ratio(3, 5)
    error = np.sqrt((0.1 - 0.3) ** 2 + (0.2 + 0.4) ** 2)
    assert found.value == pytest.approx(2.5)
    assert found.low == pytest.approx(2.5 * np.exp(-T7_95 * error))
    assert found.high == pytest.approx(2.5 * np.exp(T7_95 * error))
    assert hand().ratio(2, 2).high == 1


def test_another_reference_changes_no_ratio():
    moved = hand().relative_to(3)
    assert moved.reference == 3
    assert moved.at(3) == 1
    assert moved.std_error[2] == 0
    assert vars(moved.ratio(2, 5)) == pytest.approx(vars(hand().ratio(2, 5)))


def test_the_band_of_the_whole_curve_is_wider_and_needs_some_error():
    low, high = hand().interval()
    lower, higher = hand().interval(simultaneous=True)
    assert (lower[1:] < low[1:]).all()
    assert (higher[1:] > high[1:]).all()
    sure = hand(deviations=np.zeros((4, 0)))
    np.testing.assert_allclose(sure.interval(simultaneous=True)[1], sure.values)


def test_weights_are_clipped_and_counted():
    np.testing.assert_allclose(hand().weights([1, 5], clip=4), [1, 4])
    with pytest.raises(BadOption, match="1 or more"):
        hand().weights([1], clip=0.5)
    sizes = hand().effective_sample_size(clips=(1,))
    assert sizes[1] == pytest.approx(71)
    n, w = np.array([40, 20, 10, 1]), np.array([1, 2, 4, 10])
    assert sizes[None] == pytest.approx((n @ w) ** 2 / (n @ w**2))


# The table


def test_the_table_has_these_columns_and_no_others():
    columns = hand().table(level=0.95)
    assert list(columns) == [
        "segment", "rank", "propensity", "low", "high", "std_error", "pairs", "clicks", "supported",
        "df",
    ]  # fmt: skip
    assert columns["segment"] == [""] * 4
    assert columns["rank"] == [1, 2, 3, 5]
    assert columns["supported"] == [True, True, True, False]
    assert columns["std_error"] == pytest.approx([0, 0.1, np.sqrt(0.05), 0.5])
    assert columns["high"] == pytest.approx(
        [1, *np.array([0.5, 0.25, 0.1]) * np.exp(T7_95 * np.array([0.1, np.sqrt(0.05), 0.5]))]
    )
    assert {type(value) for column in columns.values() for value in column} <= {
        str, int, float, bool,
    }  # fmt: skip


def test_the_table_has_a_curve_for_each_segment_after_the_pool():
    names = ["web", "(none)", "a\\/b\\\\"]
    columns = by_device().table()
    assert list(columns)[-1] == "pooling"
    seen = list(dict.fromkeys(zip(columns["pooling"], columns["segment"], strict=True)))
    assert seen == [("all", ""), *(("leaning", n) for n in names)]
    assert len(columns["rank"]) == 4 * 4
    columns = by_device().table(full=True)
    seen = list(dict.fromkeys(zip(columns["pooling"], columns["segment"], strict=True)))
    assert seen == [("all", ""), *(("own", n) for n in names), *(("leaning", n) for n in names)]
    assert len(columns["rank"]) == 7 * 4


def test_a_curve_without_errors_has_no_interval():
    """It is not certain, it is unknown."""
    bare = hand(errors="none", deviations=np.zeros((4, 0)))
    for ask in (bare.interval, lambda: bare.ratio(2, 3), lambda: bare.interval(simultaneous=True)):
        with pytest.raises(NotIdentified, match="came without errors"):
            ask()
    assert bare.at([2, 5]).tolist() == pytest.approx([0.5, 0.1])


def test_pairs_and_clicks_are_counted_and_not_weighed():
    """Those of pairs held as comparisons too, and by segment."""
    rows = [(((1, c), (2, 1 - c)), b, 3) for b in range(8) for c in (0, 1)]
    rows += [(((1, 1), (2, 1), (2, 0)), b, 2) for b in range(8)]
    long = [(((1, 1), (1, 1), (2, 0), (2, 1)), b, 5) for b in range(8)]
    long += [(((1, 0), (2, 0), (2, 1 - c), (3, c)), b, 1) for b in range(8) for c in (0, 1)]
    every = estimate(listed(rows, max_shown=3))
    assert every.pairs.tolist() == [48 + 16, 48 + 16]
    assert every.clicks.tolist() == [24 + 16, 24 + 16]
    single = estimate(listed(rows, max_shown=3), clicks="single")
    assert (single.pairs.tolist(), single.clicks.tolist()) == ([48, 48], [24, 24])
    for max_shown in (2, 3, 4):  # whether listed or held
        counts = listed(rows + long, max_shown=max_shown)
        both = estimate(counts)
        assert both.pairs.tolist() == [64 + 40 + 16, 64 + 40 + 16, 16]
        assert both.clicks.tolist() == [40 + 80, 40 + 40 + 8, 8]
        assert both.clicks.sum() == counts.n_clicks == both.provenance["counts"]["clicks"]
        single = estimate(counts, clicks="single")
        assert single.pairs.tolist() == [48 + 16, 48 + 16, 16]
        assert single.clicks.tolist() == [24, 24 + 8, 8]
    of_each = [(*row, 0) for row in rows] + [(*row, 1) for row in long]
    split = listed(of_each, max_shown=3, names=("app", "web"))
    by = estimate(split, by="device", errors="model")
    assert by.segment("web", shrunk=False).pairs.tolist() == [40 + 16, 40 + 16, 16]
    assert by.segment("web", shrunk=False).clicks.tolist() == [80, 40 + 8, 8]


def test_pairs_and_clicks_of_old_counts_are_those_listed():
    rows = [(((1, c), (2, 1 - c)), b, 3) for b in range(8) for c in (0, 1)]
    long = [(((1, 1), (1, 1), (2, 0), (2, 1)), b, 5) for b in range(8)]
    old = replace(listed(rows + long, max_shown=3), overflow=Overflow.empty())
    found = estimate(old)
    assert (found.pairs.tolist(), found.clicks.tolist()) == ([48, 48], [24, 24])
    assert np.array_equal(found.log_p, estimate(listed(rows + long, max_shown=3)).log_p)


def test_a_curve_without_errors_has_no_interval_in_the_table():
    columns = hand(errors="none", deviations=np.zeros((4, 0))).table()
    assert columns["low"] == columns["high"] == columns["std_error"] == [None] * 4


@given(st.lists(st.none() | st.text("a/\\() \n") | st.just("(none)"), min_size=1, max_size=3))
def test_a_label_tells_segments_apart(values):
    assert parse_label(label(tuple(values))) == tuple(values)


def test_levels_outside_0_and_1_are_refused(tmp_path):
    for use in (hand().table, lambda level: hand().save(tmp_path / "x.csv", level)):
        with pytest.raises(BadOption, match="level must lie between"):
            use(95)
    assert not list(tmp_path.iterdir())


def test_looking_things_up_loads_nothing_heavy():
    code = (
        "import sys, rankdrift.propensities;"
        "print([m for m in ('altair', 'scipy', 'duckdb') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
