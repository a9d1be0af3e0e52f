"""Counts: all that the likelihood, Eq. (3), log-like, needs to know of a log.

Counts add: those of two days are the sum of those of each day, exactly and in any order. A
`Counts` is canonical: equal rows are one row, rows are sorted, empty ones are gone, so equal
counts have equal arrays. One that exists is also right: making it checks it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankdrift.counts_arrays import (
    DRIFTS,
    UNIT,
    ByRank,
    Comparisons,
    Ints,
    Pairs,
    SmallInts,
    cut,
    fold,
    runs,
    shorten,
    stack,
    widen,
)
from rankdrift.counts_checks import check_tables, check_used, plain_values
from rankdrift.errors import BadCounts, BadOption, did_you_mean
from rankdrift.funnel import Funnel

if TYPE_CHECKING:
    from rankdrift.report.charts import Figure

__all__ = [
    "DRIFTS",
    "UNIT",
    "ByRank",
    "Choices",
    "Comparisons",
    "Counts",
    "Pairs",
    "Segment",
    "merge",
]

Segment = tuple[str | None, ...]

Segmented = TypeVar("Segmented", Pairs, Comparisons, ByRank)

_TABLES = ("pairs", "comparisons", "by_rank")
_BATCH = 8_000_000  # rows waiting to be merged before they are


@dataclass(frozen=True, eq=False)
class Choices:
    """The terms of Eq. (3), log-like: T weighted choices of one rank among those shown.

    shown (T, K) int32, ranks ascending, then zeros; clicked (T,) int32, the rank chosen;
    weight (T,) float64; bucket, segment (T,) int32;
    pair (T,) int64, the row of Counts.pairs it comes from, -1 for a comparison.
    """

    shown: SmallInts
    clicked: SmallInts
    weight: NDArray[np.float64]
    bucket: SmallInts
    segment: SmallInts
    pair: Ints


@dataclass(frozen=True, eq=False)
class Counts:
    """What a log says about propensities, by segment and query bucket.

    segments: the values of segment_columns, one tuple each, sorted, None first; ((),) if there
    are no segment columns. buckets: a power of two. max_shown: pairs shown more often are held
    as comparisons. days: ISO. sources: fingerprints of the inputs. options: the resolved options
    of the harvest, as plain JSON values. version: of the rankdrift that counted. The funnel is
    that of the log, and stays so when the counts are restricted.
    """

    pairs: Pairs
    comparisons: Comparisons
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

    def __post_init__(self) -> None:
        for name, value in plain_values(self).items():
            object.__setattr__(self, name, value)
        check_tables(self)
        segments, place = _sorted_segments(self)
        object.__setattr__(self, "segments", segments)
        for name in _TABLES:
            table = getattr(self, name)
            table = replace(table, segment=place[table.segment]).collapse()
            object.__setattr__(self, name, table)
        self.funnel.check()
        if self.whole:
            check_used(self)

    @property
    def whole(self) -> bool:
        """Whether this is all that the log gave: `restrict` has taken nothing away."""
        return "restrict" not in self.options

    @property
    def n_pairs(self) -> int:
        """Pairs counted; of restricted counts those listed, without the comparisons."""
        return self.funnel.used.pairs if self.whole else self.pairs.total.pairs

    @property
    def n_clicks(self) -> int:
        """Clicks counted; of restricted counts those listed, without the comparisons."""
        return self.funnel.used.clicks if self.whole else self.pairs.total.clicks

    @property
    def ranks(self) -> SmallInts:
        """The ranks at which usable pairs were shown, ascending."""
        listed = np.unique(self.pairs.shown) >> 1
        found = [listed[listed > 0], self.comparisons.clicked, self.comparisons.other]
        return np.unique(np.concatenate(found))

    def equals(self, other: Counts) -> bool:
        """Whether all but the version and the sources is the same."""
        names = {f.name for f in fields(self)} - {"version", "sources", *_TABLES}
        return all(getattr(self, name) == getattr(other, name) for name in names) and all(
            getattr(self, name).equals(getattr(other, name)) for name in _TABLES
        )

    def __add__(self, other: Counts) -> Counts:
        return merge([self, other])

    def pool(self) -> Counts:
        """The same counts with the segments summed away."""
        return replace(self, segment_columns=(), segments=((),) * len(self.segments))

    def restrict(
        self,
        *,
        strict: bool = False,
        max_rank: int | None = None,
        segments: Iterable[Segment | str | None] | None = None,
        max_shown: int | None = None,
        buckets: int | None = None,
    ) -> Counts:
        """Fewer or coarser counts: what a harvest with these options would have listed.

        strict: the paper's case, pairs with exactly two appearances at two ranks and one click.
        max_rank: appearances deeper than this are dropped, then pairs left with no click or one
        rank. segments: only these, each a tuple of values, or the value if there is one segment
        column. max_shown, buckets: as of a coarser harvest.

        The funnel stays that of the log. Of pairs held as comparisons, `max_rank` drops the cells
        of deeper ranks and `strict` drops all.
        """
        max_rank = _at_most("max_rank", max_rank, self.max_rank, 1)
        max_shown = _at_most("max_shown", max_shown, self.max_shown, 2)
        buckets = _at_most("buckets", buckets, self.buckets, 1)
        if buckets & (buckets - 1):
            raise BadOption(f"buckets is {buckets}. Use a power of two.")
        pairs, comparisons, by_rank = self.pairs, self.comparisons, self.by_rank
        done: dict[str, Any] = {}
        if segments is not None:
            wanted = _find_segments(self, segments)
            pairs = pairs.take(np.isin(pairs.segment, wanted))
            comparisons = comparisons.take(np.isin(comparisons.segment, wanted))
            by_rank = by_rank.take(np.isin(by_rank.segment, wanted))
            done["segments"] = [self.segments[i] for i in wanted]
        if max_rank < self.max_rank:
            pairs = cut(pairs, np.arange(1, max_rank + 1))
            deepest = np.maximum(comparisons.clicked, comparisons.other)
            comparisons = comparisons.take(deepest <= max_rank)
            by_rank = by_rank.take(by_rank.rank <= max_rank)
            done["max_rank"] = max_rank
        if strict:
            pairs = pairs.take((pairs.appearances == 2) & (pairs.clicks == 1))
            comparisons = Comparisons.empty()
            done["strict"] = True
        pairs, compared = shorten(pairs, max_shown)
        done = {**self.options.get("restrict", {}), **done}
        return replace(
            self,
            pairs=fold(pairs, buckets),
            comparisons=fold(stack([comparisons, compared]), buckets),
            by_rank=by_rank,
            buckets=buckets,
            max_rank=max_rank,
            max_shown=max_shown,
            options={**self.options, "restrict": done} if done else self.options,
        )

    def only(self, ranks: NDArray[np.int32]) -> Counts:
        """Appearances at these ranks only; pairs left with no click or one rank are dropped."""
        compared = self.comparisons
        inside = np.isin(compared.clicked, ranks) & np.isin(compared.other, ranks)
        return self._part(
            pairs=cut(self.pairs, ranks),
            comparisons=compared.take(inside),
            by_rank=self.by_rank.take(np.isin(self.by_rank.rank, ranks)),
            ranks=ranks.tolist(),
        )

    def drifting(self, drifts: Sequence[int]) -> Counts:
        """Pairs that moved in one of these ways only (indices into DRIFTS)."""
        return self._part(
            pairs=self.pairs.take(np.isin(self.pairs.drift, drifts)),
            comparisons=Comparisons.empty(),
            drift=list(drifts),
        )

    def regroup(self, columns: Sequence[str]) -> Counts:
        """Split by these of the segment columns only; the others are summed away."""
        places = [self.segment_columns.index(column) for column in columns]
        kept = tuple(tuple(segment[i] for i in places) for segment in self.segments)
        return replace(self, segment_columns=tuple(columns), segments=kept)

    def _part(self, pairs: Pairs, comparisons: Comparisons, **what: Any) -> Counts:
        by_rank = what.pop("by_rank", self.by_rank)
        told = {**self.options.get("restrict", {}), **what}
        return replace(
            self, pairs=pairs, comparisons=comparisons, by_rank=by_rank,
            options={**self.options, "restrict": told},
        )  # fmt: skip

    def choices(self, clicks: Literal["every", "single"] = "every") -> Choices:
        """The terms of the likelihood: every click, or only those of pairs with just one.

        A pair clicked several times gives one term per clicked rank, with the number of its
        clicks there as weight.
        """
        if clicks not in ("every", "single"):
            raise BadOption(f"clicks is {clicks!r}. Use 'every' or 'single'.")
        pairs, comparisons = self.pairs, self.comparisons
        clicked = pairs.shown & 1
        if clicks == "single":
            clicked = clicked * (pairs.clicks == 1)[:, None]
            comparisons = comparisons.take(comparisons.single)
        pair, column = np.nonzero(clicked)
        starts = runs(pair, pairs.shown[pair, column])
        times = np.diff(starts, append=len(pair))
        pair, column = pair[starts], column[starts]
        two = np.sort(np.stack([comparisons.clicked, comparisons.other], axis=1), axis=1)
        weights = [(times * pairs.pairs[pair]).astype(np.float64), comparisons.weight / UNIT]
        return Choices(
            shown=np.concatenate([pairs.shown[pair] >> 1, widen(two, pairs.shown.shape[1])]),
            clicked=np.concatenate([pairs.shown[pair, column] >> 1, comparisons.clicked]),
            weight=np.concatenate(weights),
            bucket=np.concatenate([pairs.bucket[pair], comparisons.bucket]),
            segment=np.concatenate([pairs.segment[pair], comparisons.segment]),
            pair=np.concatenate([pair, np.full(len(comparisons), -1)]),
        )

    def summary(self) -> dict[str, Any]:
        """The size of the counts, as plain values for JSON."""
        listed = self.pairs.total.pairs
        return {
            "pairs": self.n_pairs,
            "clicks": self.n_clicks,
            "pairs_listed": listed,
            "pairs_compared": self.n_pairs - listed if self.whole else None,
            "comparison_weight": float((self.comparisons.weight / UNIT).sum()),
            "rows": sum(len(getattr(self, name)) for name in _TABLES),
            "ranks": len(self.ranks),
            "deepest_rank": int(self.ranks.max(initial=0)),
            "segments": len(self.segments),
            "buckets": self.buckets,
            "max_rank": self.max_rank,
            "max_shown": self.max_shown,
            "days": len(self.days),
            "first_day": self.days[0] if self.days else None,
            "last_day": self.days[-1] if self.days else None,
            "sources": len(self.sources),
            "log_rows": self.funnel.rows,
            "log_clicks": self.funnel.clicks,
        }

    def plot(self, **options: Any) -> Figure:
        """How often each rank is clicked; its `save` writes .png, .svg or .html."""
        from rankdrift.report.charts import Figure
        from rankdrift.report.counts_chart import rates_chart

        return Figure(rates_chart(self, **options))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one Parquet file, whole or not at all; equal counts give equal bytes."""
        from rankdrift.counts_table import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Counts:
        """Read what `save` wrote."""
        from rankdrift.counts_table import load

        return load(path)


