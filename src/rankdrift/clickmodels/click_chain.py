"""CCM: whether users go on after a click hangs on how relevant what they clicked was."""

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
class ClickChain(ChainModel):
    """Users go on with τ₁ after none; a click satisfies with z_pair, and they go on with τ₃ if it
    did, with τ₂ if it did not.

    Parameters
    ----------
    z
        (P,): relevance, of the click and of what it holds.
    after_none, after_bad, after_good
        τ₁, τ₂ and τ₃.
    """

    name = "ccm"
    title = "click chain"
    says = "Users read from the top, and go on by whether they clicked and how good that was."
    use = (
        "Where one number a doc must do for both promise and satisfaction, as with few clicks. "
        "It has three numbers for stopping, so it adapts to most ways of leaving a list."
    )

    z: Floats
    after_none: float
    after_bad: float
    after_good: float

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        t = find_tails(searches)
        followed = t.went_on_pair + t.left_pair

        def expect(at: Numbers) -> Expected:
            z, none, bad, good = at[0], *(float(x[0]) for x in at[1:])
            go = (1.0 - z) * bad + z * good
            found = reach(t, z, np.append(go, 1.0)[t.click_pair], none)
            went_on = t.went_on_after_click(found.first)
            stopped = followed - went_on
            # Of those who went on, and of those who did not, so many were satisfied.
            on_good = went_on * z * good / go
            off_good = stopped * z * (1.0 - good) / (1.0 - go)
            satisfied = on_good + off_good
            sure = t.sure(z) + float(t.went_on_pair @ np.log(go)) + t.passed * np.log(none)
            return Expected(
                (
                    t.clicks + satisfied,
                    np.array([found.went_on + t.passed]),
                    np.array([(went_on - on_good).sum()]),
                    np.array([on_good.sum()]),
                ),
                (
                    t.reached + found.of_pair + followed,
                    np.array([found.might_have + t.passed]),
                    np.array([(followed - satisfied).sum()]),
                    np.array([satisfied.sum()]),
                ),
                float(sure) + found.likely,
            )

        start = (shrunk(t.clicks, t.reached, strength), *(np.array([x]) for x in (0.9, 0.8, 0.5)))
        z, *rest = climb(expect, start, rows=t.rows, strength=strength, what=cls.name)
        return cls(z, *(float(x[0]) for x in rest))

    def chances(self, searches: Searches) -> tuple[Floats, Floats, float]:
        z = self.z[searches.pair]
        return z, (1.0 - z) * self.after_bad + z * self.after_good, self.after_none

    def going_on(self) -> tuple[float, float]:
        z = float(self.z.mean())
        return (1.0 - z) * self.after_bad + z * self.after_good, self.after_none

    def relevance(self) -> Floats:
        return self.z

    def parameters(self) -> dict[str, Any]:
        return {
            "after_none": self.after_none,
            "after_bad": self.after_bad,
            "after_good": self.after_good,
        }
