"""Counts as one tall table: what their files hold, and what warehouses hand over.

One row per cell, told apart by `kind`:

| kind | key columns | n | clicks | pairs |
|---|---|---|---|---|
| pair | segment_*, bucket, drift, shown: '6 15', 2*rank+click ascending | pairs | | |
| comparison | segment_*, bucket, rank (clicked), other, single | weight in 1/UNIT | | |
| held | segment_*, rank, single | pairs with this first rank | clicks here | pairs shown here |
| rank | segment_*, rank | impressions | clicks | |
| single | segment_*, bucket: group, rank, other: shown, drift: clicked | pairs | | |
| split | segment_*, bucket, shown: of SPLITS, drift: group, rank, other | weight | away | value |
| funnel | shown: a reason, 'input' or 'used' | rows | clicks | pairs |
| note | shown: the name of the note | rows | | |

Those of kind split have the block of the clicked rank as `rank`, but for ranker and trust the rank
itself; their numbers are in 1/UNIT. A table with comparisons and no row of kind held is of format
1; before format 3 there are none of kind split, and before format 4 none of the split trust and of
kind single.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.dialects import DUCKDB
from rankdrift.counts.tables import SPLITS, Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from rankdrift.counts.counts import Counts

FORMAT = 4
FORMAT_BEFORE_REQUESTS, FORMAT_BEFORE_SPLITS = 3, 2
"""Counts without what is counted on request (the split trust, pairs at one rank), or without any
split, are written so, for those who cannot read it yet."""
SEGMENT = "segment_"
MARK = "~"
"""Results of the plan have it in front of '' and of what begins with it: in CSV '' is NULL."""
TYPES = {
    "kind": "VARCHAR",
    "bucket": "INTEGER",
    "drift": "INTEGER",
    "shown": "VARCHAR",
    "single": "BOOLEAN",
    "rank": "INTEGER",
    "other": "INTEGER",
    "n": "BIGINT",
    "clicks": "BIGINT",
    "pairs": "BIGINT",
}
"""The columns of the table and their types; a VARCHAR `segment_<name>` each follows `kind`."""
NUMBERS = tuple(name for name, type_ in TYPES.items() if type_ in ("INTEGER", "BIGINT"))
"""The columns that hold whole numbers."""
OF_PLAN = ("day", "meta", "total")
"""Kinds of rows that only the results of plans have."""
FunnelRow = tuple[str, str, int, int, int | None]
"""A row of kind funnel or note: kind, shown, n, clicks, pairs."""


@dataclass(frozen=True)
class Kind:
    """One kind of row: what each of its columns means.

    name: as it stands in the table. counts: the field of Counts that has these rows; "" if they
    are of its funnel. keys, sums: column -> the array of that field; those of keys tell rows
    apart, those of sums add up. optional: columns that may be NULL, which means 0 or unknown.
    """

    name: str
    counts: str
    keys: Mapping[str, str]
    sums: Mapping[str, str]
    optional: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, str]:
        """Column -> array, keys first."""
        return {**self.keys, **self.sums}

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that every row of this kind must have."""
        return tuple(column for column in self.columns if column not in self.optional)


