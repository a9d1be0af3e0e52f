"""UBM: whether users look at a rank hangs on how far it is below the last click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankdrift.clickmodels.model import STRENGTH, ClickModel
from rankdrift.clickmodels.products import fit_product, tally
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import AnyInts, Bools, Floats


@dataclass(frozen=True, eq=False)
class UserBrowsing(ClickModel):
    """P(click) = p_rank,last z_pair, `last` the rank of the last click above, 0 for none.

    Parameters
    ----------
    z
        (P,): relevance.
    looks
        (ranks + 1, ranks + 1): p by rank and last.
    """

    name = "ubm"
    title = "user browsing"
    says = "Users look at a rank with a chance that hangs on the last rank they clicked."
    use = (
        "Where clicks hang together and one wants the best forecast without saying why. "
        "It makes no claim on satisfaction, and covers much of what the others say."
    )

    z: Floats
    looks: Floats

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        side = searches.ranks + 1
        place = _place(searches.rank, searches.last_click, side)
        z, looks = fit_product(tally(searches, place, side**2), strength, cls.name)
        return cls(z, looks.reshape(side, side))

    def conditional_click_probabilities(self, searches: Searches) -> Floats:
        place = _place(searches.rank, searches.last_click, len(self.looks))
        return np.asarray(self.z[searches.pair] * self.looks.ravel()[place])

    def click_probabilities(self, searches: Searches) -> Floats:
        found = np.empty(searches.rows)
        for block in searches.lists.blocks:
            z, rank, out = self.z[searches.pair[block.rows]], searches.rank[block.rows], found
            # (lists, 1 + places): how likely the last click was at each place, or nowhere.
            last = np.ones((block.lists.stop - block.lists.start, 1))
            at = np.zeros_like(last, int)
            for count, place in block.places():
                here = rank[place].astype(int)[:, None]
                likely = self.looks[here, at[:count]] * z[place][:, None]
                clicked = (last[:count] * likely).sum(axis=1, keepdims=True)
                out[block.rows][place] = clicked[:, 0]
                last = np.concatenate([last[:count] * (1.0 - likely), clicked], axis=1)
                at = np.concatenate([at[:count], here], axis=1)
        return found

    def draw(self, searches: Searches, chance: Floats) -> Bools:
        found = np.empty(searches.rows, bool)
        for block in searches.lists.blocks:
            z, rank = self.z[searches.pair[block.rows]], searches.rank[block.rows].astype(int)
            drawn, out = chance[block.rows], found[block.rows]
            last = np.zeros(block.lists.stop - block.lists.start, int)
            for count, place in block.places():
                out[place] = drawn[place] < self.looks[rank[place], last[:count]] * z[place]
                last = np.where(out[place], rank[place], last[:count])
        return found

    def relevance(self) -> Floats:
        return self.z

    def looked_at(self, searches: Searches) -> Floats:
        place = _place(searches.rank, searches.last_click, len(self.looks))
        return np.asarray((self.looks / self.looks[1, 0]).ravel()[place])

    def parameters(self) -> dict[str, Any]:
        top = self.looks[1, 0]
        return {"without_click": (self.looks[1:, 0] / top).tolist()}


def _place(rank: AnyInts, last: AnyInts, side: int) -> AnyInts:
    return rank.astype(np.uint32) * np.uint32(side) + last
