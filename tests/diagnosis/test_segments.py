"""Whether segments have one curve, in words that make sense whatever came out."""

from dataclasses import replace

import numpy as np
import pytest
from support.curve_example import hand
from support.worlds import power, simulate

from rankdrift.diagnosis.checks.segments import segment_difference_words, widest_block
from rankdrift.diagnosis.diagnosing import diagnose
from rankdrift.estimation import estimate
from rankdrift.pipeline import make_report
from rankdrift.propensities.propensities import Difference

RANKS = np.arange(1, 21, dtype=np.int32)
BUMP = (RANKS >= 6) & (RANKS <= 10)


def curve(log_p, error=0.05):
    """Known to this error at each rank but the first."""
    counts = np.full(20, 100)
    return hand(
        ranks=RANKS, log_p=log_p, deviations=np.diag(np.where(RANKS > 1, error, 0)), pairs=counts,
        clicks=counts, supported=np.ones(20, bool), gaps={},
    )  # fmt: skip


def segmented(spread, p_value, *curves):
    own = {(f"s{i}",): each for i, each in enumerate(curves)}
    test = Difference(2.0, 8.0, p_value, spread, {})
    return replace(curves[0], segment_columns=("s",), by_segment=own, shrunk=own, difference=test)


def test_a_difference_that_is_nowhere_but_at_some_ranks_is_told_where():
    flat = -0.5 * np.log(RANKS)
    above = flat + np.where(BUMP, np.log(1.08), 0)
    found = segmented(0.0, 0.005, curve(flat), curve(above))
    words = segment_difference_words(found)
    assert words == (
        "Segments may differ, though that is not sure (p = 0.005), but little: at a typical rank "
        "by no more than noise, most at ranks 6–10, where the highest is 8.0% above the lowest."
    )
    assert words in make_report(found).html


def test_what_matters_is_how_far_for_what_is_known():
    """Twice as far apart, but at ranks of which little is known, is not where they differ."""
    flat = -0.5 * np.log(RANKS)
    deep = RANKS > 10
    far = np.where(BUMP, np.log(1.08), 0) + np.where(deep, np.log(1.16), 0)
    error = np.where(deep, 0.5, 0.05)
    found = widest_block([curve(flat, error), curve(flat + far, error)])
    assert (found.ranks, found.percent) == ("6–10", pytest.approx(8))
    # 0.148 / (0.13 / sqrt(10)) is more than 0.077 / (0.05 / sqrt(5)).
    error = np.where(deep, 0.13, 0.05)
    assert widest_block([curve(flat, error), curve(flat + far, error)]).ranks == "11–20"


def test_what_is_told_otherwise():
    same = curve(-0.5 * np.log(RANKS))
    assert segment_difference_words(segmented(np.log(1.123), 1e-9, same, same)) == (
        "Segments differ (p < 0.0001): beyond noise by 12.3% at a typical rank."
    )
    assert segment_difference_words(segmented(np.log(1.03), 1e-9, same, same)) == (
        "Segments differ (p < 0.0001), but little: beyond noise by 3.0% at a typical rank."
    )
    for spread in (0.0, np.log(1.123)):
        assert segment_difference_words(segmented(spread, 0.4, same, same)) == (
            "Segments differ by no more than chance explains (p = 0.4)."
        )
    assert segment_difference_words(segmented(np.log(1.123), 0.005, same, same)).startswith(
        "Segments may differ, though that is not sure (p = 0.005): beyond noise by 12.3%"
    )
    only = segment_difference_words(segmented(0.0, 0.001, same))
    assert only == "Only one segment has a curve, so there is no other to compare it with."
    assert segment_difference_words(same) == ""


def test_the_diagnosis_and_the_estimate_say_the_same():
    world = simulate(5000, 12, 2, segments={"a": power(0.2), "b": power(0.8)})
    test = estimate(world.counts, by=["device"]).difference
    (check,) = (c for c in diagnose(world.counts).checks if c.name == "segments")
    assert check.verdict == "caution" and "--by device" in check.advice
    assert check.numbers["p_value"] == pytest.approx(test.p_value)
