"""What a log says of every pair: its clicks, and how much it was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadOption
from rankdrift.core.types import Bools, Floats, Ints
from rankdrift.counts.funnel import Funnel

MIN_EXPOSURE = 1.0
"""Pairs without a click are listed from this exposure on; the others only shape the prior."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a log says of N pairs, in order of query and doc, and of all others.

    Parameters
    ----------
    queries
        (Q, columns) text, None where missing: the different queries.
    docs
        (D,) text: the different docs.
    query, doc
        (N,) places in `queries` and `docs`.
    clicks, appearances
        (N,): rows clicked, and rows; weighted, if old days count less.
    exposure, squares
        (N,): Σ p and Σ p² over the ranks at which the pair was shown.
    errors
        (N, K): how far the log of exposure goes, along each direction of the curve's error.
    other_error
        (N,): the variance of the log of exposure that is along none of them.
    share
        (N,), up to 1: appearances over those of the doc of its query that was shown most.
    days
        (N,): on how many days it was shown; 0 where the log does not tell days.
    features
        (N, F): means over appearances; missing values are NaN.
    feature_names
        (F,).
    rest
        Pairs that are not listed: arrays `pairs`, `exposure`, `squares`, `appearances` and `share`
        (B,), a bin each, of their sums.
    pooled_error
        (K,): `errors` of all rows together.
    funnel
        What became of the log's rows.
    trust
        (N,): clicks that need no relevance, Σ trust over the ranks at which the pair was shown;
        None where there are none. `rest` has them too then.
    remarks
        What is odd.
    """

    queries: NDArray[Any]
    docs: NDArray[Any]
    query: Ints
    doc: Ints
    clicks: Floats
    appearances: Floats
    exposure: Floats
    squares: Floats
    errors: Floats
    other_error: Floats
    share: Floats
    days: Ints
    features: Floats
    rest: Mapping[str, Floats]
    pooled_error: Floats
    funnel: Funnel
    trust: Floats | None = None
    feature_names: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.query)

    def take(self, keep: Bools) -> Statistics:
        """Some of the pairs; the others join the rest, as bins of one."""
        queries, query = np.unique(self.query[keep], return_inverse=True)
        docs, doc = np.unique(self.doc[keep], return_inverse=True)
        out = ~keep
        more = {
            "pairs": np.ones(int(out.sum())),
            "exposure": self.exposure[out],
            "squares": self.squares[out],
            "appearances": self.appearances[out],
            "share": self.share[out],
        }
        by_pair = "clicks appearances exposure squares errors other_error share days".split()
        if self.trust is not None:
            more["trust"] = self.trust[out]
            by_pair.append("trust")
        return replace(
            self,
            queries=self.queries[queries],
            docs=self.docs[docs],
            query=query.astype(np.int64),
            doc=doc.astype(np.int64),
            features=self.features[keep],
            rest={name: np.concatenate([self.rest[name], values]) for name, values in more.items()},
            **{name: getattr(self, name)[keep] for name in by_pair},
        )

    @property
    def click_rate(self) -> float:
        """Clicks over exposure of all pairs: the mean relevance by exposure. No less than a tenth
        of that if all clicks that need no relevance are taken off."""
        clicks = float(self.clicks.sum())
        if self.trust is not None:
            clicks = max(clicks - float(self.trust.sum() + self.rest["trust"].sum()), clicks / 10)
        return clicks / float(self.exposure.sum() + self.rest["exposure"].sum())


_SHORTEST = 0.01  # days: the day before counts nothing then, and logarithms stay small


@dataclass(frozen=True)
class Recency:
    """Which days count, and how much; raises BadOption for what it cannot do.

    Parameters
    ----------
    last
        Only so many days, up to the last of the log.
    half_life
        In days: a day so much older than the last one counts half.
    """

    last: int | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        if self.last is not None and not (isinstance(self.last, int) and self.last >= 1):
            raise BadOption(f"last is a number of days and must be 1 or more, not {self.last!r}.")
        if self.half_life is not None and not _SHORTEST <= self.half_life < np.inf:
            raise BadOption(
                f"half_life is a number of days, {_SHORTEST} or more, not {self.half_life!r}."
            )

    @property
    def asked(self) -> bool:
        """Whether days matter at all."""
        return self.last is not None or self.half_life is not None
