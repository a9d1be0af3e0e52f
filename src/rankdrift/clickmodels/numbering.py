"""Numbers for pairs whose queries and docs are whole numbers: sorted a few queries at a time, no
texts compared."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankdrift.clickmodels.ordering import changes, order_of, rows_of
from rankdrift.core.types import Indices, Ints

_BLOCK = 1 << 15  # rows, about, of queries that are numbered together: they stay in the cache
_Numbers = NDArray[np.uint32]


def number_pairs(query: Ints, doc: Ints) -> tuple[_Numbers, _Numbers]:
    """The pair of each row, and the query of each pair, both numbered from 0 in the order of query
    and doc.

    Rows of one query mostly stand together, as those of a search do: the runs of them are put in
    order first, then the rows of some queries at a time.

    Parameters
    ----------
    query, doc
        (T,): of each row, T above 0.

    Returns
    -------
    tuple
        (T,) and (P,).
    """
    start = np.flatnonzero(changes(query))
    size = np.diff(np.append(start, len(query)))
    order = order_of(query[start])
    start, size = start[order], size[order]
    number = np.cumsum(changes(query[start]), dtype=np.int64) - 1
    pair = np.empty(len(query), np.uint32)
    queries = []
    pairs = 0
    for runs in _blocks(number, size):
        rows = rows_of(start[runs], size[runs])
        of = np.repeat(number[runs], size[runs])
        local, query_of_pair = _number(of, doc[rows])
        pair[rows] = local + pairs
        queries.append(query_of_pair)
        pairs += len(query_of_pair)
    return pair, np.concatenate(queries).astype(np.uint32)


def _blocks(number: Ints, size: Indices) -> list[slice]:
    """Runs of whole queries, with a block of rows or a little more."""
    first = np.flatnonzero(changes(number))
    before = (np.cumsum(size) - size)[first]
    new = np.flatnonzero(changes(before // _BLOCK))
    ends = np.append(first[new], len(number))
    return [slice(a, b) for a, b in pairwise(ends.tolist())]


def _number(query: Ints, doc: Ints) -> tuple[Ints, Ints]:
    """The pair of each of some rows, from 0, and the query of each pair."""
    least = int(doc.min())
    docs = int(doc.max()) - least + 1
    first = int(query[0])
    if ((int(query[-1]) - first + 1) * docs).bit_length() < 64:
        key = (query - first) * docs
        key += doc
        key -= least
        order = order_of(key)
        new = changes(key[order])
    else:
        order = np.lexsort((doc, query))
        new = changes(query[order]) | changes(doc[order])
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(new) - 1
    return found, query[order[new]]
