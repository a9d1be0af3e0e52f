"""Which ranks the data can compare at all."""

from dataclasses import dataclass

import numpy as np

from rankdrift.core.notebook import brief
from rankdrift.core.types import Clicks, Ranks
from rankdrift.core.words import named_ranks
from rankdrift.counts.counts import Counts


@dataclass(frozen=True)
class Connection:
    """Ranks fall into blocks: inside a block all can be compared, across blocks none can.

    There is an edge from the clicked rank to every other rank its pair was shown at; a block is
    a strongly connected component of two ranks or more, the largest first. `alone` are ranks
    that pairs were shown at, but that are in no block: they never won a click against a rank of
    a block, or never lost one.
    """

    blocks: tuple[tuple[int, ...], ...]
    alone: tuple[int, ...]

    def __repr__(self) -> str:
        blocks = [f"{named_ranks(block, most=3)} can be compared" for block in self.blocks[:2]]
        alone = f"{named_ranks(self.alone, most=3)} cannot" if self.alone else ""
        return brief(self, *blocks, alone)

    @property
    def main(self) -> tuple[int, ...]:
        """The largest block; empty if there is none."""
        return self.blocks[0] if self.blocks else ()


def connection(counts: Counts, clicks: Clicks = "every") -> Connection:
    """The blocks of ranks that the clicks of `counts` can compare."""
    choices = counts.choices(clicks)
    shown = choices.shown
    lost = (shown > 0) & (shown != choices.clicked[:, None])
    row, column = np.nonzero(lost)
    return connect(choices.clicked[row], shown[row, column])


def connect(winners: Ranks, losers: Ranks) -> Connection:
    """The blocks of ranks where each of `winners` (N,) won a click over that of `losers` (N,)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if not len(winners):
        return Connection((), ())
    size = max(int(winners.max()), int(losers.max())) + 1
    # Each two once, in order: given the same edge twice, connected_components may never end.
    word = np.min_scalar_type(size)  # NumPy sorts short words the fastest
    order = np.lexsort([losers.astype(word), winners.astype(word)])
    winner, loser = winners.take(order), losers.take(order)
    new = np.flatnonzero((np.diff(winner, prepend=-1) != 0) | (np.diff(loser, prepend=-1) != 0))
    winner, loser = winner.take(new), loser.take(new)
    seen = np.bincount(winner, minlength=size) + np.bincount(loser, minlength=size) > 0
    ranks, place = np.flatnonzero(seen).astype(np.int32), np.cumsum(seen, dtype=np.int32) - 1
    starts = np.searchsorted(winner, np.append(ranks, size))
    graph = csr_array((np.ones(len(loser)), place[loser], starts), (len(ranks), len(ranks)))
    _, block_of = connected_components(graph, directed=True, connection="strong")
    order = np.argsort(block_of, kind="stable")
    groups = np.split(ranks[order], np.flatnonzero(np.diff(block_of[order])) + 1)
    blocks = sorted((tuple(g.tolist()) for g in groups if len(g) > 1), key=lambda b: (-len(b), b))
    alone = sorted(int(g[0]) for g in groups if len(g) == 1)
    return Connection(tuple(blocks), tuple(alone))
