"""What makes counts right: each check names what is wrong, how much of it, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.core.errors import BadCounts
from rankdrift.core.rank_blocks import half_octave_of
from rankdrift.core.types import Bools, Ints, SmallInts
from rankdrift.core.words import many, verb
from rankdrift.counts.funnel import Used
from rankdrift.counts.tables import (
    DRIFTS,
    MOST_CUTS,
    MOST_SHOWN,
    QUERY_BUCKETS,
    SPLITS,
    Overflow,
    RankPairs,
    Splits,
    Table,
    usable,
)

if TYPE_CHECKING:
    from rankdrift.counts.counts import Counts

_DEEPEST = 2**29  # so that 2*rank+click fits an int32
_OWN_FIELDS = ("buckets", "max_rank", "max_shown")


def plain_values(counts: Counts) -> dict[str, Any]:
    """The fields of `counts` that are not arrays, checked and in canonical form."""
    columns = tuple(counts.segment_columns)
    if len({column.casefold() for column in columns}) < len(columns):
        raise BadCounts(f"Segment columns {columns} repeat a name. Give each once.")
    segments = tuple(tuple(segment) for segment in counts.segments)
    for segment in segments:
        if len(segment) != len(columns):
            raise BadCounts(
                f"Segment {segment} has {many(len(segment), 'value')} for {len(columns)} segment "
                f"columns {columns}. Give one value a column."
            )
    buckets = _whole("buckets", counts.buckets, 1, 2**31 - 1)
    if buckets & (buckets - 1):
        raise BadCounts(
            f"buckets is {buckets}, which is not a power of two. Use {1 << buckets.bit_length()}."
        )
    return {
        "segment_columns": columns,
        "segments": segments,
        "buckets": buckets,
        "max_rank": _whole("max_rank", counts.max_rank, 1, _DEEPEST),
        "max_shown": _whole("max_shown", counts.max_shown, 2, 2**31 - 1),
        "days": tuple(sorted(set(map(_day, counts.days)))),
        "sources": tuple(sorted(set(counts.sources))),
        "options": _options(counts.options),
    }


def check_tables(counts: Counts) -> None:
    """Raise BadCounts unless every row can be."""
    for table, kind, faults in (
        (counts.pairs, "listed pairs", _pair_faults(counts)),
        (counts.rank_pairs, "comparisons", _rank_pair_faults(counts)),
        (counts.overflow, "counts of much-shown pairs by rank", _overflow_faults(counts)),
        (counts.by_rank, "counts by rank", _by_rank_faults(counts)),
        (counts.splits, "split comparisons", _split_faults(counts)),
        (counts.singles, "counts of pairs at one rank", _single_faults(counts)),
    ):
        if not isinstance(table, Splits):
            for sums in table.columns()[-table.SUMS :]:
                _refuse(sums < 0, "a negative number", kind, table)
        known = len(counts.segments)
        _refuse(_outside(table.columns()[0], 0, known - 1), "an unknown segment", kind, table)
        for bad, what in faults:
            _refuse(bad, what, kind, table)


def check_used(counts: Counts) -> None:
    """Raise BadCounts unless the funnel's `used` is the listed pairs plus those compared."""
    used, listed, overflow = counts.funnel.used, counts.pairs.total, counts.overflow
    known, compared = counts.overflow_known, len(counts.rank_pairs)
    cells = (overflow.first, overflow.clicks) if known else None
    agree = used_agrees(used, listed, compared, cells, counts.max_shown)
    agree = agree and (not known or _same_ranks(counts))
    if not agree:
        kept = f"{many(int(overflow.first.sum()), 'pair')} with "
        kept += many(int(overflow.clicks.sum()), "click")
        raise BadCounts(
            f"The funnel says {many(used.pairs, 'pair')}, {many(used.rows, 'row')} and "
            f"{many(used.clicks, 'click')} were used, but {many(listed.pairs, 'pair')} with "
            f"{many(listed.rows, 'row')} and {many(listed.clicks, 'click')} are listed, with "
            f"{many(len(counts.rank_pairs), 'comparison')} for pairs shown more than max_shown "
            f"{counts.max_shown} times"
            f"{f', which are {kept}' if len(overflow) else ''}. "
            "Rows were lost or counted twice on the way: count again, and take all the rows."
        )


