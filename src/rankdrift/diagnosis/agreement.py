"""Do two curves agree? What counts as sure and as large enough to matter, and the words for it.

Two estimates from the same queries are compared by how they move together from bucket to bucket,
so that what they share cancels.
"""

from typing import Any

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.verdicts import Verdict
from rankdrift.estimation.fitting import Fitted
from rankdrift.estimation.hotelling import hotelling_test

# A difference must be both beyond chance and large enough to matter.
SURE = 0.001
LIKELY = 0.01
MATTERS = 0.10


def percent_above(log: float) -> float:
    """By how many percent a value is above another, from the log of their ratio."""
    return 100 * float(np.expm1(log))


def difference_of(a: Fitted, b: Fitted, reference: int) -> dict[str, Any]:
    """b against a: how far apart, where most, and how surprising that is."""
    found = hotelling_test([a, b], reference)
    if not found.df:
        raise NotIdentified("All comparisons come from one bucket of queries. Add queries.")
    off = np.abs(found.off[0])
    return {
        "beyond_noise": found.beyond_noise,
        "largest": float(np.expm1(off.max())),
        "at_rank": int(found.ranks[off.argmax()]),
        "statistic": found.statistic,
        "df": found.df,
        "df_error": found.df_error,
        "p_value": found.p_value,
    }


def judge(difference: dict[str, Any]) -> Verdict:
    """By how surely there is a difference, and how large it is once noise is taken off."""
    p_value, size = difference["p_value"], difference["beyond_noise"]
    if p_value < SURE and size > MATTERS:
        return Verdict.SERIOUS
    return Verdict.CAUTION if p_value < LIKELY and size > MATTERS / 2 else Verdict.GOOD


def difference_words(difference: dict[str, Any]) -> str:
    """The same that `judge` says, in words."""
    chance = f"(p = {difference['p_value']:.2g})"
    most = f"at most by {difference['largest']:.0%} with noise (rank {difference['at_rank']})"
    if difference["p_value"] >= LIKELY:
        return f"they differ by no more than chance explains {chance}, {most}"
    little = ", but little" if judge(difference) == Verdict.GOOD else ""
    return (
        f"they differ {chance}{little}: beyond noise by {difference['beyond_noise']:.1%} at a "
        f"typical rank, {most}"
    )
