"""Log: where the rows are, which column is what, and how rows are read. Lazy: only the columns'
names and types are looked at until something is asked of it."""

import tomllib
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from os import PathLike, fspath
from typing import Any

from rankdrift.core.errors import BadLog, BadOption, did_you_mean
from rankdrift.log.columns import Column, Roles, assign
from rankdrift.log.engines.engine import Engine
from rankdrift.log.sources import find
from rankdrift.log.sql import values as reading
from rankdrift.log.sql.plan import Planner
from rankdrift.log.sql.rows import OUR_NAMES
from rankdrift.log.sql.values import Rules

Names = str | Sequence[str] | None


@dataclass(frozen=True)
class Log:
    engine: Engine
    roles: Roles
    rules: Rules
    # Roles that were guessed from column names: role -> column.
    guessed: Mapping[str, str] = field(default_factory=dict)
    # Things worth telling about the source.
    remarks: tuple[str, ...] = ()

    def planner(self, **options: Any) -> Planner:
        """Writes SQL for this log in its engine's dialect."""
        return Planner(
            source=self.engine.source,
            columns=self.engine.columns,
            roles=self.roles,
            rules=self.rules,
            dialect=self.engine.dialect,
        ).but(**options)

    def describe(self) -> dict[str, Any]:
        """What defines a pair and how rows are read: kept with every artefact made from the log."""
        return describe(self.roles, self.rules, self.engine.columns)

    @property
    def days(self) -> str:
        """What a day is here, in words."""
        return _days(self.roles, self.rules, self.engine.columns)


def describe(roles: Roles, rules: Rules, columns: Mapping[str, Column]) -> dict[str, Any]:
    told = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(rules).items()
    }
    if roles.layout != "events":
        del told["shown_events"], told["click_events"]
    return {
        "layout": roles.layout,
        **roles.to_dict(),
        **told,
        "days": _days(roles, rules, columns),
    }


def _days(roles: Roles, rules: Rules, columns: Mapping[str, Column]) -> str:
    if not roles.day:
        return "no day column: the whole log counts as one day"
    return reading.zone_words(columns[roles.day], rules)


