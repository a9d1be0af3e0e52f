"""Several dim signs of one thing, put together.

How the noise of the checks goes together is known from bucket to bucket of queries, so that the sum
of what they say has a known law.
"""

from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.diagnosis.assumption import Data
from rankdrift.estimation.score_test import PRIOR

WEIGHT = 3.0
"""What sees the most is given the most of the chance of a false alarm."""
TRUSTED = {"score": 2.0, "gaps": 2.0, "users": 1.5}
"""Checks that see more than others do where they see anything, and count for more in the sum."""


@dataclass(frozen=True)
class Together:
    """names: of the checks; p_value: of no sign at all, to the one side; size: their mean."""

    names: tuple[str, ...]
    p_value: float
    size: float


def together(data: Data, what: str) -> Together:
    """The sum of all signs of `what` that the checks before this one saw, in standard errors."""
    from scipy.special import stdtr

    signs = {
        name: finding.evidence
        for name, finding in data.found.items()
        if finding.evidence and what in finding.evidence.signs
    }
    if len(signs) < 2:
        raise NotIdentified("there are not two signs of it to put together.")
    each = np.stack([one.signs[what] for one in signs.values()])  # (checks, G)
    each = each[:, each.any(axis=0)]
    both = each.shape[1] * np.cov(each)
    # Each is in units of its own error; what they have in common is all that buckets must tell.
    unit = np.sqrt(np.diag(both))
    weight = np.array([TRUSTED.get(name, 1.0) for name in signs])
    common = float(weight @ (both / np.outer(unit, unit)) @ weight)
    total = float(weight @ each.sum(axis=1)) / np.sqrt(common)
    return Together(
        tuple(signs),
        float(stdtr(each.shape[1] - 1 + PRIOR, -total)),
        float(np.mean([one.size for one in signs.values()])),
    )
