"""Putting many whole numbers in order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.types import Bools, Indices

_BITS = 64


def order_of(values: NDArray[np.integer]) -> Indices:
    """(T,): as a stable argsort, by numbers of 64 bits that hold value and place: they are sorted
    many times as fast as an index."""
    if not len(values):
        return np.zeros(0, np.intp)
    bits = len(values).bit_length()
    least, most = int(values.min()), int(values.max())
    if (most - least).bit_length() + bits > _BITS:
        return np.argsort(values, kind="stable")
    key = values.astype(np.uint64)  # below 0 they wrap, and come back with what is taken off
    key -= np.uint64(least % 2**_BITS)
    key <<= np.uint64(bits)
    key |= np.arange(len(values), dtype=np.uint64)
    key.sort()
    key &= np.uint64((1 << bits) - 1)
    return key.astype(np.intp)


def changes(values: NDArray[np.generic]) -> Bools:
    """(T,): where a value is not the one before; the first is not."""
    found = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def rows_of(start: Indices, size: Indices) -> Indices:
    """Runs of rows one after the other, as rows."""
    end = np.cumsum(size)
    return np.asarray(np.arange(end[-1]) + np.repeat(start - (end - size), size))
