"""A table of counts is read whoever made it, and refused if it cannot be one."""

import re

import duckdb
import pytest
from support.counts_example import META, by_device, example, with_comparisons

from rankdrift.core.errors import BadCounts
from rankdrift.counts.file import metadata
from rankdrift.counts.reading import read_table


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        yield connection


GOOD = [
    "pair,3,6 15,,,,2,,",
    "pair,5,5 8 19,,,,1,,",
    "comparison,1,,true,2,3,2147483648,,",
    "held,,,true,2,,2,2,2",
    "held,,,true,3,,0,0,2",
    "rank,,,,3,,10,2,",
    "funnel,,input,,,,17,6,",
    "funnel,,used,,,,17,6,5",
    "note,,null_click,,,,1,,",
]


# What columns hold when the table comes with types; by default all are text.
TYPES = {"single": "BOOLEAN"} | dict.fromkeys("bucket rank other n clicks pairs".split(), "BIGINT")


def table(con, rows, columns="kind,bucket,shown,single,rank,other,n,clicks,pairs", types=None):
    names, types = columns.split(","), types or {}
    typed = ", ".join(f"{name} {types.get(name, 'VARCHAR')}" for name in names)
    con.execute(f"CREATE OR REPLACE TEMP TABLE given ({typed})")
    con.executemany(
        f"INSERT INTO given VALUES ({', '.join('?' * len(names))})",
        [[value or None for value in row.split(",")] for row in rows],
    )
    return read_table(con, "given", META)


WRONG = [
    ("pears,3,6 15,,,,2,,", "1 row has an unknown kind, for example kind 'pears'"),
    (",3,6 15,,,,2,,", "an unknown kind"),
    ("pair,3,6 15,,,,,,", "no n"),
    ("pair,,6 15,,,,2,,", "no bucket"),
    ("pair,3,,,,,2,,", "no shown"),
    ("pair,3,6 15,,,,2.5,,", "something other than a whole number as n"),
    ("pair,3,6 15,,,,many,,", "something other than a whole number as n"),
    ("pair,3,6 15,,,,99999999999999999999,,", "something other than a whole number as n"),
    ("pair,x,6 15,,,,2,,", "something other than a whole number as bucket"),
    ("pair,4294967299,6 15,,,,2,,", "do not fit int32"),
    ("pair,64,6 15,,,,2,,", "a bucket outside 0 to 63"),
    ("pair,3,6-15,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,6  15,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,0 6 15,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,6 15 0,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,6 15 x,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,x,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,6 99999999999,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,15 6,,,,2,,", "not ascending"),
    ("pair,3,6 1003,,,,2,,", "a rank outside 1 to max_rank 500"),
    ("pair,3,6 14,,,,2,,", "no click, or one rank only"),
    ("pair,3,6 7,,,,2,,", "no click, or one rank only"),
    ("pair,3,6 6 6 6 15,,,,2,,", "1 listed pair has more appearances than max_shown 4"),
    ("pair,3,6 15,,,,-2,,", "a negative number"),
    ("comparison,1,,,2,3,7,,", "no single"),
    ("comparison,1,,maybe,2,3,7,,", "no single"),
    ("comparison,1,,true,2,,7,,", "no other"),
    ("comparison,1,,true,2,2,7,,", "the same rank twice"),
    ("comparison,1,,true,2,3,-9,,", "a negative number"),
    ("held,,,true,,,2,2,2", "no rank"),
    ("held,,,,2,,2,2,2", "no single"),
    ("held,,,true,2,,2,,2", "no clicks"),
    ("held,,,true,2,,2,2,", "no pairs"),
    ("held,,,true,2,,3,2,2", "more pairs that have it as their first rank"),
    ("held,,,true,5,,0,0,1", "which are 2 pairs with 2 clicks"),
    ("rank,,,,,,10,2,", "no rank"),
    ("rank,,,,501,,10,2,", "a rank outside 1 to max_rank 500"),
    ("rank,,,,5,,-10,2,", "a negative number"),
    ("rank,,,,5,,1,2,", "more clicks than impressions"),
    ("funnel,,no_dog,,,,1,0,", "unknown reason 'no_dog'. Did you mean 'no_doc'?"),
    ("funnel,,no_doc,,,,1,0,", "17 rows in the log, but 1 dropped and 17 used"),
    ("funnel,,input,,,,1,0,", "18 rows in the log, but 0 dropped and 17 used"),
    ("note,,odd,,,,1,,", "unknown note 'odd'"),
    ("note,,null_click,,,,,,", "no n"),
    ("funnel,,,,,,1,0,", "no shown"),
    ("pair,3,6 15,,,,9,,", "Rows were lost or counted twice"),
]


