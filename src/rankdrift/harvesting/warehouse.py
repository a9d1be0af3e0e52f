"""The same plan for a warehouse: raw logs stay where they are, only counts come out.

`warehouse_sql` writes the SQL; its result, exported as CSV or Parquet, is what
`import_counts` takes. The result carries its own metadata in a row of kind 'meta'.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rankdrift.core.dialects import Dialect
from rankdrift.core.dialects import dialect as find_dialect
from rankdrift.core.errors import BadCounts, BadOption, MissingColumns, did_you_mean
from rankdrift.core.naming import names_checked
from rankdrift.core.plain import parsed
from rankdrift.core.words import many
from rankdrift.counts.counts import BUCKETS, MAX_SHOWN, Counts
from rankdrift.harvesting.appearances import appearances_plan
from rankdrift.harvesting.counting import counts_of
from rankdrift.harvesting.plan import Sizes, harvest_plan
from rankdrift.harvesting.result import META, row
from rankdrift.log.assigning import check_extras
from rankdrift.log.columns import KINDS, Column, ColumnKind, Roles, resolve
from rankdrift.log.formats.format import Fields, Format, Sight
from rankdrift.log.formats.recognising import choose
from rankdrift.log.layouts import Layout, layout_of
from rankdrift.log.log import Log, describe, read_as
from rankdrift.log.options import TAKES, Options
from rankdrift.log.sources import find
from rankdrift.log.sql.plan import Plan, Planner, Step

FORMAT_ROWS, FORMAT_LOG = "format_rows", "format_log"
_STRUCTS = ("bigquery", "databricks", "duckdb", "spark", "trino")
_USUAL_KINDS: dict[str, ColumnKind] = {
    "rank": "int",
    "click": "int",
    "day": "date",
    "shown": "list",
    "clicked": "list",
    "page": "int",
    "doc": "int",
    "search": "int",
    "same": "int",
    "score": "float",
    "outcome": "int",
}
"""Role -> kind taken for granted where nothing is said of its column; text for the others."""


def warehouse_sql(
    table: str,
    *,
    dialect: str,
    log: Log | None = None,
    types: Mapping[str, str] | None = None,
    buckets: int = BUCKETS,
    max_shown: int = MAX_SHOWN,
    appearances: bool = False,
    **options: Any,
) -> str:
    """The harvest of a table in a warehouse as SQL: one statement, or where that would be too much
    for the warehouse, a script of several for one session, of which the last gives the result.

    Parameters
    ----------
    table
        Its name in the warehouse, such as "shop.events".
    dialect
        "duckdb", "spark", "databricks", "bigquery", "snowflake", "trino", "clickhouse" or
        "postgres".
    log
        A sample of the same table, to take names and kinds of columns from, and how to read them.
    types
        Column -> kind (int, float, bool, text, json, date, timestamp, instant, list) where it is
        not the usual one: rank, click, doc, search, page, same and outcome whole numbers, score a
        float, day a date, shown and clicked lists (of a row per search score and outcome too), the
        rest text.
    buckets, max_shown
        As for `harvest`.
    appearances
        Instead of counts, how often each doc was shown at each rank, by query and day, and clicked:
        the result, exported, is what `judge` takes.
    options
        Columns and how to read them as for `read_log` (`query=`, `doc=`, … `where=`, `config=`),
        if there is no `log`.

    Returns
    -------
    str
        The SQL. Its result, exported, is what `import_counts` takes.

    Raises
    ------
    BadOption
        An option, dialect or kind that there is not, or a size out of its range.
    MissingColumns
        A column that is needed was not named.
    """
    written_for = find_dialect(dialect)
    plan = warehouse_plan(
        written(table, written_for),
        written_for,
        log=log,
        types=types,
        buckets=buckets,
        max_shown=max_shown,
        appearances=appearances,
        **options,
    )
    if appearances or not written_for.keep:
        return plan.as_query()
    return plan.as_script(written_for)


def written(table: str, dialect: Dialect) -> str:
    """The name of a table as the dialect has it."""
    parts = table.split(".")
    if not all(part.strip() for part in parts):
        raise BadOption(f"{table!r} is no name of a table. Write it as shop.events.")
    return dialect.quote(*parts)


def warehouse_plan(
    source: str,
    written_for: Dialect,
    *,
    log: Log | None = None,
    types: Mapping[str, str] | None = None,
    buckets: int = BUCKETS,
    max_shown: int = MAX_SHOWN,
    appearances: bool = False,
    **options: Any,
) -> Plan:
    """The plan of `warehouse_sql`, on a FROM item."""
    sizes = Sizes(buckets, max_shown)
    for name in options:
        if name not in TAKES:
            raise BadOption(f"No option {name!r}.{did_you_mean(name, TAKES)}")
    format = log.format if log is not None else None
    if log is not None:
        # Names and kinds only: what a sample's statistics tell need not hold for the table.
        columns = {name: Column(c.path, c.kind) for name, c in log.engine.columns.items()}
        layout, roles, rules = log.layout, log.roles, log.rules
    else:
        said = Options(**options).with_file()
        said.check()
        format = choose(Sight(), said)
        if format:
            columns = format.as_columns()
            layout, (roles, rules) = format.layout, read_as(format, columns, said)
        else:
            layout, roles = _roles(said)
            columns = _columns(roles, layout)
            rules = said.rules(roles)
    columns = _typed(columns, types or {})
    check_extras(roles, columns, layout, rules.outcome_at_least is not None)
    planner = Planner(
        source=FORMAT_LOG if format else source,
        columns=columns,
        layout=layout,
        roles=roles,
        rules=rules,
        dialect=written_for,
    )
    before = _rows_of_format(format, source, written_for) if format else ()
    if appearances:
        return Plan((*before, *appearances_plan(planner).steps))
    meta = {
        "buckets": sizes.buckets,
        "max_rank": rules.max_rank,
        "max_shown": sizes.max_shown,
        "segment_columns": list(roles.segment),
        "marked": True,
        "options": describe(planner, format),
    }
    plan = _with_meta(harvest_plan(planner, sizes), meta, planner)
    return Plan((*before, *plan.steps))


def _rows_of_format(format: Format, source: str, dialect: Dialect) -> tuple[Step, Step]:
    """From a table in a known format, its fields as documented, to the rows of a log."""
    if dialect.name not in _STRUCTS:
        raise BadOption(
            f"--format {format.name} is no SQL for {dialect.name}: it has lists of structs, "
            f"which are columns in {', '.join(_STRUCTS)} alone. Make a table with a row per result "
            "shown there, and name its columns (--query, --doc, --rank, --click); or export the "
            f"events, and read those: rankdrift harvest FILES --format {format.name}."
        )
    select = format.select(Fields(format.shape, dialect), source)
    return (
        Step(FORMAT_ROWS, select),
        Step(FORMAT_LOG, format.numbered(FORMAT_ROWS, dialect)),
    )


def _with_meta(plan: Plan, meta: Mapping[str, Any], planner: Planner) -> Plan:
    """The same, with one more row in its result that says what the counts are of."""
    text = planner.dialect.literal(json.dumps(meta, sort_keys=True, ensure_ascii=True))
    *steps, result = plan.steps
    added = f"{row(planner, META, shown=text)}\nFROM (SELECT 1 AS one) AS one_row"
    return Plan((*steps, Step(result.name, f"{result.sql}\nUNION ALL\n{added}")))


def _roles(options: Options) -> tuple[Layout, Roles]:
    named = {role: value for role, value in options.columns().items() if value}
    layout = layout_of(named)
    missing = [role for role in layout.needed if role not in named]
    if missing:
        raise MissingColumns(
            f"A log of layout {layout.name} needs columns for {', '.join(layout.needed)}; missing: "
            f"{', '.join(missing)}. Name them with {' '.join(f'--{m} NAME' for m in missing)}, or "
            "give a sample of the log to take the names from."
        )
    return layout, Roles.of(named)


def _columns(roles: Roles, layout: Layout) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for role, value in roles.to_dict().items():
        kind = _USUAL_KINDS.get(role, "text")
        if layout.row_is_search and role in ("score", "outcome"):
            kind = "list"
        for name in value if isinstance(value, list) else [value]:
            columns[name] = Column(tuple(name.split(".")), kind)
    return columns


def _typed(columns: Mapping[str, Column], types: Mapping[str, str]) -> dict[str, Column]:
    columns = dict(columns)
    for name, kind in types.items():
        resolve(name, columns, "types")
        if kind not in KINDS:
            raise BadOption(
                f"No type {kind!r} for {name!r}.{did_you_mean(kind, KINDS)} "
                f"There are {', '.join(KINDS)}."
            )
        columns[name] = replace(columns[name], kind=kind)
    return columns


@names_checked
def import_counts(path: str | os.PathLike[str], *, format: str | None = None) -> Counts:
    """Counts from the result of `warehouse_sql`, saved as CSV, JSON lines or Parquet; `format` says
    which, where names of files do not tell."""
    import duckdb

    from rankdrift.core.database import first_line
    from rankdrift.log.engines.duckdb.engine import DuckdbEngine

    engine = DuckdbEngine(find(path, format=format))
    missing = [c for c in ("kind", "shown", "n") if c not in {k.lower() for k in engine.columns}]
    if missing:
        raise BadCounts(
            f"{os.fspath(path)!r} is not the result of `rankdrift sql`: it has no column "
            f"{missing[0]!r}. Export the statement's result with its column names."
        )
    found = engine.query(f"SELECT shown FROM {engine.source} WHERE kind = '{META}'")
    if len(found) != 1:
        raise BadCounts(
            f"{os.fspath(path)!r} has {many(len(found), 'row')} of kind 'meta', but the result of "
            "one statement has exactly one. Export the whole result, once."
        )
    try:
        meta = parsed(found[0][0])
        return counts_of(engine.connection, engine.source, **meta)
    except (ValueError, TypeError) as error:
        raise BadCounts(f"The 'meta' row of {os.fspath(path)!r} cannot be read: {error}.") from None
    except duckdb.Error as error:
        raise BadCounts(f"{os.fspath(path)!r} cannot be read: {first_line(error)}") from None
