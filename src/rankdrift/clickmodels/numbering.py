"""Numbers for pairs whose queries and docs are whole numbers: sorted once, no texts compared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.types import Ints

_BITS = 64
_BLOCK = 1 << 16
_Numbers = NDArray[np.uint32]


def number_pairs(query: Ints, doc: Ints) -> tuple[_Numbers, _Numbers]:
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
    docs = int(doc.max()) - int(doc.min()) + 1
    queries = int(query.max()) - int(query.min()) + 1
    row_bits = len(query).bit_length()
    if (queries * docs).bit_length() + row_bits <= _BITS:
        return _number_packed(query, doc, docs, row_bits)
    order = np.lexsort((doc, query))
    new_query = _changes(query[order])
    new = new_query | _changes(doc[order])
    pair = np.empty(len(order), np.uint32)
    pair[order] = np.cumsum(new, dtype=np.uint32) - np.uint32(1)
    return pair, np.cumsum(new_query[new], dtype=np.uint32) - np.uint32(1)


def _number_packed(query: Ints, doc: Ints, docs: int, row_bits: int) -> tuple[_Numbers, _Numbers]:
    """The same by numbers of 64 bits that hold pair and row: they are sorted many times as fast as
    an index. Block by block, for memory that is fresh costs more than what is done with it."""
    rows = len(query)
    least_query, least_doc = (np.uint64(int(x.min()) % 2**_BITS) for x in (query, doc))
    key = np.empty(rows, np.uint64)
    for block in _blocks(rows):
        part = query[block].astype(np.uint64)  # below 0 they wrap, and come back with what is off
        part -= least_query
        part *= np.uint64(docs)
        part += doc[block].astype(np.uint64)
        part -= least_doc
        part <<= np.uint64(row_bits)
        part |= np.arange(block.start, block.stop, dtype=np.uint64)
        key[block] = part
    key.sort()
    pair = np.empty(rows, np.uint32)
    found: list[NDArray[np.uint64]] = []
    pairs, before = 0, None
    for block in _blocks(rows):
        row = (key[block] & np.uint64((1 << row_bits) - 1)).astype(np.intp)
        value = key[block] >> np.uint64(row_bits)
        new = _changes(value)
        new[0] = value[0] != before
        number = np.cumsum(new) + (pairs - 1)
        pair[row] = number
        found.append(value[new])
        pairs, before = int(number[-1]) + 1, value[-1]
    of_pair = np.concatenate(found) // np.uint64(docs)
    return pair, np.cumsum(_changes(of_pair), dtype=np.uint32) - np.uint32(1)


def _blocks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, _BLOCK):
        yield slice(start, min(start + _BLOCK, rows))


def _changes(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """(T,): where a value is not the one before; the first is not."""
    found = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found