def merge(parts: Iterable[Counts]) -> Counts:
    """The counts of all parts together, the same in whatever order they come.

    Finer buckets fold into coarser ones, and pairs shown more often than the smallest max_shown
    become comparisons. Parts that count different things, or the same input twice, are refused.
    """
    waiting: list[Counts] = []
    rows = limit = 0
    for part in parts:
        waiting.append(part)
        rows += len(part.pairs) + len(part.comparisons)
        if rows > max(limit, _BATCH):
            waiting = [_join(waiting)]
            rows = len(waiting[0].pairs) + len(waiting[0].comparisons)
            limit = 2 * rows
    if not waiting:
        raise BadCounts("There are no counts to merge. Give at least one.")
    return waiting[0] if len(waiting) == 1 else _join(waiting)


def _join(parts: Sequence[Counts]) -> Counts:
    first = parts[0]
    for part in parts[1:]:
        _refuse_difference("segment columns", first.segment_columns, part.segment_columns)
        _refuse_difference("max_rank", first.max_rank, part.max_rank)
        _refuse_difference("option", first.options, part.options)
    sources = sorted(source for part in parts for source in part.sources)
    twice = sorted({a for a, b in pairwise(sources) if a == b})
    if twice:
        raise BadCounts(
            f"{len(twice):,} of the inputs would be counted twice, for example {twice[0]}. "
            "Merge each file once, and no file with one that already includes it."
        )
    buckets = min(part.buckets for part in parts)
    max_shown = min(part.max_shown for part in parts)
    segments: list[Segment] = []
    listed: list[Pairs] = []
    compared: list[Comparisons] = []
    by_rank: list[ByRank] = []
    for part in parts:
        short, more = shorten(part.pairs, max_shown)
        listed.append(_shift(short, len(segments)))
        compared += [_shift(table, len(segments)) for table in (part.comparisons, more)]
        by_rank.append(_shift(part.by_rank, len(segments)))
        segments += part.segments
    return replace(
        first,
        pairs=fold(stack(listed), buckets),
        comparisons=fold(stack(compared), buckets),
        by_rank=stack(by_rank),
        funnel=reduce(add, (part.funnel for part in parts)),
        buckets=buckets,
        max_shown=max_shown,
        segments=tuple(segments),
        days=tuple(day for part in parts for day in part.days),
        sources=tuple(sources),
        version=max((part.version for part in parts), key=_version_order),
    )