def used_agrees(
    used: Used,
    listed: Used,
    compared: int,
    overflow: tuple[Ints, Ints] | None,
    max_shown: int,
) -> bool:
    """Whether those used can be those listed and the rest of them, kept as so many `compared` rows
    of rank_pairs and as `overflow`: its columns first and clicks, None if unknown."""
    pairs, rows, clicks = (
        getattr(used, name) - getattr(listed, name) for name in ("pairs", "rows", "clicks")
    )
    if pairs == 0:
        agree = rows == clicks == compared == 0
    else:
        agree = rows >= pairs * (max_shown + 1) and clicks >= pairs > 0 and compared > 0
    if overflow is not None:
        first, clicked = overflow
        agree = agree and (pairs, clicks) == (first.sum(), clicked.sum())
        agree = agree and bool(pairs) == bool(len(first))
    return bool(agree)


def _same_ranks(counts: Counts) -> bool:
    """Whether `rank_pairs` are of the ranks at which `overflow` has pairs, and the other way
    round."""
    overflow, rank_pairs = counts.overflow, counts.rank_pairs
    ranks = (rank_pairs.clicked, rank_pairs.other, overflow.rank)
    deepest = max(int(rank.max(initial=0)) for rank in ranks)
    size = len(counts.segments) * 2 * (deepest + 1)

    def found(table: Overflow | RankPairs, rank: SmallInts) -> Bools:
        there = np.zeros(size, bool)
        there[(table.segment * np.int64(2) + table.single) * (deepest + 1) + rank] = True
        return there

    either = found(rank_pairs, rank_pairs.clicked) | found(rank_pairs, rank_pairs.other)
    return bool(np.array_equal(either, found(overflow, overflow.rank)))


def _pair_faults(counts: Counts) -> Iterator[tuple[Bools, str]]:
    pairs, shown, padding = counts.pairs, counts.pairs.shown, counts.pairs.shown == 0
    yield _outside(pairs.bucket, 0, counts.buckets - 1), _bucket_words(counts)
    yield _outside(pairs.drift, 0, len(DRIFTS) - 1), f"a drift outside 0 to {len(DRIFTS) - 1}"
    unsorted = (shown[:, 1:] < shown[:, :-1]) | padding[:, :-1]
    yield unsorted & ~padding[:, 1:], "appearances, 2*rank+click, not ascending"
    yield _outside(shown, 2, 2 * counts.max_rank + 1) & ~padding, _rank_words(counts)
    long = f"more appearances than max_shown {counts.max_shown}, and should be comparisons"
    yield pairs.appearances > counts.max_shown, long
    yield ~usable(shown), "no click, or one rank only"


def _rank_pair_faults(counts: Counts) -> Iterator[tuple[Bools, str]]:
    clicked, other = counts.rank_pairs.clicked, counts.rank_pairs.other
    yield _outside(counts.rank_pairs.bucket, 0, counts.buckets - 1), _bucket_words(counts)
    yield _outside(clicked, 1, counts.max_rank), _rank_words(counts)
    yield _outside(other, 1, counts.max_rank), _rank_words(counts)
    yield clicked == other, "the same rank twice, which compares nothing"


def _overflow_faults(counts: Counts) -> Iterator[tuple[Bools, str]]:
    table = counts.overflow
    yield _outside(table.rank, 1, counts.max_rank), _rank_words(counts)
    yield table.first > table.pairs, "more pairs that have it as their first rank than were shown"
    yield table.single & (table.clicks > table.pairs), "more clicks than pairs with a single one"


def _by_rank_faults(counts: Counts) -> Iterator[tuple[Bools, str]]:
    by_rank = counts.by_rank
    yield _outside(by_rank.rank, 1, counts.max_rank), _rank_words(counts)
    yield by_rank.clicks > by_rank.impressions, "more clicks than impressions"


