"""Blocks of ranks: a single rank has too few clicks to say much, so ranks are shown in blocks."""

from collections.abc import Sequence

import numpy as np

from rankdrift.core.types import AnyInts, Floats, Indices, Ints, Ranks

# (first, last) of each block. Ranks deeper than the last make a block of their own.
ONE_TWO_FIVE = (
    (1, 1), (2, 2), (3, 5), (6, 10), (11, 20), (21, 50), (51, 100), (101, 200), (201, 500),
)  # fmt: skip
FINE = 16  # down to this rank, blocks of a few percent are single ranks
DOUBLING = (
    (1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 63), (64, 127), (128, 255), (256, 10**6),
)  # fmt: skip
# The first rank of each block of half an octave: 1, 2, 3, 4, 6, 8, 12, … to the deepest that a log
# may have.
HALF_OCTAVES = (1, *(first for k in range(1, 17) for first in (2**k, 3 * 2 ** (k - 1))))


def block_of(ranks: Ranks, blocks: Sequence[tuple[int, int]]) -> Indices:
    """(R,): the place in `blocks` of the one that each rank is in, or their number if deeper."""
    return np.searchsorted([last for _, last in blocks], ranks)


def half_octave_of(ranks: AnyInts) -> Indices:
    """(R,): the place in HALF_OCTAVES of the block that each rank is in."""
    return np.searchsorted(HALF_OCTAVES, ranks, side="right") - 1


def fine_blocks(deepest: int) -> Ints:
    """The first ranks of blocks down to the rank `deepest`: rank by rank down to FINE, then eight
    an octave, so that a curve hardly changes within one."""
    octaves = max(int(np.ceil(np.log2(max(deepest, 1) / FINE))), 0)
    wider = FINE * 2 ** (np.arange(8 * octaves + 1) / 8)
    firsts = np.append(np.arange(1, FINE), wider.round().astype(np.int64))
    return np.asarray(firsts[firsts <= deepest])


def widening_edges(first: int, last: int, most: int) -> Ints:
    """Where blocks of the ranks `first` to `last` begin, at most `most`, and where they end:
    rank by rank at the top, then ever wider."""
    return np.unique(np.geomspace(first, last + 1, most + 1).round().astype(np.int64))


def block_weights(ranks: Ranks, weight: Floats) -> Floats:
    """(B, R): the weights (R,) of the ranks within each of the blocks ONE_TWO_FIVE that has any, as
    shares of the block's."""
    of = block_of(ranks, ONE_TWO_FIVE)
    table = np.where(np.unique(of)[:, None] == of, weight, 0.0)
    table = table[table.any(axis=1)]
    return np.asarray(table / table.sum(axis=1, keepdims=True))
