"""What is said of formats: by the command, on the page, and as SQL for a warehouse."""

import json
from pathlib import Path

import duckdb
import pytest
import sqlglot
from support.log_formats import ga4_events, plain_log

from rankdrift import harvest, read_log, warehouse_sql
from rankdrift.cli.verbs import rankdrift
from rankdrift.core.errors import BadOption
from rankdrift.harvesting.warehouse import import_counts
from rankdrift.log.formats import FORMATS
from rankdrift.log.options import ROLES

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_the_page_tells_what_becomes_of_each_field(format):
    text = " ".join(PAGE.read_text().split())
    about = f"### {format.title} `--format {format.name}`. Read: {format.schema}. Needs: "
    assert about + f"{format.needs}." in text
    for column, origin in format.origins.items():
        assert f"| `{column}` | {origin} |" in text


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_a_format_has_all_that_its_layout_needs(format):
    roles = format.given_roles()
    assert set(format.layout.needed) <= set(roles) <= set(ROLES)
    assert {column for column in roles.values() if column} <= set(format.columns)


def test_the_command_lists_them(capsys):
    assert not rankdrift.main(["formats", "--json"], standalone_mode=False)
    said = json.loads(capsys.readouterr().out)["formats"]
    assert [one["name"] for one in said] == list(FORMATS.names)
    assert said[0]["columns"]["search"] == {"kind": "text", "from": "query_id"}
    rankdrift.main(["formats", "clax"], standalone_mode=False)
    said = capsys.readouterr()
    assert "query_doc_ids" in said.out and "inspect LOG --format clax" in said.err


def test_a_log_is_never_written_over(tmp_path):
    """Whatever its format was said to be."""
    log = tmp_path / "train"
    log.write_text("1\t0\tQ\t5\t3\t10\t11\n")
    words = ["harvest", str(log), "--format", "yandex", "-o", str(log)]
    with pytest.raises(BadOption, match="is also an input"):
        rankdrift.main(words, standalone_mode=False)


@pytest.mark.parametrize("dialect", ["bigquery", "spark", "trino", "duckdb"])
def test_ga4_in_a_warehouse_is_one_statement(dialect):
    sql = warehouse_sql("shop.events_20240501", dialect=dialect, format="ga4", same="price")
    parsed = sqlglot.parse_one(sql, read=dialect)
    assert [table.name for table in parsed.find_all(sqlglot.exp.Table)].count(
        "events_20240501"
    ) == 1
    if dialect == "bigquery":
        assert "UNNEST(`event_params`)" in sql and "TRY_CAST" not in sql


@pytest.mark.parametrize("dialect", ["clickhouse", "postgres", "snowflake"])
def test_no_statement_is_written_that_a_warehouse_cannot_run(dialect):
    with pytest.raises(BadOption, match=f"no SQL for {dialect}.*rankdrift harvest FILES"):
        warehouse_sql("events", dialect=dialect, format="metarank")


@pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark")
def test_that_statement_counts_what_a_harvest_counts(tmp_path):
    with plain_log(searches=90, queries=4) as con:
        con.execute(f"CREATE TABLE events AS {ga4_events()}")
        events = con.table("events").to_arrow_table()
        sql = warehouse_sql("events", dialect="duckdb", format="ga4")
        con.execute(f"COPY ({sql}) TO '{tmp_path / 'result.csv'}' (HEADER)")
    counts = import_counts(tmp_path / "result.csv")
    wanted = harvest(read_log(events))
    assert counts.n_pairs and counts.equals(wanted)
    assert counts.options["format"] == "ga4"


@pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark")
def test_a_table_in_a_duckdb_file_is_recognised_too(tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as con:
        con.execute("CREATE TABLE sessions AS SELECT 7 AS query_id, [1, 2] AS query_doc_ids,"
                    " [1, 0] AS clicks")  # fmt: skip
    log = read_log(tmp_path / "shop.duckdb")
    assert log.format is not None and log.format.name == "clax"
    assert harvest(log).funnel.rows == 2
