"""Do appearances before one user tell the same curve as appearances before different users?"""

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
from rankdrift.estimation.comparisons import split_comparisons
from rankdrift.estimation.score_test import score_test

WANTED = "Log who searched, under a made-up name; harvest with --user."


def check(data: Data) -> Finding:
    """Contests within one user's searches against those between users."""
    rows = split_comparisons(data.pooled, "user")
    if not len(rows):
        known = data.counts.options.get("user")
        raise NotIdentified(
            "no clicked pair that moved has users that are known."
            if known
            else "the log has no column for the user."
        )
    return compared(
        score_test(rows, rows.group.astype(float)),
        "Appearances before the same user and before different users",
        flatter="Between users the curve is steeper: results seem to be placed by each user's own "
        "taste, and the curve takes that for attention.",
        advice="Adjust for why docs moved (estimate --adjust score), or randomise a share of "
        "searches.",
        signs={MOVES: 1, FEEDBACK: -1},
        both_sides=False,
    )


ASSUMPTIONS.register(
    Assumption(
        "users",
        "Do one user's searches tell the same curve as those of different users?",
        "a column for the user",
        check,
        wanted=WANTED,
        role="user",
    )
)
