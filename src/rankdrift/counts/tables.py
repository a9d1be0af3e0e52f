"""The arrays of `Counts`, and the arithmetic on them: no files, no options, no loops over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadCounts
from rankdrift.core.notebook import brief
from rankdrift.core.types import Bools, Indices, Ints, SmallInts
from rankdrift.core.words import many
from rankdrift.counts.funnel import Used

UNIT = 2**32
"""Weights of comparisons are whole numbers of 1/UNIT, so that sums are exact in any order."""

DRIFTS = ("unknown", "up, short", "up, long", "down, short", "down, long")
"""Did the doc move up or down over its appearances, and were they an hour apart or more?"""

SPLITS = ("relevance", "outcome", "score", "user", "neighbours", "queries", "ranker", "trust")
"""What comparisons of two appearances are split by: see `Splits`."""
QUERY_BUCKETS = 4096
"""How many buckets of queries the split `queries` has, whatever the others have."""
MOST_SHOWN = 32
"""Pairs at one rank that were shown more often are told by their number alone."""
MOST_CUTS = 63
"""How many numbers may tell groups of such pairs apart."""


_CHUNK = 1 << 18  # pairs turned into comparisons at a time
_TOO_MANY = 2.0**62


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length: keys first, then the SUMS columns that add up."""

    TYPES: ClassVar[tuple[type[np.generic], ...]] = ()
    SUMS: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for (name, value), dtype in zip([*vars(self).items()], self.TYPES, strict=True):
            given = np.asarray(value)
            values = np.ascontiguousarray(given, dtype=dtype).view()
            if values.dtype != given.dtype and not np.array_equal(values, given):
                raise BadCounts(
                    f"Column {name!r} of {type(self).__name__} has values that do not fit "
                    f"{dtype.__name__}. Give whole numbers within its range."
                )
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        lengths = {len(values) for values in self.columns()}
        if len(lengths) > 1:
            raise BadCounts(
                f"The columns of {type(self).__name__} differ in length: {sorted(lengths)}. "
                "Give one value a row."
            )

    def __repr__(self) -> str:
        return brief(self, f"{many(len(self), 'row')} of {', '.join(vars(self))}")

    def __len__(self) -> int:
        return len(self.columns()[0])

    @classmethod
    def empty(cls) -> Self:
        """Without rows."""
        return cls(*(np.zeros(0, dtype) for dtype in cls.TYPES))

    def columns(self) -> list[NDArray[Any]]:
        """The arrays, in the order of the fields."""
        return [*vars(self).values()]

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """The rows of a mask, an index or a slice: of columns that are right, they are."""
        made = object.__new__(type(self))
        for name, values in vars(self).items():
            some = values[rows]
            some.flags.writeable = False
            object.__setattr__(made, name, some)
        return made

    def equals(self, other: Self) -> bool:
        """Whether all rows are the same, in the same order."""
        return all(map(np.array_equal, self.columns(), other.columns()))

    def collapse(self) -> Self:
        """Sorted by key, rows of equal key summed, rows that are all zero left out."""
        keys, sums = self.columns()[: -self.SUMS], self.columns()[-self.SUMS :]
        filled = reduce(np.logical_or, (values != 0 for values in sums))
        if not filled.all():
            return self.take(filled).collapse()
        words = _pack([part for key in keys for part in (key.T if key.ndim == 2 else [key])])
        if _ascending(words):
            return self
        order = _order(words)
        starts = runs(*(word[order] for word in words))
        first = order[starts]
        return type(self)(*(key[first] for key in keys), *(_sum(v[order], starts) for v in sums))


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(Table):
    """Pairs with the same appearances, one row per (segment, bucket, drift, appearances).

    segment (P,) int32, index into Counts.segments; bucket (P,) int32, of the query's hash;
    drift (P,) int32, which way and over how long it moved, an index into DRIFTS;
    shown (P, K) int32, 2*rank+click of each appearance, ascending, then zeros;
    pairs (P,) int64, how many there are.
    """

    TYPES = (np.int32, np.int32, np.int32, np.int32, np.int64)
    segment: SmallInts
    bucket: SmallInts
    drift: SmallInts
    shown: SmallInts
    pairs: Ints

    def __post_init__(self) -> None:
        shown = np.asarray(self.shown)
        if shown.ndim != 2:
            shown = shown.reshape(len(shown), -1 if shown.size else 2)
        longest = shown.shape[1]
        while longest > 2 and not shown[:, longest - 1].any():
            longest -= 1
        object.__setattr__(self, "shown", widen(shown, max(longest, 2)))
        super().__post_init__()

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """The rows of a mask, an index or a slice; `shown` is no wider than they need."""
        return type(self)(*(values[rows] for values in self.columns()))

    @property
    def appearances(self) -> Ints:
        """(P,) how often one pair of the row was shown."""
        appearances: Ints = np.sum(self.shown != 0, axis=1, dtype=np.int64)
        return appearances

    @property
    def clicks(self) -> Ints:
        """(P,) how often one pair of the row was clicked."""
        clicks: Ints = np.sum(self.shown & 1, axis=1, dtype=np.int64)
        return clicks

    @property
    def total(self) -> Used:
        """All pairs with their appearances and clicks."""
        rows, clicks = (int(each @ self.pairs) for each in (self.appearances, self.clicks))
        return Used(rows=rows, clicks=clicks, pairs=int(self.pairs.sum()))


