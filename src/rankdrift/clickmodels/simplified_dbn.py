"""SDBN: a DBN in which patience never ends."""

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
class SimplifiedDbn(ChainModel):
    """A click satisfies by its pair and ends the search; else users go on for sure.

    Parameters
    ----------
    z
        (P,): relevance, the chance of a click on what is reached.
    satisfies
        (P,): the chance that a click on it ends the search.
    """

    name = "sdbn"
    title = "simplified DBN"
    says = "Users read from the top until a click satisfies them, and never give up."
    use = (
        "Where lists are short and read to the end unless a click ends the search. "
        "On long lists it takes what nobody reached for irrelevant."
    )

    z: Floats
    satisfies: Floats

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        t = find_tails(searches)
        followed = t.went_on_pair + t.left_pair

        def expect(at: Numbers) -> Expected:
            z, satisfies = at
            found = reach(t, z, np.append(1.0 - satisfies, 1.0)[t.click_pair], 1.0)
            sure = t.sure(z) + float(t.went_on_pair @ np.log1p(-satisfies))
            return Expected(
                (t.clicks, followed - t.went_on_after_click(found.first)),
                (t.reached + found.of_pair, followed),
                sure + found.likely,
            )

        start = (shrunk(t.clicks, t.reached, strength), shrunk(t.left_pair, followed, strength))
        return cls(*climb(expect, start, rows=t.rows, strength=strength, what=cls.name))

    def chances(self, searches: Searches) -> tuple[Floats, Floats, float]:
        return self.z[searches.pair], 1.0 - self.satisfies[searches.pair], 1.0

    def going_on(self) -> tuple[float, float]:
        return 1.0 - float(self.satisfies.mean()), 1.0

    def relevance(self) -> Floats:
        return self.z

    def parameters(self) -> dict[str, Any]:
        return {"satisfies": float(self.satisfies.mean())}
