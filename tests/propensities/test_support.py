"""What a curve rests on, by block of ranks."""

import numpy as np
import pytest
from support.curve_example import hand

from rankdrift.propensities.support import support_of_blocks


def test_few_ranks_are_blocks_of_their_own():
    curve = hand()
    blocks = support_of_blocks(curve, None, most=48, level=0.95)
    assert [b.clicks for b in blocks] == curve.clicks.tolist()
    assert all(b.impressions is None for b in blocks)
    assert [b.thin for b in blocks] == (~curve.supported).astype(int).tolist()
    at = int(np.flatnonzero(curve.ranks == curve.reference)[0])
    assert blocks[at].error is None


def test_a_block_has_the_mean_of_its_ranks():
    curve = hand()
    shown = np.arange(int(curve.ranks[-1]) + 1, dtype=float) ** 2
    [block] = support_of_blocks(curve, shown, most=1, level=0.95)
    assert (block.first, block.last) == (curve.ranks[0], curve.ranks[-1])
    assert block.clicks == pytest.approx(curve.clicks.mean())
    assert block.impressions == pytest.approx((curve.ranks.astype(float) ** 2).mean())
