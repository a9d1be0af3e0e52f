"""Blocks of ranks leave no rank out and overlap nowhere."""

from itertools import pairwise

import numpy as np
import pytest

from rankdrift.core.rank_blocks import DOUBLING, ONE_TWO_FIVE, block_of, widening_edges


@pytest.mark.parametrize("blocks", [ONE_TWO_FIVE, DOUBLING])
def test_blocks_follow_each_other(blocks):
    assert blocks[0][0] == 1
    assert all(first == before + 1 for (_, before), (first, _) in pairwise(blocks))
    for place, (first, last) in enumerate(blocks):
        assert block_of(np.array([first, last], np.int32), blocks).tolist() == [place, place]


def test_deeper_ranks_are_a_block_of_their_own():
    assert block_of(np.array([501, 9999], np.int32), ONE_TWO_FIVE).tolist() == [9, 9]


def test_edges_widen_from_the_first_rank_to_beyond_the_last():
    edges = widening_edges(1, 500, 60)
    assert (edges[0], edges[-1]) == (1, 501)
    assert len(edges) <= 61
    assert (np.diff(edges) > 0).all()
    assert np.diff(edges)[:5].tolist() == [1] * 5
    assert np.diff(edges)[-1] > 20
    assert widening_edges(3, 5, 60).tolist() == [3, 4, 5, 6]
