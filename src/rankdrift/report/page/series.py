"""Every curve that the results hold, as lines of one chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankdrift.core.errors import RankdriftError
from rankdrift.core.types import Segment
from rankdrift.core.words import printable, segment_words
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.table import curve_columns, most_clicked
from rankdrift.report.results import Results

LEVEL = 0.95
COLOURS = 7  # of page.css: c0 is that of the text, for the first
MOST_SEGMENTS = 12
AT_ONCE = 4  # as many lines, with their bands, can be told apart at first sight
BEST_MATCH = "best_match"

Column = list[Any]


@dataclass(frozen=True)
class Series:
    """A line of the chart.

    rank, p, low, high, supported are columns of one length, `truth` is either of that length or
    empty. low and high are None where no interval is known.
    """

    group: str
    name: str
    reference: int
    rank: list[int]
    p: list[float]
    low: Column
    high: Column
    supported: list[bool]
    truth: list[float | None]
    shown: bool = False
    number: int = 0

    @property
    def css_classes(self) -> str:
        """The style of its line: colours first, then dashes."""
        return f"c{self.number % COLOURS} d{self.number // COLOURS % 3}"

    @property
    def full_name(self) -> str:
        """Its name and that of its group."""
        return f"{self.name} ({self.group})" if self.group else self.name

    def at(self, rank: int) -> dict[str, Any] | None:
        """Its numbers at this rank; None if it has none there."""
        if rank not in self.rank:
            return None
        i = self.rank.index(rank)
        return {
            "p": self.p[i],
            "low": self.low[i],
            "high": self.high[i],
            "supported": self.supported[i],
            "truth": self.truth[i] if self.truth else None,
        }

    def to_dict(self) -> dict[str, Any]:
        """What the page's script draws it from: six digits are more than it shows."""
        return {
            "name": printable(self.full_name),
            "rank": self.rank,
            "reference": self.reference,
            "number": self.number,
            "look": self.css_classes,
            "p": _short(self.p),
            "low": _short(self.low),
            "high": _short(self.high),
            "truth": _short(self.truth),
            "thin": [i for i, enough in enumerate(self.supported) if not enough],
        }


def all_series(results: Results, curves: Mapping[str, Propensities], queries: bool) -> list[Series]:
    """Make lines of the pool and the segments of each curve, then of every compared method.

    Parameters
    ----------
    results
        Holds the compared methods, and the truth if there is one.
    curves
        By name.
    queries
        Whether segments may be named.
    """
    found: list[Series] = []
    pools: list[int] = []
    for name, given in curves.items():
        unit = found[0].reference if found else given.reference
        curve = _relative_to(given, unit)
        alone = len(curves) == 1
        group = "" if alone or not curve.segments else name
        pool = "All" if alone or group else name
        if curve.reference != unit:
            pool += f", relative to rank {curve.reference}"
        pools.append(len(found))
        found += _of_curve(group, pool, curve, results, queries)
    own = len(found)
    for comparison in results.methods:
        found += method_series(comparison, results)
    if not own or own <= AT_ONCE:
        shown = set(range(min(own or len(found), AT_ONCE)))
    else:
        shown = set(pools[:AT_ONCE])
    return [replace(s, number=i, shown=i in shown) for i, s in enumerate(found)]


def _relative_to(curve: Propensities, rank: int) -> Propensities:
    """With that unit, if it can be had: not from CSV, nor where a curve lacks the rank."""
    try:
        return curve.relative_to(rank)
    except RankdriftError:
        return curve


def _of_curve(
    group: str, pool: str, curve: Propensities, results: Results, queries: bool
) -> Iterator[Series]:
    segments = most_clicked(curve, MOST_SEGMENTS)
    names = [
        segment_words(segment) if queries else f"segment {number}"
        for number, segment in enumerate(segments, start=1)
    ]
    pool = f"({pool})" if pool in names else pool
    yield _series(group, pool, curve, _truth(results, curve, ()))
    for name, (segment, part) in zip(names, segments.items(), strict=True):
        yield _series(group, name, part, _truth(results, curve, segment))


def _series(group: str, name: str, curve: Propensities, truth: Sequence[float]) -> Series:
    columns = curve_columns(curve, LEVEL)
    known = [high is not None and bool(np.isfinite(high)) for high in columns["high"]]
    low, high = (
        [v if k else None for v, k in zip(columns[n], known, strict=True)] for n in ("low", "high")
    )
    return Series(
        group=group,
        name=name,
        reference=curve.reference,
        rank=columns["rank"],
        p=columns["propensity"],
        low=low,
        high=high,
        supported=columns["supported"],
        truth=_relative(truth, columns["rank"], curve.reference),
    )


def method_series(comparison: Mapping[str, Any], results: Results) -> Iterator[Series]:
    """Make a line of each compared method.

    Parameters
    ----------
    comparison
        As `MethodComparison.to_dict` has it, with `names`.
    results
        Holds the truth, if there is one.
    """
    table = comparison["table"]
    for name in comparison["names"]:
        columns = (table["rank"], table[name], table[f"{name}_low"], table[f"{name}_high"])
        rows = [
            (int(rank), float(p), low, high)
            for rank, p, low, high in zip(*columns, strict=True)
            if p is not None
        ]
        if not rows:
            continue
        rank, p, low, high = (list(column) for column in zip(*rows, strict=True))
        summary = comparison.get("summaries", {}).get(name, {})
        reference = int(summary.get("reference", 1))
        yield Series(
            group="methods compared",
            name=str(name),
            reference=reference,
            rank=rank,
            p=p,
            low=low,
            high=high,
            supported=[True] * len(rank),
            truth=_relative(_only(results), rank, reference),
        )


def _truth(results: Results, curve: Propensities, segment: Segment) -> Sequence[float]:
    """That of the segment; a pool of several has none of its own."""
    named = [value for value in segment if value is not None]
    by_sort = next((results.truth[value] for value in named if value in results.truth), None)
    if by_sort is None:
        return () if segment or curve.segments else _only(results)
    return _of_sort(by_sort, results)


def _only(results: Results) -> Sequence[float]:
    """The truth, if it is that of one segment."""
    return _of_sort(next(iter(results.truth.values())), results) if len(results.truth) == 1 else ()


def _of_sort(by_sort: Mapping[str, Sequence[float]], results: Results) -> Sequence[float]:
    """The sort that the row condition of the counts names, or the usual one."""
    options: Mapping[str, Any] = results.counts.options if results.counts else {}
    for curve in results.curves.values():
        options = options or curve.provenance.get("counts", {}).get("options", {})
    condition = str(options.get("where", ""))
    named = [sort for sort in by_sort if sort and f"'{sort}'" in condition]
    usual = BEST_MATCH if BEST_MATCH in by_sort else next(iter(by_sort))
    return by_sort[named[0] if len(named) == 1 else usual]


def _relative(truth: Sequence[float], ranks: Sequence[int], reference: int) -> list[float | None]:
    """The truth at these ranks, relative to the reference; nothing where it lacks that."""
    if len(truth) < reference:
        return []
    return [truth[r - 1] / truth[reference - 1] if r <= len(truth) else None for r in ranks]


def _short(values: Iterable[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.6g}") for value in values]
