"""The statements for ClickHouse and PostgreSQL, run there: the counts are DuckDB's, to the last."""

import duckdb
import pytest
from support.postgres import postgres

from rankdrift.harvesting.counting import harvest
from rankdrift.harvesting.warehouse import import_counts, warehouse_sql
from rankdrift.log.log import read_log

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("warehouses")]

# Searches of five days on which docs drift; a row per result shown.
SHOWN = """
    SELECT s, r, mix(s, 'q') % 5 AS q, (r * 7 + mix(s, 'move') % 6) % 13 AS d,
        mix(s * 10 + r, 'click') % (2 + r) = 0 AS c, DATE '2024-02-26' + mix(s, 'day') % 5 AS day,
        mix(s * 10 + r, 'x') AS x
    FROM range(420) AS searches(s), range(1, 9) AS ranks(r)
"""
LOGS = {
    # Columns in types of their own, holes, odd segments, and all that splits are made of.
    "long": f"""
        SELECT IF(s % 29 = 0, NULL, 's' || s) AS sid,
            ['red shoes', '  ', 'it''s', 'ünï çödé', 'a|b\\c'][q + 1] AS words,
            IF(x % 31 = 0, NULL, q % 2) AS shelf, 'd' || d AS item, r AS rank,
            CAST(c AS TINYINT) AS click, IF(x % 37 = 0, NULL, day) AS "on",
            CAST(day AS TIMESTAMP) + INTERVAL (mix(s, 'at') % 80000) SECOND AS "at",
            [NULL, '', '~', '~web', 'web', 'a,"b"'][s % 6 + 1] AS device,
            CASE WHEN x % 41 = 0 THEN NULL ELSE 9.5 + d % 2 END AS price,
            [0.5, 0.25, 7.125, 1e-9, -3.0, NULL][x % 6 + 1] AS points,
            ['old', 'new', NULL, ' '][mix(s, 'arm') % 4 + 1] AS arm, mix(s, 'who') % 9 AS who,
            x % 3 = 0 AS bought
        FROM ({SHOWN})""",
    # All of it text, some of which is none of what it should be.
    "text": f"""
        SELECT 'word ' || q AS words, 'd' || d AS item,
            CASE WHEN x % 43 = 0 THEN 'top' WHEN x % 47 = 0 THEN '' WHEN x % 53 = 0 THEN '2.5'
                WHEN x % 3 = 0 THEN r || '.0' WHEN x % 3 = 1 THEN ' ' || r || ' '
                ELSE CAST(r AS VARCHAR) END AS rank,
            CASE WHEN x % 59 = 0 THEN 'perhaps' WHEN x % 61 = 0 THEN '-1'
                WHEN c THEN ['yes', '1', 'TRUE', '2024-05-01T10:00:00'][x % 4 + 1]
                ELSE ['no', '0', '', NULL][x % 4 + 1] END AS click,
            CASE WHEN s % 61 = 0 THEN '2023-02-29' WHEN s % 67 = 0 THEN 'today'
                WHEN s % 5 = 0 THEN strftime(day, '%Y%m%d')
                WHEN s % 5 = 1 THEN CAST(day AS VARCHAR)
                WHEN s % 5 = 2 THEN strftime(day, '%Y-%m-%dT23:30:00Z')
                WHEN s % 5 = 3 THEN strftime(day, '%Y-%m-%d 21:30:00.25+02:00')
                ELSE CAST(epoch(CAST(day AS TIMESTAMP) + INTERVAL 23 HOUR) AS BIGINT)
                    || IF(s % 2 = 0, '000', '') END AS "on"
        FROM ({SHOWN})""",
    "list": f"""
        SELECT 'word ' || any_value(q) AS words, any_value(day) AS "on",
            list(CASE WHEN d = 12 THEN 'd1' ELSE 'd' || d END ORDER BY r) AS results,
            list('d' || d ORDER BY r) FILTER (c OR x % 97 = 0) AS clicks,
            list(x % 7 / 4 ORDER BY r) AS points
        FROM ({SHOWN}) GROUP BY s""",
    "texts of lists": f"""
        SELECT 'word ' || any_value(q) AS words, any_value(day) AS "on",
            CASE s % 3 WHEN 0 THEN CAST(to_json(list('d"' || d ORDER BY r)) AS VARCHAR)
                WHEN 1 THEN '["broken, ' || string_agg('d' || d, ', ' ORDER BY r)
                ELSE string_agg('d' || d, ' ; ' ORDER BY r) END AS results,
            coalesce(CASE s % 3 WHEN 0 THEN
                    CAST(to_json(list('d"' || d ORDER BY r) FILTER (c)) AS VARCHAR)
                ELSE string_agg('d' || d, ',' ORDER BY r) FILTER (c) END, '') AS clicks
        FROM ({SHOWN}) GROUP BY s""",
    "events": f"""
        SELECT 's' || s AS sid, 'word ' || q AS words, 'd' || d AS item, r AS rank, day AS "on",
            unnest(IF(c, ['impression', 'click'], [IF(x % 89 = 0, 'click', 'impression')]))
                AS kind, x % 2 AS bought
        FROM ({SHOWN})""",
}  # fmt: skip
OPTIONS = {
    "long": {
        "query": ["words", "shelf"], "doc": "item", "rank": "rank", "click": "click", "day": "on",
        "time": "at", "search": "sid", "segment": "device", "same": "price", "score": "points",
        "ranker": "arm", "user": "who", "outcome": "bought",
    },
    "text": {
        "query": "words", "doc": "item", "rank": "rank", "click": "click", "day": "on",
        "time_zone": "Europe/Berlin", "window": "2d",
    },
    "list": {
        "query": "words", "shown": "results", "clicked": "clicks", "day": "on", "score": "points",
    },
    "texts of lists": {"query": "words", "shown": "results", "clicked": "clicks", "day": "on"},
    "events": {
        "query": "words", "doc": "item", "rank": "rank", "event": "kind", "search": "sid",
        "day": "on", "outcome": "bought",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Name -> a log as Parquet."""
    folder = tmp_path_factory.mktemp("logs")
    with duckdb.connect() as con:
        con.execute("CREATE MACRO mix(a, b) AS CAST(hash(a, b) % 1000003 AS INTEGER)")
        for name, sql in LOGS.items():
            con.execute(f"COPY ({sql} ORDER BY ALL) TO '{folder / name}.parquet'")
    return {name: folder / f"{name}.parquet" for name in LOGS}


@pytest.fixture(scope="module")
def clickhouse():
    """Run a statement on a log of a Parquet file; what it gives, as CSV."""
    from chdb import session

    with session.Session() as opened:

        def run(path, statement):
            opened.query("CREATE DATABASE IF NOT EXISTS shop ENGINE = Atomic")
            opened.query("DROP TABLE IF EXISTS shop.log")
            opened.query(
                "CREATE TABLE shop.log ENGINE = MergeTree ORDER BY tuple() AS"
                f" SELECT * FROM file('{path}', Parquet)"
            )
            *before, last = statement.split(";\n")
            for each in before:
                opened.query(each)
            return str(opened.query(last, "CSVWithNames"))

        yield run


# DuckDB's names of types in PostgreSQL, where they differ.
POSTGRES_TYPES = {
    "TINYINT": "SMALLINT", "UBIGINT": "BIGINT", "VARCHAR": "TEXT", "DOUBLE": "DOUBLE PRECISION",
    "VARCHAR[]": "TEXT[]", "DOUBLE[]": "DOUBLE PRECISION[]",
}  # fmt: skip


@pytest.fixture(scope="module")
def postgresql():
    """The same, of PostgreSQL."""
    with postgres() as server:

        def run(path, statement):
            with duckdb.connect() as con:
                columns = con.sql(f"FROM '{path}'")
                names = dict(zip(columns.columns, map(str, columns.types), strict=True))
                lists = ", ".join(
                    f"""'{{' || list_aggr(list_transform("{n}", lambda v: '"' ||
                    replace(CAST(v AS VARCHAR), '"', '\\"') || '"'), 'string_agg', ',') || '}}'
                    AS "{n}" """
                    for n, kind in names.items()
                    if kind.endswith("[]")
                )
                chosen = f"* REPLACE ({lists})" if lists else "*"
                csv = path.with_suffix(".csv")
                con.execute(f"COPY (SELECT {chosen} FROM '{path}') TO '{csv}' (HEADER)")
            made = ", ".join(f'"{n}" {POSTGRES_TYPES.get(k, k)}' for n, k in names.items())
            server.run(
                "CREATE SCHEMA IF NOT EXISTS shop; DROP TABLE IF EXISTS shop.log;"
                f" CREATE TABLE shop.log ({made});\n"
                f"\\copy shop.log FROM '{csv}' (FORMAT csv, HEADER)"
            )
            return server.run(f"{statement};")

        yield run


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("dialect", ["clickhouse", "postgres"])
def test_the_counts_are_those_of_duckdb(dialect, name, logs, tmp_path, request):
    run = request.getfixturevalue({"postgres": "postgresql"}.get(dialect, dialect))
    log = read_log(logs[name], **OPTIONS[name])
    expected = harvest(log)
    assert expected.n_pairs > 100, "a comparison of nothing proves nothing"
    statement = warehouse_sql("shop.log", dialect=dialect, log=log)
    (tmp_path / "result.csv").write_text(run(logs[name], statement))
    counts = import_counts(tmp_path / "result.csv")
    assert counts.funnel.to_dict() == expected.funnel.to_dict()
    assert counts.equals(expected)


def test_what_databricks_is_given_is_what_spark_runs():
    for options in OPTIONS.values():
        spark, databricks = (
            warehouse_sql("shop.log", dialect=d, **options) for d in ("spark", "databricks")
        )
        assert databricks == spark
