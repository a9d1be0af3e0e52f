"""Rows as an engine hands them out -> lists, each by its ranks and without what it has twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.clickmodels.lists import BLOCK_ROWS, lay_out
from rankdrift.clickmodels.numbering import Numbered, Shown, number, number_pairs
from rankdrift.clickmodels.ordering import changes, order_of, rows_of
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Bools, Indices, Ints
from rankdrift.counts.funnel import Dropped

_SHORT = 32  # lists so long are looked through row by row for docs that are there twice


@dataclass(frozen=True, eq=False)
class Made:
    """N searches: s, query and day (N,); their lengths (N,); their results one after the other,
    from the top down; names of queries, whole numbers (Q,); rows and clicks left out, by reason."""

    s: NDArray[np.uint64]
    query: Ints
    day: Ints | None
    lengths: Ints
    numbered: Numbered
    queries: NDArray[np.integer]
    lost: Mapping[str, Dropped]

    def searches(self, which: Bools) -> Searches:
        """Some of them."""
        begins = np.cumsum(self.lengths) - self.lengths
        lists, _, first = lay_out(self.lengths[which], self.query[which], begins[which])
        pair, rank = np.empty(lists.rows, np.uint32), np.empty(lists.rows, np.uint16)
        click = np.empty(lists.rows, bool)
        for here, rows in lists.came_from(first):
            pair[here], mark = self.numbered.pair[rows], self.numbered.mark[rows]
            rank[here] = mark >> 1
            click[here] = mark & 1
        deepest = int(self.numbered.mark.max(initial=0)) >> 1
        return Searches(lists, pair, rank, click, self.numbered.query_of_pair, deepest)


def arrange(
    s: NDArray[Any],
    shown: Shown,
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
        shown = shown.at(rows_of(start, size))
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
        lengths,
        number_pairs(query, first, lengths, shown),
        q[of_first[new]],
        {"same_rank": same_rank, "doc_twice": twice},
    )


_Rows = tuple[Shown, Indices, Ints, Dropped]
"""What was shown, where searches begin in it, their lengths, and what was left out."""


def _in_order(shown: Shown, first: Indices, lengths: Ints) -> _Rows:
    """Each search by its ranks, each of them once."""
    falls = [
        start + np.flatnonzero(part[1:] | 1 <= part[:-1] | 1)
        for start in range(0, len(shown.mark), BLOCK_ROWS)
        for part in [shown.mark[start : start + BLOCK_ROWS + 1]]
    ]
    begins = np.zeros(len(shown.mark), bool)
    begins[first] = True
    if begins[np.concatenate(falls) + 1].all():
        return shown, first, lengths, Dropped()
    shown = shown.at(rows_of(first, lengths))
    of = np.repeat(np.arange(len(lengths)), lengths)
    shown = shown.at(np.lexsort((shown.doc, shown.mark, of)))
    # Of a rank that is there twice the last row stays: a clicked one, as clicks sort last.
    rank = shown.mark >> 1
    keep = np.append((rank[1:] != rank[:-1]) | (of[1:] != of[:-1]), True)
    return _kept(shown, of, keep, len(first))


def _without_twice(shown: Shown, first: Indices, lengths: Ints) -> _Rows:
    """Each search without docs that it has at two ranks."""
    if int(lengths.max(initial=0)) <= _SHORT and not _any_twice(shown.doc, first, lengths):
        return shown, first, lengths, Dropped()
    rows = rows_of(first, lengths)
    of = np.repeat(np.arange(len(first)), lengths)
    found, news = number(of, shown.doc[rows])
    if len(news) == len(rows):
        return shown, first, lengths, Dropped()
    return _kept(shown.at(rows), of, np.bincount(found)[found] == 1, len(first))


def _any_twice(doc: NDArray[np.integer], first: Indices, lengths: Ints) -> bool:
    """Whether a search has a doc again some rows below."""
    starts = np.sort(first)
    for below in range(1, int(lengths.max(initial=0))):
        again = np.flatnonzero(doc[below:] == doc[:-below])
        of, later = (np.searchsorted(starts, rows, "right") for rows in (again, again + below))
        if (of == later).any():
            return True
    return False


def _kept(shown: Shown, of: Indices, keep: Bools, searches: int) -> _Rows:
    out = shown.mark[~keep]
    lengths = np.bincount(of[keep], minlength=searches).astype(np.int64)
    lost = Dropped(len(out), int((out & 1).sum()))
    return shown.at(keep), np.cumsum(lengths) - lengths, lengths, lost
