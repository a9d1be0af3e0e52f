"""The table of counts is stated once: its kinds cover the tables of Counts and nothing else."""

from dataclasses import fields

import duckdb
import pytest
from support.counts_example import by_device

from rankdrift.counts.counts import ByRank, Overflow, Pairs, RankPairs, Singles, Splits
from rankdrift.counts.schema import CELLS, KINDS, NUMBERS, SEGMENT, TYPES, table_sql

TABLES = {
    "pairs": Pairs, "rank_pairs": RankPairs, "overflow": Overflow, "by_rank": ByRank,
    "splits": Splits, "singles": Singles,
}  # fmt: skip


@pytest.mark.parametrize("kind", CELLS, ids=lambda kind: kind.name)
def test_every_array_of_a_table_has_a_column(kind):
    table = TABLES[kind.counts]
    assert {"segment", *kind.columns.values()} == {field.name for field in fields(table)}
    assert len(kind.sums) == table.SUMS
    assert set(kind.sums) <= set(NUMBERS)


def test_every_table_is_of_one_kind():
    assert [kind.counts for kind in CELLS] == list(TABLES)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_column_has_a_type(kind):
    assert set(kind.columns) <= set(TYPES)
    assert {*kind.needed, *kind.optional} == set(kind.columns)


def test_the_table_has_these_columns_and_kinds():
    """Names and types are the format of files: they must not change."""
    with duckdb.connect() as con:
        found = con.sql(f"DESCRIBE {table_sql(con, by_device())}").fetchall()
        kinds = con.sql(f"SELECT DISTINCT kind FROM ({table_sql(con, by_device())})")
        assert {kind for (kind,) in kinds.fetchall()} <= {kind.name for kind in KINDS}
    assert [name for name, *_ in found] == [
        *("kind", f"{SEGMENT}device", "bucket", "drift", "shown", "single"),
        *("rank", "other", "n", "clicks", "pairs"),
    ]
    assert {kind.name for kind in KINDS} == {
        *("pair", "comparison", "held", "rank", "split", "single", "funnel", "note")
    }
