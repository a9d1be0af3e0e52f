"""Several dim signs of one thing, put together.

How the noise of the checks goes together is known from bucket to bucket of queries, so that the sum
of what they say has a known law.
"""

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.words import chance_words
from rankdrift.diagnosis.assumption import Data, Evidence, Finding
from rankdrift.estimation.score_test import PRIOR

WEIGHT = 3.0
"""What sees the most is given the most of the chance of a false alarm."""
TRUSTED = {"score": 2.0, "gaps": 2.0, "users": 1.5}
"""Checks that see more than others do where they see anything, and count for more in the sum."""


def together(
    data: Data, what: str, sign: str, meaning: str, least: int = 2, **told: str
) -> Finding:
    """The sum of all signs of `what` that the checks before this one saw, in standard errors.

    Parameters
    ----------
    data
        With what was found so far.
    what
        `assumption.MOVES`, `assumption.FEEDBACK` or `assumption.KINDS`.
    sign
        What they are signs of, as a sentence goes on after "that".
    meaning
        What it means if they are sure.
    least
        How many signs there must be.
    told
        `advice` and `wanted` of the finding.
    """
    from scipy.special import stdtr

    signs = {
        name: finding.evidence
        for name, finding in data.found.items()
        if finding.evidence and what in finding.evidence.signs
    }
    if len(signs) < least:
        lacking = "are not two signs" if least > 1 else "is no sign"
        raise NotIdentified(f"there {lacking} of it to be had.")
    each = np.stack([one.signs[what] for one in signs.values()])  # (checks, G)
    each = each[:, each.any(axis=0)]
    both = each.shape[1] * np.atleast_2d(np.cov(each))
    # Each is in units of its own error; what they have in common is all that buckets must tell.
    unit = np.sqrt(np.diag(both))
    weight = np.array([TRUSTED.get(name, 1.0) for name in signs])
    common = float(weight @ (both / np.outer(unit, unit)) @ weight)
    total = float(weight @ each.sum(axis=1)) / np.sqrt(common)
    p_value = float(stdtr(each.shape[1] - 1 + PRIOR, -total))
    size = float(np.mean([one.size for one in signs.values()]))
    *some, last = signs
    names, chance = f"{', '.join(some)} and {last}", chance_words(p_value)
    give, say = f"Taken together, {names} give", f"Taken together, {names} say"
    if not some:
        give, say = f"By itself, {last} gives", f"By itself, {last} says"
    return Finding(
        None,
        f"{give} no sure sign that {sign} ({chance}).",
        alarm=f"{say} that {sign} ({chance}): {meaning}",
        evidence=Evidence(p_value, size),
        numbers={"p_value": p_value, "beyond_noise": size, "signs": list(signs)},
        **told,
    )
