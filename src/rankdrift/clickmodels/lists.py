"""Many lists of different lengths in flat arrays, laid out for going down all of them at once.

Lists are kept in blocks that fit the processor's cache, the longest first. A block has the first
elements of all its lists, then the second ones, and so on: what stands at one place of many lists
is a slice, and no place is padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

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
        (N,): falling.
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
        (M,): lists of equal length are put in this order, so that those that speak of the same
        things are near each other.
    first
        (M,): where each list begins; by default they stand one after the other.

    Returns
    -------
    tuple
        The layout; (N,) which list stands where; (T,) where each element came from.
    """
    lengths = np.asarray(lengths, np.int64)
    by = np.asarray(by, np.int64)
    most = int(by.max(initial=0)) + 1
    order = np.argsort((lengths.max(initial=0) - lengths) * most + by, kind="stable")
    order = order[: int((lengths > 0).sum())]
    sizes = lengths[order]
    begins = np.cumsum(lengths) - lengths if first is None else first
    begins = begins[order]
    rows = np.empty(int(sizes.sum()), np.intp)
    blocks = []
    done = at = 0
    while at < len(order):
        end = min(len(order), at + max(BLOCK_ROWS // int(sizes[at]), 1))
        falling = -sizes[at:end]
        counts = np.searchsorted(falling, -np.arange(int(sizes[at])), side="left")
        start = done
        for k, count in enumerate(counts.tolist()):
            rows[done : done + count] = begins[at : at + count] + k
            done += count
        blocks.append(Block(slice(at, end), slice(start, done), tuple(counts.tolist())))
        at = end
    return Lists(sizes, tuple(blocks)), order, rows


def after_last(lists: Lists, mark: Bools) -> tuple[Indices, Bools, Ints]:
    """Where each list was marked last, and which elements come after that.

    Parameters
    ----------
    lists
        N lists with T elements.
    mark
        (T,)

    Returns
    -------
    tuple
        (N,) the element, -1 where none is; (T,) whether no element from here on is; (N,) how many
        those are.
    """
    last = np.full(len(lists), -1, np.intp)
    after = np.empty(lists.rows, bool)
    counts = np.zeros(len(lists), np.int64)
    for block in lists.blocks:
        marked, free = mark[block.rows], after[block.rows]
        found, length = last[block.lists], counts[block.lists]
        clear = np.ones(block.lists.stop - block.lists.start, bool)
        for count, place in reversed(list(block.places())):
            hit = marked[place]
            here = hit & clear[:count]
            rows = np.flatnonzero(here)
            found[rows] = block.rows.start + place.start + rows
            clear[:count] &= ~hit
            free[place] = clear[:count]
            length[:count] += clear[:count]
    return last, after, counts
