"""Rows as an engine hands them out -> lists, each by its ranks and without what it has twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.clickmodels.lists import BLOCK_ROWS, Block, Lists, block_of, falling
from rankdrift.clickmodels.numbering import MARK_BITS, blocks_of, marks_of, number
from rankdrift.clickmodels.ordering import changes, order_of, rows_of
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Bools, Indices, Ints
from rankdrift.counts.funnel import Dropped

_ROWS = 4 * BLOCK_ROWS  # of a block at most; one has all of a query, or much of one
_SHORT = 32  # lists so long are looked through row by row for docs that are there twice


@dataclass(frozen=True, eq=False)
class Made:
    """N searches: s, query (from 0, rising) and day (N,); where their results begin in what was
    shown, from the top down, and how many they are (N,); names of queries, whole numbers (Q,); rows
    and clicks left out, by reason."""

    s: NDArray[np.uint64]
    query: Ints
    day: Ints | None
    first: Indices
    lengths: Ints
    shown: Ints
    queries: NDArray[np.integer]
    lost: Mapping[str, Dropped]

    def searches(self, *parts: Bools) -> tuple[list[Searches], Ints]:
        """Some searches (N,) and others; pairs have the same numbers in all, in the order of query
        and doc. And (P,) the doc of each."""
        laid = [_Laid(int(self.lengths[part].sum())) for part in parts]
        queries, docs = [np.zeros(0, np.int64)], [self.shown[:0]]
        pairs = deepest = 0
        for block in blocks_of(self.query, self.lengths):
            added = [
                (each, each.add(self.lengths[own]), own)
                for each, part in zip(laid, parts, strict=True)
                for own in falling(self.lengths, block.start + np.flatnonzero(part[block]), _ROWS)
            ]
            if not added:
                continue
            rows = np.concatenate([one.spread(self.first[own], 1) for _, one, own in added])
            of = np.concatenate([one.spread(self.query[own]) for _, one, own in added])
            shown = self.shown[rows]
            doc, rank = shown >> MARK_BITS, marks_of(shown) >> 1
            local, news = number(of, doc)
            done = 0
            for each, one, _ in added:
                size = one.rows.stop - one.rows.start
                here = slice(done, done + size)
                np.add(local[here], pairs, out=each.pair[one.rows], casting="unsafe")
                each.rank[one.rows] = rank[here]
                each.click[one.rows] = shown[here] & 1
                done += size
            queries.append(of[news])
            docs.append(doc[news])
            pairs, deepest = pairs + len(news), max(deepest, int(rank.max()))
        query_of_pair = np.concatenate(queries).astype(np.uint32)
        return [each.searches(query_of_pair, deepest) for each in laid], np.concatenate(docs)


class _Laid:
    """Searches that are being laid out, block by block."""

    def __init__(self, rows: int) -> None:
        self.pair, self.rank = np.empty(rows, np.uint32), np.empty(rows, np.uint16)
        self.click = np.empty(rows, bool)
        self.blocks: list[Block] = []
        self.lengths = [np.zeros(0, np.int64)]

    def add(self, lengths: Ints) -> Block:
        """The next block."""
        last = self.blocks[-1] if self.blocks else Block(slice(0, 0), slice(0, 0), ())
        block = block_of(lengths, last.lists.stop, last.rows.stop)
        self.blocks.append(block)
        self.lengths.append(lengths)
        return block

    def searches(self, query_of_pair: NDArray[np.uint32], ranks: int) -> Searches:
        """All of them."""
        lists = Lists(np.concatenate(self.lengths), tuple(self.blocks))
        return Searches(lists, self.pair, self.rank, self.click, query_of_pair, ranks)


def arrange(
    s: NDArray[Any],
    shown: Ints,
    q: NDArray[Any],
    d: NDArray[Any] | None,
) -> Made:
    """Bring the rows of each search together, from its top down, and the searches of each query.

    Logs mostly have the first already: a search is a run of rows.
    """
    new = np.ones(len(s), bool)
    np.logical_or(s[1:] != s[:-1], q[1:] != q[:-1], out=new[1:])
    start = np.flatnonzero(new)
    size = np.diff(np.append(start, len(s)))
    order = order_of(s[start])
    named = s[start[order]]
    if (named[1:] == named[:-1]).any():
        # Searches in several runs, or names that several queries share.
        order = np.lexsort((q[start], s[start]))
    start, size = start[order], size[order]
    same = (s[start[1:]] == s[start[:-1]]) & (q[start[1:]] == q[start[:-1]])
    begin = np.flatnonzero(np.append(True, ~same))
    of_first = start[begin]
    lengths = np.add.reduceat(size, begin).astype(np.int64)
    first = of_first
    if same.any():
        shown = shown[rows_of(start, size)]
        first = np.cumsum(lengths) - lengths
    shown, first, lengths, same_rank = _in_order(shown, first, lengths)
    shown, first, lengths, twice = _without_twice(shown, first, lengths)
    # Searches of one query together: so are all that speak of the same pairs, from here on.
    order = order_of(q[of_first])
    of_first, first, lengths = of_first[order], first[order], lengths[order]
    new = changes(q[of_first])
    query = np.cumsum(new, dtype=np.int64) - 1
    return Made(
        s[of_first].astype(np.int64).view(np.uint64),
        query,
        None if d is None else d[of_first].astype(np.int64),
        first,
        lengths,
        shown,
        q[of_first[new]],
        {"same_rank": same_rank, "doc_twice": twice},
    )


_Rows = tuple[Ints, Indices, Ints, Dropped]
"""What was shown, where searches begin in it, their lengths, and what was left out."""


def _in_order(shown: Ints, first: Indices, lengths: Ints) -> _Rows:
    """Each search by its ranks, each of them once."""
    falls = []
    for start in range(0, len(shown), BLOCK_ROWS):
        rank = marks_of(shown[start : start + BLOCK_ROWS + 1]) >> 1
        falls.append(start + np.flatnonzero(rank[1:] <= rank[:-1]))
    begins = np.zeros(len(shown), bool)
    begins[first] = True
    if begins[np.concatenate(falls) + 1].all():
        return shown, first, lengths, Dropped()
    shown = shown[rows_of(first, lengths)]
    of = np.repeat(np.arange(len(lengths)), lengths)
    shown = shown[np.lexsort((shown, marks_of(shown), of))]
    # Of a rank that is there twice the last row stays: a clicked one, as clicks sort last.
    rank = marks_of(shown) >> 1
    keep = np.append((rank[1:] != rank[:-1]) | (of[1:] != of[:-1]), True)
    return _kept(shown, of, keep, len(first))


def _without_twice(shown: Ints, first: Indices, lengths: Ints) -> _Rows:
    """Each search without docs that it has at two ranks."""
    if int(lengths.max(initial=0)) <= _SHORT and not _any_twice(shown, first, lengths):
        return shown, first, lengths, Dropped()
    ordered = shown[rows_of(first, lengths)]
    of = np.repeat(np.arange(len(first)), lengths)
    keep = np.empty(len(of), bool)
    done = 0
    for lists in blocks_of(np.arange(len(first)), lengths):
        here = slice(done, done + int(lengths[lists].sum()))
        found, _ = number(of[here], ordered[here] >> MARK_BITS)
        keep[here] = np.bincount(found)[found] == 1
        done = here.stop
    if keep.all():
        return shown, first, lengths, Dropped()
    return _kept(ordered, of, keep, len(first))


def _any_twice(shown: Ints, first: Indices, lengths: Ints) -> bool:
    """Whether a search has a doc again some rows below."""
    starts, longest = np.sort(first), int(lengths.max(initial=0))
    for start in range(0, len(shown), BLOCK_ROWS):
        doc = shown[start : start + BLOCK_ROWS + longest] >> MARK_BITS
        for below in range(1, min(longest, len(doc))):
            again = start + np.flatnonzero(doc[below:] == doc[:-below])
            of, later = (np.searchsorted(starts, rows, "right") for rows in (again, again + below))
            if (of == later).any():
                return True
    return False


def _kept(shown: Ints, of: Indices, keep: Bools, searches: int) -> _Rows:
    out = shown[~keep]
    lengths = np.bincount(of[keep], minlength=searches).astype(np.int64)
    lost = Dropped(len(out), int((out & 1).sum()))
    return shown[keep], np.cumsum(lengths) - lengths, lengths, lost
