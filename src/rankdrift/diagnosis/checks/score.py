"""Did docs move because they got better? The old ranker's score knows."""

from rankdrift.diagnosis.agreement import corrected
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.estimation.adjusting import by_score

WANTED = "Log the score that docs were ranked by; harvest with --score."


def check(data: Data) -> Finding:
    """The curve adjusted for score and time against the plain one."""
    return corrected(
        by_score(data.pooled, data.fitted, data.options.reference),
        "Adjusted for the ranker's score and the time of day",
        advice="Use the adjusted curve: estimate --adjust score.",
        wanted="Add days: too few clicks tell the score's part from the rank's.",
    )


ASSUMPTIONS.register(
    Assumption(
        "score",
        "Is the curve the same once the ranker's score is taken into account?",
        "the score of every result shown",
        check,
        wanted=WANTED,
        role="score",
    )
)
