"""DBN: users read on until a click satisfies them, or patience ends."""

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
class DynamicBayesian(ChainModel):
    """A click satisfies by its pair and ends the search; else users go on while patience lasts.

    Parameters
    ----------
    z
        (P,): relevance, the chance of a click on what is reached.
    satisfies
        (P,): the chance that a click on it ends the search.
    patience
        The chance of going on from any other result.
    """

    name = "dbn"
    title = "dynamic Bayesian"
    says = "Users read from the top until a click satisfies them or they give up."
    use = (
        "Where what a doc promises and what it holds are two things, and lists are left unread. "
        "Satisfaction is learned from clicks alone, so it needs many for each pair."
    )

    z: Floats
    satisfies: Floats
    patience: float

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        t = find_tails(searches)
        followed = t.went_on_pair + t.left_pair

        def expect(at: Numbers) -> Expected:
            z, satisfies, patience = at
            gamma = float(patience[0])
            go = gamma * (1.0 - satisfies)
            found = reach(t, z, np.append(go, 1.0)[t.click_pair], gamma)
            went_on = t.went_on_after_click(found.first)
            # Those who stopped after a click were satisfied, or would have gone on but did not.
            satisfied = (followed - went_on) * satisfies / (1.0 - go)
            on = float(went_on.sum()) + found.went_on + t.passed
            could = float((followed - satisfied).sum()) + found.might_have + t.passed
            sure = t.sure(z) + float(t.went_on_pair @ np.log(go)) + t.passed * np.log(gamma)
            return Expected(
                (t.clicks, satisfied, np.array([on])),
                (t.reached + found.of_pair, followed, np.array([could])),
                float(sure) + found.likely,
            )

        start = (
            shrunk(t.clicks, t.reached, strength),
            shrunk(t.left_pair, followed, strength),
            np.array([0.9]),
        )
        z, satisfies, patience = climb(expect, start, rows=t.rows, strength=strength, what=cls.name)
        return cls(z, satisfies, float(patience[0]))

    def chances(self, searches: Searches) -> tuple[Floats, Floats, float]:
        go = self.patience * (1.0 - self.satisfies)
        return self.z[searches.pair], go[searches.pair], self.patience

    def going_on(self) -> tuple[float, float]:
        return self.patience * (1.0 - float(self.satisfies.mean())), self.patience

    def relevance(self) -> Floats:
        return self.z

    def parameters(self) -> dict[str, Any]:
        return {"patience": self.patience, "satisfies": float(self.satisfies.mean())}
