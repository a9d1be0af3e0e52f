"""Log -> Matrix: the one place where Python sees rows, so it says first how many there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from rankdrift.core.dialects import Dialect
from rankdrift.core.errors import BadLog, BadOption, MissingColumns, did_you_mean
from rankdrift.core.naming import names_checked
from rankdrift.core.words import many, verb
from rankdrift.counts.funnel import INPUT, REASONS, USED, Funnel, Used, waterfall
from rankdrift.log.columns import TEXT_KINDS, Column
from rankdrift.log.engines.engine import Progress
from rankdrift.log.layouts import Layout
from rankdrift.log.log import Log, need_log
from rankdrift.log.probing import probe, refuse_rank_zero
from rankdrift.log.sql import rows as plan_rows
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import (
    ANSWER,
    OUTSIDE,
    RESULT,
    RESULT_TABLE,
    ROWS_SHOWN,
    Plan,
    Planner,
    Step,
)
from rankdrift.ranking.matrix import LARGEST, MOST_CATEGORIES, Feature, Matrix, refuse_ids

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Wanted = str | Feature | Sequence[str | Feature]
"""Features to read: names of columns, patterns, or those of a model."""
Searches = Literal["all", "clicked"]
"""Which searches to read: all, or those with a click."""
NUMBERS = ("int", "huge", "float", "bool")
# What a row costs besides its features, and the copies of features while they are sorted.
ROW_BYTES, COPIES = 120, 3


@names_checked
def read_matrix(
    log: Log,
    *,
    features: Wanted = ("f_*",),
    categorical: str | Sequence[str] = (),
    relevance: str | None = None,
    docs: bool = False,
    searches: Searches = "all",
    ranks: Sequence[int] | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Matrix:
    """Read the results shown in a log, a row each, with their features.

    Without a column of searches, the rows of one query on one day (and time, and segment) are
    dealt into lists that have each rank once.

    Parameters
    ----------
    log
        What `read_log` returns.
    features
        Names of columns or patterns (`f_*`), or those of a model. Numbers and booleans are
        numbers; text is a category, unless all of it is numbers and it is not among
        `categorical`; NULL, blank, NaN and infinity are missing.
    categorical
        Names or patterns of features that are words, though they look like numbers.
    relevance
        A column with the true relevance.
    docs
        Keep the docs too.
    searches
        "clicked" leaves out searches without a click.
    ranks
        Only results shown at these.
    progress
        Called with what is being done and the share of it that is.
    say
        Called with how much memory that takes, before any is taken.

    Returns
    -------
    Matrix
        Its `funnel` counts the rows dropped, for the reasons of a harvest.

    Raises
    ------
    MissingColumns
        If no column matches a feature.
    BadLog
        If no row can be used, or ranks count from 0.
    """
    need_log(log)
    if searches not in get_args(Searches):
        raise BadOption(f"searches must be 'all' or 'clicked', not {searches!r}.")
    wanted = resolve_features(log, features, relevance)
    probe(log)
    planner = log.planner()
    funnel = _funnel(log, planner)
    _tell_size(funnel.used.rows, len(wanted), say)
    as_words = {name for name in wanted if any(fnmatchcase(name, p) for p in _listed(categorical))}
    for pattern in _listed(categorical):
        if not any(fnmatchcase(name, pattern) for name in wanted):
            raise MissingColumns(
                f"No feature matches {pattern!r} in categorical.{did_you_mean(pattern, wanted)}"
            )
    plan = _plan(log, planner, wanted, as_words, relevance, docs, ranks)
    connection = log.engine.run(plan, progress)
    reader = MatrixReader(connection, log, wanted, as_words)
    try:
        arrays = reader.fetch(relevance is not None, docs, searches == "clicked")
    finally:
        connection.execute(f"DROP TABLE IF EXISTS {RESULT_TABLE}")
    if not len(arrays["rank"]):
        _refuse_empty(funnel.used.rows, ranks, searches == "clicked")
    return _matrix(log, reader, arrays, funnel)


# -- which columns ---------------------------------------------------------------------------------


def _listed(value: Wanted) -> list[Any]:
    """One name as a list of one."""
    return [value] if isinstance(value, str | Feature) else list(value)


def resolve_features(
    log: Log, features: Wanted, relevance: str | None = None
) -> dict[str, Feature | None]:
    """Column name -> the feature asked for, or None where its kind is still to be found out."""
    columns = log.engine.columns
    used = {*log.roles.used(), *([relevance] if relevance else [])}
    wanted: dict[str, Feature | None] = {}
    for item in _listed(features):
        name = item.name if isinstance(item, Feature) else item
        found = [name] if name in columns else []
        if not found and isinstance(item, str):
            found = [c for c in columns if fnmatchcase(c, name) and c not in used]
        if not found:
            near = did_you_mean(name, columns)
            listed = ", ".join(c for c in columns if c not in used)
            raise MissingColumns(
                f"No column of the log matches the feature {name!r}.{near} Besides those in use "
                f"it has: {listed or 'none'}. Name features or patterns, such as --features 'f_*'."
            )
        for column in found:
            _check_kind(columns[column], log)
            wanted.setdefault(column, item if isinstance(item, Feature) else None)
    for name in (log.roles.click, log.roles.clicked, log.roles.shown, relevance):
        if name in wanted:
            raise BadOption(f"{name!r} is what a ranker is to predict, so it cannot be a feature.")
    if log.roles.rank in wanted:
        raise BadOption(
            f"{log.roles.rank!r} is the rank that results had. As a feature it would teach a "
            "ranker the old ranking back. Leave it out."
        )
    if relevance is not None and relevance not in columns:
        raise MissingColumns(
            f"No column {relevance!r} for the relevance.{did_you_mean(relevance, columns)}"
        )
    if not wanted:
        raise BadOption("No features were named. Name columns or patterns, such as 'f_*'.")
    return wanted


def _check_kind(column: Column, log: Log) -> None:
    by_place = log.layout.by_place(column.kind)
    if column.kind in (*NUMBERS, *TEXT_KINDS) or by_place:
        return
    what, instead = {
        "list": ("a list", "its length or one of its elements"),
        "nested": ("nested", f"one of its fields ({column.name}.…)"),
    }.get(column.kind, ("a time", "a number made from it, such as an age in days"))
    raise BadOption(f"The feature {column.name!r} is {what}, not a number. Use {instead}.")


def _feature_sql(column: Column, d: Dialect, layout: Layout, as_words: bool) -> str:
    sql, kind = d.quote(*column.path), column.kind
    if layout.by_place(kind):
        sql, kind = d.text.format(d.element.format(sql, "rd_place")), "text"
    if kind in TEXT_KINDS:
        return values.plain_text(sql, kind, d)
    if as_words:
        return values.as_text(values.key(sql, kind, d), kind, d)
    return as_number(f"CAST({sql} AS {d.double})")


def as_number(sql: str) -> str:
    """A double as a 32-bit number; NULL where it is none, NaN or infinite."""
    return f"CASE WHEN abs({sql}) <= {LARGEST} THEN CAST({sql} AS FLOAT) END"


# -- reading ---------------------------------------------------------------------------------------


def _funnel(log: Log, planner: Planner) -> Funnel:
    """What becomes of every row; raises where reading on would give a wrong answer."""
    steps = plan_rows.steps(planner)
    by_code = "CASE WHEN fate > 0 THEN 1 ELSE fate END"
    tally = (
        f"SELECT {by_code}, count(*),"
        " sum(CASE WHEN click > 0 THEN click ELSE 0 END),"
        " sum(CASE WHEN click > 0 THEN 1 ELSE 0 END), count(*) - count(click)"
        f" FROM {ROWS_SHOWN} GROUP BY {by_code}"
    )
    found = log.engine.query(Plan((*steps[:-1], Step(ANSWER, tally))).as_query())
    outside = log.engine.query(
        Plan((*steps, Step(ANSWER, f"SELECT reason, n, clicks FROM {OUTSIDE}"))).as_query()
    )
    names = {code: name for name, code in plan_rows.DROP_CODES.items()}
    totals = {reason: (int(n), int(clicks or 0), 0) for reason, n, clicks in outside}
    unknown = 0
    for code, rows, clicks, clicked, missing in found:
        if code == 1:
            # Here rows are used as they are: of clicks, one a row.
            totals["good"] = (int(rows), int(clicks or 0), 0)
            totals["candidates"] = totals["used"] = (int(rows), int(clicked or 0), 0)
            unknown = int(missing)
        else:
            totals[names[code]] = (int(rows), int(clicks or 0), 0)
    lines = waterfall(totals)
    total, used = lines.pop(INPUT), lines.pop(USED)
    refuse_rank_zero(log, totals.get("rank_zero", (0, 0, 0))[0], total.rows)
    if not used.rows:
        why = ", ".join(f"{d.rows:,} {REASONS[r]}" for r, d in lines.items() if d.rows)
        raise BadLog(f"No row of the log can be used ({why or 'it is empty'}).")
    return Funnel(
        total.rows, total.clicks, lines, Used(used.rows, used.clicks), {"null_click": unknown}
    )


def _tell_size(rows: int, features: int, say: Callable[[str], None] | None) -> None:
    need = matrix_bytes(rows, features)
    text = f"{many(rows, 'row')} with {many(features, 'feature')}: about {_size(need)} of memory"
    if say:
        say(f"{text}.")
    there = (
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    )
    if there and need > there:
        raise BadOption(
            f"{text}, but this machine has {_size(there)}. Read fewer rows (--where, such as some "
            "of the days), fewer features, or only searches with a click."
        )


def matrix_bytes(rows: int, features: int) -> int:
    """Memory that reading takes at its height, about."""
    return rows * (4 * features * COPIES + ROW_BYTES)


def _size(n: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}"
        n /= 1000
    return f"{n:.1f} GB"


def _plan(
    log: Log,
    planner: Planner,
    wanted: Mapping[str, Feature | None],
    as_words: set[str],
    relevance: str | None,
    docs: bool,
    ranks: Sequence[int] | None,
) -> Plan:
    """One row per good result shown: q1…, g1…, the search's marks, rank, click, c1…"""
    d, columns, roles = planner.dialect, log.engine.columns, log.roles
    carry = {}
    for i, (name, feature) in enumerate(wanted.items()):
        words = name in as_words or (feature is not None and feature.is_category)
        carry[f"c{i + 1}"] = _feature_sql(columns[name], d, log.layout, words)
    if relevance:
        carry["relevance"] = _feature_sql(columns[relevance], d, log.layout, False)
    if log.layout.row_is_search and not roles.search:
        # Two searches with the same results and clicks differ in nothing that matters here.
        lists = (planner.column(name) for name in (roles.shown, roles.clicked) if name)
        texts = (values.as_text(values.key(sql, kind, d), kind, d) for sql, kind in lists)
        both = ", ' ', ".join(f"coalesce({text}, '')" for text in texts)
        carry["list"] = d.md5.format(f"concat({both})")
    queries = [
        f"{values.as_text(q, columns[c].kind, d)} AS {q}"
        for q, c in zip(planner.queries, roles.query, strict=True)
    ]
    marks = []
    if roles.search:  # as text, so that the order is the same whatever the type
        kind = columns[roles.search].kind
        marks.append(f"{values.as_text('search', kind, d)} AS search")
    marks += [name for name, there in (("day", roles.day), ("seconds", roles.time)) if there]
    doc = d.text.format("doc")
    clicked = "CASE WHEN click > 0 THEN 1 ELSE 0 END AS click"
    fields = [*queries, *planner.segments, *marks, "rank", clicked, f"{doc} AS doc", *carry]
    select = f"SELECT {', '.join(fields)}\nFROM {ROWS_SHOWN} WHERE ok"
    if ranks is not None:
        select += f" AND rank IN ({', '.join(str(int(rank)) for rank in ranks)})"
    steps = plan_rows.steps(planner.but(carry=carry))[:-1]
    return Plan((*steps, Step(RESULT, select)))


