"""What Parquet files tell of themselves, without a row being read: their columns and statistics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb

from rankdrift.core.errors import MissingColumns
from rankdrift.core.words import many, verb
from rankdrift.log.columns import TIME_KINDS, Column
from rankdrift.log.sql.values import FIRST_DAY, LAST_DAY

# Beyond this many files, reading all their statistics costs more than it saves.
MANY_FILES = 2_000
# Do statistics say that all times have a day, in whichever zone?
_SANE = " AND ".join(
    f"coalesce(TRY_CAST(stats_{end}_value AS DATE) > DATE '{FIRST_DAY}'"
    f" AND TRY_CAST(stats_{end}_value AS DATE) < DATE '{LAST_DAY}', FALSE)"
    for end in ("min", "max")
)


def with_statistics(
    con: duckdb.DuckDBPyConnection, paths: Sequence[str], columns: Sequence[Column]
) -> dict[str, Column]:
    """These columns, with what the files' statistics say of them; paths are globs.

    What they say is kept for `days_by_statistics`.
    """
    if len(paths) > MANY_FILES:
        return {}
    con.execute(
        "CREATE OR REPLACE TEMP TABLE rd_statistics AS SELECT file_name, path_in_schema,"
        " num_values, stats_null_count, stats_min_value, stats_max_value"
        " FROM parquet_metadata($paths)"
        " WHERE num_values > 0 AND path_in_schema IN (SELECT unnest($names))",
        {"paths": list(paths), "names": [column.name for column in columns]},
    )
    found = con.execute(
        "SELECT path_in_schema,"
        " count(stats_null_count) = count(*) AND sum(stats_null_count) = 0,"
        " count(stats_min_value) = count(*) AND count(stats_max_value) = count(*),"
        " min(TRY_CAST(stats_min_value AS BIGINT)), max(TRY_CAST(stats_max_value AS BIGINT)),"
        " min(ascii(stats_min_value)), max(ascii(stats_max_value)), count(DISTINCT file_name),"
        f" bool_and({_SANE})"
        " FROM rd_statistics GROUP BY path_in_schema"
    ).fetchall()
    files = con.execute(
        "SELECT count(*) FROM parquet_file_metadata($paths) WHERE num_rows > 0",
        {"paths": list(paths)},
    ).fetchall()[0][0]
    wanted = {column.name: column for column in columns if len(column.path) == 1}
    stated: dict[str, Column] = {}
    for name, full, known, low, high, first, last, have, sane in found:
        column = wanted.get(name)
        if column is None or have < files:
            continue
        if column.kind == "int" and known:
            stated[name] = replace(column, full=full, low=low, high=high)
        elif column.kind == "text":
            # A smallest text that starts beyond the blank, and a greatest that starts with a letter
            # of ASCII: none is blank, nor does one start with a blank of another script.
            plain = (first or 0) > ord(" ") and (last or 128) < 128
            stated[name] = replace(column, full=full and known and plain)
        elif column.kind == "bool" or (column.kind in TIME_KINDS and sane):
            stated[name] = replace(column, full=full)
    return stated


def days_by_statistics(
    con: duckdb.DuckDBPyConnection, paths: Sequence[str], column: Column
) -> list[tuple[str, str, int]] | None:
    """(day, file, rows), if the column is a date and its statistics, one of `with_statistics`, tell
    each row's; or None."""
    if column.kind != "date" or len(column.path) > 1 or len(paths) > MANY_FILES:
        return None
    found = con.execute(
        "SELECT stats_min_value, file_name, sum(num_values)::BIGINT, bool_and(coalesce("
        " stats_null_count = 0 AND stats_min_value = stats_max_value"
        f" AND {_SANE}, FALSE))"
        " FROM rd_statistics WHERE path_in_schema = $name GROUP BY ALL",
        {"name": column.name},
    ).fetchall()
    if not all(sure for *_, sure in found) or sum(n for _, _, n, _ in found) != rows(con, paths):
        return None
    return [(day, file, n) for day, file, n, _ in found]


def rows(con: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> int:
    """How many rows these files have."""
    count = "SELECT coalesce(sum(num_rows), 0)::BIGINT FROM parquet_file_metadata($paths)"
    return int(con.execute(count, {"paths": list(paths)}).fetchall()[0][0])


def check_schemas(
    con: duckdb.DuckDBPyConnection, paths: Sequence[str], columns: Sequence[Column]
) -> list[str]:
    """Every file must have these columns; remarks on those that change their type."""
    schemas = _schemas(con, paths)
    remarks = []
    for column in columns:
        name = column.path[0]
        lacking = [file for file, types in schemas.items() if name not in types]
        if len(lacking) == len(schemas):  # the folders' names tell it (hive partitions)
            continue
        if lacking:
            raise MissingColumns(
                f"{len(lacking):,} of {len(schemas):,} files {verb(len(lacking), 'has', 'have')} "
                f"no column {name!r}, such as {lacking[0]!r}. Leave "
                f"{verb(len(lacking), 'it', 'them')} out, or choose a column that all have."
            )
        kinds: dict[str, int] = {}
        for types in schemas.values():
            kinds[types[name]] = kinds.get(types[name], 0) + 1
        if len(kinds) > 1:
            found = ", ".join(f"{kind} in {many(n, 'file')}" for kind, n in sorted(kinds.items()))
            remarks.append(
                f"Column {name!r} changes its type between files ({found}); its values are "
                f"compared as {column.kind}."
            )
    return remarks


def _schemas(con: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> Mapping[str, dict[str, str]]:
    """File -> top-level column -> type."""
    rows = con.execute(
        "SELECT file_name, name, coalesce(duckdb_type, type, 'STRUCT'), num_children"
        " FROM parquet_schema($paths) ORDER BY file_name, column_id",
        {"paths": list(paths)},
    ).fetchall()
    schemas: dict[str, dict[str, str]] = {}
    walk = iter(rows)
    for file, _, _, children in walk:  # the root of the next file's tree
        schemas[file] = {}
        for _ in range(children or 0):
            _, name, kind, inner = next(walk)
            schemas[file][name] = kind
            _skip(walk, inner or 0)
    return schemas


def _skip(walk: Iterator[Any], children: int) -> None:
    """Pass over whole subtrees."""
    while children:
        children += (next(walk)[3] or 0) - 1
