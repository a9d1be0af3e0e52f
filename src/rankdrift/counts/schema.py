"""Counts as one tall table: what their files hold, and what warehouses hand over.

One row per cell, told apart by `kind`:

| kind | key columns | n | clicks | pairs |
|---|---|---|---|---|
| pair | segment_*, bucket, drift, shown: '6 15', 2*rank+click ascending | pairs | | |
| comparison | segment_*, bucket, rank (clicked), other, single | weight in 1/UNIT | | |
| held | segment_*, rank, single | pairs with this first rank | clicks here | pairs shown here |
| rank | segment_*, rank | impressions | clicks | |
| funnel | shown: a reason, 'input' or 'used' | rows | clicks | pairs |
| note | shown: the name of the note | rows | | |

A table with comparisons and no row of kind held is of format 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.counts.counts import Counts
from rankdrift.counts.tables import Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FORMAT = 2
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
OF_PLAN = ("day", "meta", "total")
"""Kinds of rows that only the results of plans have."""
Told = tuple[str, str, int, int, int | None]
"""kind, shown, n, clicks, pairs"""


def table_sql(con: DuckDBPyConnection, counts: Counts) -> str:
    """A SELECT, on `con`, of the table of `counts`; in canonical order, as UNION ALL keeps it."""
    codes = {f"c{i}": np.ascontiguousarray(code) for i, code in enumerate(counts.pairs.shown.T)}
    con.register("rankdrift_pairs", _columns(counts.pairs, "shown") | codes)
    con.register("rankdrift_comparisons", _columns(counts.rank_pairs))
    con.register("rankdrift_held", _columns(counts.overflow))
    con.register("rankdrift_by_rank", _columns(counts.by_rank))
    shown = f"concat_ws(' ', {', '.join(f'nullif({code}, 0)' for code in codes)})"
    nulls, values = {}, {}
    for i, column in enumerate(counts.segment_columns):
        names = ", ".join(text(segment[i]) for segment in counts.segments)
        nulls[SEGMENT + column] = "NULL"
        values[SEGMENT + column] = f"(CAST([{names}] AS VARCHAR[]))[segment + 1]"
    pair = {"bucket": "bucket", "drift": "drift", "shown": shown, "n": "pairs"}
    comparison = {"bucket": "bucket", "rank": "clicked", "other": "other", "single": "single"}
    held = {"rank": "rank", "single": "single", "n": "first", "clicks": "clicks", "pairs": "pairs"}
    rank = {"rank": "rank", "n": "impressions", "clicks": "clicks"}
    selects = [
        _select("pair", values, pair, "FROM rankdrift_pairs"),
        _select("comparison", values, comparison | {"n": "weight"}, "FROM rankdrift_comparisons"),
        _select("held", values, held, "FROM rankdrift_held"),
        _select("rank", values, rank, "FROM rankdrift_by_rank"),
    ]
    for name, _, rows, clicks, pairs in counts.funnel.lines():
        known = "NULL" if pairs is None else str(pairs)
        line = {"shown": text(name), "n": str(rows), "clicks": str(clicks), "pairs": known}
        selects.append(_select("funnel", nulls, line))
    for name, rows in counts.funnel.notes.items():
        if rows:
            selects.append(_select("note", nulls, {"shown": text(name), "n": str(rows)}))
    return " UNION ALL ".join(selects)


def _select(
    kind: str, segments: Mapping[str, str], values: Mapping[str, str], source: str = ""
) -> str:
    columns = {"kind": text(kind), **segments, **values}
    order = ["kind", *segments, *list(TYPES)[1:]]
    picks = (
        f"CAST({columns.get(name, 'NULL')} AS {TYPES.get(name, 'VARCHAR')}) AS {quoted(name)}"
        for name in order
    )
    return f"SELECT {', '.join(picks)} {source}"


def _columns(table: Table, *but: str) -> dict[str, NDArray[Any]]:
    return {name: values for name, values in vars(table).items() if name not in but}


def text(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
