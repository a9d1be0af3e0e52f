"""Comparisons: clicks as contests of two appearances of a pair, by block of ranks.

A click at appearance k of a pair that was shown m times is a win of k over each of the m − 1
others, each with weight 1 / (m − 1). The score of these contests has the mean 0 at the true
propensities, whatever the relevance of the pair, and so has that of any part of them that is chosen
without looking at which of the two was clicked. That is what the checks of the assumptions rest on.

Ranks are in blocks, so that tables stay small; within its block a contest keeps how far the two
ranks were apart on the whole (`away`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.rank_blocks import HALF_OCTAVES
from rankdrift.core.types import Bools, Floats, Indices, Ints
from rankdrift.counts.counts import UNIT, Counts

LOG2 = float(np.log(2.0))
MIDDLE, TIMES, LATE = 64, 8, 3
"""The split by score codes a difference s of scores and t of times, up to LATE, as
(s + MIDDLE) * TIMES + t + LATE, and ACROSS more where two rankers gave the scores: see
`rankdrift.counts.tables.Splits`."""
ACROSS = 2 * MIDDLE * TIMES


def mirrored_score(group: Ints) -> Ints:
    """The group of the same differences of scores and times, seen from the other side."""
    across, group = np.divmod(group, ACROSS)
    score, time = np.divmod(group, TIMES)
    return np.asarray(across * ACROSS + (2 * MIDDLE - score) * TIMES + 2 * LATE - time)


@dataclass(frozen=True, eq=False)
class Comparisons:
    """C kinds of contests, and how many of each there were in each bucket of queries.

    group (C,): which part of a split; clicked, other (C,): blocks of ranks, places in
    `HALF_OCTAVES`; away (C,): the mean of log(rank of other / rank of clicked); value (C,): the
    mean of what the split measures; by_bucket (G, C): their weight.
    """

    group: Ints
    clicked: Ints
    other: Ints
    away: Floats
    value: Floats
    by_bucket: Floats

    def __len__(self) -> int:
        return len(self.group)

    @cached_property
    def weight(self) -> Floats:
        """(C,) of all buckets."""
        return np.asarray(self.by_bucket.sum(axis=0))

    @property
    def clicks(self) -> float:
        """How many clicks these contests are of, about: each click's contests weigh 1."""
        return float(self.weight.sum())

    def in_spreads(self, x: Floats) -> Floats:
        """A number of each kind in units of its standard deviation over contests.

        Raises NotIdentified where all are the same.
        """
        off = x - np.average(x, weights=self.weight)
        spread = float(np.sqrt(np.average(off**2, weights=self.weight)))
        if not spread > 0:
            raise NotIdentified("all that could be compared are alike in this.")
        return np.asarray(x / spread)

    def take(self, which: Bools) -> Comparisons:
        """Some of the kinds."""
        arrays = {name: getattr(self, name)[which] for name in _COLUMNS}
        return replace(self, **arrays, by_bucket=self.by_bucket[:, which])


_COLUMNS = ("group", "clicked", "other", "away", "value")


def split_comparisons(counts: Counts, split: str) -> Comparisons:
    """What the harvest kept for a check, by its name in `SPLITS`; no row if it kept nothing.

    A contest and the one that ended the other way are two kinds that mirror each other. What they
    were about (`away`, `value`) is the mean of both: it must not tell who won.
    """
    rows = counts.splits.of(split)
    blocks = len(HALF_OCTAVES)
    mirrored = mirrored_score if split == "score" else np.asarray
    group, clicked, other = (
        each.astype(np.int64) for each in (rows.group, rows.clicked, rows.other)
    )
    key = (group * blocks + clicked) * blocks + other
    mirror = (mirrored(group) * blocks + other) * blocks + clicked
    # What mirrors itself tells nothing: neither rank nor anything else is another.
    told = key != mirror
    key, mirror, bucket = key[told], mirror[told], rows.bucket[told].astype(np.int64)
    weight, away, value = (each[told] / UNIT for each in (rows.weight, rows.away, rows.value))
    kinds, kind = np.unique(np.concatenate([key, mirror]), return_inverse=True)
    own, reverse = kind[: len(key)], kind[len(key) :]
    many, buckets = len(kinds), int(bucket.max(initial=counts.buckets - 1)) + 1
    by_bucket = np.bincount(bucket * many + own, weight, buckets * many).astype(float)
    both = np.bincount(kind, np.tile(weight, 2), many)
    apart = np.bincount(own, away, many) - np.bincount(reverse, away, many)
    size = np.bincount(kind, np.tile(value, 2), many)
    rest, last = np.divmod(kinds, blocks)
    first, middle = np.divmod(rest, blocks)
    both = np.maximum(both, 1e-300)
    by_bucket = by_bucket.reshape(buckets, many)
    return Comparisons(first, middle, last, apart / both * LOG2, size / both, by_bucket)


@dataclass(frozen=True)
class BlockScale:
    """Blocks of ranks joined until each has enough contests to be told apart.

    of (H,): the joined block of each of HALF_OCTAVES; centre (J,): the log rank in the middle of
    each; first, last (J,): its ranks.
    """

    of: Indices
    centre: Floats
    first: Ints
    last: Ints

    def __len__(self) -> int:
        return len(self.centre)


ENOUGH = 10.0
"""Wins, and losses, of a block that is told apart."""


def block_scale(rows: Comparisons) -> BlockScale:
    """Join blocks, from the top, until each has `ENOUGH` wins and losses against others."""
    size = len(HALF_OCTAVES)
    wins = np.zeros((size, size))
    np.add.at(wins, (rows.clicked, rows.other), rows.weight)
    of = np.zeros(size, np.intp)
    seen = np.flatnonzero(wins.sum(axis=0) + wins.sum(axis=1))
    start, joined = 0, 0
    for block in range(int(seen.max(initial=0)) + 1):
        of[block] = joined
        inside = slice(start, block + 1)
        won = wins[inside].sum() - wins[inside, inside].sum()
        lost = wins[:, inside].sum() - wins[inside, inside].sum()
        if min(won, lost) >= ENOUGH:
            start, joined = block + 1, joined + 1
    deepest = int(seen.max(initial=0))
    # What is left over at the end is too little for a block of its own.
    of[: deepest + 1] = np.minimum(of[: deepest + 1], max(joined - 1, 0))
    of[deepest + 1 :] = max(joined - 1, 0)
    first = np.array([HALF_OCTAVES[int(np.argmax(of == j))] for j in range(max(joined, 1))])
    last = np.append(first[1:] - 1, HALF_OCTAVES[deepest + 1] - 1)
    return BlockScale(of, np.asarray((np.log(first) + np.log(last)) / 2), first, last)
