"""DRCTR: a rate for each query and doc at each rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankdrift.clickmodels.climbing import shrunk
from rankdrift.clickmodels.model import STRENGTH, ClickModel
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class DocRankRate(ClickModel):
    """P(click) = rate of the pair at the rank, with a prior at the rate of the rank.

    Parameters
    ----------
    keys
        (M,), rising: pair * (ranks + 1) + rank of what was shown.
    rates
        (M,)
    of_rank
        (ranks + 1,): of what was not shown.
    of_pair
        (P,): clicks over what the ranks would have got.
    """

    name = "drctr"
    title = "click rate of the doc at the rank"
    says = "Users click each doc at each rank at a rate of its own."
    use = (
        "To see what knowing a pair at a rank adds where the same lists come again and again. "
        "It learns nothing from one rank about another, so it needs the most data of all."
    )

    keys: Ints
    rates: Floats
    of_rank: Floats
    of_pair: Floats

    @classmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        of_rank = shrunk(*searches.by_rank, strength)
        keys, shown = np.unique(_keys(searches), return_counts=True)
        clicked, clicks = np.unique(_keys(searches)[searches.click], return_counts=True)
        got = np.zeros(len(keys))
        got[np.searchsorted(keys, clicked)] = clicks
        prior = of_rank[keys % (searches.ranks + 1)]
        expected = np.bincount(searches.pair, of_rank[searches.rank], searches.pairs)
        mean = float(searches.click.mean())
        ratio = (searches.by_pair[0] + strength * mean) / (expected + strength * mean)
        return cls(
            keys,
            (got + strength * prior) / np.maximum(shown + strength, 1e-12),
            of_rank,
            np.clip(ratio * mean, 0.0, 1.0),
        )

    def conditional_click_probabilities(self, searches: Searches) -> Floats:
        keys = _keys(searches)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = self.keys[at] == keys
        return np.where(known, self.rates[at], self.of_rank[searches.rank])

    def relevance(self) -> Floats:
        return self.of_pair

    def parameters(self) -> dict[str, Any]:
        return {"rates": self.of_rank[1:].tolist()}


def _keys(searches: Searches) -> Ints:
    return searches.pair.astype(np.int64) * (searches.ranks + 1) + searches.rank
