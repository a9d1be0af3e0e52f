"""Judging a log by the appearances that were counted of it, by day or in a warehouse, is judging
the log itself."""

import duckdb
import numpy as np
import pytest
import sqlglot
from support.curve_example import by_device
from support.harness import random_log, with_holes, write_parquet

from rankdrift.core.dialects import DIALECTS
from rankdrift.core.errors import BadLog, MissingColumns
from rankdrift.harvesting.appearances import (
    appearances_by_day,
    holds_appearances,
    open_appearances,
)
from rankdrift.harvesting.warehouse import warehouse_sql
from rankdrift.judging.reading import read_statistics
from rankdrift.judging.statistics import Recency
from rankdrift.log.log import read_log

OPTIONS = {"query": ["query", "shelf"], "doc": "doc", "rank": "rank", "click": "click", "day": "on"}


def odd_rows(seed):
    """Holes, a query in two columns one of which may be missing or empty, segments that are odd."""
    shelves, devices = (None, "", "a b", "=x", "007"), ("web", None, "web")
    return [
        {**row, "shelf": shelves[i % 5], "device": devices[i % 3], "rank": min(row["rank"], 5)}
        for i, row in enumerate(with_holes(random_log(seed), seed, columns=("doc", "click", "on")))
    ]


def assert_equal(found, expected):
    """Bit by bit: sums are exact."""
    for name in ("clicks", "appearances", "exposure", "squares", "errors", "share", "days"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    np.testing.assert_array_equal(found.queries, expected.queries)
    np.testing.assert_array_equal(found.docs, expected.docs)
    for name, values in expected.rest.items():
        np.testing.assert_array_equal(found.rest[name], values)
    np.testing.assert_array_equal(found.pooled_error, expected.pooled_error)
    assert found.funnel == expected.funnel
    assert found.remarks == expected.remarks


def test_days_one_by_one_are_the_whole(engine, tmp_path):
    log = engine.read(
        write_parquet(tmp_path / "log.parquet", odd_rows(21)), **OPTIONS, segment="device"
    )
    files = appearances_by_day(log, tmp_path / "days")
    assert files[0].name == "undated.parquet" and len(files) == 4
    assert holds_appearances(str(tmp_path / "days")) and not holds_appearances(
        str(tmp_path / "log.parquet")
    )
    found = open_appearances(str(tmp_path / "days"))
    for recency in (Recency(), Recency(half_life=1.5), Recency(last=2)):
        of_log = read_statistics(log, by_device(), recency=recency, min_exposure=2.0)
        assert_equal(read_statistics(found, by_device(), recency=recency, min_exposure=2.0), of_log)
        of_log.funnel.check()
    pooled = read_statistics(found, by_device(), pool=True, min_exposure=0.0)
    assert pooled.appearances.sum() == pooled.funnel.used.rows > 0


def test_days_that_are_done_are_kept(tmp_path):
    rows = random_log(22)
    days = sorted({row["on"] for row in rows})
    for day in days:
        of_day = [row for row in rows if row["on"] == day]
        write_parquet(tmp_path / "log" / f"{day}.parquet", of_day)
    states = []

    def write():
        states.clear()
        log = read_log(str(tmp_path / "log"), query="query", day="on")
        return appearances_by_day(
            log, tmp_path / "days", each=lambda day, path, done: states.append(done)
        )

    first = [file.read_bytes() for file in write()]
    assert states == [False] * len(days)
    write()
    assert states == [True] * len(days)
    changed = [row for row in rows if row["on"] == days[1]][1:]
    write_parquet(tmp_path / "log" / f"{days[1]}.parquet", changed)
    files = write()
    assert states == [True, False, *[True] * (len(days) - 2)]
    files[0].write_bytes(files[0].read_bytes()[:-40])
    again = write()
    assert states[0] is False and again[0].read_bytes() == first[0]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A log, and a function that writes the result of the statement for a warehouse."""
    folder = tmp_path_factory.mktemp("warehouse")
    path = write_parquet(folder / "log.parquet", odd_rows(23))
    log = read_log(path, **OPTIONS, segment="device")
    statement = warehouse_sql("log", dialect="duckdb", log=log, appearances=True)

    def export(name, select="FROM result"):
        with duckdb.connect() as con:
            con.execute(f"CREATE VIEW log AS FROM '{path}'")
            con.execute(f"CREATE VIEW result AS {statement}")
            con.execute(f"COPY ({select}) TO '{folder / name}'")
        return str(folder / name)

    return read_log(path, **OPTIONS), export


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_a_warehouse_counts_the_same(exported, ending):
    log, export = exported
    found = open_appearances(export(f"result.{ending}"))
    assert_equal(
        read_statistics(found, by_device(), min_exposure=1.0),
        read_statistics(log, by_device(), min_exposure=1.0),
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "layout", [{"doc": "doc", "rank": "rank", "click": "click"}, {"shown": "shown", "clicked": "c"}]
)
def test_every_statement_is_one_of_its_dialect(dialect, layout):
    sql = warehouse_sql(
        "shop.log", dialect=dialect, query=["words", "shelf"], segment="device", day="on",
        appearances=True, **layout,
    )  # fmt: skip
    [tree] = sqlglot.parse(sql, read=dialect)
    kinds = {
        column.this.name
        for select in tree.find_all(sqlglot.exp.Select)
        for column in select.expressions
        if column.alias.lower() == "kind"
    }
    assert kinds == {"shown", "total", "note", "meta"}


def test_what_is_not_whole_or_does_not_go_together_is_refused(exported, tmp_path):
    _, export = exported
    with pytest.raises(BadLog, match="not whole"):
        open_appearances(export("less.csv", "FROM result WHERE rank IS DISTINCT FROM 1"))
    with pytest.raises(BadLog, match="do not say what they are of"):
        open_appearances(export("no_meta.csv", "FROM result WHERE kind <> 'meta'"))
    log = read_log(write_parquet(tmp_path / "log.parquet", random_log(24)), query="query", day="on")
    one = appearances_by_day(log, tmp_path / "one")
    two = appearances_by_day(log, tmp_path / "two")
    with pytest.raises(BadLog, match="same input is there twice"):
        open_appearances([str(one[0]), str(two[0])])
    other = read_log(str(tmp_path / "log.parquet"), query="query", day="on", max_rank=3)
    with pytest.raises(BadLog, match=r"different options.*max_rank"):
        open_appearances([str(one[0]), str(appearances_by_day(other, tmp_path / "3")[1])])
    said = one[0].read_bytes()
    for at in (len(said) // 2, len(said) - 20, said.rindex(b"rankdrift_stamp") + 20):
        one[0].write_bytes(said[:at] + bytes([said[at] ^ 1]) + said[at + 1 :])
        with pytest.raises(BadLog, match=r"changed since it was written|damaged"):
            open_appearances(str(one[0]))
    one[0].write_bytes(said.replace(b"rankdrift_stamp", b"rankdrift_stamq"))
    with pytest.raises(BadLog, match='its entry "digest" is missing'):
        open_appearances(str(one[0]))
    assert appearances_by_day(log, tmp_path / "one") == one and one[0].read_bytes() == said
    with pytest.raises(MissingColumns, match="--segment device"):
        read_statistics(open_appearances(str(tmp_path / "one")), by_device())
