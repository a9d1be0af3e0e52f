"""What a value means, one value at a time, on DuckDB."""

from functools import cache

import duckdb
import pytest

from rankdrift.core.dialects import DUCKDB
from rankdrift.log.columns import Column
from rankdrift.log.options import Rules
from rankdrift.log.sql import values


@cache
def connection():
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    return con


def evaluate(*expressions, value):
    """SQL on a column x that holds `value`, given as SQL with its type."""
    sql = f"SELECT {', '.join(expressions)} FROM (SELECT {value} AS x)"
    return connection().execute(sql).fetchone()


@pytest.mark.parametrize(
    ("kind", "value", "rank", "bad"),
    [
        ("int", "7", 7, False),
        ("int", "-7", -7, False),
        ("int", "NULL::INT", None, False),
        ("bool", "TRUE", 1, False),
        ("float", "3.0::DOUBLE", 3, False),
        ("float", "3.5::DOUBLE", None, True),
        ("float", "'nan'::DOUBLE", None, False),
        ("float", "'-inf'::DOUBLE", None, False),
        ("float", "1e15::DOUBLE", None, True),
        ("float", "999999999999999::DOUBLE", 999999999999999, False),
        ("float", "3.00::DECIMAL(9, 2)", 3, False),
        ("float", "3.01::DECIMAL(9, 2)", None, True),
        ("text", "' 12 '", 12, False),
        ("text", "'12.0'", 12, False),
        ("text", "'-1e1'", -10, False),
        ("text", "'12.5'", None, True),
        ("text", "'twelve'", None, True),
        ("text", "'1e999'", None, True),
        ("text", "'nan'", None, True),
        ("text", "''", None, False),
        ("text", "'  '", None, False),
        ("text", "NULL::VARCHAR", None, False),
        ("json", "'12'::JSON", 12, False),
        ("json", "'\"12\"'::JSON", 12, False),
        ("json", "'[1]'::JSON", None, True),
        ("other", "TIME '12:00'", None, True),
        ("date", "DATE '2024-01-01'", None, True),
    ],
)
def test_ranks(kind, value, rank, bad):
    assert evaluate(*values.rank("x", kind, DUCKDB), value=value) == (rank, bad)


def test_a_rank_that_is_null_in_json_is_missing():
    rank, bad = evaluate(*values.rank("x", "json", DUCKDB), value="'null'::JSON")
    assert rank is None and not bad


@pytest.mark.parametrize(
    ("kind", "value", "click", "bad"),
    [
        ("bool", "TRUE", 1, False),
        ("bool", "NULL::BOOLEAN", None, False),
        ("int", "3", 3, False),
        ("int", "NULL::INT", None, False),
        ("float", "1.0::DOUBLE", 1, False),
        ("float", "0.5::DOUBLE", None, True),
        ("float", "'nan'::DOUBLE", None, False),
        ("text", "' Yes'", 1, False),
        ("text", "'CLICKED'", 1, False),
        ("text", "'f'", 0, False),
        ("text", "'2'", 2, False),
        ("text", "'perhaps'", None, True),
        ("text", "' '", None, False),
        ("text", "NULL::VARCHAR", None, False),
        ("json", "'true'::JSON", 1, False),
        ("json", "'\"no\"'::JSON", 0, False),
        ("timestamp", "TIMESTAMP '2024-01-01 10:00:00'", 1, False),
        ("timestamp", "NULL::TIMESTAMP", 0, False),
        ("date", "DATE '2024-01-01'", 1, False),
    ],
)
def test_clicks(kind, value, click, bad):
    assert evaluate(*values.click("x", kind, DUCKDB), value=value) == (click, bad)


@pytest.mark.parametrize(
    ("kind", "value"), [("int", "-1"), ("float", "-1.0::DOUBLE"), ("text", "'-1'")]
)
def test_a_negative_number_of_clicks_is_unreadable(kind, value):
    assert evaluate(values.click("x", kind, DUCKDB)[1], value=value) == (True,)