def _shift(table: Segmented, by: int) -> Segmented:
    return replace(table, segment=table.segment + by)


def _version_order(version: str) -> tuple[list[int], str]:
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


def _at_most(name: str, asked: int | None, have: int, least: int) -> int:
    if asked is None:
        return have
    if not least <= asked <= have:
        raise BadOption(
            f"{name} is {asked:,}, but these counts were made with {name} {have:,}. "
            f"Use {least:,} to {have:,}, or harvest again with --{name.replace('_', '-')} {asked}."
        )
    return asked


def _find_segments(counts: Counts, wanted: Iterable[Segment | str | None]) -> list[int]:
    place = {segment: i for i, segment in enumerate(counts.segments)}
    found = set()
    for value in wanted:
        segment = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        if segment not in place:
            names = [_segment_words(known) for known in counts.segments]
            words = _segment_words(segment)
            raise BadOption(
                f"There is no segment {words}.{did_you_mean(words, names)} "
                f"The segments by {', '.join(counts.segment_columns) or 'nothing'} are: "
                f"{'; '.join(names[:20])}{'; ...' if len(names) > 20 else ''}."
            )
        found.add(place[segment])
    return sorted(found)


def _segment_words(segment: Segment) -> str:
    return ", ".join("(missing)" if value is None else value for value in segment) or "(all)"


def _sorted_segments(counts: Counts) -> tuple[tuple[Segment, ...], SmallInts]:
    """The segments that occur, sorted, and the new place of each old one."""
    used = np.unique(np.concatenate([getattr(counts, name).segment for name in _TABLES]))
    names = {counts.segments[i] for i in used} if counts.segment_columns else {()}
    ordered = sorted(names, key=lambda segment: [(v is not None, v or "") for v in segment])
    place = {segment: i for i, segment in enumerate(ordered)}
    moves = [place.get(segment, -1) for segment in counts.segments]
    return tuple(ordered), np.array(moves, np.int32)
