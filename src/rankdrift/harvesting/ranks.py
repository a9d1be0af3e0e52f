"""What is known of each rank, and the arithmetic of weights: the same to the last bit on every
engine."""

from collections.abc import Sequence

from rankdrift.core.rank_blocks import HALF_OCTAVES
from rankdrift.log.sql.plan import TALLY, Planner, Step

RANKS = "ranks"  # every rank: its block, its logarithm, how often it is clicked
LEVEL = 4096
"""log2 of a rank is a whole number of 1/LEVEL."""
RATE = 2**30
"""A click rate is a whole number of 1/RATE."""


def step(p: Planner) -> Step:
    """Of each rank: its block, `lg` its log2, and `rate`, clicked rows over rows."""
    firsts = [first for first in HALF_OCTAVES if 1 < first <= p.rules.max_rank]
    logarithm = f"ln({double(p, 'fate')}) / ln({double(p, 2)}) * {double(p, LEVEL)}"
    rate = share(p, "sum(clicked)", RATE, "sum(n)")
    sql = (
        f"SELECT fate AS rank, {reached('fate', firsts)} AS block,"
        f" {rounded(p, logarithm)} AS lg, {rate} AS rate\n"
        f"FROM {TALLY} WHERE fate > 0 GROUP BY fate"
    )
    return Step(RANKS, sql, keep=True, settled=True)


def share(p: Planner, product: str, unit: int, of: str) -> str:
    """product / of as a whole number of 1/unit, all of them whole numbers.

    Doubles of whole numbers, one division, one rounding: the same on every engine, and whole
    numbers add up to the same in any order.

    Parameters
    ----------
    p
        Knows the dialect.
    product, of
        SQL of whole numbers.
    unit
        How many of it are one.
    """
    times = "" if unit == 1 else f" * {double(p, unit)}"
    return rounded(p, f"{double(p, product)}{times} / {double(p, of)}")


def rounded(p: Planner, sql: str) -> str:
    """The nearest whole number."""
    return f"CAST(floor({sql} + {double(p, 0.5)}) AS BIGINT)"


def double(p: Planner, value: object) -> str:
    """A number, or SQL of one, as a double."""
    return f"CAST({value} AS {p.dialect.double})"


def reached(value: str, limits: Sequence[object]) -> str:
    """How many of the ascending limits a value has reached."""
    cases = " ".join(f"WHEN {value} < {limit} THEN {i}" for i, limit in enumerate(limits))
    return f"CASE {cases} ELSE {len(limits)} END"
