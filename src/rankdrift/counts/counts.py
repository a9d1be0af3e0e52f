"""Counts: all that the likelihood, Eq. (3), log-like, needs to know of a log.

Counts add: those of two days are the sum of those of each day, exactly and in any order. A
`Counts` is canonical: equal rows are one row, rows are sorted, empty ones are gone, so equal
counts have equal arrays. One that exists is also right: making it checks it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rankdrift.core.errors import BadCounts
from rankdrift.core.frames import Tabular
from rankdrift.core.moved import warn_renamed
from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.types import Clicks, Ranks, Segment, SmallInts
from rankdrift.core.words import many, named_ranks, segment_words
from rankdrift.counts.checks import check_tables, check_used, plain_values
from rankdrift.counts.choices import Choices, choices_of
from rankdrift.counts.funnel import Funnel
from rankdrift.counts.restricting import at_ranks, listed_only, restrict, restricted_options
from rankdrift.counts.tables import (
    DRIFTS,
    SPLITS,
    UNIT,
    ByRank,
    Overflow,
    Pairs,
    RankPairs,
    Singles,
    Splits,
    fold,
    shorten,
    stack,
)

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

__all__ = [
    "DRIFTS",
    "SPLITS",
    "UNIT",
    "ByRank",
    "Counts",
    "Overflow",
    "Pairs",
    "RankPairs",
    "Segment",
    "Singles",
    "Splits",
    "merge",
]


Segmented = TypeVar("Segmented", Pairs, RankPairs, Overflow, ByRank, Splits, Singles)

_TABLES = ("pairs", "rank_pairs", "overflow", "by_rank", "splits", "singles")
# Queries are split by hash into so many buckets, the independent units of every error.
BUCKETS = 64
# Pairs shown more often than this are not listed but kept as pairs of ranks.
MAX_SHOWN = 8
_NAMED = 10  # segments in a table for notebooks
_BATCH = 8_000_000  # rows waiting to be merged before they are
EXTRA_OPTIONS = ("score", "ranker", "user", "outcome", "outcome_at_least", "randomised", "trust")
"""Options of a harvest that only `Counts.splits` depends on."""


@dataclass(frozen=True, eq=False)
class Counts(Tabular):
    """All that an estimate needs of a log, small enough to keep: pairs by the ranks they moved
    between and the clicks they got there.

    Made by `harvest`, or read with `Counts.load`. Counts of several days add with `+` or `merge`,
    exactly; `estimate` makes propensities of them.

    pairs, rank_pairs, overflow, by_rank, splits, singles: the tables. segments: the values of
    segment_columns, one tuple each, sorted, None first; ((),) without any. buckets: a power of two.
    max_shown: pairs shown more often are not listed in `pairs` but kept as `rank_pairs`, and
    counted by rank in `overflow`. days: ISO. sources: fingerprints of the inputs. options: those of
    the harvest, as plain JSON values. version: of the rankdrift that counted. The funnel is that of
    the log, and stays so when the counts are restricted.
    """

    pairs: Pairs
    rank_pairs: RankPairs
    by_rank: ByRank
    funnel: Funnel
    buckets: int
    max_rank: int
    max_shown: int
    segment_columns: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = ((),)
    days: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    overflow: Overflow = field(default_factory=Overflow.empty)
    splits: Splits = field(default_factory=Splits.empty)
    singles: Singles = field(default_factory=Singles.empty)

    def __post_init__(self) -> None:
        for name, value in plain_values(self).items():
            object.__setattr__(self, name, value)
        check_tables(self)
        segments, place = _sorted_segments(self)
        object.__setattr__(self, "segments", segments)
        moved = not np.array_equal(place, np.arange(len(place)))
        for name, table in self.tables.items():
            if moved:
                table = replace(table, segment=place[table.segment])
            object.__setattr__(self, name, table.collapse())
        self.funnel.check()
        if self.whole:
            check_used(self)

    @classmethod
    def known(cls, **given: Any) -> Counts:
        """Of all fields, the tables among them known to be right and canonical: those of counts
        that were saved, if their digest says so."""
        made = object.__new__(cls)
        for name in (each.name for each in fields(cls)):
            object.__setattr__(made, name, given[name])
        for name, value in plain_values(made).items():
            object.__setattr__(made, name, value)
        return made

    @property
    def whole(self) -> bool:
        """Whether this is all that the log gave: `restrict` has taken nothing away."""
        return "restrict" not in self.options

    @property
    def tables(self) -> dict[str, Any]:
        """The tables by name."""
        return {name: getattr(self, name) for name in _TABLES}

    @property
    def overflow_known(self) -> bool:
        """Whether `overflow` has the pairs kept as rank_pairs: files of format 1 do not."""
        return len(self.overflow) > 0 or len(self.rank_pairs) == 0

    @property
    def n_overflow(self) -> int | None:
        """Pairs kept as `rank_pairs`; of counts restricted to fewer ranks, those whose first rank
        is left; None if that is not known."""
        if self.whole:
            return self.funnel.used.pairs - self.pairs.total.pairs
        return int(self.overflow.first.sum()) if self.overflow_known else None

    @property
    def comparisons(self) -> RankPairs:
        """Old name of `rank_pairs`."""
        warn_renamed("comparisons", "rank_pairs")
        return self.rank_pairs

    @property
    def held(self) -> Overflow:
        """Old name of `overflow`."""
        warn_renamed("held", "overflow")
        return self.overflow

    @property
    def n_pairs(self) -> int:
        """Pairs counted: those listed, and those kept as `rank_pairs` as far as known."""
        if self.whole:
            return self.funnel.used.pairs
        return self.pairs.total.pairs + (self.n_overflow or 0)

    @property
    def n_clicks(self) -> int:
        """Clicks of the pairs counted."""
        if self.whole:
            return self.funnel.used.clicks
        return self.pairs.total.clicks + int(self.overflow.clicks.sum())

    @property
    def ranks(self) -> SmallInts:
        """The ranks at which usable pairs were shown, ascending."""
        listed = np.unique(self.pairs.shown) >> 1
        found = [listed[listed > 0], self.rank_pairs.clicked, self.rank_pairs.other]
        return np.unique(np.concatenate(found))

    def equals(self, other: Counts) -> bool:
        """Whether all but the version and the sources is the same."""
        names = {f.name for f in fields(self)} - {"version", "sources", *_TABLES}
        return all(getattr(self, name) == getattr(other, name) for name in names) and all(
            table.equals(other.tables[name]) for name, table in self.tables.items()
        )

    def __add__(self, other: Counts) -> Counts:
        return merge([self, other])

    def pool(self) -> Counts:
        """The same counts with the segments summed away."""
        return replace(self, segment_columns=(), segments=((),) * len(self.segments))

    def without_splits(self) -> Counts:
        """The same counts without what only checks look at, which is most of the rows."""
        slim = copy(self)  # what is right stays so
        object.__setattr__(slim, "splits", Splits.empty())
        return slim

    def restrict(
        self,
        *,
        strict: bool = False,
        max_rank: int | None = None,
        shown_below: int | None = None,
        segments: Iterable[Segment | str | None] | None = None,
        max_shown: int | None = None,
        buckets: int | None = None,
    ) -> Counts:
        """Fewer or coarser counts: what a harvest with these options would have listed.

        The funnel stays that of the log. Of pairs kept as `rank_pairs`, `max_rank` drops the cells
        of deeper ranks, even if that leaves one rank of a pair, and `strict` and `shown_below` drop
        all, the latter with a remark that says how many.

        Parameters
        ----------
        strict
            The paper's case, pairs with exactly two appearances at two ranks and one click.
        max_rank
            Appearances deeper than this are dropped, then pairs left with no click or one
            rank.
        shown_below
            Only pairs shown at least once deeper than this rank: what the paper advises for
            `clicks="single"` where the top ranks are clicked often (Appendix B).
        segments
            Only these, each a tuple of values, or the value if there is one segment column.
        max_shown, buckets
            As of a coarser harvest.

        Returns
        -------
        Counts
            Its options say under `restrict` what was done.
        """
        return restrict(
            self,
            strict=strict,
            max_rank=max_rank,
            shown_below=shown_below,
            segments=segments,
            max_shown=max_shown,
            buckets=buckets,
        )

    def only(self, ranks: Ranks) -> Counts:
        """Appearances at these ranks only; pairs left with no click or one rank are dropped."""
        tables = at_ranks(self.tables, ranks, self.max_rank)
        return replace(self, **tables, options=restricted_options(self, ranks=ranks.tolist()))

    def drifting(self, drifts: Sequence[int]) -> Counts:
        """Pairs that moved in one of these ways only (indices into DRIFTS)."""
        tables = listed_only(self.pairs.take(np.isin(self.pairs.drift, drifts)))
        return replace(self, **tables, options=restricted_options(self, drift=list(drifts)))

    def regroup(self, columns: Sequence[str]) -> Counts:
        """Split by these of the segment columns only; the others are summed away."""
        places = [self.segment_columns.index(column) for column in columns]
        kept = tuple(tuple(segment[i] for i in places) for segment in self.segments)
        return replace(self, segment_columns=tuple(columns), segments=kept)

    def choices(self, clicks: Clicks = "every") -> Choices:
        """The terms of the likelihood: every click, or only those of pairs with just one.

        A pair clicked several times gives one term per clicked rank, with the number of its
        clicks there as weight.
        """
        return choices_of(self, clicks)

    def table(self) -> dict[str, list[Any]]:
        """How often each rank was shown and clicked, in each segment: columns of plain values."""
        by_rank = self.by_rank
        named = {
            column: [self.segments[i][place] for i in by_rank.segment.tolist()]
            for place, column in enumerate(self.segment_columns)
        }
        numbers = ("rank", "impressions", "clicks")
        return {**named, **{name: getattr(by_rank, name).tolist() for name in numbers}}

    @property
    def window(self) -> int | None:
        """Of how many days each of `days` is the first; None if each is one day."""
        window = self.options.get("window")
        return int(str(window).removesuffix("d")) if window else None

    def many_days(self) -> str:
        """How many days or windows they are of, in words."""
        if self.window is None:
            return many(len(self.days), "day")
        return f"{many(len(self.days), 'window')} of {self.window} days"

    def summary(self) -> dict[str, Any]:
        """The size of the counts, as plain values for JSON."""
        return {
            "pairs": self.n_pairs,
            "clicks": self.n_clicks,
            "pairs_listed": self.pairs.total.pairs,
            "pairs_compared": self.n_overflow,
            "pairs_at_one_rank": int(self.singles.pairs.sum()),
            "comparison_weight": float((self.rank_pairs.weight / UNIT).sum()),
            "rows": sum(map(len, self.tables.values())),
            "ranks": len(self.ranks),
            "deepest_rank": int(self.ranks.max(initial=0)),
            "segments": len(self.segments),
            "buckets": self.buckets,
            "max_rank": self.max_rank,
            "max_shown": self.max_shown,
            "days": len(self.days),
            "window": self.window,
            "first_day": self.days[0] if self.days else None,
            "last_day": self.days[-1] if self.days else None,
            "sources": len(self.sources),
            "log_rows": self.funnel.rows,
            "log_clicks": self.funnel.clicks,
        }

    def __repr__(self) -> str:
        days = " to ".join(dict.fromkeys((*self.days[:1], *self.days[-1:])))
        by = f"{many(len(self.segments), 'segment')} by {', '.join(self.segment_columns)}"
        return brief(
            self,
            f"{many(self.n_pairs, 'pair')} with {many(self.n_clicks, 'click')}",
            named_ranks(self.ranks.tolist(), most=3) if self.n_pairs else "",
            by if self.segment_columns else "",
            f"{self.many_days()} from {days}" if self.window else days,
        )

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), value) for name, value in self.summary().items()]
        named, more = self.segments[:_NAMED], len(self.segments) - _NAMED
        words = "; ".join(map(segment_words, named)) + (f" and {more} more" if more > 0 else "")
        note = f"Segments: {words}" if self.segment_columns else ""
        return html_table(["", "how many"], rows, note)

    def plot(self, **options: Any) -> Figure:
        """How often each rank is clicked; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.rates import rates_chart
        from rankdrift.charts.style import Figure

        return Figure(rates_chart(self, **options))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one Parquet file, whole or not at all; equal counts give equal bytes."""
        from rankdrift.counts.file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Counts:
        """Read what `save` wrote."""
        from rankdrift.counts.file import load

        return load(path)


@names_checked
def merge(
    parts: str | os.PathLike[str] | Iterable[Counts | str | os.PathLike[str]],
) -> Counts:
    """Add counts up: a month is the sum of its days, the same in whatever order they come.

    `a + b` is `merge([a, b])`. Parts are counts, or where they are: a file, a folder or a glob;
    they are read and added up as they come, many small files nearly as fast as a few. Finer buckets
    fold into coarser ones, and pairs shown more often than the smallest max_shown become pairs of
    ranks. Parts that count different things, or the same input
    twice, raise BadCounts. What one part does not know of the pairs it keeps so, the sum does not.

    Examples
    --------
    >>> month = merge("counts/2024-01-*.parquet")  # doctest: +SKIP
    """
    from rankdrift.counts.file import each_counts

    waiting: list[Counts] = []
    rows = limit = 0
    for part in each_counts(parts):
        waiting.append(part)
        rows += len(part.pairs) + len(part.rank_pairs)
        if rows > max(limit, _BATCH):
            waiting = [_join(waiting)]
            rows = len(waiting[0].pairs) + len(waiting[0].rank_pairs)
            limit = 2 * rows
    if not waiting:
        raise BadCounts("There are no counts to merge. Give at least one.")
    return waiting[0] if len(waiting) == 1 else _join(waiting)


def _join(parts: Sequence[Counts]) -> Counts:
    first = parts[0]
    for part in parts[1:]:
        _refuse_difference("segment columns", first.segment_columns, part.segment_columns)
        _refuse_difference("max_rank", first.max_rank, part.max_rank)
        _refuse_difference("option", _needed(first.options), _needed(part.options))
    sources = sorted(source for part in parts for source in part.sources)
    twice = sorted({a for a, b in pairwise(sources) if a == b})
    if twice:
        raise BadCounts(
            f"{len(twice):,} of the inputs would be counted twice, for example {twice[0]}. "
            "Merge each file once, and no file with one that already includes it."
        )
    buckets = min(part.buckets for part in parts)
    max_shown = min(part.max_shown for part in parts)
    known = all(part.overflow_known for part in parts)
    segments = sorted_segments({segment for part in parts for segment in part.segments})
    listed: list[Pairs] = []
    rank_pairs: list[RankPairs] = []
    overflow: list[Overflow] = []
    by_rank: list[ByRank] = []
    splits: list[Splits] = []
    singles: list[Singles] = []
    for part in parts:
        place = np.array([segments.index(segment) for segment in part.segments], np.int32)
        short, more, by_ranks = shorten(part.pairs, max_shown)
        listed.append(_moved(short, place))
        rank_pairs += [_moved(table, place) for table in (part.rank_pairs, more)]
        overflow += [_moved(table, place) for table in (part.overflow, by_ranks)]
        by_rank.append(_moved(part.by_rank, place))
        splits.append(_moved(part.splits, place))
        singles.append(_moved(part.singles, place))
    return replace(
        first,
        pairs=fold(stack(listed), buckets),
        rank_pairs=fold(stack(rank_pairs), buckets),
        overflow=stack(overflow) if known else Overflow.empty(),
        by_rank=stack(by_rank),
        splits=fold(stack(splits), buckets),
        singles=stack(singles),
        funnel=reduce(add, (part.funnel for part in parts)),
        buckets=buckets,
        max_shown=max_shown,
        segments=segments,
        days=tuple(day for part in parts for day in part.days),
        options={**first.options, **_extras(parts)},
        sources=tuple(sources),
        version=max((part.version for part in parts), key=version_order),
    )


def _needed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that say what was counted, but for columns that only `splits` is made from."""
    return {name: value for name, value in options.items() if name not in EXTRA_OPTIONS}


