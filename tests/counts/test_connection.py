"""Blocks of ranks that can be compared, against plain search."""

import numpy as np
import pytest

from rankdrift.counts.connection import connect


def reached(edges, start):
    """All ranks that a chain of edges leads to."""
    found, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        new = {b for a, b in edges if a == here} - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("seed", range(20))
def test_blocks_are_those_of_chains_both_ways(seed):
    """Edges come several times, as they do from pairs shown more than twice."""
    rng = np.random.default_rng(seed)
    winners, losers = rng.choice([1, 2, 3, 5, 8, 40, 41, 300], (2, rng.integers(1, 40)))
    other = winners != losers
    edges = list(zip(winners[other].tolist(), losers[other].tolist(), strict=True))
    twice = np.array(edges * 2, np.int32).reshape(-1, 2)
    found = connect(twice[:, 0], twice[:, 1])
    chains = {rank: reached(edges, rank) for edge in edges for rank in edge}
    blocks = {tuple(sorted(b for b in to if a in chains[b])) for a, to in chains.items()}
    wanted = sorted((b for b in blocks if len(b) > 1), key=lambda b: (-len(b), b))
    assert found.blocks == tuple(wanted)
    assert found.alone == tuple(sorted(b[0] for b in blocks if len(b) == 1))


def test_ranks_that_never_met():
    none = np.zeros(0, np.int32)
    assert connect(none, none).blocks == ()
    assert connect(none, none).main == ()
