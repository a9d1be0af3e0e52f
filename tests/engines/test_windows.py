"""Pairs within windows of several days: the counts are those of the oracle, on every engine."""

import datetime

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from oracle.harvest_oracle import tally, window_begins
from support.harness import assert_same, check, random_log, with_holes, within_days, write_parquet

from rankdrift.core.dialects import DIALECTS
from rankdrift.core.errors import BadCounts, BadOption
from rankdrift.counts.counts import Counts, merge
from rankdrift.harvesting import counting
from rankdrift.harvesting.by_day import harvest_by_day
from rankdrift.harvesting.counting import harvest
from rankdrift.harvesting.warehouse import import_counts, warehouse_sql
from rankdrift.log.log import read_log

MONDAY = datetime.date(2024, 2, 26)
DAYS = 24  # so that windows of a week, and of ten days, begin and end inside


def spread(seed, searches=150):
    """A log whose searches are spread over some weeks from a Thursday on."""
    rows = random_log(seed, searches)
    first = MONDAY - datetime.timedelta(days=4)
    return [
        {**row, "on": first + datetime.timedelta(days=int(row["sid"][1:]) * DAYS // searches)}
        for row in rows
    ]


def noon(row):
    return {**row, "on": datetime.datetime.combine(row["on"], datetime.time(23, 30))}


@pytest.mark.parametrize("window", ["7d", "10d", "14d"])
def test_pairs_within_windows(engine, tmp_path, window):
    rows = with_holes(spread(1), 1, 0.03)
    options = {"day": "on", "search": "sid", "segment": "device", "same": "price"}
    counts = check(engine, tmp_path, rows, window=window, **options)
    assert counts.options["window"] == window
    if window == "7d":
        assert {datetime.date.fromisoformat(day).strftime("%A") for day in counts.days} == {
            "Monday"
        }


@pytest.mark.parametrize("time_zone", [None, "Asia/Tokyo"])
def test_a_window_begins_at_midnight_of_the_time_zone(duckdb_engine, tmp_path, time_zone):
    rows = [noon(row) for row in spread(2)]
    types = {"on": pa.timestamp("us")}
    options = {"day": "on", "window": "7d", "time_zone": time_zone}
    check(duckdb_engine, tmp_path, rows, types=types, **options)


def test_a_window_of_one_day_is_a_day(duckdb_engine, tmp_path):
    path = write_parquet(tmp_path / "log.parquet", spread(3))
    one, none = (harvest(read_log(path, day="on", **more)) for more in ({"window": "1d"}, {}))
    assert one.equals(none) and one.options == none.options


def test_names_of_searches_may_begin_anew_every_day(duckdb_engine, tmp_path):
    rows = [{**row, "sid": f"s{i % 3}"} for i, row in enumerate(spread(4))]
    counts = check(duckdb_engine, tmp_path, rows, day="on", search="sid", window="7d")
    of_days = tally(rows, day="on", search="sid").dropped["doc_twice"][0]
    # Weeks have more clicked pairs, of which a doc twice in one search is told; not seven times so.
    assert 0 < of_days <= counts.funnel.dropped["doc_twice"].rows < 3 * of_days


@pytest.mark.parametrize("kind", ["date", "timestamp"])
@pytest.mark.parametrize("files", ["one", "a day each"])
def test_by_day_makes_a_file_a_window(duckdb_engine, tmp_path, files, kind):
    rows = with_holes(spread(5), 5, 0.03, ["on", "device"])
    parts = {}
    for row in rows:
        parts.setdefault(str(row["on"]) if files != "one" else "all", []).append(row)
    for name, part in parts.items():
        if kind == "timestamp":
            part[:] = [noon(row) if row["on"] else row for row in part]
        types = {"on": pa.timestamp("us")} if kind == "timestamp" else {}
        write_parquet(tmp_path / "log" / f"{name}.parquet", part, **types)
    rows = [row for part in parts.values() for row in part]
    log = duckdb_engine.read(tmp_path / "log", day="on", window="7d")
    written = harvest_by_day(log, tmp_path / "counts")
    merged = merge(map(Counts.load, written))
    assert merged.equals(within_days(harvest(log)))
    assert_same(merged, tally(rows, day="on", window="7d"))
    weeks = {window_begins(str(row["on"])[:10], 7) for row in rows if row["on"]}
    assert {path.stem for path in written} == {*weeks, "undated"}


def test_a_large_log_is_read_window_by_window(duckdb_engine, tmp_path, monkeypatch):
    rows = spread(6)
    for day in {row["on"] for row in rows}:
        of_day = [row for row in rows if row["on"] == day]
        write_parquet(tmp_path / "log" / f"{day}.parquet", of_day)
    log = duckdb_engine.read(tmp_path / "log", day="on", window="7d")
    whole = harvest(log)
    monkeypatch.setattr(counting, "LARGE", 1)
    monkeypatch.setattr(counting, "LARGE_DAY", 1)
    parts = []
    monkeypatch.setattr(type(log.engine), "run_part", _noting(type(log.engine).run_part, parts))
    assert harvest(log).equals(whole) and len(parts) == len(whole.days)


def _noting(run, seen):
    def noted(self, *given):
        seen.append(given)
        return run(self, *given)

    return noted


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_statement_for_a_warehouse(dialect, tmp_path):
    rows = spread(7)
    path = write_parquet(tmp_path / "log.parquet", rows)
    log = read_log(path, day="on", search="sid", window="7d")
    sql = warehouse_sql("log", dialect=dialect, log=log)
    assert sqlglot.parse(sql, read=dialect)
    if dialect == "duckdb":
        with duckdb.connect() as con:
            con.execute(f"CREATE VIEW log AS FROM '{path}'")
            con.execute(f"COPY ({sql}) TO '{tmp_path / 'result.csv'}' (HEADER)")
        counts = import_counts(tmp_path / "result.csv")
        assert_same(counts, tally(rows, day="on", search="sid", window="7d"))
        assert counts.options["window"] == "7d"


def test_counts_of_other_windows_do_not_add(tmp_path):
    path = write_parquet(tmp_path / "log.parquet", spread(8))
    days, weeks, tens = (
        harvest(read_log(path, day="on", **more))
        for more in ({}, {"window": "7d"}, {"window": "10d"})
    )
    assert days.n_pairs < weeks.n_pairs
    for one, other in ((days, weeks), (weeks, tens)):
        with pytest.raises(BadCounts, match="option 'window' is"):
            one + other


@pytest.mark.parametrize("window", ["week", "0d", "-7d", "7h", "", "1.5d"])
def test_a_window_that_is_none(tmp_path, window):
    path = write_parquet(tmp_path / "log.parquet", spread(9))
    with pytest.raises(BadOption, match="days such as 7d"):
        read_log(path, day="on", window=window)


def test_a_window_needs_days(tmp_path):
    path = write_parquet(tmp_path / "log.parquet", spread(10))
    with pytest.raises(BadOption, match="needs the column of the day"):
        read_log(path, day="", window="7d")