@dataclass(frozen=True, eq=False, repr=False)
class RankPairs(Table):
    """Pairs shown more than max_shown times, as weighted choices between two ranks.

    segment, bucket (C,) int32; clicked, other (C,) int32, the two ranks;
    single (C,) bool, the pair had exactly one click; weight (C,) int64, in 1/UNIT.
    """

    TYPES = (np.int32, np.int32, np.int32, np.int32, np.bool_, np.int64)
    segment: SmallInts
    bucket: SmallInts
    clicked: SmallInts
    other: SmallInts
    single: Bools
    weight: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Overflow(Table):
    """The pairs that RankPairs are made of, by rank.

    segment, rank (H,) int32; single (H,) bool, the pair had exactly one click;
    first (H,) int64, pairs with this as the first of their ranks: they add up to all pairs;
    pairs (H,) int64, pairs shown at the rank; clicks (H,) int64, the clicks they got there.
    """

    TYPES = (np.int32, np.int32, np.bool_, np.int64, np.int64, np.int64)
    SUMS = 3
    segment: SmallInts
    rank: SmallInts
    single: Bools
    first: Ints
    pairs: Ints
    clicks: Ints


@dataclass(frozen=True, eq=False, repr=False)
class ByRank(Table):
    """segment, rank (N,) int32; impressions, clicks (N,) int64 of all good rows at that rank."""

    TYPES = (np.int32, np.int32, np.int64, np.int64)
    SUMS = 2
    segment: SmallInts
    rank: SmallInts
    impressions: Ints
    clicks: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Splits(Table):
    """Comparisons of two appearances of a pair, of all usable pairs, split by how the two differ.

    segment (S,) int32; split (S,) int32, index into SPLITS; group (S,) int32, which part of it;
    bucket (S,) int32; clicked, other (S,) int32, blocks of ranks as places in HALF_OCTAVES;
    weight (S,) int64, Σ c n / (m - 1) as in RankPairs; away (S,) int64, the same times log2 of the
    other's rank less that of the clicked one; value (S,) int64; sums are in 1/UNIT.

    relevance: round(4 ln((C + 5) / (X + 5))) + 16, from 0 to 32, C and X the clicks that the pair
    had on other days and would have at the usual rates of its ranks.
    outcome: 1 if the click had the outcome. user: 1 if both appearances were one user's, 0 if two
    users'. neighbours: 1 if both searches had another click, 0 if neither had.
    queries: the day of the month modulo 2; QUERY_BUCKETS buckets; blocks of whole octaves, each
    the first of its two halves.
    score: (s + 64) * 8 + t + 3. s is 0 where the scores are equal or not in the log, else
    ±(k + 32), the sign that of clicked less other, k that of 4**k <= 1.37 |difference| <
    4**(k + 1), from -30 to 30; value is the weight times 1.37 |difference| / 4**k. t is -3 to 3:
    beyond a day, beyond six hours, beyond one, within one or unknown, by the times of clicked less
    other. And 1024 more where two rankers gave the scores. Appearances at one rank count too.
    ranker: l of the hat functions f_l(h) = max(0, 1 - |h / 1.5 - l|), 0 to 6; clicked is the rank
    itself, other the mean h of the pair's rankers in half octaves, 0 to 18, and weight, of either
    sign, Σ c (f_l(h of the arm) - mean of f_l(h)), h the mean log2 rank that an arm gave the pair
    on other days.
    trust: as relevance, of all pairs shown on several days, clicked or not. clicked and other are
    ranks, each the first of a block of `core.rank_blocks.fine_blocks`, and value is
    Σ n_a n_b / (m - 1): there are rows without clicks.
    """

    TYPES = (*(np.int32,) * 6, *(np.int64,) * 3)
    SUMS = 3
    segment: SmallInts
    split: SmallInts
    group: SmallInts
    bucket: SmallInts
    clicked: SmallInts
    other: SmallInts
    weight: Ints
    away: Ints
    value: Ints

    def of(self, split: str) -> Self:
        """The rows of one of SPLITS."""
        return self.take(self.split == SPLITS.index(split))


