"""Many checks, one verdict: the worst that counts, and good only where every danger was seen to."""

import numpy as np
import pytest

from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.agreement import LIKELY, MATTERS, SURE, judge, reach_of
from rankdrift.diagnosis.checks import ASSUMPTIONS
from rankdrift.diagnosis.verdict import DANGERS, holm, overall, unseen

GOOD, CAUTION, SERIOUS, CANNOT_TELL = Verdict
WORST = {check.name: check.worst for check in ASSUMPTIONS}
SEEN = {"score": GOOD, "outcome": GOOD, "queries": GOOD}


def test_all_dangers_seen_to_is_good():
    assert overall(SEEN, WORST) is GOOD
    assert not unseen(SEEN)


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("instead", [None, CANNOT_TELL])
def test_one_danger_that_nobody_saw_to_is_enough_not_to_be_good(name, instead):
    found = {**SEEN, name: instead} if instead else {k: v for k, v in SEEN.items() if k != name}
    assert overall(found, WORST) is CANNOT_TELL
    (danger,) = unseen(found)
    assert name in danger.checks and danger.ways_out


def test_either_of_the_checks_of_a_danger_will_do():
    assert overall({"rankers": GOOD, "relevance": GOOD, "queries": GOOD}, WORST) is GOOD


@pytest.mark.parametrize("bad", [CAUTION, SERIOUS])
def test_what_objects_is_the_verdict_whatever_was_seen(bad):
    assert overall({**SEEN, "users": bad}, WORST) is bad
    assert overall({"users": bad}, WORST) is bad
    assert overall({"users": CAUTION, "gaps": bad}, WORST) is bad


def test_checks_for_information_do_not_count():
    told = {**SEEN, "trend": CAUTION, "click probabilities": CAUTION}
    assert overall(told, WORST) is GOOD


def test_no_check_at_all_is_not_good():
    assert overall({}, WORST) is CANNOT_TELL


def test_a_curve_that_hardly_has_clicks_is_not_good():
    assert overall({**SEEN, "support": CANNOT_TELL}, WORST) is CANNOT_TELL


def test_every_danger_names_checks_that_there_are():
    assert {name for danger in DANGERS for name in danger.checks} <= set(ASSUMPTIONS.names)


def test_holm_against_its_definition():
    p = [0.01, 0.04, 0.03, 0.005]
    # Sorted .005 × 4, .01 × 3, .03 × 2, .04 × 1, none below the one before.
    assert holm(p, [1, 1, 1, 1]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9], [1, 1]) == [1.0, 1.0]
    # The first has three quarters of the chance of a false alarm, the second a quarter.
    assert holm([0.03, 0.02], [3, 1]) == pytest.approx([0.04, 0.04])
    assert holm([0.03, 0.002], [3, 1]) == pytest.approx([0.03, 0.008])


def test_holm_keeps_the_chance_of_any_false_alarm():
    rng = np.random.default_rng(1)
    alarms = np.mean([min(holm(rng.random(9), [3.0, *[1.0] * 8])) < 0.05 for _ in range(4000)])
    assert 0.04 < alarms < 0.06  # 0.0489, give or take 0.0034


@pytest.mark.parametrize(
    ("p_value", "size", "reach", "verdict"),
    [
        (SURE / 2, 2 * MATTERS, 1.0, SERIOUS),
        (SURE / 2, 0.8 * MATTERS, 1.0, CAUTION),
        (SURE / 2, 0.4 * MATTERS, 1.0, CANNOT_TELL),
        (LIKELY / 2, 2 * MATTERS, 1.0, CAUTION),
        (2 * LIKELY, 2 * MATTERS, 1.0, CANNOT_TELL),
        (2 * LIKELY, 2 * MATTERS, 0.9 * MATTERS, GOOD),
        (SURE / 2, 0.4 * MATTERS, 0.9 * MATTERS, GOOD),
    ],
)
def test_size_and_certainty(p_value, size, reach, verdict):
    assert judge(p_value, size, reach) is verdict


def test_a_check_that_may_not_be_serious_is_not():
    assert judge(SURE / 2, 2 * MATTERS, 1.0, CAUTION) is CAUTION


def test_how_large_a_bias_is_left_open():
    assert reach_of(-0.02, 0.03) == pytest.approx(0.02 + 1.645 * 0.03)
