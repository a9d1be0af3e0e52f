"""RCM, also called GCTR: one rate for everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankdrift.clickmodels.model import STRENGTH, ClickModel
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Floats


@dataclass(frozen=True, eq=False)
class RandomClicks(ClickModel):
    """P(click) = rate.

    Parameters
    ----------
    rate
        Of all results.
    pairs
        P.
    """

    name = "rcm"
    title = "random clicks"
    says = "Users click anything, anywhere."
    use = "Never for itself: it is the floor that every other model must beat."

    rate: float
    pairs: int

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        return cls(float(searches.click.mean()), searches.pairs)

    def conditional_click_probabilities(self, searches: Searches) -> Floats:
        return np.full(searches.rows, self.rate)

    def relevance(self) -> Floats:
        return np.full(self.pairs, self.rate)

    def parameters(self) -> dict[str, Any]:
        return {"rate": self.rate}
