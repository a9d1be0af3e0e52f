"""Reading the table of counts, as `schema` describes it, whoever made it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadCounts, Remark, did_you_mean
from rankdrift.core.types import Segment
from rankdrift.core.words import many, verb
from rankdrift.counts.counts import (
    SPLITS,
    ByRank,
    Counts,
    Overflow,
    Pairs,
    RankPairs,
    Singles,
    Splits,
)
from rankdrift.counts.funnel import INPUT, USED, Dropped, Funnel, Used
from rankdrift.counts.schema import (
    BY_RANK,
    CELLS,
    FUNNEL,
    KINDS,
    MARK,
    NOTE,
    NUMBERS,
    OF_PLAN,
    OVERFLOW,
    PAIR,
    RANK_PAIR,
    SEGMENT,
    SINGLE,
    SPLIT,
    TYPES,
    FunnelRow,
    Kind,
)
from rankdrift.counts.tables import decode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_WHOLE_TYPES = {*"TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER".split()}


def read_table(
    con: DuckDBPyConnection,
    relation_sql: str,
    meta: Mapping[str, Any],
    funnel: Sequence[FunnelRow] | None = None,
) -> Counts:
    """The counts of a table, given as the text of a FROM clause on `con`.

    Rows may come in any order; those with equal keys are summed; numbers may be text. `meta` has
    buckets, max_rank and max_shown, and may have segment_columns, marked (whether MARK is used),
    days, sources, options and version. The result of a plan comes with the rows of its `funnel`;
    its pairs tell CELLs, and rows of kinds OF_PLAN are passed over. What cannot be right raises
    BadCounts; what DuckDB cannot read, DuckDB's own error.
    """
    fields = fields_of(meta)
    columns: tuple[str, ...] = fields["segment_columns"]
    planned = funnel is not None
    with _staged(con, relation_sql, columns, bool(meta.get("marked")), planned) as rows:
        tables = _tables(rows, fields["max_shown"])
        told = funnel_of([*(funnel or ()), *_funnel_rows(con)])
        segments = _segments(con) if columns else ((),)
    return Counts(**tables, funnel=told, segments=segments, **fields)


def _tables(rows: _Rows, max_shown: int) -> dict[str, Any]:
    """The tables of Counts, by name."""
    splits = _picks(SPLIT) | {"split": _WHICH_SPLIT}
    return {
        "pairs": _pairs(rows, max_shown),
        "rank_pairs": RankPairs(**rows.fetch(RANK_PAIR, _picks(RANK_PAIR))),
        "overflow": Overflow(**rows.fetch(OVERFLOW, _picks(OVERFLOW))),
        "by_rank": ByRank(**rows.fetch(BY_RANK, _picks(BY_RANK))),
        "splits": Splits(**rows.fetch(SPLIT, splits)),
        "singles": Singles(**rows.fetch(SINGLE, _picks(SINGLE))),
    }


def warn_unknown_overflow(counts: Counts) -> None:
    """Say it of counts that do not know their much-shown pairs by rank."""
    if counts.overflow_known:
        return
    n = counts.n_overflow
    some = (
        f"The {'pairs' if n is None else many(n, 'pair')} shown more than {counts.max_shown} times"
    )
    message = (
        f"{some} {verb(n or 0, 'is', 'are')} not counted by rank in these counts, which an older "
        "rankdrift made. Propensities and errors are the same, but their columns pairs and clicks "
        "leave such pairs out. Harvest again to have them."
    )
    warnings.warn(message, Remark, stacklevel=2)


def _picks(kind: Kind) -> dict[str, str]:
    """Array -> the SQL that it is read by."""
    return {
        array: f"coalesce({column}, 0)" if column in kind.optional else column
        for column, array in kind.columns.items()
    }


def _names(kinds: Iterable[Kind]) -> str:
    """Their names as a list in SQL."""
    return DUCKDB.literals([kind.name for kind in kinds])


@dataclass(frozen=True)
class _Rows:
    """The rows of the table, typed, as the view rankdrift_rows; those of listed pairs as the table
    rankdrift_pair, with what they tell in `codes`; the segments as rankdrift_segments.

    columns: of segments. doubtful: columns that may hold anything. planned: is it the result of a
    plan?
    """

    con: DuckDBPyConnection
    columns: Sequence[str]
    doubtful: Sequence[str]
    planned: bool

    def fetch(
        self, kind: Kind, wanted: Mapping[str, str], table: str = "rankdrift_rows"
    ) -> dict[str, NDArray[Any]]:
        """The arrays of one kind of row, with `segment` an index into rankdrift_segments."""
        join = self._join if self.columns else ""
        picks = {"segment": "g.segment", **wanted} if join else wanted
        named = ", ".join(f"{sql} AS {DUCKDB.quote(name)}" for name, sql in picks.items())
        # What a plan found comes in no order, and the engine sorts faster than we do.
        order = "ORDER BY ALL" if self.planned and table == "rankdrift_rows" else ""
        only = f"kind = {DUCKDB.literal(kind.name)}"
        rows = self.con.sql(f"SELECT {named} FROM {table} r {join} WHERE {only} {order}")
        found = rows.fetchnumpy()
        if any(map(np.ma.is_masked, found.values())):
            self.refuse()
            raise BadCounts("A row lacks a value, or has a segment of its own. Harvest again.")
        arrays = {name: np.ma.getdata(values) for name, values in found.items()}
        if not self.columns:
            arrays["segment"] = np.zeros(len(next(iter(arrays.values()))), np.int32)
        return arrays

    @property
    def _join(self) -> str:
        same = (f"r.s{i} IS NOT DISTINCT FROM g.s{i}" for i in range(len(self.columns)))
        # LEFT: a row whose segment no other kind of row has is found out, not lost.
        return f"LEFT JOIN rankdrift_segments g ON {' AND '.join(same) or 'TRUE'}"

    @property
    def ignored(self) -> Sequence[str]:
        """Kinds of rows that are not for us."""
        return OF_PLAN if self.planned else ()

    def refuse(self) -> None:
        """Raise BadCounts if a row cannot be read, and say how."""
        found = self.con.sql(f"""
            SELECT {_problem(self.doubtful, self.ignored)} AS problem,
                count(*), first(kind), first(shown), first(n)
            FROM (SELECT *, NULL AS codes FROM rankdrift_rows
                WHERE kind IS DISTINCT FROM {_names([PAIR])}
                UNION ALL BY NAME SELECT * FROM rankdrift_pair)
            WHERE problem IS NOT NULL GROUP BY problem ORDER BY 2 DESC, 1""").fetchall()
        if found:
            problem, rows, kind, shown, n = found[0]
            kinds = ", ".join(each.name for each in KINDS)
            raise BadCounts(
                f"{many(rows, 'row')} {verb(rows, 'has', 'have')} {problem}, for example kind "
                f"{kind!r}, shown {shown!r}, "
                f"n {n!r}. The kinds are {kinds}: correct what made the table, and make it again."
            )


@contextmanager
def _staged(
    con: DuckDBPyConnection,
    relation_sql: str,
    columns: Sequence[str],
    marked: bool = False,
    planned: bool = False,
) -> Iterator[_Rows]:
    """The rows, ready to be fetched, and gone afterwards."""
    made: list[tuple[str, str]] = []
    try:
        yield _stage(con, relation_sql, columns, marked, planned, made)
    finally:
        for kind, name in reversed(made):
            con.execute(f"DROP {kind} IF EXISTS temp.{name}")


def _stage(
    con: DuckDBPyConnection,
    relation_sql: str,
    columns: Sequence[str],
    marked: bool,
    planned: bool,
    made: list[tuple[str, str]],
) -> _Rows:
    def create(kind: str, name: str, select: str) -> None:
        made.append((kind, name))
        con.execute(f"CREATE OR REPLACE TEMP {kind} {name} AS {select}")

    described = con.sql(f"DESCRIBE SELECT * FROM {relation_sql}").fetchall()
    types = {name.casefold(): kind for name, kind, *_ in described}
    _check_columns(types, columns)
    segments = [f"s{i}" for i in range(len(columns))]
    raw = [
        f"{_segment_sql(column, marked)} AS {segment}"
        for column, segment in zip(columns, segments, strict=True)
    ]
    numbers, doubtful = [], []
    for column in NUMBERS:
        if column not in types:  # drift alone may be left out: then it is unknown
            numbers.append(f"CAST(NULL AS BIGINT) AS {column}")
        elif types[column] in _WHOLE_TYPES:
            raw.append(column)
            numbers.append(column)
        else:  # a cast alone would round
            doubtful.append(column)
            raw.append(f"nullif(trim(CAST({column} AS VARCHAR)), '') AS raw_{column}")
            whole = f"regexp_full_match(raw_{column}, '-?[0-9]+([.]0*)?')"
            numbers.append(
                f"CASE WHEN {whole} THEN TRY_CAST(raw_{column} AS BIGINT) END AS {column}"
            )
    plain = types["single"] == "BOOLEAN"
    single = "single" if plain else "TRY_CAST(CAST(single AS VARCHAR) AS BOOLEAN)"
    raws = "".join(f", raw_{column}" for column in doubtful)
    kind = "trim(CAST(kind AS VARCHAR))" if doubtful else "kind"
    typed = f"""
        WITH raw AS (
            SELECT {kind} AS kind, nullif(CAST(shown AS VARCHAR), '') AS shown,
                {", ".join([f"{single} AS single", *raw])}
            FROM {relation_sql}
        )
        SELECT {", ".join(["kind", "shown", "single", *segments, *numbers])}{raws} FROM raw"""
    create("VIEW", "rankdrift_rows", typed)
    create("TABLE", "rankdrift_pair", f"""
        SELECT *, TRY_CAST(string_split(shown, ' ') AS INTEGER[]) AS codes
        FROM rankdrift_rows WHERE kind = {_names([PAIR])}""")  # fmt: skip
    if segments:
        create("TABLE", "rankdrift_segments", f"""
            SELECT row_number() OVER (ORDER BY {", ".join(f"{s} NULLS FIRST" for s in segments)})
                - 1 AS segment, *
            FROM (SELECT DISTINCT {", ".join(segments)} FROM rankdrift_rows
                WHERE kind IN ({_names(CELLS)}))""")  # fmt: skip
    rows = _Rows(con, columns, doubtful, planned)
    # Without doubtful columns a row that cannot be read lacks a value, has an unknown kind or is
    # of a pair: what each row has is looked at only if one does.
    kinds = DUCKDB.literals([*(kind.name for kind in KINDS), *rows.ignored])
    odd = f"""
        SELECT (SELECT count(*) FROM rankdrift_rows WHERE coalesce(kind NOT IN ({kinds}), TRUE))
            + (SELECT count(*) FROM rankdrift_rows WHERE kind IN ({_names([FUNNEL, NOTE])})
                AND (shown IS NULL OR n IS NULL))
            + (SELECT count(*) FROM rankdrift_pair WHERE {_UNREADABLE} OR shown IS NULL)"""
    if doubtful or con.sql(odd).fetchall()[0][0]:
        rows.refuse()
    return rows


def _segment_sql(column: str, marked: bool) -> str:
    value = f"CAST({DUCKDB.quote(SEGMENT + column)} AS VARCHAR)"
    if not marked:
        return value
    return f"CASE WHEN {value} LIKE '{MARK}%' THEN substr({value}, 2) ELSE nullif({value}, '') END"


# The place of a split's name, NULL if there is none of that name.
_WHICH_SPLIT = f"list_position([{DUCKDB.literals(SPLITS)}], shown) - 1"
# Of a listed pair; an element that cannot be cast is a NULL in the list.
_UNREADABLE = "list_min(codes) < 2 OR list_count(codes) < len(codes)"


def _problem(doubtful: Iterable[str], ignored: Iterable[str]) -> str:
    """SQL: how a row cannot be read, or NULL; `doubtful` columns may hold anything."""

    def first(problems: Iterable[tuple[str, str]], otherwise: str = "NULL") -> str:
        cases = " ".join(f"WHEN {wrong} THEN {DUCKDB.literal(what)}" for wrong, what in problems)
        return f"CASE {cases} ELSE {otherwise} END" if cases else otherwise

    kinds = []
    for kind in KINDS:
        problems = [(f"{column} IS NULL", f"no {column}") for column in kind.needed]
        if kind is PAIR:
            words = "something other than codes 2*rank+click, one space apart, as shown"
            problems.append((_UNREADABLE, words))
        if kind is SPLIT:
            problems.append((f"({_WHICH_SPLIT}) IS NULL", f"none of {', '.join(SPLITS)} as shown"))
        kinds.append(f"WHEN {DUCKDB.literal(kind.name)} THEN {first(problems)}")
    kinds += [f"WHEN {DUCKDB.literal(name)} THEN NULL" for name in ignored]
    by_kind = f"CASE kind {' '.join(kinds)} ELSE {DUCKDB.literal('an unknown kind')} END"
    broken = [
        (
            f"raw_{column} IS NOT NULL AND {column} IS NULL",
            f"something other than a whole number as {column}",
        )
        for column in doubtful
    ]
    return first(broken, otherwise=by_kind)


def _pairs(rows: _Rows, max_shown: int) -> Pairs:
    codes = {f"c{i}": f"coalesce(codes[{i}], 0)" for i in range(1, _longest(rows, max_shown) + 1)}
    picks = _picks(PAIR)
    del picks["shown"]
    found = rows.fetch(PAIR, picks | codes, "rankdrift_pair")
    shown = np.stack([found.pop(code) for code in codes], axis=1)
    return Pairs(**found, shown=decode(shown) if rows.planned else shown)


def _longest(rows: _Rows, max_shown: int) -> int:
    """The most codes a listed pair has, refused if more than `max_shown`."""
    [(longest, too_long)] = rows.con.sql(f"""
        SELECT max(len(codes)), count(*) FILTER (len(codes) > {max_shown})
        FROM rankdrift_pair""").fetchall()
    if too_long:
        raise BadCounts(
            f"{many(too_long, 'listed pair')} {verb(too_long, 'has', 'have')} more appearances "
            f"than max_shown {max_shown}, up to {longest:,}. Make {verb(too_long, 'it', 'them')} "
            "comparisons, or harvest with a larger max_shown."
        )
    return max(longest or 0, 2)


def _segments(con: DuckDBPyConnection) -> tuple[Segment, ...]:
    rows = con.sql("SELECT * FROM rankdrift_segments ORDER BY segment").fetchall()
    return tuple(tuple(row[1:]) for row in rows)


def _funnel_rows(con: DuckDBPyConnection) -> list[FunnelRow]:
    return con.sql(f"""
        SELECT kind, shown, sum(n), sum(coalesce(clicks, 0)), sum(pairs)
        FROM rankdrift_rows WHERE kind IN ({_names([FUNNEL, NOTE])}) GROUP BY ALL""").fetchall()


def funnel_of(rows: Sequence[FunnelRow]) -> Funnel:
    """The funnel that its rows tell."""
    lines = {
        name: Dropped(n, clicks, pairs)
        for kind, name, n, clicks, pairs in rows
        if kind == FUNNEL.name
    }
    notes = {name: n for kind, name, n, *_ in rows if kind == NOTE.name}
    for name in (INPUT, USED):
        if name not in lines:
            raise BadCounts(
                f"The funnel has no row {name!r}, so what was dropped cannot be told. Take all the "
                "rows of the table, those of kind 'funnel' included."
            )
    given, used = lines.pop(INPUT), lines.pop(USED)
    return Funnel(
        rows=given.rows,
        clicks=given.clicks,
        dropped=lines,
        used=Used(used.rows, used.clicks, used.pairs or 0),
        notes=notes,
    )


def _check_columns(found: Iterable[str], segment_columns: Sequence[str]) -> None:
    """Raise BadCounts unless the table has all the columns, and no segment column too many."""
    expected = [*TYPES, *(SEGMENT + column for column in segment_columns)]
    known = {column.casefold() for column in expected}
    extra = [column for column in found if column.startswith(SEGMENT) and column not in known]
    missing = [c for c in expected if c != "drift" and c.casefold() not in found]
    if missing:
        hints = did_you_mean(missing[0], [column for column in found if column not in known])
        raise BadCounts(f"The table of counts has no column {', '.join(missing)}.{hints}")
    if extra:
        raise BadCounts(
            f"The table of counts has {', '.join(extra)}, but the segment columns are "
            f"{', '.join(segment_columns) or 'none'}. Name them all, or leave the column out."
        )


def fields_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of Counts that `meta` gives; Counts checks their values."""
    missing = [name for name in ("buckets", "max_rank", "max_shown") if name not in meta]
    if missing:
        raise BadCounts(f"The metadata has no {', '.join(missing)}. Harvest again.")
    fields = {name: meta[name] for name in ("buckets", "max_rank", "max_shown")}
    for name in ("segment_columns", "days", "sources"):
        values = meta.get(name, ())
        listed = isinstance(values, (list, tuple))
        if not listed or not all(isinstance(value, str) for value in values):
            raise BadCounts(f"The metadata has {name} {values!r}. Give a list of texts.")
        fields[name] = tuple(values)
    options, version = meta.get("options", {}), meta.get("version", "")
    if not isinstance(options, Mapping) or not isinstance(version, str):
        raise BadCounts("The metadata has damaged options. Harvest again.")
    return {**fields, "options": options, "version": version}
