"""Where rank 1 is thin, compare takes another reference, the same for every method, and says so."""

import duckdb
import pytest

from rankdrift import compare, read_log
from rankdrift.core.errors import Remark


@pytest.fixture(scope="module")
def thin_top(tmp_path_factory):
    """Docs move between ranks 2 to 6; at rank 1 there is one that never moves, but for a query."""
    path = tmp_path_factory.mktemp("thin") / "log.parquet"
    duckdb.sql(f"""COPY (
        SELECT s AS search, s % 80 AS query, DATE '2024-01-01' AS day,
            CASE WHEN r = 1 AND s % 80 <> 5 THEN 1000 ELSE (r + s // 80) % 6 END AS doc, r AS rank,
            (hash(s, r) % (2 + r) = 0)::INT AS click
        FROM range(3200) a(s), range(1, 7) b(r)) TO '{path}'""")
    return path


def test_another_reference_where_rank_1_is_thin(thin_top):
    with pytest.warns(Remark, match="relative to rank") as said:
        found = compare(thin_top, methods=["direct", "ctr"])
    references = {curve.reference for curve in found.curves.values()}
    assert len(references) == 1 and 1 not in references and len(said) == 1
    assert f"rank {references.pop()}, which" in str(said[0].message)


@pytest.mark.parametrize(("methods", "more"), [("loglog", {"reference": 1}), ("ctr", {})])
def test_rank_1_where_it_is_asked_for_or_no_pair_is_counted(methods, more, thin_top, recwarn):
    found = compare(read_log(thin_top), methods=methods, **more)
    assert {curve.reference for curve in found.curves.values()} == {1}
    assert not [one for one in recwarn if one.category is Remark]
