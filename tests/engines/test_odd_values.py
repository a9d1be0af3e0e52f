"""Values that formats and engines would read each in their own way: read in one."""

import datetime

import duckdb
import pyarrow as pa
import pytest
from support.harness import random_log, write_parquet

from rankdrift.core.errors import BadLog, Remark

ROWS = "SELECT 'q' AS query, 'd' AS doc, i AS rank, i % 2 AS click FROM range(1, 7) AS t(i)"


def dropped(counts):
    return {name: line.rows for name, line in counts.funnel.dropped.items() if line.rows}


def test_what_files_say_comes_before_the_names_of_folders(engine, tmp_path):
    rows = [{**row, "on": datetime.date(2024, 1, 1)} for row in random_log(1, searches=30)]
    write_parquet(tmp_path / "on=2024-05-05" / "log.parquet", rows)
    counts = engine.harvest(tmp_path, day="on")
    assert counts.days == ("2024-01-01",)


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_what_folders_alone_tell_is_read(duckdb_engine, tmp_path, format):
    folder = tmp_path / "day=2024-05-05"
    folder.mkdir()
    duckdb.sql(f"COPY ({ROWS}) TO '{folder}/log.{format}' (FORMAT {format})")
    assert duckdb_engine.harvest(tmp_path).days == ("2024-05-05",)
    duckdb.sql(
        f"COPY (SELECT *, DATE '2024-01-01' AS day FROM ({ROWS})) TO '{folder}/log.{format}'"
    )
    with pytest.warns(Remark, match="Folders' names tell day, and so do the files"):
        assert duckdb_engine.harvest(tmp_path).days == ("2024-01-01",)
    folder.rename(tmp_path / "country=DE")
    (tmp_path / "day=2024-05-05").mkdir()
    (tmp_path / "country=DE").rename(tmp_path / "day=2024-05-05" / "country=DE")
    with pytest.raises(BadLog, match="country is in folders' names alone"):
        duckdb_engine.harvest(tmp_path)


@pytest.mark.parametrize("other", ["2024-05-06", "Day=2024-05-06"])
@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_what_some_folders_tell_is_not_passed_over_in_silence(
    duckdb_engine, tmp_path, format, other
):
    for name in ("day=2024-05-05", other):
        (tmp_path / name).mkdir()
        duckdb.sql(f"COPY ({ROWS}) TO '{tmp_path / name}/log.{format}' (FORMAT {format})")
    with pytest.warns(Remark, match="Some folders' names tell day, and others do not"):
        assert duckdb_engine.harvest(tmp_path).days == ()
    (tmp_path / other).rename(tmp_path / "day=2024-05-06")
    assert len(duckdb_engine.harvest(tmp_path).days) == 2


@pytest.mark.parametrize("blank", ["\u3000", "\u00a0\u3000", " "])
@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_a_blank_of_any_script_is_blank_in_every_format(engine, tmp_path, format, blank):
    path = tmp_path / f"log.{format}"
    docs = f"SELECT * REPLACE (CASE WHEN rank > 4 THEN '{blank}' ELSE doc END AS doc) FROM ({ROWS})"
    duckdb.sql(f"COPY ({docs}) TO '{path}' (FORMAT {format})")
    counts = engine.harvest(path)
    assert dropped(counts) == {"no_doc": 2} and counts.funnel.used.rows == 4


@pytest.mark.parametrize("type_", ["UBIGINT", "HUGEINT", "BIGINT", "VARCHAR", "DOUBLE"])
@pytest.mark.parametrize("more", [{}, {"first_rank": 0}], ids=str)
def test_a_rank_beyond_all_numbers_is_one_bad_row(duckdb_engine, tmp_path, type_, more):
    """In one file, and in two of which one has small ranks."""
    largest = 2**63 - 1 if type_ == "BIGINT" else 2**64 - 1
    rank = f"CASE WHEN rank = 6 THEN CAST({largest} AS {type_}) ELSE CAST(rank AS {type_}) END"
    duckdb.sql(f"COPY (SELECT * REPLACE ({rank} AS rank) FROM ({ROWS})) TO '{tmp_path}/a.parquet'")
    (reason,) = dropped(duckdb_engine.harvest(tmp_path, **more))
    assert reason in ("bad_rank", "deep_rank")
    duckdb.sql(
        f"COPY (SELECT * REPLACE (rank::INTEGER AS rank) FROM ({ROWS})) TO '{tmp_path}/b.parquet'"
    )
    assert dropped(duckdb_engine.harvest(tmp_path, **more)) == {reason: 1}


def test_ids_that_need_64_bits_stay_apart(duckdb_engine, tmp_path):
    rows = [{**row, "doc": 2**64 - 1 - int(row["doc"], 36) % 7} for row in random_log(2)]
    path = write_parquet(tmp_path / "log.parquet", rows, doc=pa.uint64())
    texts = [{**row, "doc": str(row["doc"])} for row in rows]
    other = write_parquet(tmp_path / "text.parquet", texts)
    numbers = duckdb_engine.harvest(path, day="on")
    assert numbers.n_pairs == duckdb_engine.harvest(other, day="on").n_pairs > 0
