"""Counts as the likelihood sees them: weighted choices of one rank among those shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.notebook import brief
from rankdrift.core.types import CLICKS, Clicks, Floats, Ints, SmallInts
from rankdrift.core.words import many
from rankdrift.counts.tables import UNIT, runs, widen

if TYPE_CHECKING:
    from rankdrift.counts.counts import Counts


@dataclass(frozen=True, eq=False)
class Choices:
    """The terms of Eq. (3), log-like: T weighted choices of one rank among those shown.

    shown (T, K) int32, ranks ascending, then zeros; clicked (T,) int32, the rank chosen;
    weight (T,) float64; bucket, segment (T,) int32;
    pair (T,) int64, the row of Counts.pairs it comes from, -1 for one of Counts.rank_pairs.
    """

    shown: SmallInts
    clicked: SmallInts
    weight: Floats
    bucket: SmallInts
    segment: SmallInts
    pair: Ints

    def __repr__(self) -> str:
        return brief(self, f"{many(len(self.clicked), 'choice')} of one rank among those shown")


def check_clicks(clicks: Clicks) -> None:
    """Raise BadOption for anything but the words of `Clicks`."""
    if clicks not in CLICKS:
        raise BadOption(f"clicks is {clicks!r}. Use {' or '.join(map(repr, CLICKS))}.")


def choices_of(counts: Counts, clicks: Clicks) -> Choices:
    """One term per clicked rank of each listed pair, then one per pair of ranks."""
    check_clicks(clicks)
    pairs, rank_pairs = counts.pairs, counts.rank_pairs
    clicked = pairs.shown & 1
    if clicks == "single":
        clicked = clicked * (pairs.clicks == 1)[:, None]
        rank_pairs = rank_pairs.take(rank_pairs.single)
    pair, column = np.nonzero(clicked)
    starts = runs(pair, pairs.shown[pair, column])
    times = np.diff(starts, append=len(pair))
    pair, column = pair[starts], column[starts]
    two = np.sort(np.stack([rank_pairs.clicked, rank_pairs.other], axis=1), axis=1)
    weights = [(times * pairs.pairs[pair]).astype(np.float64), rank_pairs.weight / UNIT]
    return Choices(
        shown=np.concatenate([pairs.shown[pair] >> 1, widen(two, pairs.shown.shape[1])]),
        clicked=np.concatenate([pairs.shown[pair, column] >> 1, rank_pairs.clicked]),
        weight=np.concatenate(weights),
        bucket=np.concatenate([pairs.bucket[pair], rank_pairs.bucket]),
        segment=np.concatenate([pairs.segment[pair], rank_pairs.segment]),
        pair=np.concatenate([pair, np.full(len(rank_pairs), -1)]),
    )
