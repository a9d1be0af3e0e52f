"""Ranks that clicks do not link have no estimate, and it is said why."""

import pytest
from support.worlds import listed

from rankdrift.core.errors import NotIdentified, RankdriftError
from rankdrift.estimation import estimate

DOWN, UP = ((1, 1), (2, 0)), ((1, 0), (2, 1))


TWO = [(DOWN, 0, 5), (UP, 1, 5), (DOWN, 2, 3), (UP, 3, 2)]


def test_what_connects_ranks_depends_on_which_clicks_count():
    """Rank 3 wins only in pairs clicked twice, which clicks='single' leaves out."""
    counts = listed([
        *TWO, (((1, 1), (3, 0)), 0, 3), (((1, 1), (3, 1)), 1, 3), (((1, 1), (4, 1)), 1, 3),
    ])  # fmt: skip
    assert estimate(counts, curve="direct").ranks.tolist() == [1, 2, 3, 4]
    single = estimate(counts, curve="direct", clicks="single")
    assert single.ranks.tolist() == [1, 2]
    assert set(single.gaps) == {3, 4}


def test_a_pair_that_leaves_the_block_still_speaks_inside_it():
    """Shown at 1, 2 and 3, of which 3 is no part of the block: its click at 1 is one over 2."""
    counts = listed([*TWO, (((1, 1), (2, 0), (3, 0)), 0, 7)])
    found = estimate(counts, curve="direct", errors="model")
    assert found.ranks.tolist() == [1, 2]
    assert found.values[1] == pytest.approx(7 / (8 + 7))


def test_a_reference_that_compares_with_nothing():
    counts = listed([*TWO, (((2, 1), (3, 0)), 0, 4)])
    with pytest.raises(NotIdentified, match=r"Rank 3, the reference.*Ranks that can: 1–2"):
        estimate(counts, curve="direct", reference=3)
    with pytest.raises(NotIdentified, match=r"reference rank 9 is outside.*\(1–3\)"):
        estimate(counts, reference=9)
    with pytest.raises(NotIdentified, match="Ranks that can: none"):
        estimate(listed([(DOWN, 0, 4)]), curve="direct")


def test_knots_where_nothing_was_compared():
    counts = listed([*TWO, (((2, 1), (60, 0)), 0, 4), (((2, 0), (60, 1)), 1, 4)])
    with pytest.raises(NotIdentified, match=r"say nothing of the curve .* around ranks .*knots"):
        estimate(counts, curve="loglog")
    assert estimate(counts, curve="loglog(1, 2, 60)").values[-1] == pytest.approx(7 / 8)


def test_a_curvature_without_inverse_is_no_crash():
    """Two pairs, three knots: the last step has a curvature that only just has a factor."""
    counts = listed([(((5, True), (6, True)), 51), (((1, True), (3, True), (3, True)), 59)])
    with pytest.raises(RankdriftError, match="say nothing of the curve"):
        estimate(counts, curve="loglog")
