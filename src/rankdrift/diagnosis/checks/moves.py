"""Did docs move because they got better? All signs of it together.

Score, rankers, outcome, users and gaps each see a side of it, often too dimly to be sure. If docs
are higher when they are better, all of them point the same way: the plain curve is too steep. How
their noise goes together is known from bucket to bucket, so that their sum has a known law.
"""

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Evidence, Finding
from rankdrift.estimation.score_test import PRIOR

WANTED = "It takes two of score, rankers, outcome, users and gaps: see what they need."


def check(data: Data) -> Finding:
    """The sum of the signs, in standard errors of it, to the one side."""
    from scipy.special import stdtr

    signs = {
        name: finding.evidence
        for name, finding in data.found.items()
        if finding.evidence and finding.evidence.steeper is not None
    }
    pulls = [one.steeper for one in signs.values() if one.steeper is not None]
    if len(pulls) < 2:
        raise NotIdentified("there are not two signs of it to put together.")
    each = np.stack(pulls)  # (checks, G)
    each = each[:, each.any(axis=0)]
    both = each.shape[1] * np.cov(each)
    # Each is in units of its own error; what they have in common is all that buckets must tell.
    unit = np.sqrt(np.diag(both))
    together = float((both / np.outer(unit, unit)).sum())
    total = float(each.sum()) / np.sqrt(together)
    p_value = float(stdtr(each.shape[1] - 1 + PRIOR, -total))
    size = float(np.mean([one.size for one in signs.values()]))
    names = ", ".join(signs)
    return Finding(
        None,
        f"Taken together, {names} give no sure sign that docs are higher when they are "
        f"better (p = {p_value:.2g}).",
        advice="Adjust for why docs moved (estimate --adjust score), make columns equal that "
        "change (--same price), or randomise a share of searches.",
        alarm=f"Taken together, {names} say that docs are higher when they are better "
        f"(p = {p_value:.2g}): the curve is too steep.",
        wanted=WANTED,
        evidence=Evidence(p_value, size),
        numbers={"p_value": p_value, "beyond_noise": size, "signs": list(signs)},
    )


ASSUMPTIONS.register(
    Assumption(
        "moves",
        "Taken together, do all signs leave it open that docs moved by themselves?",
        "two or more of score, rankers, outcome, users and gaps",
        check,
        wanted=WANTED,
    )
)