def test_a_table_of_text_in_any_order_is_read(tmp_path, con):
    counts = by_device()
    counts.save(tmp_path / "counts.parquet")
    file = f"'{tmp_path}/counts.parquet'"
    con.execute(f"""COPY (
        SELECT * REPLACE (n - 1 AS n, clicks - 1 AS clicks, pairs - 1 AS pairs) FROM {file}
        UNION ALL
        SELECT * REPLACE (1 AS n, 1 + 0 * clicks AS clicks, 1 + 0 * pairs AS pairs) FROM {file}
        ORDER BY random()) TO '{tmp_path}/counts.csv'""")
    csv = f"read_csv('{tmp_path}/counts.csv', all_varchar = true)"
    assert con.sql(f"SELECT typeof(n) FROM {csv} LIMIT 1").fetchall() == [("VARCHAR",)]
    assert read_table(con, csv, metadata(counts)).equals(counts)
    assert con.sql("SHOW TABLES").fetchall() == []


def test_a_good_table_is_read(con):
    counts = table(con, GOOD)
    assert counts.pairs.equals(example().pairs)
    assert counts.rank_pairs.weight.tolist() == [2**31]
    assert counts.overflow.equals(with_comparisons().overflow)
    assert counts.funnel.notes["null_click"] == 1
    assert table(con, [row.replace(",17,", ", 17.0,") for row in GOOD]).equals(counts)


@pytest.mark.parametrize(("row", "words"), WRONG)
def test_a_table_that_cannot_be_is_refused(con, row, words):
    with pytest.raises(BadCounts, match=re.escape(words)):
        table(con, [*GOOD, row])
    assert con.sql("SHOW TABLES").fetchall() == [("given",)]


@pytest.mark.parametrize(
    ("row", "words"),
    [(row, words) for row, words in WRONG if "whole number" not in words and "maybe" not in row],
)
def test_a_table_with_types_that_cannot_be_is_refused_alike(con, row, words):
    assert table(con, GOOD, types=TYPES).equals(table(con, GOOD))
    with pytest.raises(BadCounts, match=re.escape(words)):
        table(con, [*GOOD, row], types=TYPES)
    assert con.sql("SHOW TABLES").fetchall() == [("given",)]


@pytest.mark.parametrize("lost", range(len(GOOD) - 2))
def test_a_table_with_a_row_lost_is_refused(con, lost):
    rows = [row for i, row in enumerate(GOOD) if i != lost]
    if GOOD[lost].startswith("rank"):
        assert len(table(con, rows).by_rank) == 0  # nothing else tells of these
        return
    with pytest.raises(BadCounts, match=r"counted twice|no row 'input'"):
        table(con, rows)


def test_columns_must_be_there(con):
    rows = [",".join(row.split(",")[:-1]) for row in GOOD]
    with pytest.raises(BadCounts, match=r"no column pairs\.$"):
        table(con, rows, "kind,bucket,shown,single,rank,other,n,clicks")
    with pytest.raises(BadCounts, match=r"no column pairs\. Did you mean 'pair'\?"):
        table(con, GOOD, "kind,bucket,shown,single,rank,other,n,clicks,pair")
    with pytest.raises(BadCounts, match="has segment_os, but the segment columns are none"):
        table(con, [row + ",ios" for row in GOOD],
              "kind,bucket,shown,single,rank,other,n,clicks,pairs,segment_os")  # fmt: skip


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({}, "no buckets, max_rank, max_shown"),
        ({**META, "days": 5}, "days 5"),
        ({**META, "sources": "abc"}, "sources 'abc'"),
        ({**META, "segment_columns": [1]}, "segment_columns [1]"),
        ({**META, "options": []}, "damaged options"),
        ({**META, "max_shown": "4"}, "max_shown is '4'"),
    ],
)
def test_metadata_must_be_right(con, meta, words):
    table(con, GOOD)
    with pytest.raises(BadCounts, match=re.escape(words)):
        read_table(con, "given", meta)
