"""Several files of counts read at once, as they lie: a year of days in the time of a few.

This takes the rows to lie as `save` lays them, by kind, segment and, in splits, split, so that how
many there are tells whose a row is; and it looks at none of them. Whether what it gives is what was
saved, the digests of the files tell: whoever calls this compares them, or has a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
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
    NOTE,
    NUMBERS,
    PAIR,
    SEGMENT,
    SPLIT,
    TYPES,
    Kind,
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
_OTHERS = tuple(kind for kind in CELLS if kind is not SPLIT)  # splits are most of a large file


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
class _Runs:
    """Rows that lie together, (N,) each: of which file, kind (a place in CELLS), segment and split,
    and how many."""

    file: Ints
    kind: Ints
    segment: SmallInts
    split: SmallInts
    rows: Ints

    def take(self, some: NDArray[Any]) -> _Runs:
        return _Runs(*(values[some] for values in vars(self).values()))

    def of(self, kind: Kind) -> _Runs:
        return self.take(self.kind == CELLS.index(kind))


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
    columns = [DUCKDB.quote(SEGMENT + column) for column in segment_columns]
    described = con.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()
    expected = {**TYPES, **{SEGMENT + column: "VARCHAR" for column in segment_columns}}
    if {name: kind for name, kind, *_ in described} != expected:
        raise BadCounts("these files do not have the columns of counts.")
    runs, segments, longest = _laid(con, source, columns)
    others = _fetched(con, source, [*NUMBERS, "single"], _OTHERS)
    some = runs.take(runs.kind != CELLS.index(SPLIT))
    kind_of_row = np.repeat(some.kind, some.rows)
    tables, starts = {}, {}
    for kind in CELLS:
        own = runs.of(kind)
        if kind is SPLIT:
            given = _fetched(con, source, NUMBERS, [SPLIT])
            given["shown"] = np.repeat(own.split, own.rows)
        else:
            mine = kind_of_row == CELLS.index(kind)
            given = {name: others[name][mine] for name in kind.columns if name in others}
        if kind is PAIR:
            given["shown"] = _codes(con, source, longest)
        arrays = {array: given[column] for column, array in kind.columns.items()}
        arrays["segment"] = np.repeat(own.segment, own.rows)
        tables[kind.counts] = _TABLES[kind.counts](**arrays)
        ends = np.bincount(own.file, own.rows, len(files)).cumsum().astype(np.int64)
        starts[kind.counts] = np.concatenate([[0], ends])
    return Together(tables, starts, segments, _funnels(con, source, len(files)))


def _laid(
    con: DuckDBPyConnection, source: str, columns: Sequence[str]
) -> tuple[_Runs, tuple[Segment, ...], int]:
    """How rows lie in the files, the segments of all, and the most codes of a listed pair."""
    found = con.sql(f"""
        SELECT file_index, kind, {"".join(f"{column}, " for column in columns)}
            CASE WHEN kind = {_names([SPLIT])} THEN shown END AS split, count(*),
            max(CASE WHEN kind = {_names([PAIR])}
                THEN length(shown) - length(replace(shown, ' ', '')) + 1 END)
        FROM {source} WHERE coalesce(kind NOT IN ({_names([FUNNEL, NOTE])}), TRUE)
        GROUP BY ALL""").fetchall()
    segments = sorted_segments({tuple(row[2:-3]) for row in found}) if columns else ((),)
    place = {segment: i for i, segment in enumerate(segments)}
    kinds = {kind.name: i for i, kind in enumerate(CELLS)}
    splits = {None: 0, **{name: i for i, name in enumerate(SPLITS)}}
    try:
        rows = sorted(
            (file, kinds[kind], place[tuple(segment)], splits[split], many)
            for file, kind, *segment, split, many, _ in found
        )
    except KeyError as odd:
        raise BadCounts(f"there are rows of {odd}.") from None
    laid = np.array(rows, np.int64).reshape(-1, 5).T
    runs = _Runs(laid[0], laid[1], laid[2].astype(np.int32), laid[3].astype(np.int32), laid[4])
    return runs, segments, max((row[-1] or 0 for row in found), default=0)


def _fetched(
    con: DuckDBPyConnection, source: str, columns: Iterable[str], kinds: Sequence[Kind]
) -> dict[str, NDArray[Any]]:
    # Arrays with masks take twice the time; a NULL that should be a number changes the digest.
    blank = {name: "FALSE" if TYPES.get(name) == "BOOLEAN" else "0" for name in columns}
    picks = ", ".join(f"coalesce({name}, {value}) AS {name}" for name, value in blank.items())
    return con.sql(f"SELECT {picks} FROM {source} WHERE kind IN ({_names(kinds)})").fetchnumpy()


def _codes(con: DuckDBPyConnection, source: str, longest: int) -> SmallInts:
    """(P, K): 2*rank+click of each appearance of listed pairs, then zeros."""
    codes = [f"c{i}" for i in range(max(longest, 2))]
    picks = ", ".join(f"codes[{i + 1}] AS {code}" for i, code in enumerate(codes))
    split = "TRY_CAST(string_split(shown, ' ') AS INTEGER[])"
    listed = f"""(SELECT kind, {picks} FROM (SELECT kind, {split} AS codes FROM {source}
        WHERE kind = {_names([PAIR])}))"""
    return np.stack(list(_fetched(con, listed, codes, [PAIR]).values()), axis=1)


def _funnels(con: DuckDBPyConnection, source: str, files: int) -> list[Funnel]:
    found = con.sql(f"""
        SELECT file_index, kind, shown, n, coalesce(clicks, 0), pairs FROM {source}
        WHERE kind IN ({_names([FUNNEL, NOTE])}) ORDER BY 1""").fetchall()
    rows = {file: [tuple(row[1:]) for row in some] for file, some in groupby(found, lambda r: r[0])}
    if any(None in row[:4] for row in found):
        raise BadCounts("a row of a funnel lacks a value.")
    return [funnel_of(rows.get(file, ())) for file in range(files)]


def _names(kinds: Sequence[Kind]) -> str:
    return DUCKDB.literals([kind.name for kind in kinds])
