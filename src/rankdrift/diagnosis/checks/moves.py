"""Did docs move because they got better? All signs of it together.

Score, rankers, outcome, users and gaps each see a side of it, often too dimly to be sure. If docs
are higher when they are better, all of them point the same way: the plain curve is too steep.
"""

from rankdrift.diagnosis.assumption import ASSUMPTIONS, MOVES, Assumption, Data, Finding
from rankdrift.diagnosis.together import WEIGHT, together

WANTED = "It takes two of score, rankers, outcome, users and gaps: see what they need."


def check(data: Data) -> Finding:
    """The sum of the signs."""
    return together(
        data,
        MOVES,
        "docs are higher when they are better",
        "the curve is too steep.",
        advice="Adjust for why docs moved (estimate --adjust score), make columns equal that "
        "change (--same price), or randomise a share of searches.",
        wanted=WANTED,
    )


ASSUMPTIONS.register(
    Assumption(
        MOVES,
        "Taken together, do all signs leave it open that docs moved by themselves?",
        "two or more of score, rankers, outcome, users and gaps",
        check,
        wanted=WANTED,
        weight=WEIGHT,
    )
)
