"""Do better docs have a flatter curve? All signs of it together.

Where users trust the top blindly, or good docs draw the eye down the page, both docs that are
clicked much and clicks that lead somewhere prefer the top less than others do.
"""

from rankdrift.diagnosis.assumption import ASSUMPTIONS, KINDS, Assumption, Data, Finding
from rankdrift.diagnosis.together import WEIGHT, together

WANTED = "It takes both relevance and outcome: see what they need."


def check(data: Data) -> Finding:
    """The sum of the signs."""
    return together(
        data,
        KINDS,
        "better docs have a flatter curve",
        "users may trust the top blindly, or be drawn down the page by good docs.",
        advice="Weights of clicks are then wrong in the mean: randomise a share of searches to "
        "know the size, or take it for trust and estimate --adjust trust.",
        wanted=WANTED,
    )


ASSUMPTIONS.register(
    Assumption(
        KINDS,
        "Taken together, do all signs leave it open that all docs have one curve?",
        "relevance and outcome",
        check,
        wanted=WANTED,
        weight=WEIGHT,
    )
)
