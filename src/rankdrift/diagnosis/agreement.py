"""Do two curves agree? What counts as sure and as large enough to matter, and the words for it."""

from collections.abc import Mapping

import numpy as np

from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import chance_words, off_by
from rankdrift.diagnosis.assumption import FEEDBACK, MOVES, Evidence, Finding
from rankdrift.estimation.correction import Correction
from rankdrift.estimation.score_test import ScoreTest

# A difference must be both beyond chance, all checks together, and large enough to matter.
SURE = 0.001
LIKELY = 0.04
MATTERS = 0.10
# A bias of the curve that a test leaves open is excluded with 95%, to one side.
EXCLUDED = 1.645

ADD_DAYS = "Add days: so little data cannot exclude a difference that matters."


def percent_above(log: float) -> float:
    """By how many percent a value is above another, from the log of their ratio."""
    return 100 * float(np.expm1(log))


def judge(p_value: float, size: float, reach: float, worst: Verdict = Verdict.SERIOUS) -> Verdict:
    """By how surely there is a difference, how large it is once noise is taken off, and how large
    a bias is left open.

    Parameters
    ----------
    p_value
        Of no difference, all checks taken into account.
    size
        Beyond noise, as a share.
    reach
        The largest bias of log p that is left open.
    worst
        The worst that may be said.
    """
    if p_value < SURE and size > MATTERS and worst == Verdict.SERIOUS:
        return Verdict.SERIOUS
    if p_value < LIKELY and size > MATTERS / 2:
        return Verdict.CAUTION
    return Verdict.GOOD if reach <= MATTERS else Verdict.CANNOT_TELL


def could_see(noise: float) -> str:
    """How large a mean difference a test would hardly have missed, in words."""
    seen = float(np.expm1(2 * noise))
    if seen > 1:
        return "even a twofold difference might not have shown"
    return f"a mean difference of {seen:.0%} would have shown"


def reach_of(mean: float, noise: float) -> float:
    """How large a mean difference of log p may be, after one of `mean` with error `noise`."""
    return abs(mean) + EXCLUDED * noise


def compared(
    test: ScoreTest,
    who: str,
    *,
    advice: str,
    steeper: str = "",
    flatter: str = "",
    factor: float = 1.0,
    signs: Mapping[str, int] | None = None,
    both_sides: bool = True,
) -> Finding:
    """What a score test of a straight line in log rank found, in words.

    Parameters
    ----------
    test
        What it came to.
    who
        The two parts that were compared, such as "Clicks with and without a purchase".
    steeper, flatter
        What it means if the curve of the first part falls faster, or less fast.
    advice
        What to do if they differ.
    factor
        How large a bias of the curve goes with a difference of 1.
    signs
        What it is a sign of, such as `assumption.MOVES`, and of which sign the slope then is.
    both_sides
        Whether the slope of the other sign than the first of these would be an objection as well.
    """
    size, p_value, signs = test.straight, test.straight_p, signs or {}
    if not both_sides:
        p_value = one_sided(p_value, next(iter(signs.values())) * test.slope)
    chance = chance_words(p_value)
    meaning = steeper if test.slope < 0 else flatter
    words = f"{who}: no difference beyond chance ({chance}); {could_see(test.noise)}."
    if size <= MATTERS / 2 and p_value < LIKELY:
        words = (
            f"{who}: they differ ({chance}), but by no more than {off_by(size, 1)} beyond noise."
        )
    return Finding(
        None,
        words,
        advice=advice,
        alarm=f"{who}: they differ ({chance}), by {off_by(size)} at a typical rank. {meaning}",
        evidence=Evidence(
            p_value,
            size,
            factor * reach_of(test.mean, test.noise),
            {of: sign * test.by_bucket for of, sign in signs.items()},
        ),
        numbers={**plain_numbers(test), "p_value": p_value, "beyond_noise": size},
        wanted=ADD_DAYS,
    )


def one_sided(p_value: float, towards: float) -> float:
    """p to the side of positive numbers, from that to both sides of one like `towards`."""
    return p_value / 2 if towards > 0 else 1 - p_value / 2


def plain_numbers(test: ScoreTest) -> dict[str, object]:
    """A test as plain values."""
    return {
        "p_value": test.p_value,
        "statistic": test.statistic,
        "df": test.df,
        "df_error": test.df_error,
        "beyond_noise": test.beyond_noise,
        "mean_difference": test.mean,
        "noise": test.noise,
        "clicks": test.clicks,
        "ranks": [int(rank) for rank in np.sqrt(test.first * test.last).round()],
        "difference": [float(value) for value in test.difference],
        "error": [float(value) for value in test.error],
    }


def _give_or_take(noise: float) -> str:
    reach = float(np.expm1(2 * noise))
    return f"give or take {reach:.0%}" if reach < 1 else "but it may be more than twofold off"


def corrected(found: Correction, how: str, **told: str) -> Finding:
    """What a correction of the curve says of the plain one, in words; that it is too steep is what
    docs that are higher when they are better make of it.

    Parameters
    ----------
    found
        By how much it changes the curve.
    how
        What it is adjusted for, as the sentence begins.
    told
        `advice` and `wanted` of the finding.
    """
    size = float(np.expm1(abs(found.bias)))
    p_value = one_sided(found.p_value, -found.bias)
    chance = chance_words(p_value)
    return Finding(
        None,
        f"{how}, the curve changes by {off_by(size, 1)} ({chance}), {_give_or_take(found.noise)}.",
        alarm=f"{how}, the curve changes by {off_by(size)} ({chance}): the plain one is too steep, "
        "because docs moved when their relevance did.",
        evidence=Evidence(
            p_value,
            size,
            reach_of(found.bias, found.noise),
            {MOVES: -found.by_bucket, FEEDBACK: found.by_bucket},
        ),
        numbers={
            "p_value": p_value,
            "bias": found.bias,
            "beyond_noise": size,
            "noise": found.noise,
            "clicks": found.clicks,
            "ranks": found.ranks.tolist(),
            "difference": found.shift.tolist(),
            "error": found.error.tolist(),
        },
        **told,
    )
