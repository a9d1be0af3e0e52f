"""PBM: users look at a rank or not, whatever they did above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankdrift.clickmodels.model import STRENGTH, ClickModel
from rankdrift.clickmodels.products import fit_product, tally
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Floats


@dataclass(frozen=True, eq=False)
class PositionBased(ClickModel):
    """P(click) = p_rank z_pair.

    Parameters
    ----------
    z
        (P,): relevance.
    looks
        (ranks + 1,): p by rank; the first is of no rank.
    """

    name = "pbm"
    title = "position-based"
    says = "Users look at each rank with its own chance, and click there what is relevant."
    use = (
        "The model behind propensities, and the one to stay with while no other explains clearly "
        "more. It is right where looks at one rank do not hang on clicks at another."
    )

    z: Floats
    looks: Floats

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        counted = tally(searches, searches.rank, searches.ranks + 1)
        return cls(*fit_product(counted, strength, cls.name))

    def conditional_click_probabilities(self, searches: Searches) -> Floats:
        return np.asarray(self.z[searches.pair] * self.looks[searches.rank])

    def relevance(self) -> Floats:
        return self.z

    def looked_at(self, searches: Searches) -> Floats:
        return np.asarray((self.looks / self.looks[1])[searches.rank])

    def parameters(self) -> dict[str, Any]:
        return {"propensities": (self.looks[1:] / self.looks[1]).tolist()}
