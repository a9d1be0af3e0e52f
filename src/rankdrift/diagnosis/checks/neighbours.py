"""Do searches with other clicks tell the same curve as searches without?"""

from rankdrift.core.errors import NotIdentified
from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.agreement import compared
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.estimation.comparisons import split_comparisons
from rankdrift.estimation.score_test import score_test

WANTED = "Log what tells searches apart; harvest with --search."


def check(data: Data) -> Finding:
    """Contests between searches that both had another click against those where neither had."""
    rows = split_comparisons(data.pooled, "neighbours")
    if not len(rows):
        raise NotIdentified("the log does not tell searches apart, or each had one click at most.")
    return compared(
        score_test(rows, rows.group.astype(float)),
        "Searches with and without another click",
        steeper="Who clicks more than once keeps nearer to the top.",
        flatter="Who clicks more than once looks further down: robots that click anywhere, or "
        "kinds of searches mixed that should be apart. Where users merely differ in how far they "
        "look, the curve is that of the mean click and may be used.",
        advice="Leave robots out (--where), and split the log by kind of search (--segment).",
    )


ASSUMPTIONS.register(
    Assumption(
        "neighbours",
        "Do searches with several clicks tell the same curve as those with one?",
        "a column that tells searches apart",
        check,
        worst=Verdict.CAUTION,
        wanted=WANTED,
        role="search",
    )
)
