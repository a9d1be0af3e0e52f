"""Searches: lists of results shown, and which of them were clicked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankdrift.clickmodels.lists import Lists, lay_out
from rankdrift.core.errors import BadOption
from rankdrift.core.notebook import brief
from rankdrift.core.types import AnyInts, Bools, Floats, Ints
from rankdrift.core.words import many


@dataclass(frozen=True, eq=False)
class Searches:
    """N searches with T results shown.

    Parameters
    ----------
    lists
        How the flat arrays are laid out, a list for each search.
    pair
        (T,), uint32: which query and doc, from 0. Pairs of one query have numbers in a row.
    rank
        (T,), uint16: from 1; rising down a list, though some may be missing.
    click
        (T,)
    query_of_pair
        (P,): the query of every pair there is, shown here or not.
    ranks
        The deepest rank there may be.
    """

    lists: Lists
    pair: NDArray[np.uint32]
    rank: NDArray[np.uint16]
    click: Bools
    query_of_pair: NDArray[np.uint32]
    ranks: int

    def __len__(self) -> int:
        return len(self.lists)

    @property
    def rows(self) -> int:
        """T."""
        return len(self.pair)

    @property
    def pairs(self) -> int:
        """P."""
        return len(self.query_of_pair)

    @cached_property
    def by_pair(self) -> tuple[Floats, Floats]:
        """(P,) clicks and (P,) times shown."""
        clicks, shown = np.zeros(self.pairs), np.zeros(self.pairs)
        for block in self.lists.blocks:
            # The pairs of a block are few: counted beside each other, they stay in the cache.
            pair = self.pair[block.rows]
            low = int(pair.min())
            own = slice(low, int(pair.max()) + 1)
            pair = pair - np.uint32(low)
            shown[own] += np.bincount(pair, minlength=own.stop - low)
            clicks[own] += np.bincount(pair[self.click[block.rows]], minlength=own.stop - low)
        return clicks, shown

    @cached_property
    def by_rank(self) -> tuple[Floats, Floats]:
        """(ranks + 1,) clicks and times shown, by rank."""
        clicks, shown = np.zeros(self.ranks + 1), np.zeros(self.ranks + 1)
        for block in self.lists.blocks:
            rank = self.rank[block.rows]
            shown += np.bincount(rank, minlength=self.ranks + 1)
            clicks += np.bincount(rank[self.click[block.rows]], minlength=self.ranks + 1)
        return clicks, shown

    @cached_property
    def last_click(self) -> NDArray[np.uint16]:
        """(T,): the rank of the last click above, 0 where there is none."""
        found = np.zeros(self.rows, np.uint16)
        for block in self.lists.blocks:
            rank, click, out = (x[block.rows] for x in (self.rank, self.click, found))
            last = np.zeros(block.lists.stop - block.lists.start, np.uint16)
            for count, place in block.places():
                out[place] = last[:count]
                last = np.where(click[place], rank[place], last[:count])
        return found

    def with_clicks(self, click: Bools) -> Searches:
        """The same lists, clicked otherwise."""
        return replace(self, click=np.asarray(click, bool))

    def __repr__(self) -> str:
        return brief(
            self,
            many(len(self), "search", "searches"),
            many(self.rows, "result shown", "results shown"),
            many(int(self.click.sum()), "click"),
        )


def make_searches(
    lengths: AnyInts,
    pair: AnyInts,
    rank: AnyInts,
    click: AnyInts | Bools,
    query_of_pair: AnyInts,
    ranks: int | None = None,
) -> Searches:
    """Searches from lists that stand one after the other.

    Parameters
    ----------
    lengths
        (N,): results shown in each.
    pair, rank, click
        (T,): of each result, from the top of the first list to the end of the last.
    query_of_pair
        (P,): the query of each pair.
    ranks
        The deepest rank there may be; by default the deepest there is.
    """
    sizes: Ints = np.asarray(lengths, np.int64)
    pair, rank = np.asarray(pair), np.asarray(rank)
    if sizes.sum() != len(pair) or not len(pair):
        raise BadOption(
            f"By their lengths the lists have {many(int(sizes.sum()), 'result')}, and there are "
            f"{len(pair):,}. Give as many, at least one."
        )
    queries: NDArray[np.uint32] = np.asarray(query_of_pair, np.uint32)
    first = np.minimum(np.cumsum(sizes) - sizes, len(pair) - 1)
    lists, _, rows = lay_out(sizes, queries[pair[first]].astype(np.int64))
    return Searches(
        lists,
        pair[rows].astype(np.uint32),
        rank[rows].astype(np.uint16),
        np.asarray(click)[rows].astype(bool),
        queries,
        int(rank.max()) if ranks is None else ranks,
    )
