"""Many lists of different lengths in flat arrays, laid out for going down all of them at once.

Lists are kept in blocks that fit the processor's cache, the longest of a block first. A block has
the first elements of all its lists, then the second ones, and so on: what stands at one place of
many lists is a slice, and no place is padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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

    def spread(self, values: Ints, step: int = 0) -> Ints:
        """Of each element: the value of its list, and a step more for each element above it."""
        own = (values[:count] + k * step for k, count in enumerate(self.counts))
        return np.concatenate(list(own))


def block_of(lengths: Ints, lists: int, rows: int) -> Block:
    """The block of lists of these lengths, which fall, after so many other lists and elements."""
    counts = np.searchsorted(-lengths, -np.arange(int(lengths[0])), side="left")
    return Block(
        slice(lists, lists + len(lengths)),
        slice(rows, rows + int(lengths.sum())),
        tuple(counts.tolist()),
    )


def falling(lengths: Ints, lists: Indices, rows: int) -> list[Indices]:
    """These lists in blocks of about so many rows at most, the longest of each first, without those
    that have no element."""
    lists = lists[lengths[lists] > 0]
    ends = np.cumsum(lengths[lists])
    cuts = np.flatnonzero(changes((ends - lengths[lists]) // rows))
    return [
        own[np.argsort(-lengths[own], kind="stable")]
        for own in np.split(lists, cuts[1:])
        if len(own)
    ]


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

    def list_of_rows(self) -> Indices:
        """(T,): which list an element is of."""
        found = np.empty(self.rows, np.intp)
        for block in self.blocks:
            found[block.rows] = block.spread(np.arange(block.lists.start, block.lists.stop))
        return found


def lay_out(lengths: Ints, by: Ints) -> tuple[Lists, Indices, Indices]:
    """Lay lists out that stand one after the other.

    Parameters
    ----------
    lengths
        (M,): of the lists; those of length 0 are left out.
    by
        (M,): lists are put in this order, but for their lengths within a block, so that those that
        speak of the same things are near each other.

    Returns
    -------
    tuple
        The layout; (N,) which list stands where; (T,) where each element came from.
    """
    lengths = np.asarray(lengths, np.int64)
    begins = np.cumsum(lengths) - lengths
    blocks, rows = list[Block](), [np.zeros(0, np.int64)]
    done = 0
    order = falling(lengths, order_of(np.asarray(by, np.int64)), BLOCK_ROWS)
    for own in order:
        blocks.append(block_of(lengths[own], done, blocks[-1].rows.stop if blocks else 0))
        rows.append(blocks[-1].spread(begins[own], 1))
        done += len(own)
    listed = np.concatenate(order) if order else np.zeros(0, np.intp)
    return Lists(lengths[listed], tuple(blocks)), listed, np.concatenate(rows)


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
