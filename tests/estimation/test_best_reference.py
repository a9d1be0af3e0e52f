"""Where rank 1 is thin, the unit of all propensities is another rank, and that is said."""

import numpy as np
import pytest
from support.worlds import listed, power, simulate

from rankdrift import diagnose, estimate
from rankdrift.core.errors import Remark
from rankdrift.estimation.identification import best_reference


def moved(a, b, times, buckets=16):
    """Pairs shown at a and b in each bucket, clicked so often at either."""
    return [(((a, c), (b, 1 - c)), k, times) for k in range(buckets) for c in (0, 1)]


def test_rank_one_where_it_has_clicks():
    assert best_reference(simulate(2000, 20, 1, curve=power(0.6)).counts) == 1


@pytest.mark.parametrize(
    "at_the_top",
    [[(((1, 1), (2, 0)), 0, 30)], [(((1, c), (2, 1 - c)), 0, 30) for c in (0, 1)], []],
    ids=["never lost", "in one bucket", "not shown"],
)
def test_another_where_it_has_too_few(at_the_top):
    counts = listed([*at_the_top, *moved(2, 3, 2), *moved(3, 4, 5), *moved(4, 6, 3)], buckets=16)
    assert best_reference(counts) == 4
    with pytest.warns(Remark, match="relative to rank 4, which has the most"):
        found = estimate(counts, curve="direct")
    assert found.reference == 4 and found[4] == 1
    assert diagnose(counts, curve="direct").checks


def test_the_one_that_is_asked_for_is_kept(recwarn):
    counts = listed([*moved(1, 2, 1, 3), *moved(2, 3, 5)], buckets=16)
    found = estimate(counts, curve="direct", reference=1)
    assert found.reference == 1 and not [w for w in recwarn if w.category is Remark]
    other = estimate(counts, curve="direct", reference=2)
    np.testing.assert_allclose(found.log_p - found.log_p[1], other.log_p, atol=1e-9)
