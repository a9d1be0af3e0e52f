"""Numbers for pairs, a few queries at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rankdrift.clickmodels.ordering import changes, order_of
from rankdrift.core.types import Indices, Ints

MARK_BITS = 17
"""Of what was shown, a whole number each: the doc, a number from 0 of 44 bits, and in these lowest
bits twice its rank, one more if it was clicked."""
_MARK = (1 << MARK_BITS) - 1
_BLOCK = 1 << 16  # rows, about, of queries that are numbered together: they stay in the cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing


def marks_of(shown: Ints) -> Ints:
    """(T,): twice the rank, one more if it was clicked."""
    return shown & _MARK


def number(of: Ints, doc: Ints) -> tuple[Ints, Indices]:
    """Which of all different (of, doc) each row has, from 0 in their order; and a row of each.

    Parameters
    ----------
    of, doc
        (T,), T above 0; the range of the first is no more than about a block.
    """
    least, low = int(doc.min()), int(of.min())
    key = (of - low) * (int(doc.max()) - least + 1)
    key += doc
    key -= least
    # Most keys are there many times: each row finds the row of its key in a table, by a hash.
    rows = np.arange(len(key))
    bits = len(key).bit_length() + 1
    slot = ((key.view(np.uint64) * _GOLDEN) >> np.uint64(64 - bits)).view(np.int64)
    table = np.empty(1 << bits, np.int64)
    table[slot] = rows
    first = table[slot]
    missed = np.flatnonzero(key[first] != key)  # another key has the place
    if len(missed):
        order = missed[order_of(key[missed])]
        new = changes(key[order])
        first[order] = order[new][np.cumsum(new) - 1]
    news = np.flatnonzero(first == rows)
    news = news[order_of(key[news])]
    found = np.empty(len(rows), np.int64)
    found[news] = np.arange(len(news))
    return found[first], news


def blocks_of(query: Ints, lengths: Ints) -> list[slice]:
    """Lists of whole queries, with a block of rows or a little more."""
    first = np.flatnonzero(changes(query))
    before = (np.cumsum(lengths) - lengths)[first]
    new = np.flatnonzero(changes(before // _BLOCK))
    ends = np.append(first[new], len(query))
    return [slice(a, b) for a, b in pairwise(ends.tolist())]
