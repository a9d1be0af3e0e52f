"""DCM: a cascade that goes on after a click, with a chance by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankdrift.clickmodels.chain import ChainModel, find_tails, reach
from rankdrift.clickmodels.climbing import Expected, Numbers, climb, shrunk
from rankdrift.clickmodels.model import STRENGTH
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Floats


@dataclass(frozen=True, eq=False)
class DependentClick(ChainModel):
    """Users go on after a click at a rank with λ_rank, and always after none.

    Parameters
    ----------
    z
        (P,): relevance.
    go_on
        (ranks + 1,): λ by rank; the first is of no rank.
    """

    name = "dcm"
    title = "dependent clicks"
    says = "Users read from the top; after a click they go on with a chance that the rank has."
    use = (
        "Where searches have several clicks, and stopping hangs on how far down one is. "
        "It takes all of a list without clicks for read and found wanting."
    )

    z: Floats
    go_on: Floats

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        t = find_tails(searches)
        none = t.click_rank == 0

        def expect(at: Numbers) -> Expected:
            z, go_on = at
            found = reach(t, z, np.where(none, 1.0, go_on[t.click_rank]), 1.0)
            again = np.bincount(t.click_rank, found.first, len(go_on))
            again[0] = 0.0
            sure = t.sure(z) + float(t.went_on_rank @ np.log(go_on))
            return Expected(
                (t.clicks, t.went_on_rank + again),
                (t.reached + found.of_pair, t.went_on_rank + t.left_rank),
                sure + found.likely,
            )

        start = (
            shrunk(t.clicks, t.reached, strength),
            shrunk(t.went_on_rank, t.went_on_rank + t.left_rank, strength),
        )
        return cls(*climb(expect, start, rows=t.rows, strength=strength, what=cls.name))

    def chances(self, searches: Searches) -> tuple[Floats, Floats, float]:
        return self.z[searches.pair], self.go_on[searches.rank], 1.0

    def going_on(self) -> tuple[float, float]:
        return float(self.go_on[1:].mean()), 1.0

    def relevance(self) -> Floats:
        return self.z

    def parameters(self) -> dict[str, Any]:
        return {"after_click": self.go_on[1:].tolist()}
