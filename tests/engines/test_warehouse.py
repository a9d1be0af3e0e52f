"""The statement for a warehouse: DuckDB plays one, and each dialect's text is parsed. The others
that are run have a file of their own."""

import duckdb
import pytest
import sqlglot
from oracle.harvest_oracle import tally
from support.harness import ODD_SEGMENTS, assert_same, random_log, with_holes, write_parquet

from rankdrift.core.dialects import DIALECTS
from rankdrift.core.errors import BadCounts, BadOption, Remark
from rankdrift.counts.counts import Counts
from rankdrift.harvesting.warehouse import import_counts, warehouse_sql, written
from rankdrift.log.log import read_log

LAYOUTS = {
    "plain": {"rank": "rank", "click": "click"},
    "long": {
        "rank": "rank", "click": "click", "search": "sid", "day": "on", "time": "at",
        "score": "points", "ranker": "arm", "user": "who", "outcome": "dwell",
        "outcome_at_least": 30.0,
    },
    "list": {"shown": "results", "clicked": "clicks", "score": "points", "outcome": "bought"},
    "events": {"rank": "rank", "event": "kind", "search": "sid", "outcome": "bought"},
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_is_one_of_its_dialect(dialect, layout):
    roles = {"query": ["words", "shelf"], "segment": ["device", "site"], "same": "price"}
    doc = {} if layout == "list" else {"doc": "doc"}
    sql = warehouse_sql("shop.log", dialect=dialect, **roles, **doc, **LAYOUTS[layout])
    *before, tree = sqlglot.parse(sql, read=dialect)  # raises on what it cannot parse
    assert bool(before) == bool(DIALECTS[dialect].keep)  # one statement, or a script
    kinds = {"pair", "comparison", "held", "rank", "total", "note", "meta"}
    kinds |= {"day"} if "day" in LAYOUTS[layout] else set()
    kinds |= {"split"} if layout != "plain" else set()
    found = [
        column.this.name
        for select in tree.find_all(sqlglot.exp.Select)
        for column in select.expressions
        if column.alias.lower() == "kind"
    ]
    assert set(found) == kinds


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A log with odd segments, what it counts to, and a function that writes the result of the
    printed statement."""
    folder = tmp_path_factory.mktemp("warehouse")
    rows = with_holes(random_log(50, searches=260), 50)
    for i, row in enumerate(rows):
        row["device"] = ODD_SEGMENTS[i % len(ODD_SEGMENTS)]
    path = write_parquet(folder / "log.parquet", rows)
    options = {"segment": "device", "day": "on", "search": "sid"}
    log = read_log(path, **options)
    statement = warehouse_sql("log", dialect="duckdb", log=log, max_shown=3)
    assert "known AS MATERIALIZED (" in statement  # worked out twice, it would number pairs twice

    def export(name, select="FROM result"):
        with duckdb.connect() as con:
            con.execute(f"CREATE VIEW log AS FROM '{path}'")
            con.execute(f"CREATE VIEW result AS {statement}")
            con.execute(f"COPY ({select}) TO '{folder / name}'")
        return folder / name

    return tally(rows, **options, max_shown=3), export


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_a_result_exported_in_any_format_is_the_same_counts(result, ending):
    expected, export = result
    counts = import_counts(export(f"result.{ending}"))
    assert {segment for (segment,) in counts.segments} == set(ODD_SEGMENTS)
    assert len(counts.overflow)
    assert_same(counts, expected)


def test_only_odd_segments_look_odd_in_a_result(result):
    _, export = result
    with duckdb.connect() as con:
        found = con.sql(
            f"SELECT DISTINCT segment_device FROM '{export('seen.parquet')}' WHERE kind = 'rank'"
        ).fetchall()
    plain = {value for value in ODD_SEGMENTS if value != "" and not (value or "").startswith("~")}
    assert {value for (value,) in found} == plain | {"~", "~~", "~~~", "~~web"}


def test_a_result_of_an_older_statement_is_read_as_it_was_written(result):
    """It marked no segments and did not count much-shown pairs by rank."""
    _, export = result
    new = import_counts(export("new.parquet"))
    unmarked = "if(segment_device LIKE '~%', segment_device[2:], segment_device)"
    old = export(
        "old.parquet",
        f"SELECT * REPLACE ({unmarked} AS segment_device,"
        " if(kind = 'meta', replace(shown, '\"marked\": true, ', ''), shown) AS shown)"
        " FROM result WHERE kind <> 'held'",
    )
    with pytest.warns(Remark, match="pairs shown more than 3 times are not counted by rank"):
        counts = import_counts(old)
    assert not counts.overflow_known and counts.segments == new.segments
    for name in ("pairs", "rank_pairs", "by_rank"):
        assert counts.tables[name].equals(new.tables[name])


def test_a_table_without_a_name_is_refused():
    for name in ("", " ", "shop..events"):
        with pytest.raises(BadOption, match="no name of a table"):
            written(name, DIALECTS.get("duckdb"))


def test_a_segment_column_left_out_is_named(result):
    _, export = result
    path = export("less.csv", "SELECT * EXCLUDE (segment_device) FROM result")
    with pytest.raises(BadCounts, match="no column segment_device"):
        import_counts(path)


def test_imported_counts_are_saved_like_harvested_ones(result, tmp_path):
    _, export = result
    counts = import_counts(export("result.csv"))
    counts.save(tmp_path / "counts.parquet")
    assert Counts.load(tmp_path / "counts.parquet").equals(counts)