# Of each split: one more than the last of its groups.
_GROUPS = {
    "relevance": 33, "outcome": 2, "score": 2048, "user": 2, "neighbours": 2, "queries": 2,
    "ranker": 7, "trust": 33,
}  # fmt: skip


def _split_faults(counts: Counts) -> Iterator[tuple[Bools, str]]:
    table = counts.splits
    yield _outside(table.split, 0, len(SPLITS) - 1), f"a split outside 0 to {len(SPLITS) - 1}"
    groups = np.array([_GROUPS[name] for name in SPLITS])
    yield _outside(table.group, 0, groups[table.split] - 1), "a group that its split does not have"
    queries, ranker = (table.split == SPLITS.index(name) for name in ("queries", "ranker"))
    last = np.where(queries, QUERY_BUCKETS, counts.buckets) - 1
    yield _outside(table.bucket, 0, last), f"{_bucket_words(counts)} (of queries {QUERY_BUCKETS:,})"
    deepest = int(half_octave_of(np.array([counts.max_rank]))[0])
    trust = table.split == SPLITS.index("trust")
    ranks = ranker | trust
    low, high = np.where(ranks, 1, 0), np.where(ranks, counts.max_rank, deepest)
    words = f"a block of ranks outside 0 to {deepest}"
    of_ranks = f"{words}, or of ranker and trust {_rank_words(counts)}"
    yield _outside(table.clicked, low, high), of_ranks
    low, high = np.where(trust, 1, 0), np.where(ranker, 18, high)
    yield _outside(table.other, low, high), f"{of_ranks}, or of ranker above 18"
    yield trust & (table.clicked == table.other), "the same rank twice, which compares nothing"
    yield (table.weight < 0) & ~ranker | (table.value < 0), "a negative weight or value"


def _single_faults(counts: Counts) -> Iterator[tuple[Bools, str]]:
    table = counts.singles
    yield _outside(table.rank, 1, counts.max_rank), _rank_words(counts)
    yield _outside(table.group, 0, MOST_CUTS + 1), f"a group outside 0 to {MOST_CUTS + 1}"
    yield _outside(table.shown, 0, MOST_SHOWN), f"a pair shown more than {MOST_SHOWN} times"
    yield _outside(table.clicked, 0, table.shown), "more clicks than appearances"


def _bucket_words(counts: Counts) -> str:
    return f"a bucket outside 0 to {counts.buckets - 1}"


def _rank_words(counts: Counts) -> str:
    return f"a rank outside 1 to max_rank {counts.max_rank}"


def _refuse(bad: Bools, what: str, kind: str, table: Table) -> None:
    if not bad.any():
        return
    rows: Bools = np.any(bad.reshape(len(table), -1), axis=1)
    row = int(np.argmax(rows))
    example = ", ".join(
        f"{name} {' '.join(map(str, np.atleast_1d(values[row])))}"
        for name, values in vars(table).items()
    )
    raise BadCounts(
        f"{np.count_nonzero(rows):,} of {len(rows):,} {kind} "
        f"{verb(int(rows.sum()), 'has', 'have')} {what}, for example: {example}. "
        "Correct what made the counts, and count again."
    )


def _outside(values: Any, low: Any, high: Any) -> Bools:
    outside: Bools = (values < low) | (values > high)
    return outside


def _whole(name: str, value: object, low: int, high: int) -> int:
    try:
        number = index(value)  # type: ignore[arg-type]  # a TypeError is what is asked for
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        raise BadCounts(f"{name} is {value!r}. Give a whole number from {low:,} to {high:,}.")
    return number


def _day(day: str) -> str:
    try:
        if date.fromisoformat(day).isoformat() == day:
            return day
    except (TypeError, ValueError):
        pass
    raise BadCounts(f"The counts name a day {day!r}. Write days as 2024-12-31.")


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in options.items() if name not in _OWN_FIELDS}
    try:
        plain: dict[str, Any] = json.loads(json.dumps(kept, sort_keys=True, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise BadCounts(f"The options of the counts are not plain values: {error}.") from error
    return plain
