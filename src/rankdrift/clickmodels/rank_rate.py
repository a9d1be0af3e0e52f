"""RCTR: a rate for each rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankdrift.clickmodels.climbing import shrunk
from rankdrift.clickmodels.model import STRENGTH, ClickModel
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Floats


@dataclass(frozen=True, eq=False)
class RankRate(ClickModel):
    """P(click) = rate of the rank.

    Parameters
    ----------
    rates
        (ranks + 1,): by rank; the first is of no rank.
    pairs
        P.
    """

    name = "rctr"
    title = "click rate of the rank"
    says = "Users click by rank, whatever is shown there."
    use = (
        "To see how much of the clicks the rank alone explains. "
        "If nothing beats it, docs hardly differ, or pairs are too rare to be known."
    )

    rates: Floats
    pairs: int

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        return cls(shrunk(*searches.by_rank, strength), searches.pairs)

    def conditional_click_probabilities(self, searches: Searches) -> Floats:
        return np.asarray(self.rates[searches.rank])

    def relevance(self) -> Floats:
        return np.full(self.pairs, float(self.rates.mean()))

    def parameters(self) -> dict[str, Any]:
        return {"rates": self.rates[1:].tolist()}
