"""CM: users go down the list to the first relevant result, click it, and are gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankdrift.clickmodels.chain import ChainModel
from rankdrift.clickmodels.climbing import shrunk
from rankdrift.clickmodels.model import STRENGTH
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Floats


@dataclass(frozen=True, eq=False)
class Cascade(ChainModel):
    """P(click) = z_pair down to the first click, 0 below it.

    Parameters
    ----------
    z
        (P,): relevance.
    """

    name = "cm"
    title = "cascade"
    says = "Users read from the top, click the first relevant result, and leave."
    use = (
        "Where a search has one click at most, as where the result is an answer. "
        "It calls a second click impossible, so it fails on any log that has some."
    )

    z: Floats

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        reached = searches.last_click == 0
        clicks = searches.pair[reached & searches.click]
        return cls(
            shrunk(
                np.bincount(clicks, minlength=searches.pairs).astype(float),
                np.bincount(searches.pair[reached], minlength=searches.pairs).astype(float),
                strength,
            )
        )

    def chances(self, searches: Searches) -> tuple[Floats, Floats, float]:
        return self.z[searches.pair], np.zeros(searches.rows), 1.0

    def going_on(self) -> tuple[float, float]:
        return 0.0, 1.0

    def relevance(self) -> Floats:
        return self.z

    def parameters(self) -> dict[str, Any]:
        return {"mean": float(self.z.mean())}
