"""Do appearances close together tell the same curve as those far apart?"""

from rankdrift.diagnosis.agreement import compared
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.diagnosis.drifts import WANTED, drift_test

SHORT, LONG = (1, 3), (2, 4)  # places in DRIFTS


def check(data: Data) -> Finding:
    """Pairs shown within an hour against those shown over longer."""
    return compared(
        drift_test(data, LONG, SHORT),
        "Pairs shown over an hour or more and pairs shown within one",
        steeper="Over longer times the curve is steeper: docs seem to move because their relevance "
        "changes, and the curve takes that for attention.",
        advice="Neither part need be right. Make columns equal that change over the day (--same "
        "price), or log the ranker's score and adjust for it (--score, estimate --adjust score).",
        sign=-1,
        both_sides=False,
    )


ASSUMPTIONS.register(
    Assumption(
        "gaps",
        "Do pairs shown within an hour tell the same curve as pairs shown over longer?",
        "the time of day of each row",
        check,
        wanted=WANTED,
        role="time",
    )
)