def _extras(parts: Sequence[Counts]) -> dict[str, Any]:
    """The columns that `splits` is made from. A log may have got one only lately, or have one that
    an older rankdrift did not know of; but it cannot be two."""
    found: dict[str, Any] = {}
    for part in parts:
        given = {name: part.options[name] for name in EXTRA_OPTIONS if name in part.options}
        for name in found.keys() & given.keys():
            _refuse_difference(f"option {name!r}", found[name], given[name])
        found |= given
    return found


def _moved(table: Segmented, place: SmallInts) -> Segmented:
    """With the new place of each segment."""
    if not len(table) or np.array_equal(place, np.arange(len(place))):
        return table
    return replace(table, segment=place[table.segment])


def version_order(version: str) -> tuple[list[int], str]:
    """By which the latest version comes last."""
    return [int(number) for number in re.findall(r"\d+", version)], version


def _refuse_difference(name: str, a: Any, b: Any) -> None:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted(a.keys() | b.keys()):
            _refuse_difference(f"{name} {key!r}", a.get(key, "not set"), b.get(key, "not set"))
    elif a != b:
        raise BadCounts(
            f"These counts cannot be merged: {name} is {a!r} in one and {b!r} in another. "
            "Harvest them again with the same options."
        )


def _sorted_segments(counts: Counts) -> tuple[tuple[Segment, ...], SmallInts]:
    """The segments that occur, sorted, and the new place of each old one."""
    many = len(counts.segments)
    shown = [np.bincount(table.segment, minlength=many) for table in counts.tables.values()]
    used = np.flatnonzero(np.sum(shown, axis=0))
    names = {counts.segments[i] for i in used} if counts.segment_columns else {()}
    ordered = sorted_segments(names)
    place = {segment: i for i, segment in enumerate(ordered)}
    new = [place.get(segment, -1) for segment in counts.segments]
    return ordered, np.array(new, np.int32)


def sorted_segments(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """In the order that counts have them in: a missing value comes first."""
    return tuple(sorted(segments, key=lambda segment: [(v is not None, v or "") for v in segment]))
