"""Curves by day, week and month: which days go together, and whether curves differ."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from support.worlds import listed, power, simulate

from rankdrift.estimation import periods
from rankdrift.estimation.periods import estimate_by_period
from rankdrift.propensities.periods import steadiness

START = date(2024, 1, 1)  # a Monday
# Of 100 runs of 6 days of one curve, the share of p-values below 0.05 may be 0.05 ± 3 deviations.
RUNS, LEVEL, AT_MOST = 100, 0.05, 0.05 + 3 * (0.05 * 0.95 / 100) ** 0.5


def day(number, pairs=300, slope=0.5, seed=None):
    counts = simulate(pairs, 12, number if seed is None else seed, curve=power(slope)).counts
    return replace(counts, days=(str(START + timedelta(number)),))


def test_days_weeks_and_months(monkeypatch):
    few = [day(number) for number in range(10)]
    assert [p.first for p in estimate_by_period(few)] == [d.days[0] for d in few]
    monkeypatch.setattr(periods, "MOST_DAYS", 9)
    weeks = estimate_by_period(reversed(few))
    assert [(p.first, p.last) for p in weeks] == [
        ("2024-01-01", "2024-01-07"),
        ("2024-01-08", "2024-01-10"),
    ]
    monkeypatch.setattr(periods, "MOST_WEEKS", 1)
    assert estimate_by_period(few) == ()  # one month
    two = estimate_by_period([*few, day(40)])
    assert [p.first for p in two] == ["2024-01-01", "2024-02-10"]


def test_a_year_is_told_by_month():
    found = periods.by_period(
        [
            replace(day(0, 40), days=(str(START + timedelta(i)),), sources=(str(i),))
            for i in range(365)
        ]
    )
    assert len(found) == 12 and sum(len(part.days) for part in found) == 365


def test_a_period_that_bears_no_curve_says_why():
    none = replace(listed([([(1, 1), (2, 0)],)], buckets=64, max_rank=12), days=("2024-01-03",))
    first, second, third = estimate_by_period([day(0), none, day(3)])
    assert first.curve and third.curve and second.curve is None and second.why


def test_counts_without_days_and_a_single_day_have_no_periods():
    assert estimate_by_period([simulate(200, 12, 1).counts, day(1)]) == ()
    assert estimate_by_period([]) == ()


def test_curves_are_relative_to_the_reference_asked_for():
    for period in estimate_by_period([day(0), day(1)], reference=3):
        assert period.curve.reference == 3 and period.curve.at(3) == 1


def test_what_stays_the_same_is_seldom_said_to_change_and_what_changes_is_seen():
    changed = [day(i, pairs=1500, slope=0.3 if i < 3 else 0.9) for i in range(6)]
    assert steadiness(estimate_by_period(changed), 10).p_value < 1e-4
    same = steadiness(estimate_by_period([day(i, 1500) for i in range(6)]), 10)
    assert same.periods == 6 and 10**-0.5 / 1.3 < same.mean < 10**-0.5 * 1.3
    assert steadiness(estimate_by_period([day(0), day(1)]), 500) is None


@pytest.mark.slow
def test_the_share_of_false_alarms():
    found = [
        steadiness(estimate_by_period([day(i, seed=6 * run + i) for i in range(6)]), 10).p_value
        for run in range(RUNS)
    ]
    assert np.mean(np.array(found) < LEVEL) <= AT_MOST
