"""Propensities that made-up data is drawn with: each a function of an array of ranks."""

from collections.abc import Callable

import numpy as np

from rankdrift.core.types import Floats

TrueCurve = Callable[[Floats], Floats]
"""The propensities (R,) of ranks (R,)."""


def inverse_log(ranks: Floats) -> Floats:
    """The propensities of Appendix D: min(1, 1 / ln rank)."""
    return 1 / np.log(np.maximum(ranks, np.e))


def steady(ranks: Floats) -> Floats:
    """The web: interest falls steadily, whatever the page."""
    return np.asarray((1 + (ranks - 1) / 3) ** -0.45)


def dipping(ranks: Floats) -> Floats:
    """Mobile: the same, with dips over the last 15 of every 40 results loaded."""
    place = (ranks - 1) % 40
    return np.asarray(steady(ranks) * np.exp(-1.2 * np.maximum(place - 24, 0) / 15))