PAIR = Kind(
    "pair",
    "pairs",
    keys={"bucket": "bucket", "drift": "drift", "shown": "shown"},
    sums={"n": "pairs"},
    optional=("drift",),
)
RANK_PAIR = Kind(
    "comparison",
    "rank_pairs",
    keys={"bucket": "bucket", "rank": "clicked", "other": "other", "single": "single"},
    sums={"n": "weight"},
)
OVERFLOW = Kind(
    "held",
    "overflow",
    keys={"rank": "rank", "single": "single"},
    sums={"n": "first", "clicks": "clicks", "pairs": "pairs"},
)
BY_RANK = Kind(
    "rank",
    "by_rank",
    keys={"rank": "rank"},
    sums={"n": "impressions", "clicks": "clicks"},
    optional=("clicks",),
)
SPLIT = Kind(
    "split",
    "splits",
    keys={
        "shown": "split",
        "drift": "group",
        "bucket": "bucket",
        "rank": "clicked",
        "other": "other",
    },
    sums={"n": "weight", "clicks": "away", "pairs": "value"},
    optional=("clicks", "pairs"),
)
SINGLE = Kind(
    "single",
    "singles",
    keys={"bucket": "group", "rank": "rank", "other": "shown", "drift": "clicked"},
    sums={"n": "pairs"},
)
FUNNEL = Kind(
    "funnel",
    "",
    keys={"shown": "name"},
    sums={"n": "rows", "clicks": "clicks", "pairs": "pairs"},
    optional=("clicks", "pairs"),
)
NOTE = Kind("note", "", keys={"shown": "name"}, sums={"n": "rows"})
KINDS = (PAIR, RANK_PAIR, OVERFLOW, BY_RANK, SPLIT, SINGLE, FUNNEL, NOTE)
"""All kinds of rows, in the order in which they are written."""
CELLS = tuple(kind for kind in KINDS if kind.counts)
"""Those that are rows of a table of Counts, each of one segment."""


def format_of(counts: Counts) -> int:
    """The oldest format that holds all of them."""
    if len(counts.singles) or len(counts.splits.of("trust")):
        return FORMAT
    return FORMAT_BEFORE_REQUESTS if len(counts.splits) else FORMAT_BEFORE_SPLITS


def table_sql(con: DuckDBPyConnection, counts: Counts) -> str:
    """A SELECT, on `con`, of the table of `counts`; in canonical order, as UNION ALL keeps it."""
    nulls, values = {}, {}
    for i, column in enumerate(counts.segment_columns):
        names = ", ".join(_literal(segment[i]) for segment in counts.segments)
        nulls[SEGMENT + column] = "NULL"
        values[SEGMENT + column] = f"(CAST([{names}] AS VARCHAR[]))[segment + 1]"
    selects = []
    for kind in CELLS:
        view = f"rankdrift_{kind.counts}"
        columns = {name: DUCKDB.quote(array) for name, array in kind.columns.items()}
        arrays = _arrays(counts.tables[kind.counts])
        if kind is PAIR:
            arrays, columns["shown"] = _one_array_each(arrays)
        if kind is SPLIT:
            columns["shown"] = f"([{DUCKDB.literals(SPLITS)}])[split + 1]"
        con.register(view, arrays)
        selects.append(_select(kind, values, columns, f"FROM {view}"))
    for name, _, rows, clicks, pairs in counts.funnel.lines():
        known = "NULL" if pairs is None else str(pairs)
        line = {"shown": _literal(name), "n": str(rows), "clicks": str(clicks), "pairs": known}
        selects.append(_select(FUNNEL, nulls, line))
    for name, rows in counts.funnel.notes.items():
        if rows:
            selects.append(_select(NOTE, nulls, {"shown": _literal(name), "n": str(rows)}))
    return " UNION ALL ".join(selects)


def _select(
    kind: Kind, segments: Mapping[str, str], values: Mapping[str, str], source: str = ""
) -> str:
    columns = {"kind": _literal(kind.name), **segments, **values}
    order = ["kind", *segments, *list(TYPES)[1:]]
    picks = (
        f"CAST({columns.get(name, 'NULL')} AS {TYPES.get(name, 'VARCHAR')}) AS {DUCKDB.quote(name)}"
        for name in order
    )
    return f"SELECT {', '.join(picks)} {source}"


def _arrays(table: Table) -> dict[str, NDArray[Any]]:
    return dict(vars(table))


def _one_array_each(arrays: dict[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], str]:
    """With a column for each appearance instead of `shown`, and the SQL that joins them again."""
    shown = arrays.pop("shown")
    codes = {f"c{i}": np.ascontiguousarray(code) for i, code in enumerate(shown.T)}
    return arrays | codes, f"concat_ws(' ', {', '.join(f'nullif({code}, 0)' for code in codes)})"


def _literal(value: str | None) -> str:
    return "NULL" if value is None else DUCKDB.literal(value)
