"""Do docs keep their ranks when they are clicked? All signs of it together.

A ranker that raises what was clicked puts a doc higher just when its click is over: the click is
then at the lower of two ranks, and the curve comes out too flat. Every sign that docs moved for a
reason of their own points the other way than it does where they are higher when they are better.
"""

from rankdrift.diagnosis.assumption import ASSUMPTIONS, FEEDBACK, Assumption, Data, Finding
from rankdrift.diagnosis.together import together

WANTED = "Harvest with --time; score, rankers and users see it as well: see what they need."


def check(data: Data) -> Finding:
    """The sum of the signs; one of them will do, as each by itself looks for the opposite only."""
    return together(
        data,
        FEEDBACK,
        "docs rise after they are clicked",
        "the curve is too flat.",
        least=1,
        advice="Adjust for the ranker's score (estimate --adjust score), have the ranker learn "
        "from clicks once a day, at midnight, or randomise a share of searches.",
        wanted=WANTED,
    )


ASSUMPTIONS.register(
    Assumption(
        FEEDBACK,
        "Do docs keep their ranks when they are clicked?",
        "one or more of score, rankers, users and gaps",
        check,
        wanted=WANTED,
        role="time",
    )
)
