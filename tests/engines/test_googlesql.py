"""The statement for BigQuery, run by Google's reference implementation of its language.

It takes minutes, needs a package of its own (`pip install zetasql`, in another Python) and is no
BigQuery: what it says of types, functions and NULLs is what BigQuery's documents say of them, but
limits and speed are another matter.
"""

import csv
import json
import os
import subprocess
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from support.log_formats import ga4_events, plain_log

from rankdrift import harvest, read_log, warehouse_sql
from rankdrift.harvesting.warehouse import import_counts

PYTHON = os.environ.get("RANKDRIFT_ZETASQL")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="no Python that has zetasql is named"),
    pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark"),
]
RUNNER = Path(__file__).parents[1] / "support" / "googlesql.py"
# Docs drift in searches of three days; queries, ranks and days have holes.
SHOWN = """
    SELECT s, r, 'word ' || mix(s, 'q') % 3 AS words, 'd' || (r * 7 + mix(s, 'm') % 5) % 9 AS item,
        mix(s * 10 + r, 'c') % (2 + r) = 0 AS c, DATE '2024-02-26' + mix(s, 'd') % 2 AS day,
        mix(s * 10 + r, 'x') AS x
    FROM range(40) AS searches(s), range(1, 6) AS ranks(r)
"""
LOGS = {
    "long": (
        f"""SELECT IF(s % 29 = 0, NULL, 's' || s) AS sid,
            CASE WHEN x % 31 = 0 THEN '  ' WHEN x % 37 = 0 THEN NULL ELSE words END AS words,
            item, r AS rank, CAST(c AS INTEGER) AS click, IF(x % 41 = 0, NULL, day) AS "on",
            [NULL, '~a,"b"'][s % 2 + 1] AS device, x % 7 / 4 AS points,
            ['old', 'new', NULL][mix(s, 'arm') % 3 + 1] AS arm FROM ({SHOWN})""",
        {"query": "words", "rank": "rank", "click": "click", "doc": "item", "day": "on",
         "search": "sid", "segment": "device", "score": "points", "ranker": "arm"},
    ),
    "text": (
        f"""SELECT words, item, CASE WHEN x % 43 = 0 THEN 'top' WHEN x % 3 = 0 THEN r || '.0'
                WHEN x % 3 = 1 THEN ' ' || r || ' ' ELSE CAST(r AS VARCHAR) END AS rank,
            CASE WHEN c THEN ['yes', '1', 'TRUE'][x % 3 + 1] ELSE ['no', '0', ''][x % 3 + 1] END
                AS click, CASE WHEN s % 31 = 0 THEN '2023-02-29' WHEN s % 3 = 0
                THEN strftime(day, '%Y%m%d') WHEN s % 3 = 1 THEN CAST(day AS VARCHAR)
                ELSE strftime(day, '%Y-%m-%dT23:30:00Z') END AS "on" FROM ({SHOWN})""",
        {"query": "words", "rank": "rank", "click": "click", "doc": "item", "day": "on",
         "window": "2d"},
    ),
    "list": (
        f"""SELECT any_value(words) AS words, any_value(day) AS "on",
            list(item ORDER BY r) AS results, coalesce(list(item ORDER BY r) FILTER (c), []) AS
            clicks FROM ({SHOWN}) GROUP BY s""",
        {"query": "words", "shown": "results", "clicked": "clicks", "day": "on"},
    ),
    "events": (
        f"""SELECT 's' || s AS sid, words, item, r AS rank, day AS "on",
            unnest(IF(c, ['impression', 'click'], ['impression'])) AS kind FROM ({SHOWN})""",
        {"query": "words", "doc": "item", "rank": "rank", "event": "kind", "search": "sid",
         "day": "on"},
    ),
}  # fmt: skip
KINDS = {"VARCHAR": "text", "DATE": "date", "DOUBLE": "float", "VARCHAR[]": ["text"]}


def as_json(value):
    """What JSON has no words for."""
    return float(value) if isinstance(value, Decimal) else value.isoformat()


def shape_of(kind):
    """The shape of a column, as support/googlesql.py has them."""
    if kind.id == "list":
        return [shape_of(kind.children[0][1])]
    if kind.id == "struct":
        return {name: shape_of(child) for name, child in kind.children}
    return "float" if kind.id == "decimal" else KINDS.get(str(kind), "int")


def case(con, statement):
    found = con.sql("SELECT * FROM log")
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    columns = dict(zip(found.columns, map(shape_of, found.types), strict=True))
    return {"statement": statement, "table": "log", "columns": columns, "rows": rows}


def test_the_counts_are_those_of_duckdb(tmp_path):
    cases, expected = [], []
    with duckdb.connect() as con:
        con.execute("CREATE MACRO mix(a, b) AS CAST(hash(a, b) % 1000003 AS INTEGER)")
        for sql, options in LOGS.values():
            con.execute(f"CREATE OR REPLACE TABLE log AS {sql} ORDER BY ALL")
            log = read_log(con.table("log").to_arrow_table(), **options)
            expected.append(harvest(log))
            cases.append(case(con, warehouse_sql("log", dialect="bigquery", log=log)))
    with plain_log(searches=30, queries=3, days=2) as con:
        con.execute(f"CREATE TABLE log AS {ga4_events()}")
        expected.append(harvest(read_log(con.table("log").to_arrow_table())))
        cases.append(case(con, warehouse_sql("log", dialect="bigquery", format="ga4")))
    (tmp_path / "cases.json").write_text(json.dumps(cases, default=as_json))
    done = subprocess.run([PYTHON, RUNNER, tmp_path / "cases.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads(done.stdout)
    for name, rows, wanted in zip([*LOGS, "ga4"], results, expected, strict=True):
        with open(tmp_path / "result.csv", "w", newline="") as file:
            csv.writer(file).writerows(rows)
        counts = import_counts(tmp_path / "result.csv")
        assert wanted.n_pairs > 20, name
        assert counts.funnel.to_dict() == wanted.funnel.to_dict(), name
        assert counts.equals(wanted), name