class MatrixReader:
    """The rows of a plan's result, a table in DuckDB whatever the log's engine: categories get
    codes, queries and searches numbers, and rows the order that they keep.

    features: those found, in the order asked for; unseen: features with values that the model
    asking for them never saw.
    """

    def __init__(
        self,
        connection: DuckDBPyConnection,
        log: Log,
        wanted: Mapping[str, Feature | None],
        as_words: set[str],
    ) -> None:
        self._con, self._log, self._planner = connection, log, log.planner()
        self.features: list[Feature] = []
        self._sql: list[str] = []
        self.unseen: list[str] = []
        columns = connection.execute(f"FROM pragma_table_info('{RESULT_TABLE}')").fetchall()
        types = {name: type_ for _, name, type_, *_ in columns}
        for i, (name, asked) in enumerate(wanted.items()):
            column = f"c{i + 1}"
            if types[column] == "FLOAT" and (asked is None or not asked.is_category):
                self._add(Feature(name), column)
            else:
                self._add_words(name, column, asked, name in as_words)

    def _add(self, feature: Feature, sql: str) -> None:
        self.features.append(feature)
        self._sql.append(f"coalesce({sql}, 'nan'::FLOAT)")

    def _add_words(self, name: str, column: str, asked: Feature | None, as_words: bool) -> None:
        text = f"nullif({column}, '')"
        [(there, numbers)] = self._con.execute(
            f"SELECT count({text}), count(TRY_CAST({text} AS DOUBLE)) FROM {RESULT_TABLE}"
        ).fetchall()
        if (asked is None and not as_words and there == numbers) or (
            asked is not None and not asked.is_category
        ):
            if numbers < there:
                raise BadOption(
                    f"The feature {name!r} was a number when the model was trained, but "
                    f"{there - numbers:,} of {there:,} values here are not."
                )
            self._add(Feature(name), as_number(f"TRY_CAST({text} AS DOUBLE)"))
            return
        if asked is not None:
            values = list(asked.categories or ())
        else:
            found = self._con.execute(
                f"SELECT DISTINCT {text} AS v FROM {RESULT_TABLE} WHERE v IS NOT NULL ORDER BY v"
                f" LIMIT {MOST_CATEGORIES + 1}"
            ).fetchall()
            values = [v for (v,) in found]
            refuse_ids(name, len(values))
        kind = f"rd_plan.words_{column}"
        self._con.execute(
            "CREATE OR REPLACE TEMP TABLE rd_words AS SELECT unnest($1::VARCHAR[]) AS v,"
            " generate_subscripts($1::VARCHAR[], 1) AS i",
            [values],
        )
        self._con.execute(f"DROP TYPE IF EXISTS {kind}")
        self._con.execute(f"CREATE TYPE {kind} AS ENUM (SELECT v FROM rd_words ORDER BY i)")
        code = f"enum_code(TRY_CAST({text} AS {kind}))"
        if asked is not None:
            [(lost,)] = self._con.execute(
                f"SELECT count({text}) - count({code}) FROM {RESULT_TABLE}"
            ).fetchall()
            if lost:
                self.unseen.append(f"{name} ({lost:,} rows)")
        self._add(Feature(name, tuple(values)), f"CAST({code} AS FLOAT)")

    def fetch(self, relevance: bool, docs: bool, clicked: bool) -> dict[str, Any]:
        """Arrays (N,) by column: q, s and g, the numbers of query, search and segment; rank, click,
        k, a hash of the query, relevance and doc if asked for, x0, x1 …; and `segments`, a list of
        their values. `clicked`: only searches with a click."""
        p, roles = self._planner, self._log.roles
        queries = ", ".join(p.queries)
        listed = self._log.layout.row_is_search and not roles.search
        apart = [*p.segments, *(["day"] if roles.day else []), *(["seconds"] if roles.time else [])]
        apart += ["list"] if listed else []
        search = "search" if roles.search else "NULL"
        # Rows without a search's name are dealt into lists that have each rank once.
        dealt = (
            f"CASE WHEN {search} IS NULL THEN row_number() OVER (PARTITION BY {search}, "
            f"{', '.join([queries, *apart])}, rank"
            f" ORDER BY doc, click, hash({', '.join(self._sql)})) END"
        )
        marks = [f"CASE WHEN {search} IS NULL THEN {name} END" for name in apart]
        if roles.search:
            marks.insert(0, "search")
        values = ", ".join(f"{sql} AS x{i}" for i, sql in enumerate(self._sql))
        texts = [f"coalesce({q}, '~')" for q in p.queries]
        joined = ", '|', ".join(texts)
        text = texts[0] if len(texts) == 1 else f"concat({joined})"
        segments = ", ".join(p.segments)
        extra = (", TRY_CAST(relevance AS DOUBLE) AS relevance" if relevance else "") + (
            ", doc" if docs else ""
        )
        kept = " QUALIFY max(click) OVER (PARTITION BY s) = 1" if clicked else ""
        sql = (
            f"WITH dealt AS (SELECT *, {dealt} AS copy FROM {RESULT_TABLE}),\n"
            f"numbered AS (SELECT *, dense_rank() OVER (ORDER BY {queries}) AS q,"
            f" dense_rank() OVER (ORDER BY {', '.join([queries, *marks, 'copy'])}) AS s,"
            + (f" dense_rank() OVER (ORDER BY {segments}) AS g" if segments else " 1 AS g")
            + " FROM dealt)\n"
            f"SELECT q, s, g, CAST(rank AS INTEGER) AS rank, CAST(click AS BOOLEAN) AS click,"
            f" CAST('0x' || substr(md5({text}), 1, 16) AS UBIGINT) AS k{extra}, {values}\n"
            f"FROM numbered{kept} ORDER BY s, rank, numbered.doc, click,"
            f" hash({', '.join(self._sql)})"
        )
        found: dict[str, Any] = self._con.execute(sql).fetchnumpy()
        found["segments"] = (
            self._con.execute(
                f"SELECT DISTINCT {segments} FROM {RESULT_TABLE} ORDER BY ALL"
            ).fetchall()
            if segments
            else [()]
        )
        return found


