"""Did docs move because they got better? All signs of it together.

Score, rankers, outcome, users and gaps each see a side of it, often too dimly to be sure. If docs
are higher when they are better, all of them point the same way: the plain curve is too steep.
"""

from rankdrift.diagnosis.assumption import (
    ASSUMPTIONS,
    MOVES,
    Assumption,
    Data,
    Evidence,
    Finding,
)
from rankdrift.diagnosis.together import WEIGHT, together

WANTED = "It takes two of score, rankers, outcome, users and gaps: see what they need."


def check(data: Data) -> Finding:
    """The sum of the signs."""
    found = together(data, MOVES)
    names, chance = ", ".join(found.names), f"p = {found.p_value:.2g}"
    return Finding(
        None,
        f"Taken together, {names} give no sure sign that docs are higher when they are "
        f"better ({chance}).",
        advice="Adjust for why docs moved (estimate --adjust score), make columns equal that "
        "change (--same price), or randomise a share of searches.",
        alarm=f"Taken together, {names} say that docs are higher when they are better "
        f"({chance}): the curve is too steep.",
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
        MOVES,
        "Taken together, do all signs leave it open that docs moved by themselves?",
        "two or more of score, rankers, outcome, users and gaps",
        check,
        wanted=WANTED,
        weight=WEIGHT,
    )
)
