"""Sure and large enough: the bounds themselves, sides, words, and dim signs put together."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from rankdrift.core.errors import NotIdentified
from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.agreement import (
    LIKELY,
    MATTERS,
    SURE,
    compared,
    corrected,
    could_see,
    judge,
    one_sided,
    percent_above,
    plain_numbers,
)
from rankdrift.diagnosis.assumption import KINDS, MOVES, Evidence, Finding
from rankdrift.diagnosis.together import TRUSTED, together
from rankdrift.diagnosis.verdict import Danger
from rankdrift.estimation.correction import Correction
from rankdrift.estimation.score_test import PRIOR, ScoreTest

GOOD, CAUTION, SERIOUS, CANNOT_TELL = Verdict


def scored(slope=-0.2, error=0.05, p=0.002, by_bucket=(0.5, -1.0, 2.0)):
    """Blocks 1, 2–3 and 4–9; log p is twice as deep as the slope says."""
    return ScoreTest(
        p_value=0.5, straight_p=p, statistic=3.0, df=2, df_error=40.0, slope=slope,
        slope_error=error, depth=2.0, first=np.array([1, 2, 4]), last=np.array([1, 3, 9]),
        difference=np.array([0.0, 0.3, 0.1]), error=np.array([0.0, 0.1, 0.1]), clicks=900.0,
        by_bucket=np.array(by_bucket),
    )  # fmt: skip


def test_what_the_page_promises_of_size_and_certainty():
    assert (SURE, LIKELY, MATTERS) == (0.001, 0.04, 0.10)


@pytest.mark.parametrize(
    ("p_value", "size", "reach", "verdict"),
    [
        (SURE, 0.2, 1.0, CAUTION),  # a bound is not beyond itself
        (SURE / 2, MATTERS, 1.0, CAUTION),
        (LIKELY, 0.2, 1.0, CANNOT_TELL),
        (LIKELY / 2, MATTERS / 2, 1.0, CANNOT_TELL),
        (0.5, 0.0, MATTERS, GOOD),
    ],
)
def test_bounds(p_value, size, reach, verdict):
    assert judge(p_value, size, reach) is verdict


def test_a_difference_of_two_standard_errors_would_have_shown():
    assert could_see(np.log(1.1) / 2) == "a mean difference of 10% would have shown"
    assert could_see(np.log(2) / 2) == "a mean difference of 100% would have shown"
    assert could_see(np.log(2.01) / 2) == "even a twofold difference might not have shown"
    assert percent_above(np.log(1.25)) == pytest.approx(25)


@pytest.mark.parametrize("z", [-2.0, -0.3, 0.7, 3.0])
def test_one_side_of_a_test_to_both(z):
    assert one_sided(2 * stats.norm.sf(abs(z)), z) == pytest.approx(stats.norm.sf(z))


def test_a_comparison_in_words_and_numbers():
    told = {"steeper": "S.", "flatter": "F.", "advice": "A."}
    found = compared(scored(), "Odd and even", factor=3.0, signs={MOVES: -1, KINDS: 1}, **told)
    # The mean is slope times depth; what noise would make of it is taken off.
    size = np.expm1(np.sqrt(0.4**2 - 0.1**2))
    assert found.verdict is None
    assert (
        found.alarm == f"Odd and even: they differ (p = 0.002), by {size:.0%} at a typical rank. S."
    )
    assert found.words.startswith("Odd and even: no difference beyond chance (p = 0.002); ")
    assert found.advice == "A."
    assert found.evidence.p_value == 0.002
    assert found.evidence.size == pytest.approx(size) == found.numbers["beyond_noise"]
    assert found.evidence.reach == pytest.approx(3 * (0.4 + 1.645 * 0.1))
    assert found.evidence.signs[MOVES].tolist() == [-0.5, 1.0, -2.0]
    assert found.evidence.signs[KINDS].tolist() == [0.5, -1.0, 2.0]
    other = compared(scored(slope=0.2), "Odd and even", **told)
    assert other.alarm.endswith("F.") and other.evidence.signs == {}


def test_a_difference_that_is_sure_but_small():
    found = compared(scored(slope=-0.02, error=0.004, p=0.0001), "Odd and even", advice="A.")
    size = np.expm1(np.sqrt(0.04**2 - 0.008**2))
    assert found.words == (
        f"Odd and even: they differ (p = 0.0001), but by no more than {size:.1%} beyond noise."
    )
    unsure = compared(scored(slope=-0.02, error=0.004, p=LIKELY), "Odd and even", advice="A.")
    assert "no difference beyond chance" in unsure.words


@pytest.mark.parametrize(("slope", "p"), [(-0.2, 0.001), (0.2, 0.999)])
def test_only_one_side_objects(slope, p):
    test = scored(slope=slope)
    found = compared(test, "W", advice="A.", signs={MOVES: -1}, both_sides=False)
    assert found.evidence.p_value == found.numbers["p_value"] == pytest.approx(p)


def test_numbers_of_a_test():
    told = plain_numbers(scored())
    assert told["ranks"] == [1, 2, 6]
    assert (told["mean_difference"], told["noise"]) == pytest.approx((-0.4, 0.1))
    # The mean of 0.3² - 0.1² and 0.1² - 0.1² is less than what the straight line is off by.
    assert told["beyond_noise"] == pytest.approx(np.expm1(np.sqrt(0.4**2 - 0.1**2)))
    shaped = plain_numbers(scored(slope=0.0))
    assert shaped["beyond_noise"] == pytest.approx(np.expm1(np.sqrt(0.04)))
    assert told["difference"] == [0.0, 0.3, 0.1] and told["error"] == [0.0, 0.1, 0.1]
    assert (told["p_value"], told["df"], told["df_error"], told["clicks"]) == (0.5, 2, 40.0, 900)


def correction(shift, p):
    rng = np.random.default_rng(1)
    influence = 0.02 * np.outer(rng.normal(size=20), [0, 0.5, 1])
    return Correction(np.array([1, 2, 4]), np.array(shift), influence, p, 500.0)


def test_a_correction_to_the_side_of_a_curve_that_is_too_steep():
    """The adjusted curve is higher by 0.3 in the mean: the plain one was too low."""
    found = corrected(correction([0, 0.3, 0.6], 0.02), "So", advice="A.", wanted="W.")
    assert found.evidence.p_value == pytest.approx(0.01)
    assert found.evidence.size == pytest.approx(np.expm1(0.3))
    noise = found.numbers["noise"]
    assert found.evidence.reach == pytest.approx(0.3 + 1.645 * noise)
    assert found.words == (
        f"So, the curve changes by {np.expm1(0.3):.1%} (p = 0.01), give or take "
        f"{np.expm1(2 * noise):.0%}."
    )
    assert found.alarm.startswith("So, the curve changes by 35% (p = 0.01): ")
    # Buckets add up to how many standard errors it is off, positive where too steep.
    assert found.evidence.signs[MOVES].sum() == pytest.approx(0.3 / noise, rel=0.2)
    assert found.numbers["bias"] == pytest.approx(-0.3)
    assert (found.advice, found.wanted) == ("A.", "W.")
    flat = corrected(correction([0, -0.3, -0.6], 0.02), "So")
    assert flat.evidence.p_value == pytest.approx(0.99)
    assert flat.evidence.size == pytest.approx(np.expm1(0.3))


def test_a_correction_that_may_be_anything():
    near = correction([0, 0.3, 0.6], 0.5)
    for reach, words in ((0.9, "give or take 90%."), (1.1, "but it may be more than twofold off.")):
        wider = np.log1p(reach) / (2 * near.noise)
        wide = Correction(near.ranks, near.shift, wider * near.influence, 0.5, 500.0)
        assert corrected(wide, "So").words.endswith(words)


# -- several signs ---------------------------------------------------------------------------------


def seen(**signs):
    found = {
        name: Finding(None, "", evidence=Evidence(0.1, 0.2 * i, signs={MOVES: np.array(by_bucket)}))
        for i, (name, by_bucket) in enumerate(signs.items(), start=1)
    }
    return SimpleNamespace(found={"fit": Finding(GOOD, ""), **found})


def added(data, what):
    return together(data, what, "it rains", "take a coat.", advice="Wait.", wanted="A sky.")


def test_signs_that_go_their_own_ways_add_up_by_their_weights():
    """No common noise, by construction: the variance of the sum is that of its weights."""
    a, b = np.array([1, 1, -1, -1, 0.0]) + 0.3, np.array([1, -1, 1, -1, 0.0]) + 0.4
    found = added(seen(score=a, outcome=b), MOVES)
    assert found.numbers["signs"] == ["score", "outcome"]
    assert found.evidence.size == found.numbers["beyond_noise"] == pytest.approx(0.3)
    assert found.alarm == (
        "Taken together, score and outcome say that it rains "
        f"(p = {found.numbers['p_value']:.2g}): take a coat."
    )
    total = (TRUSTED["score"] * a.sum() + b.sum()) / np.hypot(TRUSTED["score"], 1)
    assert found.evidence.p_value == pytest.approx(stats.t.sf(total, len(a) - 1 + PRIOR))


def test_signs_that_say_the_same_thing_are_one():
    a = np.array([0.5, -0.2, 0.9, 0.4])
    found = added(seen(outcome=a, rankers=a), MOVES)
    assert found.evidence.p_value == pytest.approx(stats.t.sf(a.sum(), len(a) - 1 + PRIOR))


def test_buckets_in_which_nothing_was_seen_are_left_out():
    a, b = [0.5, -0.2, 0.9, 0.4], [0.1, 0.8, -0.3, 0.6]
    found = added(seen(outcome=a, rankers=b), MOVES)
    more = added(seen(outcome=[*a, 0, 0], rankers=[*b, 0, 0]), MOVES)
    assert more.evidence.p_value == pytest.approx(found.evidence.p_value)


def test_one_sign_is_not_put_together():
    with pytest.raises(NotIdentified, match="not two signs"):
        added(seen(outcome=[0.1, 0.2]), MOVES)
    with pytest.raises(NotIdentified, match="not two signs"):
        added(seen(outcome=[0.1, 0.2], users=[0.3, 0.1]), KINDS)


def test_one_sign_that_is_enough_speaks_for_itself():
    a = np.array([0.5, -0.2, 0.9, 0.4])
    found = together(seen(gaps=a), MOVES, "it rains", "take a coat.", least=1)
    assert found.evidence.p_value == pytest.approx(stats.t.sf(a.sum(), len(a) - 1 + PRIOR))
    assert found.alarm.startswith("By itself, gaps says that it rains (")
    with pytest.raises(NotIdentified, match="is no sign"):
        together(seen(), MOVES, "it rains", "take a coat.", least=1)


# -- what to do ------------------------------------------------------------------------------------


def test_what_has_what_it_needs_but_too_little_comes_first():
    danger = Danger("it rains", ("roof", "sky"), ("buy a roof", "look up", "wait"))
    assert danger.told({}) == (
        "Whether it rains cannot be told from this log. To know: buy a roof; or look up; or wait."
    )
    assert danger.told({"sky": "Look longer. It helps."}).endswith(
        "To know: look longer; or buy a roof; or wait."
    )
    assert danger.told({"roof": "Wait: it dries.", "sky": "Add days."}).endswith(
        "To know: wait; or add days."
    )