def _refuse_empty(rows: int, ranks: Sequence[int] | None, clicked: bool) -> None:
    those = "" if ranks is None else f" at rank {', '.join(map(str, ranks))}"
    if clicked:
        raise BadLog(
            f"None of the {rows:,} results shown was clicked{those}, so there is nothing to learn "
            "from. Check the column of clicks (--click)."
        )
    raise BadLog(
        f"None of the {rows:,} results was shown{those}. Ask for other ranks (--ranks, --max-rank)."
    )


def _matrix(log: Log, reader: MatrixReader, found: dict[str, Any], funnel: Funnel) -> Matrix:
    n = len(found["rank"])
    remarks: tuple[str, ...] = ()
    x = np.empty((n, len(reader.features)), np.float32)
    for i in range(x.shape[1]):
        x[:, i] = np.ma.filled(found.pop(f"x{i}"), np.nan)
    _, first, query = np.unique(found["q"], return_index=True, return_inverse=True)
    _, search = np.unique(found["s"], return_inverse=True)
    names = [feature.name for feature in reader.features]
    for what, is_so in (
        ("no value in any row", np.isnan(x).all(axis=0)),
        ("the same value in every row", (x == x[:1]).all(axis=0)),
    ):
        told = [names[i] for i in np.flatnonzero(is_so)]
        if told:
            has = verb(len(told), "has", "have")
            remarks += (f"{', '.join(told)} {has} {what}, so nothing can be learnt from it.",)
    if reader.unseen:
        remarks += (
            f"Values that the model never saw count as missing: {', '.join(reader.unseen)}.",
        )
    if not log.roles.search and not log.layout.row_is_search:
        remarks += (
            "The log does not tell searches apart (--search): rows of one query on one day were "
            "dealt into lists that have each rank once.",
        )
    relevance = found.get("relevance")
    if relevance is not None:
        relevance = np.ma.filled(np.ma.asarray(relevance).astype(float), np.nan)
        unknown = int(np.isnan(relevance).sum())
        if unknown == n:
            raise BadOption("The relevance is not a number in any row. Name another column.")
        if (relevance < 0).any():
            raise BadOption("The relevance is below 0 in some rows. It must be 0 or more.")
        if unknown:
            remarks += (f"The relevance of {unknown:,} of {n:,} rows is missing: read as 0.",)
    return Matrix(
        x=x,
        features=tuple(reader.features),
        rank=np.ma.filled(found["rank"]).astype(np.int32),
        click=np.ma.filled(found["click"]).astype(bool),
        query=query.astype(np.int64),
        search=search.astype(np.int64),
        query_keys=np.ma.filled(found["k"])[first].astype(np.uint64),
        segment=(np.ma.filled(found["g"]) - 1).astype(np.int32),
        segment_columns=tuple(log.roles.segment),
        segments=tuple(tuple(values) for values in found["segments"]),
        relevance=relevance,
        doc=np.ma.filled(found["doc"]) if "doc" in found else None,
        funnel=funnel,
        remarks=remarks,
        source={"log": log.engine.fingerprint(), "read": log.describe()},
    )
