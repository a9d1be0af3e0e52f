"""A row that stands for many appearances adds what they would, whatever its day weighs."""

import duckdb
import pytest
from support.curve_example import hand

from rankdrift.core.dialects import DUCKDB
from rankdrift.judging.exposures import UNIT, exposures_of
from rankdrift.judging.statistics import Recency
from rankdrift.judging.summing import Shown, Span, sums_plan
from rankdrift.log.sql.plan import ROWS_SHOWN, Step

# query, doc, day, rank, appearances, clicked; more days than fit one number
SEEN = [
    ("a", "x", 0, 1, 3, 2),
    ("a", "x", 65, 2, 4, 0),
    ("a", "y", 65, 3, 2, 1),
    ("b", "x", 9, 5, 7, 0),
]
NAMES = "q1, doc, day, rank"


def found(rows, names, times, recency):
    values = ", ".join(map(str, rows))
    step = Step(ROWS_SHOWN, f"SELECT *, TRUE AS ok FROM (VALUES {values}) AS t ({NAMES}, {names})")
    shown = Shown((step,), ["q1"], [], {"q1": "q1", "doc": "doc"}, DUCKDB, "day", times)
    plan = sums_plan(shown, exposures_of(hand(), False), Span(0, 65), recency, 0.0)
    with duckdb.connect() as con:
        return con.sql(f"FROM ({plan.as_query()}) ORDER BY q1, doc").fetchall()


@pytest.mark.parametrize("recency", [Recency(), Recency(half_life=7.3), Recency(last=66)])
def test_counted_rows_add_up_to_what_single_ones_do(recency):
    single = [(*key, int(i < clicked)) for *key, n, clicked in SEEN for i in range(n)]
    one_by_one = found(single, "click", None, recency)
    assert found(SEEN, "n, clicked", "n", recency) == one_by_one
    if recency.half_life is None:
        clicks = {(q, doc): float(c) / UNIT for _, q, doc, _, c, *_ in one_by_one}
        assert clicks == {("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 0}
