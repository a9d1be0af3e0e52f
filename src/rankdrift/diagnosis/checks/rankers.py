"""Does an A/B test of rankers find the same curve? Its arms know nothing of relevance."""

from rankdrift.diagnosis.agreement import corrected
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.estimation.adjusting import by_ranker

MORE = "Run the A/B test for longer, or with rankers that differ more."
WANTED = "Log who answered in A/B tests of unlike rankers; use --ranker."


def check(data: Data) -> Finding:
    """The curve by the arms of an A/B test against the plain one."""
    return corrected(
        by_ranker(data.pooled, data.fitted, data.options.reference),
        "By the arms of the A/B test of rankers",
        advice="Use the adjusted curve: estimate --adjust ranker.",
        wanted=MORE,
    )


ASSUMPTIONS.register(
    Assumption(
        "rankers",
        "Does an A/B test of rankers find the same curve?",
        "the ranker that answered each search, and several days in one harvest",
        check,
        wanted=WANTED,
        role="ranker",
        more=MORE,
    )
)
