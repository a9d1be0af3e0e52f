"""What the other estimators and the rankers read of a log, Spark reads as DuckDB does."""

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from support.harness import Harness, random_log, with_holes, write_parquet
from support.spark_session import session

from rankdrift.methods.experiments import swaps
from rankdrift.methods.interventions import find_interventions
from rankdrift.methods.tallies import clicked_pairs, tally
from rankdrift.ranking.matrix_reading import read_matrix

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ROLES = {"query": "query", "doc": "doc", "rank": "rank", "click": "click", "search": "sid",
         "day": "on", "same": "price"}  # fmt: skip


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Read by DuckDB and by Spark: missing values, a doc twice in some searches, an experiment in
    a third of them, and features with holes."""
    rows = with_holes(random_log(5, searches=300), 6, share=0.02, columns=["doc", "click", "rank"])
    rows += [{**row, "rank": 6} for row in rows[::40] if row["rank"] == 1]
    for i, row in enumerate(rows):
        row["drawn"] = int(row["sid"][1:]) % 3 == 0
        row["before"] = (row["rank"] or 0) % 6 + 1 if row["drawn"] and i % 2 else row["rank"]
        row["f_odd"] = None if i % 11 == 0 else i / 7
        row["f_word"] = ("red", "green", " ", None)[i % 4]
    types = {"drawn": pa.bool_(), "before": pa.int32(), "f_odd": pa.float64()}
    path = write_parquet(tmp_path_factory.mktemp("rivals") / "log.parquet", rows, **types)
    engines = Harness("duckdb"), Harness("spark", session())
    return [engine.read(path, segment="device", **ROLES) for engine in engines]


def of_sets(log):
    found = find_interventions(log, max_rank=4, buckets=16)
    return found.pairs, found.clicks, found.shown, found.clicked


def of_randomised_rows(log):
    found = tally(log, randomised="drawn", buckets=16)
    return found.impressions, found.clicks


def of_clicked_pairs(log):
    found = clicked_pairs(log, max_rank=5, buckets=16)
    return found.ranks, found.rank, found.stratum, found.bucket, found.clicks, found.misses


def of_swaps(log):
    found = swaps(log, original="before", randomised="drawn", buckets=16)
    return found.ranks, found.log_p, found.pairs, found.clicks


@pytest.mark.parametrize("read", [of_sets, of_randomised_rows, of_clicked_pairs, of_swaps])
def test_the_others_read_the_same(logs, read):
    expected, found = (read(log) for log in logs)
    for ours, theirs in zip(expected, found, strict=True):
        assert np.array_equal(ours, theirs)
        assert ours.any()


def test_a_matrix_is_the_same(logs):
    expected, found = (read_matrix(log, docs=True) for log in logs)
    assert found.fingerprint() == expected.fingerprint()
    assert found.features == expected.features
    assert found.segments == expected.segments
    assert found.doc.tolist() == expected.doc.tolist()
    assert found.funnel == expected.funnel
    assert np.isnan(found.x).any()
