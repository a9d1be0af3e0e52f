"""DCTR: a rate for each query and doc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankdrift.clickmodels.climbing import shrunk
from rankdrift.clickmodels.model import STRENGTH, ClickModel
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Floats


@dataclass(frozen=True, eq=False)
class DocRate(ClickModel):
    """P(click) = rate of the pair.

    Parameters
    ----------
    rates
        (P,)
    """

    name = "dctr"
    title = "click rate of the doc"
    says = "Users look at everything and click what is relevant."
    use = (
        "To see how much of the clicks the docs alone explain. "
        "Its relevance is that of the raw click rate: it takes the rank for the doc's merit."
    )

    rates: Floats

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        return cls(shrunk(*searches.by_pair, strength))

    def conditional_click_probabilities(self, searches: Searches) -> Floats:
        return np.asarray(self.rates[searches.pair])

    def relevance(self) -> Floats:
        return self.rates

    def looked_at(self, searches: Searches) -> Floats:
        return np.ones(searches.rows)

    def parameters(self) -> dict[str, Any]:
        return {"mean": float(self.rates.mean())}
