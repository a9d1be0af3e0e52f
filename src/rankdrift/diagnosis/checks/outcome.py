"""Do clicks that lead somewhere follow the same curve as those that do not?"""

from rankdrift.core.errors import NotIdentified
from rankdrift.diagnosis.agreement import compared
from rankdrift.diagnosis.assumption import ASSUMPTIONS, KINDS, MOVES, Assumption, Data, Finding
from rankdrift.estimation.comparisons import split_comparisons
from rankdrift.estimation.score_test import score_test

WANTED = "Log what came of a click, say a purchase; harvest with --outcome."


def check(data: Data) -> Finding:
    """Clicks with the outcome against those without, within a pair's day."""
    rows = split_comparisons(data.pooled, "outcome")
    if not len(rows):
        known = data.counts.options.get("outcome")
        raise NotIdentified(
            "nothing is known of what came of clicks on pairs that moved."
            if known
            else "the log has no column for what came after a click."
        )
    # If clicks with the outcome are right, all clicks are off by what the others make of them.
    others = float(rows.weight[rows.group == 0].sum()) / rows.clicks
    return compared(
        score_test(rows, rows.group.astype(float)),
        "Clicks with and without the outcome",
        steeper="Clicks that lead somewhere prefer the top more than others do: docs seem to be "
        "higher when they are better, and the curve takes that for attention.",
        flatter="Clicks that lead nowhere prefer the top: users seem to trust the top blindly, and "
        "the curve is too steep for good docs.",
        advice="Adjust for why docs moved (estimate --adjust score, with --score in the harvest), "
        "or for trust (--adjust trust), or randomise a share of searches.",
        factor=others,
        signs={MOVES: -1, KINDS: 1},
    )


ASSUMPTIONS.register(
    Assumption(
        "outcome",
        "Do clicks with and without a purchase follow the same curve?",
        "a column for what came after the click",
        check,
        wanted=WANTED,
        role="outcome",
    )
)
