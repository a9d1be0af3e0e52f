"""Many lists of different lengths in flat arrays, laid out for going down all of them at once.

Lists are kept in blocks that fit the processor's cache, the longest of a block first. A block has
the first elements of all its lists, then the second ones, and so on: what stands at one place of
many lists is a slice, and no place is padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rankdrift.clickmodels.ordering import changes, order_of
from rankdrift.core.types import Bools, Indices, Ints

BLOCK_ROWS = 1 << 15
"""Elements of a block, about: a few arrays of so many numbers stay in the cache."""


@dataclass(frozen=True)
class Block:
    """Some of the lists.

    Parameters
    ----------
    lists
        Which ones.
    rows
        Their elements in the flat arrays.
    counts
        (K,): how many of them have a first, a second … element; falling.
    """

    lists: slice
    rows: slice
    counts: tuple[int, ...]

    @property
    def starts(self) -> Indices:
        """(K,): where the elements of every place begin within the block."""
        return np.cumsum((0, *self.counts[:-1]))

    def places(self) -> Iterator[tuple[int, slice]]:
        """(how many lists have it, where its elements are within the block) of every place."""
        start = 0
        for count in self.counts:
            yield count, slice(start, start + count)
            start += count


@dataclass(frozen=True, eq=False)
class Lists:
    """N lists with T elements.

    Parameters
    ----------
    lengths
        (N,): falling within a block.
    blocks
        All lists, in order.
    """

    lengths: Ints
    blocks: tuple[Block, ...]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> int:
        """T."""
        return self.blocks[-1].rows.stop if self.blocks else 0

    def came_from(self, first: Indices) -> Iterator[tuple[slice, Indices]]:
        """(the elements of a block, where each came from) of every block, for lists that stood one
        element after the other from `first` (N,)."""
        for block in self.blocks:
            rows = np.empty(block.rows.stop - block.rows.start, np.intp)
            own = first[block.lists]
            for k, (count, place) in enumerate(block.places()):
                np.add(own[:count], k, out=rows[place])
            yield block.rows, rows

    def one_by_one(self) -> Indices:
        """(T,): the elements list by list, each from its top."""
        found = np.empty(self.rows, np.intp)
        begins = np.cumsum(self.lengths) - self.lengths
        for block in self.blocks:
            own = begins[block.lists]
            for k, (count, place) in enumerate(block.places()):
                start = block.rows.start + place.start
                found[own[:count] + k] = np.arange(start, start + count)
        return found

    def list_of_rows(self) -> Indices:
        """(T,): which list an element is of."""
        found = np.empty(self.rows, np.intp)
        for block in self.blocks:
            within = found[block.rows]
            for count, place in block.places():
                within[place] = np.arange(block.lists.start, block.lists.start + count)
        return found


def lay_out(
    lengths: Ints, by: Ints, first: Indices | None = None
) -> tuple[Lists, Indices, Indices]:
    """Lay lists out.

    Parameters
    ----------
    lengths
        (M,): of the lists; those of length 0 are left out.
    by
        (M,): lists are put in this order, but for their lengths within a block, so that those that
        speak of the same things are near each other.
    first
        (M,): where each list begins; by default they stand one after the other.

    Returns
    -------
    tuple
        The layout; (N,) which list stands where; (N,) where each of these began.
    """
    lengths = np.asarray(lengths, np.int64)
    begins = np.cumsum(lengths) - lengths if first is None else first
    order = order_of(np.asarray(by, np.int64))
    order = order[lengths[order] > 0]
    ends = np.cumsum(lengths[order])
    cuts = np.flatnonzero(changes((ends - lengths[order]) // BLOCK_ROWS))
    blocks = []
    done = 0
    for start, stop in pairwise([*cuts.tolist(), len(order)]):
        own = order[start:stop]
        own[:] = own[np.argsort(-lengths[own], kind="stable")]
        falling = -lengths[own]
        counts = np.searchsorted(falling, -np.arange(-int(falling[0])), side="left")
        blocks.append(Block(slice(start, stop), slice(done, int(ends[stop - 1])), tuple(counts)))
        done = int(ends[stop - 1])
    return Lists(lengths[order], tuple(blocks)), order, begins[order]


def last_marked(lists: Lists, mark: Bools) -> tuple[Indices, Ints]:
    """Where each list was marked last.

    Parameters
    ----------
    lists
        N lists with T elements.
    mark
        (T,)

    Returns
    -------
    tuple
        (N,) the element, -1 where none is; (N,) how many come after it.
    """
    last = np.full(len(lists), -1, np.intp)
    at = np.full(len(lists), -1, np.int64)
    for block in lists.blocks:
        marked, place_of = mark[block.rows], at[block.lists]
        for k, (count, place) in enumerate(block.places()):
            np.copyto(place_of[:count], k, where=marked[place])
        found = np.flatnonzero(place_of >= 0)
        last[block.lists][found] = block.rows.start + block.starts[place_of[found]] + found
    return last, lists.lengths - 1 - at
