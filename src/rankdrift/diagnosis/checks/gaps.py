"""Do appearances close together tell the same curve as those far apart?

Where docs move because their relevance changes, it has had more time to change between appearances
that are further apart.
"""

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.diagnosis.agreement import compared
from rankdrift.diagnosis.assumption import (
    ASSUMPTIONS,
    FEEDBACK,
    MOVES,
    Assumption,
    Data,
    Finding,
)
from rankdrift.estimation.comparisons import LATE, TIMES, split_comparisons
from rankdrift.estimation.score_test import score_test

WANTED = "Harvest with --time, or a day column that has the time of day."


def check(data: Data) -> Finding:
    """Contests weighted by how far apart in time the two were; from short to long times is
    two of its standard deviations."""
    rows = split_comparisons(data.pooled, "score")
    rows = rows.take(rows.clicked != rows.other)
    far = np.abs(rows.group % TIMES - LATE).astype(float)
    if not far.any():
        raise NotIdentified("the counts do not tell how far apart in time pairs were shown.")
    return compared(
        score_test(rows, rows.in_spreads(far) / 2),
        "Appearances a long and a short time apart",
        steeper="Over longer times the curve is steeper: docs seem to move because their relevance "
        "changes, and the curve takes that for attention.",
        advice="Neither part need be right. Make columns equal that change over the day (--same "
        "price), or log the ranker's score and adjust for it (--score, estimate --adjust score).",
        signs={MOVES: -1, FEEDBACK: 1},
        both_sides=False,
    )


ASSUMPTIONS.register(
    Assumption(
        "gaps",
        "Do appearances close together in time tell the same curve as those far apart?",
        "the time of day of each row",
        check,
        wanted=WANTED,
        role="time",
    )
)
