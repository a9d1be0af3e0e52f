"""Is the curve the same for docs that are clicked much and for docs that are clicked little?"""

from rankdrift.core.errors import NotIdentified
from rankdrift.diagnosis.agreement import compared
from rankdrift.diagnosis.assumption import ASSUMPTIONS, KINDS, Assumption, Data, Finding
from rankdrift.estimation.comparisons import split_comparisons
from rankdrift.estimation.score_test import score_test

WANTED = "Count several days in one harvest, to tell how good a doc is."


def check(data: Data) -> Finding:
    """Contests weighted by how much the doc was clicked on other days, in units of its spread."""
    rows = split_comparisons(data.pooled, "relevance")
    if not len(rows):
        raise NotIdentified("the counts do not tell how docs were clicked on other days.")
    return compared(
        score_test(rows, rows.in_spreads(rows.group.astype(float))),
        "Docs clicked more and docs clicked less on other days",
        steeper="The better a doc, the steeper its curve: one curve does not fit all docs.",
        flatter="The better a doc, the flatter its curve: users may trust the top blindly, or be "
        "drawn down the page by good docs. One curve does not fit all docs.",
        advice="Weights of clicks are then wrong in the mean. Test with a purchase column "
        "(--outcome), and randomise a share of searches to know the size. If users trust the top, "
        "estimate --adjust trust corrects the curve.",
        # From the least to the most relevant docs is about three times the spread.
        factor=3.0,
        signs={KINDS: 1},
    )


ASSUMPTIONS.register(
    Assumption(
        "relevance",
        "Do good and less good docs have the same curve?",
        "several days in one harvest",
        check,
        wanted=WANTED,
    )
)
