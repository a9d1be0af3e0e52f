"""The rows of a matrix as a table in DuckDB, whatever the log's engine: categories get codes,
queries and searches numbers, and rows the order that they keep."""

from collections.abc import Mapping
from typing import Any

from rankdrift.core.errors import BadOption
from rankdrift.log.log import Log
from rankdrift.ranking.matrix import LARGEST, MOST_CATEGORIES, Feature, refuse_ids


def as_number(sql: str) -> str:
    """A double as a 32-bit number; NULL where it is none, NaN or infinite."""
    return f"CASE WHEN abs({sql}) <= {LARGEST} THEN CAST({sql} AS FLOAT) END"


class MatrixReader:
    """The rows as a table in DuckDB, whatever the log's engine, on their way to arrays."""

    def __init__(
        self, connection: Any, log: Log, wanted: Mapping[str, Feature | None], as_words: set[str]
    ) -> None:
        self._con, self._log, self._planner = connection, log, log.planner()
        self.features: list[Feature] = []
        self._sql: list[str] = []
        self.unseen: list[str] = []
        columns = connection.execute("FROM pragma_table_info('rd_plan.result')").fetchall()
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
        there, numbers = self._con.execute(
            f"SELECT count({text}), count(TRY_CAST({text} AS DOUBLE)) FROM rd_plan.result"
        ).fetchone()
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
                f"SELECT DISTINCT {text} AS v FROM rd_plan.result WHERE v IS NOT NULL ORDER BY v"
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
            lost = self._con.execute(
                f"SELECT count({text}) - count({code}) FROM rd_plan.result"
            ).fetchone()[0]
            if lost:
                self.unseen.append(f"{name} ({lost:,} rows)")
        self._add(Feature(name, tuple(values)), f"CAST({code} AS FLOAT)")

    def fetch(self, relevance: bool, docs: bool, clicked: bool) -> dict[str, Any]:
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
            f"WITH dealt AS (SELECT *, {dealt} AS copy FROM rd_plan.result),\n"
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
                f"SELECT DISTINCT {segments} FROM rd_plan.result ORDER BY ALL"
            ).fetchall()
            if segments
            else [()]
        )
        return found
