"""Several files of counts read at once, as they lie: a year of days in the time of a few.

This takes the rows to lie as `save` lays them, by kind, segment and, in splits, split, so that how
many there are tells whose a row is; and it looks at none of them. Whether what it gives is what was
saved, the digests of the files tell: whoever calls this compares them, or has a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadCounts
from rankdrift.core.types import Ints, Segment, SmallInts
from rankdrift.counts.counts import sorted_segments
from rankdrift.counts.funnel import Funnel
from rankdrift.counts.reading import funnel_of
from rankdrift.counts.schema import (
    CELLS,
    FUNNEL,
    KINDS,
    NOTE,
    NUMBERS,
    PAIR,
    SEGMENT,
    SPLIT,
    TYPES,
    FunnelRow,
)
from rankdrift.counts.tables import (
    SPLITS,
    ByRank,
    Overflow,
    Pairs,
    RankPairs,
    Singles,
    Splits,
    Table,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TABLES: Mapping[str, type[Any]] = {
    "pairs": Pairs,
    "rank_pairs": RankPairs,
    "overflow": Overflow,
    "by_rank": ByRank,
    "splits": Splits,
    "singles": Singles,
}
_NEXT = " 0 "  # between the codes of two pairs
_NONE = -(2**63)  # a NULL, where 0 is something else


@dataclass(frozen=True)
class Together:
    """What several files say.

    tables: by name, the rows of the first file, then those of the next, with `segment` an index
    into `segments`, those of all. starts: by name, (files + 1,), where the rows of each begin.
    funnels: of each.
    """

    tables: Mapping[str, Any]
    starts: Mapping[str, Ints]
    segments: tuple[Segment, ...]
    funnels: Sequence[Funnel]

    def alone(self, place: int) -> tuple[dict[str, Table], tuple[Segment, ...]]:
        """The tables and the segments of one file as they are when it is read by itself."""
        tables: dict[str, Any] = {
            name: table.take(slice(*self.starts[name][place : place + 2].tolist()))
            for name, table in self.tables.items()
        }
        there = np.zeros(len(self.segments), bool)
        for table in tables.values():
            there[table.segment] = True
        if there.all() or self.segments == ((),):
            return tables, self.segments
        new = np.cumsum(there, dtype=np.int32) - np.int32(1)
        tables = {name: replace(t, segment=new[t.segment]) for name, t in tables.items()}
        return tables, tuple(s for s, known in zip(self.segments, there, strict=True) if known)


@dataclass(frozen=True)
class _Run:
    """Rows that lie together: of which file, kind (a place in KINDS), segment and split; where they
    are among the rows of all files; and what they have in `shown`: of pairs as codes, and of a
    funnel as names."""

    file: int
    kind: int
    segment: Segment
    split: int
    rows: slice
    codes: str | None
    names: Sequence[str] | None

    def __len__(self) -> int:
        return int(self.rows.stop - self.rows.start)


def read_together(
    con: DuckDBPyConnection, files: Sequence[str], segment_columns: Sequence[str]
) -> Together:
    """Read files of counts that have the same columns.

    Parameters
    ----------
    con
        With one thread: with several, rows would come in another order.
    files
        Their names as SQL.
    segment_columns
        Those of all.
    """
    source = f"read_parquet([{', '.join(files)}], hive_partitioning = false)"
    described = con.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()
    expected = {**TYPES, **{SEGMENT + column: "VARCHAR" for column in segment_columns}}
    if {name: kind for name, kind, *_ in described} != expected:
        raise BadCounts("these files do not have the columns of counts.")
    # To open the files costs about as much as to read a column of them: it is done twice.
    runs = _runs(con, source, segment_columns)
    numbers = _numbers(con, source)
    segments = sorted_segments({run.segment for run in runs if KINDS[run.kind] in CELLS} or {()})
    place = {segment: i for i, segment in enumerate(segments)}
    tables, starts = {}, {}
    for kind in CELLS:
        own = [run for run in runs if KINDS[run.kind] is kind]
        rows = np.array([len(run) for run in own], np.int64)
        given = {
            name: np.concatenate([values[:0], *(values[run.rows] for run in own)])
            for name, values in numbers.items()
            if name in kind.columns
        }
        if kind is SPLIT:
            given["shown"] = np.repeat(_whole(run.split for run in own), rows)
        if kind is PAIR:
            given["shown"] = _shown([run.codes or "" for run in own], int(rows.sum()))
        arrays = {array: given[column] for column, array in kind.columns.items()}
        arrays["segment"] = np.repeat(_whole(place[run.segment] for run in own), rows)
        tables[kind.counts] = _TABLES[kind.counts](**arrays)
        ends = np.bincount(_whole(run.file for run in own), rows, len(files)).cumsum()
        starts[kind.counts] = np.concatenate([[0], ends.astype(np.int64)])
    return Together(tables, starts, segments, _funnels(runs, numbers, len(files)))


def _runs(con: DuckDBPyConnection, source: str, segment_columns: Sequence[str]) -> list[_Run]:
    """How rows lie in the files, one after the other."""
    columns = "".join(f"{DUCKDB.quote(SEGMENT + column)}, " for column in segment_columns)
    pair, split = DUCKDB.literal(PAIR.name), DUCKDB.literal(SPLIT.name)
    found = con.sql(f"""
        SELECT file_index, kind, {columns} CASE WHEN kind = {split} THEN shown END, count(*),
            string_agg(shown, '{_NEXT}') FILTER (kind = {pair}),
            list(shown) FILTER (kind IN ({DUCKDB.literals([FUNNEL.name, NOTE.name])}))
        FROM {source} GROUP BY ALL""").fetchall()
    kinds = {kind.name: place for place, kind in enumerate(KINDS)}
    splits: dict[str | None, int] = {name: place for place, name in enumerate(SPLITS)}
    splits[None] = -1
    laid = []
    try:
        for file, kind, *segment, name, rows, codes, names in found:
            order = [(value is not None, value or "") for value in segment]
            key = (file, kinds[kind], order, splits[name])
            laid.append((key, tuple(segment), rows, codes, names))
    except KeyError as odd:
        raise BadCounts(f"there are rows of {odd}.") from None
    runs, end = list[_Run](), 0
    for (file, place, _, which), each, rows, codes, names in sorted(laid, key=lambda one: one[0]):
        runs.append(_Run(file, place, each, which, slice(end, end + rows), codes, names))
        end += rows
    return runs


def _numbers(con: DuckDBPyConnection, source: str) -> dict[str, NDArray[Any]]:
    """Of each column that is not text, the values of all rows."""
    # Arrays with masks take twice the time; a NULL that should be a number changes the digest.
    blank = {name: "0" for name in NUMBERS} | {"single": "FALSE", "pairs": str(_NONE)}
    picks = ", ".join(f"coalesce({name}, {value}) AS {name}" for name, value in blank.items())
    return dict(con.sql(f"SELECT {picks} FROM {source}").fetchnumpy())


def _shown(codes: Sequence[str], pairs: int) -> SmallInts:
    """(P, K): 2*rank+click of each appearance of listed pairs, then zeros; from their texts."""
    try:
        read = np.fromstring(_NEXT.join(codes) + _NEXT, np.int32, sep=" ")
    except (ValueError, DeprecationWarning):
        read = np.zeros(0, np.int32)
    ends = np.flatnonzero(read == 0)
    if len(ends) != max(pairs, 1):
        raise BadCounts("there are pairs with something other than codes.")
    many = np.diff(ends, prepend=-1)[:pairs] - 1
    shown = np.zeros((pairs, max(int(many.max(initial=0)), 2)), np.int32)
    shown[np.arange(shown.shape[1]) < many[:, None]] = read[read != 0]
    return shown


def _funnels(runs: Iterable[_Run], numbers: Mapping[str, NDArray[Any]], files: int) -> list[Funnel]:
    found: list[list[FunnelRow]] = [[] for _ in range(files)]
    for run in runs:
        if KINDS[run.kind] in (FUNNEL, NOTE):
            n, clicks, pairs = (numbers[name][run.rows].tolist() for name in FUNNEL.sums)
            known = (None if each == _NONE else each for each in pairs)
            kinds = [KINDS[run.kind].name] * len(run)
            found[run.file] += zip(kinds, run.names or (), n, clicks, known, strict=True)
    return list(map(funnel_of, found))


def _whole(values: Iterable[int]) -> SmallInts:
    return np.fromiter(values, np.int32)