def read_log(
    source: Any,
    *,
    query: Names = None,
    doc: str | None = None,
    rank: str | None = None,
    click: str | None = None,
    shown: str | None = None,
    clicked: str | None = None,
    event: str | None = None,
    day: str | None = None,
    time: str | None = None,
    search: str | None = None,
    page: str | None = None,
    same: Names = None,
    segment: Names = None,
    layout: str | None = None,
    where: str | None = None,
    max_rank: int | None = None,
    first_rank: int | None = None,
    page_size: int | None = None,
    first_page: int | None = None,
    time_zone: str | None = None,
    shown_events: Names = None,
    click_events: Names = None,
    dedupe: bool | None = None,
    format: str | None = None,
    table: str | None = None,
    config: str | PathLike[str] | None = None,
    engine: str | None = None,
    session: Any = None,
    master: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Log:
    """Point at a click log.

    `source` is a path, a glob, a folder or several of them (Parquet, CSV, JSON lines, plain or
    compressed), a DuckDB file (with `table`), a pandas, Polars or Arrow table, or a Spark
    DataFrame or table.

    Columns not named are guessed from common names. `query` may be several columns: two queries
    are the same when all are equal. Columns in `same` must be equal within a pair. Columns in
    `segment` split the counts. `time` tells the order of a pair's appearances (by default `day`, if
    it holds the time of day). `where` is a condition in the engine's SQL on the log's own
    columns: it is run as given, so never build it from text you do not trust.

    Layouts: "long" (a row per result shown), "list" (a row per search: `shown` docs in order,
    `clicked` docs) and "events" (a row per event: results shown and clicks joined by `search`).

    `config` is a TOML file with any of these options; those given here win.
    """
    given = dict(locals())
    del given["source"], given["config"]
    options = {**read_config(config), **{k: v for k, v in given.items() if v is not None}}
    for name in ("layout", "where", "time_zone", "format", "table", "master", "memory"):
        if not isinstance(options.get(name), str | None):
            raise BadOption(f"{name} must be text, not {options[name]!r}.")
    if options.get("threads") is not None:
        _whole("threads", options["threads"], 1, 1024)
    opened = _open(source, options)
    named = {role: names_of(options.get(role), role) for role in (f.name for f in fields(Roles))}
    roles, guessed = assign(opened.columns, named, _layout(options.get("layout")))
    _refuse_our_names(opened.columns, roles.layout)
    rules = rules_of(options, roles)
    remarks = opened.prepare(roles.used())
    return Log(opened, roles, rules, guessed, tuple(remarks))


def _refuse_our_names(columns: Mapping[str, Column], layout: str) -> None:
    taken = sorted(name for name in columns if name.lower() in OUR_NAMES[layout])
    if taken:
        raise BadLog(
            f"The log has a column {taken[0]!r}, a name that rankdrift uses itself while it reads. "
            "Rename the column, or read a view of the log without it."
        )


def _open(source: Any, options: Mapping[str, Any]) -> Engine:
    wanted = options.get("engine")
    if wanted not in (None, "duckdb", "spark"):
        raise BadOption(
            f"No engine {wanted!r}.{did_you_mean(str(wanted), ('duckdb', 'spark'))} "
            "There are duckdb and spark."
        )
    is_spark = type(source).__module__.startswith("pyspark.")
    if wanted == "duckdb" and is_spark:
        raise BadOption("A Spark DataFrame is read by Spark: leave out engine='duckdb'.")
    if wanted == "spark" or is_spark or options.get("session") or options.get("master"):
        for name in ("memory", "threads"):
            if options.get(name):
                raise BadOption(
                    f"{name} is for DuckDB. Give Spark its memory and cores when its session "
                    "starts (spark-submit, or --master 'local[4]')."
                )
        from rankdrift.log.engines.spark import SparkEngine

        return SparkEngine(
            source,
            session=options.get("session"),
            master=options.get("master"),
            format=options.get("format"),
            table=options.get("table"),
        )
    from rankdrift.log.engines.duckdb.engine import DuckdbEngine

    found = find(source, format=options.get("format"), table=options.get("table"))
    return DuckdbEngine(found, memory=options.get("memory"), threads=options.get("threads"))


def read_config(path: str | PathLike[str] | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise BadOption(f"Cannot read the options in {fspath(path)!r}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadOption(f"{fspath(path)!r} is not TOML: {error}.") from None
    known = [
        name
        for name in read_log.__annotations__
        if name not in ("source", "return", "config", "session")
    ]
    for name in found:
        if name not in known:
            raise BadOption(
                f"{fspath(path)!r} has an unknown option {name!r}.{did_you_mean(name, known)} "
                f"Known are {', '.join(known)}."
            )
    return found


def names_of(value: Any, role: str) -> str | tuple[str, ...] | None:
    """Column names; "" is kept: it says that there is none, so that none is guessed."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(v, str) for v in value):
        if role in ("query", "same", "segment", "shown_events", "click_events"):
            return tuple(value)
        raise BadOption(f"{role} takes one column, not {list(value)!r}.")
    what = "names of events" if role.endswith("_events") else "the name of a column"
    raise BadOption(f"{role} takes {what}, not {value!r}.")


def _layout(value: str | None) -> str:
    known = ("auto", "long", "list", "events")
    if value not in (None, *known):
        raise BadOption(
            f"No layout {value!r}.{did_you_mean(value or '', known)} There are {', '.join(known)}."
        )
    return value or "auto"


def rules_of(options: Mapping[str, Any], roles: Roles) -> Rules:
    names = {f.name for f in fields(Rules)}
    chosen = {k: v for k, v in options.items() if k in names and v is not None}
    for name in ("shown_events", "click_events"):
        if isinstance(chosen.get(name), str):
            chosen[name] = (chosen[name],)
        elif name in chosen:
            chosen[name] = names_of(chosen[name], name)
    rules = replace(Rules(), **chosen)
    for name, least in (("max_rank", 2), ("first_rank", 0), ("first_page", 0)):
        _whole(name, getattr(rules, name), least, 100_000)
    if rules.page_size is not None:
        _whole("page_size", rules.page_size, 1, 100_000)
    if bool(roles.page) != bool(rules.page_size):
        missing = "page_size (results a page)" if roles.page else "page (the page's column)"
        raise BadOption(f"page and page_size go together: {missing} is missing.")
    if rules.time_zone is not None and rules.time_zone not in zoneinfo.available_timezones():
        known = zoneinfo.available_timezones()
        raise BadOption(
            f"No time zone {rules.time_zone!r}.{did_you_mean(rules.time_zone, known)} "
            "Write it as Europe/Berlin or UTC."
        )
    if not isinstance(rules.dedupe, bool):
        raise BadOption(f"dedupe must be true or false, not {rules.dedupe!r}.")
    if rules.dedupe and not roles.search:
        raise BadOption(
            "dedupe needs the column that tells searches apart (--search): without it, the same "
            "doc shown again at the same rank cannot be told from a row logged twice."
        )
    if rules.where is not None and not rules.where.strip():
        raise BadOption(
            "where is empty. Leave it out, or give a condition such as \"sort = 'best'\"."
        )
    return rules


def _whole(name: str, value: Any, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadOption(f"{name} must be a whole number from {least} to {most:,}, not {value!r}.")