@dataclass(frozen=True, eq=False, repr=False)
class Singles(Table):
    """Pairs shown at one rank only, clicked or not: as many as have the same rank and so on.

    segment (S,) int32; group (S,) int32, of the column that tells of relevance: 0 where it is not
    known, else one more than the cuts it has reached; rank (S,) int32; shown, clicked (S,) int32,
    how often one pair was, both 0 for those shown more than MOST_SHOWN times; pairs (S,) int64.
    """

    TYPES = (*(np.int32,) * 5, np.int64)
    segment: SmallInts
    group: SmallInts
    rank: SmallInts
    shown: SmallInts
    clicked: SmallInts
    pairs: Ints


AnyTable = TypeVar("AnyTable", bound=Table)
Bucketed = TypeVar("Bucketed", Pairs, RankPairs, Splits)


def stack(tables: Sequence[AnyTable]) -> AnyTable:
    """The rows of all tables, one after the other."""
    columns = []
    for parts in zip(*(table.columns() for table in tables), strict=True):
        if parts[0].ndim == 2:
            parts = tuple(widen(part, max(other.shape[1] for other in parts)) for part in parts)
        columns.append(np.concatenate(parts))
    return type(tables[0])(*columns)


def fold(table: Bucketed, buckets: int) -> Bucketed:
    """With fewer buckets: a bucket is the low bits of a hash. The split `queries` keeps its own."""
    if table.bucket.max(initial=0) < buckets:
        return table
    bucket = table.bucket & (buckets - 1)
    if isinstance(table, Splits):
        bucket = np.where(table.split == SPLITS.index("queries"), table.bucket, bucket)
    return replace(table, bucket=bucket)


def cut(pairs: Pairs, ranks: NDArray[Any]) -> Pairs:
    """With the appearances at these ranks only, and without the pairs this leaves unusable."""
    kept = np.where(np.isin(pairs.shown >> 1, ranks), pairs.shown, 0)
    # Zeros go last; codes stay ascending.
    kept = np.sort(np.where(kept == 0, np.iinfo(np.int32).max, kept), axis=1)
    kept = np.where(kept == np.iinfo(np.int32).max, 0, kept)
    moved = np.any(kept != pairs.shown, axis=1)
    # What is left of a pair need not have moved the way the whole did.
    cut_pairs = replace(pairs, shown=kept, drift=np.where(moved, 0, pairs.drift))
    return cut_pairs.take(usable(cut_pairs.shown))


def usable(shown: SmallInts) -> Bools:
    """(P,) which rows have a click and two ranks."""
    two_ranks: Bools = shown[:, 0] >> 1 != shown.max(axis=1) >> 1
    clicked: Bools = np.bitwise_or.reduce(shown, axis=1) & 1 == 1
    return two_ranks & clicked


def shorten(pairs: Pairs, max_shown: int) -> tuple[Pairs, RankPairs, Overflow]:
    """Pairs shown more than `max_shown` times turned into pairs of ranks."""
    long = pairs.appearances > max_shown
    if not long.any():
        return pairs, RankPairs.empty(), Overflow.empty()
    rows = np.flatnonzero(long)
    chunks = (pairs.take(rows[start : start + _CHUNK]) for start in range(0, len(rows), _CHUNK))
    rank_pairs, overflow = zip(*map(_compare, chunks), strict=True)
    return pairs.take(~long), stack(rank_pairs), stack(overflow)


def _compare(pairs: Pairs) -> tuple[RankPairs, Overflow]:
    """Each clicked rank a against each other rank b of its pair, with weight c_a n_b / (m - 1).

    The weight of one pair is rounded to 1/UNIT in IEEE doubles, in this order of operations,
    which every SQL engine can repeat to the last bit.
    """
    pair, column = np.nonzero(pairs.shown)
    code = pairs.shown[pair, column]
    starts = runs(pair, code >> 1)
    n = np.diff(starts, append=len(code))
    c = np.add.reduceat(code & 1, starts, dtype=np.int64)
    pair, rank = pair[starts], code[starts] >> 1
    single = pairs.clicks == 1

    # a, b: positions in (pair, rank, n, c), whose rows of one pair lie together.
    ranks_of_pair = np.bincount(pair, minlength=len(pairs))
    first_of_pair = np.cumsum(ranks_of_pair) - ranks_of_pair
    clicked = np.flatnonzero(c)
    times = ranks_of_pair[pair[clicked]]
    a = np.repeat(clicked, times)
    start = first_of_pair[pair[clicked]] - (np.cumsum(times) - times)
    b = np.repeat(start, times) + np.arange(len(a))
    a, b = a[a != b], b[a != b]

    row = pair[a]
    m = pairs.appearances[row]
    share = (c[a] * n[b]).astype(np.float64) * float(UNIT) / (m - 1).astype(np.float64)
    weight = np.floor(share + 0.5)
    _refuse_too_many(weight * pairs.pairs[row])
    rank_pairs = RankPairs(
        segment=pairs.segment[row],
        bucket=pairs.bucket[row],
        clicked=rank[a],
        other=rank[b],
        single=single[row],
        weight=weight.astype(np.int64) * pairs.pairs[row],
    )
    many = pairs.pairs[pair]
    overflow = Overflow(
        segment=pairs.segment[pair],
        rank=rank,
        single=single[pair],
        first=np.where(np.diff(pair, prepend=-1), many, 0),
        pairs=many,
        clicks=c * many,
    )
    return rank_pairs.collapse(), overflow.collapse()


