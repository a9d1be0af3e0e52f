"""The same plan for a warehouse: raw logs stay where they are, only counts come out.

`warehouse_sql` prints one statement; its result, exported as CSV or Parquet, is what
`import_counts` takes. The result carries its own metadata in a row of kind 'meta'.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rankdrift.core.dialects import dialect as find_dialect
from rankdrift.core.errors import BadCounts, BadOption, MissingColumns, did_you_mean
from rankdrift.counts.counts import BUCKETS, MAX_SHOWN, Counts
from rankdrift.harvesting.counting import check_sizes, counts_of
from rankdrift.harvesting.plan import harvest_plan
from rankdrift.log.columns import KINDS, NEEDED, Column, Roles, resolve
from rankdrift.log.log import Log, describe, names_of, read_config, read_log, rules_of
from rankdrift.log.sql.plan import Plan, Planner, Step

# Types taken for granted where nothing is said of a column.
_USUAL = {"rank": "int", "click": "int", "day": "date", "shown": "list", "clicked": "list",
          "page": "int", "doc": "int", "search": "int", "same": "int"}  # fmt: skip


def warehouse_sql(
    table: str,
    *,
    dialect: str,
    log: Log | None = None,
    types: Mapping[str, str] | None = None,
    buckets: int = BUCKETS,
    max_shown: int = MAX_SHOWN,
    **options: Any,
) -> str:
    """The harvest of `table` as one SQL statement.

    Columns and how to read them are given as for `read_log` (`query=`, `doc=`, … `where=`), or
    taken from `log`, a sample of the same table. `types` tells the kind of a column (int, float,
    bool, text, date, timestamp, instant, list) where it is not the usual one: rank and click
    whole numbers, day a date, the query text.
    """
    check_sizes(buckets, max_shown)
    for name in options:
        if name not in read_log.__annotations__:
            raise BadOption(f"No option {name!r}.{did_you_mean(name, read_log.__annotations__)}")
    written_for = find_dialect(dialect)
    if log is not None:
        # Names and kinds only: what a sample's statistics tell need not hold for the table.
        columns = {name: Column(c.path, c.kind) for name, c in log.engine.columns.items()}
        roles, rules = log.roles, log.rules
    else:
        options = {**read_config(options.pop("config", None)), **options}
        roles = _roles(options)
        columns = _columns(roles)
        rules = rules_of(options, roles)
    columns = _typed(columns, types or {})
    planner = Planner(
        source=written_for.quote(*table.split(".")),
        columns=columns,
        roles=roles,
        rules=rules,
        dialect=written_for,
        buckets=buckets,
        max_shown=max_shown,
    )
    meta = {
        "buckets": buckets,
        "max_rank": rules.max_rank,
        "max_shown": max_shown,
        "segment_columns": list(roles.segment),
        "marked": True,
        "options": describe(roles, rules, columns),
    }
    return _with_meta(harvest_plan(planner), meta, planner).as_query()


def _with_meta(plan: Plan, meta: Mapping[str, Any], planner: Planner) -> Plan:
    from rankdrift.harvesting.result import row

    text = planner.dialect.literal(json.dumps(meta, sort_keys=True, ensure_ascii=True))
    *steps, result = plan.steps
    told = f"{row(planner, 'meta', shown=text)}\nFROM (SELECT 1 AS one) AS one_row"
    return Plan((*steps, Step(result.name, f"{result.sql}\nUNION ALL\n{told}")))


def _roles(options: Mapping[str, Any]) -> Roles:
    given = {role: names_of(options.get(role), role) for role in Roles.__dataclass_fields__}
    layout = "list" if given.get("shown") else "events" if given.get("event") else "long"
    missing = [role for role in NEEDED[layout] if not given.get(role)]
    if missing:
        raise MissingColumns(
            f"A {layout} log needs columns for {', '.join(NEEDED[layout])}; missing: "
            f"{', '.join(missing)}. Name them with {' '.join(f'--{m} NAME' for m in missing)}, or "
            "give a sample of the log to take the names from."
        )
    many = ("query", "same", "segment")
    chosen = {
        role: ((value,) if isinstance(value, str) else value) if role in many else value
        for role, value in given.items()
        if value
    }
    return Roles(**chosen)  # type: ignore[arg-type]  # keys are Roles' own fields


def _columns(roles: Roles) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for role, value in roles.to_dict().items():
        for name in value if isinstance(value, list) else [value]:
            columns[str(name)] = Column(tuple(str(name).split(".")), _USUAL.get(role, "text"))
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


def import_counts(path: str | os.PathLike[str], *, format: str | None = None) -> Counts:
    """Counts from the result of `warehouse_sql`, saved as CSV, JSON lines or Parquet."""
    import duckdb

    from rankdrift.log.engines.duckdb.engine import DuckdbEngine, first_line
    from rankdrift.log.sources import find

    engine = DuckdbEngine(find(path, format=format))
    missing = [c for c in ("kind", "shown", "n") if c not in {k.lower() for k in engine.columns}]
    if missing:
        raise BadCounts(
            f"{os.fspath(path)!r} is not the result of `rankdrift sql`: it has no column "
            f"{missing[0]!r}. Export the statement's result with its column names."
        )
    told = engine.query("SELECT shown FROM rd_log WHERE kind = 'meta'")
    if len(told) != 1:
        raise BadCounts(
            f"{os.fspath(path)!r} has {len(told)} rows of kind 'meta', but the result of one "
            "statement has exactly one. Export the whole result, once."
        )
    try:
        meta = json.loads(told[0][0])
        return counts_of(engine.connection, "rd_log", **meta)
    except (json.JSONDecodeError, TypeError) as error:
        raise BadCounts(f"The 'meta' row of {os.fspath(path)!r} cannot be read: {error}.") from None
    except duckdb.Error as error:
        raise BadCounts(f"{os.fspath(path)!r} cannot be read: {first_line(error)}") from None
