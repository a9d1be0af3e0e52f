"""Logs that come as Arrow data, from a database, a dataset, Iceberg or Delta: all are one log."""

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from rankdrift import harvest, read_log
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.log.sources import Frame, Stream, find


@pytest.fixture(scope="module")
def table():
    """A small log."""
    return duckdb.sql(
        """SELECT s AS search, 'word ' || (s % 3) AS query, 'd' || ((r * 7 + s) % 9) AS doc,
            r AS rank, CAST((r * 13 + s * 7) % (2 + r) = 0 AS INTEGER) AS click,
            DATE '2024-05-01' + CAST(s % 2 AS INTEGER) AS day
        FROM range(200) AS searches(s), range(1, 7) AS ranks(r) ORDER BY ALL"""
    ).to_arrow_table()


@pytest.fixture(scope="module")
def counts(table):
    """What it counts to."""
    found = harvest(read_log(table))
    assert found.n_pairs > 20
    return found


OPEN = []  # connections and cursors that streams come from


class Anything:
    """Has nothing but the method of Arrow's protocol, and can be read once."""

    def __init__(self, table):
        self.reader = table.to_reader()

    def __arrow_c_stream__(self, requested_schema=None):
        return self.reader.__arrow_c_stream__(requested_schema)


def dataset(table, folder):
    pa.parquet.write_table(table, folder / "log.parquet")
    return pa.dataset.dataset(folder)


def adbc(table, folder):
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(str(folder / "log.sqlite")) as con, con.cursor() as cursor:
        # SQLite has no dates: they are kept as text.
        day = table.schema.get_field_index("day")
        cursor.adbc_ingest("log", table.set_column(day, "day", table["day"].cast(pa.string())))
        con.commit()
    OPEN.append(dbapi.connect(str(folder / "log.sqlite")))
    OPEN.append(OPEN[-1].cursor())
    OPEN[-1].execute("SELECT * FROM log")
    return OPEN[-1].fetch_record_batch()


def delta(table, folder):
    import deltalake

    deltalake.write_deltalake(str(folder / "log"), table)
    found = deltalake.QueryBuilder().register("log", deltalake.DeltaTable(str(folder / "log")))
    return found.execute("SELECT * FROM log")


def iceberg(table, folder):
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("shop", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/w")
    catalog.create_namespace("shop")
    made = catalog.create_table("shop.log", schema=table.schema)
    made.append(table)
    return made.scan().to_arrow_batch_reader()


WAYS = {
    "a table": (lambda table, folder: table, Frame),
    "a Polars frame": (lambda table, folder: pl.DataFrame(table), Frame),
    "a reader of batches": (lambda table, folder: table.to_reader(), Stream),
    "anything with a stream": (lambda table, folder: Anything(table), Stream),
    "a dataset of PyArrow": (dataset, Frame),
    "ADBC": (adbc, Stream),
    "Delta": (delta, Stream),
    "Iceberg": (iceberg, Stream),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_the_same_log(table, counts, tmp_path, way):
    make, kind = WAYS[way]
    source = make(table, tmp_path)
    assert type(find(source)) is kind
    log = read_log(source)
    found = harvest(log)
    for name in counts.tables:
        assert found.tables[name].equals(counts.tables[name]), name
    assert found.funnel == counts.funnel and found.days == counts.days
    assert harvest(log).equals(found)  # as often as one likes
    while OPEN:
        OPEN.pop().close()


def test_a_stream_that_was_read_before_is_refused_in_words(table):
    reader = table.to_reader()
    read_log(reader)
    with pytest.raises(BadLog, match="can be read only once"):  # DuckDB's own words
        read_log(reader)
    with pytest.raises(BadLog, match=r"No row came from the Anything\. A stream can be read once"):
        read_log(Anything(table[:0]))


def test_what_gives_a_stream_is_named(table, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(tmp_path / "log"), table)
    given = deltalake.DeltaTable(str(tmp_path / "log"))
    with pytest.raises(BadOption, match=r"from a DeltaTable.*to_pyarrow_dataset\(\) gives"):
        read_log(given)
    assert read_log(given.to_pyarrow_dataset()).layout.name == "long"


@pytest.mark.parametrize("lossless", [False, True])
@pytest.mark.parametrize("give", [lambda relation: relation, lambda relation: relation.arrow()])
def test_whole_numbers_of_128_bits_are_kept_apart(table, counts, give, lossless):
    """Docs and searches differ in the last place alone, which a double has not; sums are as long"""
    with duckdb.connect(config={"arrow_lossless_conversion": lossless}) as database:
        database.register("rows", table)
        relation = database.sql(
            "SELECT search + 18446744073709551616 AS search, query, rank, sum(click) AS click, day,"
            " CAST(substr(doc, 2) AS INTEGER) + 18446744073709551616 AS doc FROM rows GROUP BY ALL"
        )
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        assert types["search"] == types["doc"] == types["click"] == "HUGEINT"
        found = harvest(read_log(give(relation)))
    assert (found.n_pairs, found.funnel) == (counts.n_pairs, counts.funnel)
