"""Clicks among the same ranks shown, of all buckets together: what each step of a fit goes through.

The information of choices on theta is the Laplacian of a graph: an edge between each two ranks that
were shown together, as strong as the clicks times both their shares. Its rows sum to 0.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankdrift.core.types import Floats, Indices

FEW_RANKS = 64  # so few make a table that is smaller than what is left out of it is worth
PER_COLUMN = 8  # so many for each column of a basis: its product with a table is quick
AT_ONCE = 20_000  # edges that are made together: of few cells all, of many those of two places


@dataclass(frozen=True)
class Cells:
    """Lists of m ranks shown together, C of them, with the clicks that each appearance got."""

    size: int  # R, the number of ranks
    shown: Indices  # (m, C), ascending down a column
    won: Floats  # (m, C), the clicks of each appearance

    @cached_property
    def weight(self) -> Floats:
        """(C,) clicks among the ranks shown."""
        return np.asarray(self.won.sum(axis=0))

    def unexpected(self, share: Floats) -> Floats:
        """(R,) clicks less those that the shares (m, C) let expect."""
        if len(share) > 2:
            off = self.won - self.weight * share
            return np.asarray(np.bincount(self.shown.ravel(), off.ravel(), self.size), np.float64)
        off = self.weight * share[0]
        np.subtract(self.won[0], off, out=off)  # what one has too many the other has too few
        one, other = (np.bincount(rank, off, self.size) for rank in self.shown)
        return np.asarray(one - other)

    def edges(self, share: Floats, weight: Floats) -> "Iterator[Edges]":
        """Each two of the ranks shown, by their shares (m, C) and the clicks (C,)."""
        if len(self.shown) == 2:
            tie = share[0] * share[1]
            tie *= weight
            yield Edges(self, self.shown[0], self.shown[1], tie)
            return
        for k, m in places_together(len(self.shown), len(weight)):
            tie = share[k] * share[m]
            tie *= weight
            tie *= self.shown[k] != self.shown[m]  # one that was shown twice is not tied to itself
            yield Edges(self, self.shown[k].ravel(), self.shown[m].ravel(), tie.ravel())

    @cached_property
    def frame(self) -> Any:
        """Sparse (R, R) with cells of two ranks at their place, whatever their values."""
        return _sparse(self.weight, self.shown[0], self.shown[1], self.size)


@dataclass(frozen=True)
class Edges:
    """From a rank of a cell to one below it, as strong as `tie`: (E,) each."""

    cells: Cells
    above: Indices
    below: Indices
    tie: Floats

    def degree(self) -> Floats:
        """(R,) the sum of ties at each rank."""
        ends = (self.above, self.below)
        one, other = (np.bincount(end, self.tie, self.cells.size) for end in ends)
        return np.asarray(one + other)

    def sparse(self) -> Any:
        """(R, R)."""
        if len(self.cells.shown) > 2:
            return _sparse(self.tie, self.above, self.below, self.cells.size)
        matrix = copy(self.cells.frame)  # making one anew looks at all indices again
        matrix.data = self.tie
        return matrix


def places_together(appearances: int, rows: int) -> Iterator[tuple[Indices, Indices]]:
    """Each two places in a list of so many appearances, as many of them at a time as make about
    AT_ONCE edges of so many rows."""
    firsts, seconds = np.triu_indices(appearances, 1)
    step = max(1, AT_ONCE // max(rows, 1))
    for start in range(0, len(firsts), step):
        yield firsts[start : start + step], seconds[start : start + step]


def _sparse(values: Floats, row: Indices, column: Indices, size: int) -> Any:
    from scipy.sparse import coo_array

    return coo_array((values, (row.astype(np.int32), column.astype(np.int32))), (size, size))


def grounded(edges: Iterable[Edges], size: int) -> Floats:
    """(R-1, R-1): the Laplacian without the first rank, whose theta may as well be 0.

    Only its lower half is filled: all that a factorisation reads.
    """
    degree, total = np.zeros(size), None
    for each in edges:
        degree += each.degree()
        # A column for each rank but the first; ties to that one make the first row, which goes.
        key = np.maximum(each.above * (size - 1) + each.below - 1, 0)
        table = np.bincount(key, -each.tie, size * (size - 1))
        total = table if total is None else np.add(total, table, out=total)
    out = np.zeros(size * (size - 1)) if total is None else total
    out = out.reshape(size, size - 1)[1:]
    np.fill_diagonal(out, degree[1:])
    return np.asarray(out.T)


def ungrounded(edges: Iterable[Edges], size: int) -> Floats:
    """(R, R): the whole Laplacian."""
    out = np.zeros((size, size))
    out[1:, 1:] = both_halves(grounded(edges, size))
    out[0] = -out.sum(axis=0)
    out[:, 0] = out[0]
    out[0, 0] = -out[0, 1:].sum()
    return out


def both_halves(lower: Floats) -> Floats:
    """The symmetric matrix with this lower half."""
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def projected(edges: Iterable[Edges], basis: Floats) -> Floats:
    """(K, K): basis.T @ Laplacian @ basis, without the Laplacian if that is large."""
    size, many = basis.shape
    if size <= max(FEW_RANKS, PER_COLUMN * many):
        return np.asarray(basis.T @ ungrounded(edges, size) @ basis)
    degree, across = np.zeros(size), np.zeros((many, many))
    and_one = np.column_stack([basis, np.ones(size)])  # the ones make sums of ties
    for each in edges:
        tied = each.sparse() @ and_one
        degree += tied[:, -1] + np.bincount(each.below, each.tie, size)
        across += basis.T @ tied[:, :-1]
    return np.asarray((basis.T * degree) @ basis - across - across.T)


def pool(shown: Indices, won: Floats, size: int) -> Cells:
    """Rows (m, T) shown at the same two ranks as one; longer lists of ranks hardly ever repeat."""
    if len(shown) > 2:
        return Cells(size, shown, won)
    rows, same = same_ranks(shown, size)
    won = np.stack([np.bincount(same, each).take(rows) for each in won])
    return Cells(size, shown.take(rows, axis=1), won)


def same_ranks(shown: Indices, size: int) -> tuple[Indices, Indices]:
    """Of rows (2, T) shown at the same two ranks one stands for all: which those are, and for each
    row (T,) the one that stands for it."""
    row = np.arange(shown.shape[1], dtype=np.int32)
    key = shown[0] * size
    key += shown[1]
    standing = np.empty(size * size, np.int32)  # read only where it was written
    standing[key] = row
    same = standing.take(key)
    return np.flatnonzero(same == row), same.astype(np.intp)
