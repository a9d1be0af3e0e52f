"""Numbers for pairs whose queries and docs are whole numbers: sorted once, no texts compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.types import Indices, Ints

_BITS = 64


def number_pairs(query: Ints, doc: Ints) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The pair of each row, and the query of each pair, both numbered from 0 in the order of query
    and doc.

    Parameters
    ----------
    query, doc
        (T,): of each row, T above 0.

    Returns
    -------
    tuple
        (T,) and (P,).
    """
    low = int(doc.min())
    docs = int(doc.max()) - low + 1
    queries = int(query.max()) - int(query.min()) + 1
    row_bits = len(query).bit_length()
    if (queries * docs).bit_length() + row_bits > _BITS:
        order = np.lexsort((doc, query))
        new_query = _changes(query[order])
        new = new_query | _changes(doc[order])
    else:
        # A number of 64 bits that holds the row too is sorted many times as fast as an index.
        key = query.astype(np.uint64)  # below 0 they wrap, and come back with what is taken off
        key -= np.uint64(int(query.min()) % 2**_BITS)
        key *= np.uint64(docs)
        key += doc.astype(np.uint64)
        key -= np.uint64(low % 2**_BITS)
        key <<= np.uint64(row_bits)
        key |= np.arange(len(key), dtype=np.uint64)
        key.sort()
        order = (key & np.uint64((1 << row_bits) - 1)).astype(np.intp)
        key >>= np.uint64(row_bits)
        new = _changes(key)
        new_query = np.zeros(len(key), bool)
        first: Indices = np.flatnonzero(new)
        new_query[first] = _changes(key[first] // np.uint64(docs))
    pair = np.empty(len(order), np.uint32)
    pair[order] = np.cumsum(new, dtype=np.uint32) - np.uint32(1)
    return pair, np.cumsum(new_query[new], dtype=np.uint32) - np.uint32(1)


def _changes(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """(T,): where a value is not the one before; the first is not."""
    found = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found
