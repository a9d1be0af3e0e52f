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


def steep(ranks: Floats) -> Floats:
    """Few look further than the first results."""
    return np.asarray(ranks**-0.8)


def dips(ranks: Floats, batch: int) -> Floats:
    """What is left of interest in results that are loaded so many at a time: it falls off over
    the last three eighths of every batch."""
    place = (ranks - 1) % batch
    return np.asarray(np.exp(-1.2 * np.maximum(place - 0.6 * batch, 0) / (0.375 * batch)))


def dipping(ranks: Floats) -> Floats:
    """Mobile: as the web, with dips over the last 15 of every 40 results loaded."""
    return steady(ranks) * dips(ranks, 40)


def in_twenties(ranks: Floats) -> Floats:
    """The same with results loaded 20 at a time."""
    return steady(ranks) * dips(ranks, 20)
