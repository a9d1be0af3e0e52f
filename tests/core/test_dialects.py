import duckdb
import pytest
import sqlglot

from rankdrift.core.dialects import DIALECTS

ODD = ("it's", "\\", "\\'", "''", "a\\\\'b", '"', "`", '"";--', "``x")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_text_cannot_break_out_of_its_quotes(dialect):
    d = DIALECTS[dialect]
    for text in (*ODD, ""):
        [tree] = sqlglot.parse(f"SELECT {d.literal(text)}", read=dialect)
        assert tree.expressions[0].this == text, text
    assert d.literals(("a", "b'")).startswith("'a', 'b")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_cannot_break_out_of_theirs(dialect):
    d = DIALECTS[dialect]
    for name in ODD:
        if dialect == "bigquery" and ("`" in name or "\\" in name):
            continue  # sqlglot does not know how names are escaped there
        [tree] = sqlglot.parse(f"SELECT {d.quote(name)}", read=dialect)
        assert tree.expressions[0].name == name, name
    assert d.quote("a b", "c d").count(d.quotes) == 4


@pytest.mark.parametrize("dialect", DIALECTS)
def test_none_is_null_and_the_word_is_a_text(dialect):
    d = DIALECTS[dialect]
    assert d.literal(None) == "NULL" and d.literal("NULL") == "'NULL'"


def test_ordinary_names_are_capitals_in_snowflake_only():
    assert {name for name, d in DIALECTS.items() if "AB" in d.quote("ab")} == {"snowflake"}
    assert DIALECTS["snowflake"].quote("a b") == '"a b"'


def test_names_in_bigquery_are_escaped_by_a_backslash():
    assert DIALECTS["bigquery"].quote("a`b\\c") == "`a\\`b\\\\c`"


def test_microseconds_in_bigquery_are_no_product_beyond_64_bits():
    """DuckDB's whole numbers are as wide as BigQuery's and are not let beyond it either."""
    sql = DIALECTS["bigquery"].epoch_instant.format("CAST(1714521600123456 AS INT64) / 1000000.0")
    found = duckdb.sql(f"SELECT epoch_us({sql.replace('TIMESTAMP_MICROS', 'make_timestamp')})")
    assert found.fetchall() == [(1714521600123456,)]