@pytest.mark.parametrize(
    ("kind", "value", "zone", "day"),
    [
        ("date", "DATE '2024-02-29'", "Asia/Tokyo", "2024-02-29"),
        ("timestamp", "TIMESTAMP '2024-02-29 23:00:00'", None, "2024-02-29"),
        ("timestamp", "TIMESTAMP '2024-02-29 23:00:00'", "Asia/Tokyo", "2024-03-01"),
        ("timestamp", "TIMESTAMP_NS '2024-02-29 23:00:00'", "Asia/Tokyo", "2024-03-01"),
        ("timestamp", "TIMESTAMP_S '2024-02-29 23:00:00'", "America/New_York", "2024-02-29"),
        ("instant", "TIMESTAMPTZ '2024-02-29 23:00:00-05'", None, "2024-03-01"),
        ("instant", "TIMESTAMPTZ '2024-02-29 23:00:00-05'", "America/New_York", "2024-02-29"),
        ("text", "' 2024-02-29 '", "Asia/Tokyo", "2024-02-29"),
        ("text", "'2024-02-29T23:00:00'", None, "2024-02-29"),
        ("text", "'2024-02-29T23:00:00'", "Asia/Tokyo", "2024-03-01"),
        ("text", "'2024-02-29 23:00:00.123456+00:00'", "Asia/Tokyo", "2024-03-01"),
        ("text", "'2024-02-29T23:00:00Z'", "America/New_York", "2024-02-29"),
        ("text", "'20240229'", None, "2024-02-29"),
        ("text", "'20240230'", None, None),
        ("text", "'2024-02-30'", None, None),
        ("text", "'Feb 29, 2024 at noon'", None, None),
        ("text", "''", None, None),
        ("text", "NULL::VARCHAR", None, None),
        ("int", "20240229", None, "2024-02-29"),
        ("int", "1709247600", None, "2024-02-29"),
        ("int", "1709247600", "Asia/Tokyo", "2024-03-01"),
        ("int", "1709247600000", None, "2024-02-29"),
        ("int", "1709247600000000", None, "2024-02-29"),
        ("int", "1709247600000000000", None, "2024-02-29"),
        ("int", "99999999999", None, None),
        ("int", "10000000000000", None, "2286-11-20"),
        ("int", "10000000000000000", None, "2286-11-20"),
        ("int", "2024", None, None),
        ("int", "202402", None, None),
        ("int", "-1709247600", None, None),
        ("text", "'99999999999999999999999'", None, None),
        ("json", "'\"2024-02-29\"'::JSON", None, "2024-02-29"),
        ("json", "'1709247600000'::JSON", None, "2024-02-29"),
        ("bool", "TRUE", None, None),
    ],
)
def test_days(kind, value, zone, day):
    sql = values.day(Column(("x",), kind), "x", Rules(time_zone=zone), DUCKDB)
    [found] = evaluate(sql, value=value)
    assert (found and found.isoformat()) == day


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("text", "' A '", " A "),
        ("int", "12", "12"),
        ("float", "12.0::DOUBLE", "12"),
        ("float", "-0.0::DOUBLE", "0"),
        ("float", "12.5::FLOAT", "12.5"),
        ("float", "'nan'::DOUBLE", None),
        ("bool", "TRUE", "true"),
        ("date", "DATE '2024-02-29'", "2024-02-29"),
        ("json", "'\"a\"'::JSON", "a"),
        ("json", "'null'::JSON", None),
        ("list", "[1, 2]", "[1,2]"),
        ("nested", "{'a': 1}", '{"a":1}'),
        ("nested", "NULL::STRUCT(a INT)", None),
        ("other", "'6f9619ff-8b86-4d01-b42d-00cf4fc964ff'::UUID",
         "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"),
        ("other", "'a'::BLOB", "a"),
    ],
)  # fmt: skip
def test_keys_as_text(kind, value, text):
    sql = values.as_text(values.key("x", kind, DUCKDB), kind, DUCKDB)
    assert evaluate(sql, value=value) == (text,)


@pytest.mark.parametrize(
    ("kind", "zone", "words"),
    [
        ("date", "Asia/Tokyo", "the date as written"),
        ("timestamp", None, "the date of the timestamp as written"),
        ("timestamp", "Asia/Tokyo", "the date in Asia/Tokyo"),
        ("instant", None, "the date in UTC"),
        ("text", None, "the date in UTC"),
    ],
)
def test_what_a_day_means_in_words(kind, zone, words):
    assert values.zone_words(Column(("x",), kind), Rules(time_zone=zone)) == words
