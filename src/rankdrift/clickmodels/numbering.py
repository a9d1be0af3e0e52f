"""Numbers for pairs, a few queries at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankdrift.clickmodels.ordering import changes, order_of, rows_of
from rankdrift.core.types import Indices, Ints

_BLOCK = 1 << 15  # rows, about, of queries that are numbered together: they stay in the cache
_BITS = 63


class Shown(NamedTuple):
    """T results: the doc of each, a whole number, and twice its rank, one more if it was
    clicked."""

    doc: NDArray[np.integer]
    mark: NDArray[np.unsignedinteger]

    def at(self, rows: Indices | NDArray[np.bool_]) -> Shown:
        """Those of some rows."""
        return Shown(self.doc[rows], self.mark[rows])


class Numbered(NamedTuple):
    """T results, and P pairs: the pair of each result, from 0 in the order of query and doc, and
    its mark; the query and the doc of each pair."""

    pair: NDArray[np.uint32]
    mark: NDArray[np.unsignedinteger]
    query_of_pair: NDArray[np.uint32]
    doc_of_pair: NDArray[np.integer]


def number_pairs(query: Ints, first: Indices, lengths: Ints, shown: Shown) -> Numbered:
    """Number the pairs of lists, and put their results one after the other.

    Parameters
    ----------
    query
        (N,): of each list, rising from 0.
    first, lengths
        (N,): where each list begins in what was shown, and how long it is.
    shown
        Results.
    """
    total = int(lengths.sum())
    pair, mark = np.empty(total, np.uint32), np.empty(total, shown.mark.dtype)
    queries, docs = [np.zeros(0, np.int64)], [shown.doc[:0]]
    pairs = done = 0
    for lists in _blocks(query, lengths):
        rows = rows_of(first[lists], lengths[lists])
        if not len(rows):
            continue
        doc, of = shown.doc[rows], np.repeat(query[lists], lengths[lists])
        local, news = number(of, doc)
        here = slice(done, done + len(rows))
        np.add(local, pairs, out=pair[here], casting="unsafe")
        mark[here] = shown.mark[rows]
        queries.append(of[news])
        docs.append(doc[news])
        pairs, done = pairs + len(news), here.stop
    of_pair = np.concatenate(queries).astype(np.uint32)
    return Numbered(pair, mark, of_pair, np.concatenate(docs))


def number(of: Ints, doc: NDArray[np.integer]) -> tuple[Ints, Indices]:
    """Which of all different (of, doc) each row has, from 0 in their order; and a row of each.

    Parameters
    ----------
    of, doc
        (T,), T above 0; the first rises.
    """
    least = int(doc.min())
    docs = int(doc.max()) - least + 1
    if ((int(of[-1]) - int(of[0]) + 1) * docs).bit_length() <= _BITS:
        key = (of - of[0]) * docs
        key += doc
        key -= least
        order = order_of(key)
        new = changes(key[order])
    else:
        order = np.lexsort((doc, of))
        new = changes(of[order]) | changes(doc[order])
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(new) - 1
    return found, order[new]


def _blocks(query: Ints, lengths: Ints) -> list[slice]:
    """Lists of whole queries, with a block of rows or a little more."""
    first = np.flatnonzero(changes(query))
    before = (np.cumsum(lengths) - lengths)[first]
    new = np.flatnonzero(changes(before // _BLOCK))
    ends = np.append(first[new], len(query))
    return [slice(a, b) for a, b in pairwise(ends.tolist())]
