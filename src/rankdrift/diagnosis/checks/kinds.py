"""Do better docs have a flatter curve? All signs of it together.

Where users trust the top blindly, or good docs draw the eye down the page, both docs that are
clicked much and clicks that lead somewhere prefer the top less than others do.
"""

from rankdrift.diagnosis.assumption import (
    ASSUMPTIONS,
    KINDS,
    Assumption,
    Data,
    Evidence,
    Finding,
)
from rankdrift.diagnosis.together import WEIGHT, together

WANTED = "It takes both relevance and outcome: see what they need."


def check(data: Data) -> Finding:
    """The sum of the signs."""
    found = together(data, KINDS)
    names, chance = " and ".join(found.names), f"p = {found.p_value:.2g}"
    return Finding(
        None,
        f"Taken together, {names} give no sure sign that better docs have a flatter curve "
        f"({chance}).",
        advice="Weights of clicks are then wrong in the mean: randomise a share of searches to "
        "know the size.",
        alarm=f"Taken together, {names} say that better docs have a flatter curve ({chance}): "
        "users may trust the top blindly, or be drawn down the page by good docs.",
        wanted=WANTED,
        evidence=Evidence(found.p_value, found.size),
        numbers={
            "p_value": found.p_value,
            "beyond_noise": found.size,
            "signs": list(found.names),
        },
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