def decode(cells: Ints) -> SmallInts:
    """The appearances of pairs, as in Pairs.shown, from the cells that a harvest's plan gives.

    cells (P, K), each row's ascending and beside zeros: see `CELL` in harvesting/pairs.py.
    """
    pair, column = np.nonzero(cells)
    cell = cells[pair, column]
    n, c = (cell >> 5) & 31, cell & 31
    starts = np.cumsum(n) - n
    within = np.arange(n.sum()) - np.repeat(starts, n)
    clicked = within >= np.repeat(n - c, n)
    code = 2 * np.repeat(cell >> 10, n) + clicked
    pair = np.repeat(pair, n)
    first = runs(pair)
    place = np.arange(len(pair)) - np.repeat(first, np.diff(first, append=len(pair)))
    shown = np.zeros((len(cells), max(int(place.max(initial=0)) + 1, 2)), np.int32)
    shown[pair, place] = code
    return shown


def runs(*columns: NDArray[Any]) -> Indices:
    """Where a new run of equal rows starts."""
    if len(columns[0]) == 0:
        return np.zeros(0, np.intp)
    differs = reduce(np.logical_or, (column[1:] != column[:-1] for column in columns))
    return np.concatenate([[0], np.flatnonzero(differs) + 1])


def widen(values: NDArray[Any], width: int) -> NDArray[Any]:
    """`values` (N, K) with zeros added, or columns left out, to have `width` columns."""
    if values.shape[1] >= width:
        return values[:, :width]
    return np.pad(values, ((0, 0), (0, width - values.shape[1])))


def _pack(columns: Sequence[NDArray[Any]]) -> list[NDArray[np.uint64]]:
    """As few 64-bit words as hold the columns, in the same lexicographic order."""
    words = [np.zeros(len(columns[0]), np.uint64)]
    free = 64
    for column in columns:
        bits = int(column.max(initial=0)).bit_length()
        if column.min(initial=0) < 0:
            raise BadCounts("A key of the counts is negative. Count again.")
        if bits > free:
            words.append(np.zeros(len(column), np.uint64))
            free = 64
        free -= bits
        if bits:
            words[-1] |= column.astype(np.uint64) << np.uint64(free)
    return words


def _order(words: Sequence[NDArray[np.uint64]]) -> Indices:
    """The rows in ascending order."""
    word, rows = words[0], np.arange(len(words[0]), dtype=np.uint64)
    bits = len(word).bit_length()
    if len(words) > 1 or (word & np.uint64((1 << bits) - 1)).any():
        return np.asarray(np.lexsort(words[::-1]))
    # With the row's number in the bits that are free: plain sorting is several times as fast.
    return np.asarray(np.sort(word | rows) & np.uint64((1 << bits) - 1), np.intp)


def _ascending(words: Sequence[NDArray[np.uint64]]) -> bool:
    """Whether each row is greater than the one before."""
    less, equal = np.zeros(max(len(words[0]) - 1, 0), bool), np.True_
    for word in words:
        less |= equal & (word[:-1] < word[1:])
        equal = equal & (word[:-1] == word[1:])
    return bool(less.all())


def _sum(values: Ints, starts: Indices) -> Ints:
    if float(max(values.max(), -values.min())) * len(values) > _TOO_MANY:
        _refuse_too_many(np.abs(np.add.reduceat(values.astype(np.float64), starts)))
    return np.add.reduceat(values, starts)


def _refuse_too_many(sums: NDArray[np.float64]) -> None:
    if sums.max() > _TOO_MANY:
        raise BadCounts(
            f"One cell of the counts would reach {sums.max():.3g}, more than a 64-bit whole number "
            "holds safely. Use more buckets, or merge fewer days at a time."
        )
