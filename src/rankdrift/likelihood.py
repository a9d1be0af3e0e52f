"""Eq. (3), log-like: value, gradient and Hessian from counts. Arrays in, arrays out.

theta is log p by rank, (R,). Every click is a choice of one rank among those its pair was shown at:

    log L = Σ_clicks ( theta[clicked] − log Σ_k exp theta[shown_k] )

It is concave in theta, and it depends on the clicks only through how many each rank won and how
many fell among the same ranks shown: terms that share those are added up before the fit. A rank
may be shown several times in a pair. Adding a constant to theta changes nothing, so gradients sum
to 0 and so do the rows of the Hessian: its diagonal follows from the rest.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations, product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankdrift.counts import UNIT, Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Ranks = NDArray[np.int32]


@dataclass(frozen=True)
class Block:
    """Pairs with the same number m of appearances; ranks as indices into `Likelihood.ranks`."""

    shown: Indices  # (m, T), ascending down a column
    won: Floats  # (m, T), the clicks of each appearance
    bucket: Indices  # (T,)

    @cached_property
    def weight(self) -> Floats:
        """(T,) clicks among the ranks shown."""
        return np.asarray(self.won.sum(axis=0))

    def take(self, rows: NDArray[np.bool_]) -> "Block":
        return Block(self.shown[:, rows], self.won[:, rows], self.bucket[rows])


@dataclass(frozen=True)
class Cells:
    """Clicks among the same ranks shown, of all pairs and buckets together."""

    shown: Indices  # (m, C)
    weight: Floats  # (C,)


@dataclass(frozen=True)
class Likelihood:
    ranks: Ranks  # (R,)
    blocks: tuple[Block, ...]
    buckets: int

    @property
    def size(self) -> int:
        return len(self.ranks)

    @cached_property
    def weight(self) -> float:
        return float(sum(block.weight.sum() for block in self.blocks))

    @cached_property
    def wins(self) -> Floats:
        """(R,) clicks by rank."""
        total = np.zeros(self.size)
        for b in self.blocks:
            total += np.bincount(b.shown.ravel(), b.won.ravel(), minlength=self.size)
        return total

    @cached_property
    def cells(self) -> tuple[Cells, ...]:
        return tuple(_cells(block, self.size) for block in self.blocks)

    @cached_property
    def touched(self) -> Indices:
        """The buckets that have terms, ascending."""
        some = [np.bincount(b.bucket, minlength=self.buckets) for b in self.blocks]
        return np.flatnonzero(sum(some, start=np.zeros(self.buckets, np.intp)))

    def at(self, theta: Floats) -> "Point":
        return Point(self, theta, tuple(shares(cells.shown, theta) for cells in self.cells))

    @property
    def bucket_wins(self) -> Floats:
        """(G, R): clicks by bucket of queries and rank."""
        return self._by_bucket(b.won for b in self.blocks)

    @property
    def bucket_losses(self) -> Floats:
        """(G, R): clicks that pairs shown at a rank got at others."""
        return self._by_bucket(_lost(b) for b in self.blocks)

    def victories(self) -> tuple[Ranks, Ranks]:
        """(N,) ranks that won a click, and those that they won it over, each two once."""
        beaten = np.zeros((self.size, self.size), bool)
        for b in self.blocks:
            for k, m in permutations(range(len(b.shown)), 2):
                here = b.won[k] > 0
                beaten[b.shown[k][here], b.shown[m][here]] = True
        np.fill_diagonal(beaten, False)
        winner, loser = np.nonzero(beaten)
        return self.ranks[winner], self.ranks[loser]

    def bucket_scores(self, theta: Floats) -> Floats:
        """(G, R): the gradient's parts from each bucket of queries."""
        return self._by_bucket(b.won - b.weight * shares(b.shown, theta) for b in self.blocks)

    def _by_bucket(self, parts: Iterable[Floats]) -> Floats:
        """(G, R): sums of numbers (m, T) of each block's appearances."""
        flat = np.zeros(self.buckets * self.size)
        for b, part in zip(self.blocks, parts, strict=True):
            at = (b.bucket * self.size + b.shown).ravel()
            flat += np.bincount(at, part.ravel(), minlength=flat.size)
        return flat.reshape(self.buckets, self.size)

    @cached_property
    def by_bucket(self) -> tuple[Any, ...]:
        """Sparse (C, G) for each block of cells: the clicks of each bucket in each cell."""
        from scipy.sparse import csr_array

        found = []
        for b, cells in zip(self.blocks, self.cells, strict=True):
            shape, cell = (len(cells.weight), self.buckets), np.arange(len(b.bucket))
            if len(cells.shown) == 2:
                cell = np.searchsorted(self._keys(cells.shown), self._keys(b.shown))
            found.append(csr_array((b.weight, (cell, b.bucket)), shape))
        return tuple(found)

    @cached_property
    def incidence(self) -> tuple[tuple[Any, ...], ...]:
        """Sparse (R, C) for each row of each block of cells: which rank it is."""
        from scipy.sparse import csr_array

        return tuple(
            tuple(
                csr_array((np.ones(len(row)), (row, np.arange(len(row)))), (self.size, len(row)))
                for row in cells.shown
            )
            for cells in self.cells
        )

    def _keys(self, two: Indices) -> Indices:
        return np.asarray(two[0] * self.size + two[1])

    def bucket_information(self, theta: Floats, basis: Floats) -> Iterator[Floats]:
        """(K, K) for each bucket: its information on phi, theta = basis @ phi."""
        parts = []
        for b in self.blocks:
            order = np.argsort(b.bucket, kind="stable")
            shown, weight = b.shown[:, order], b.weight[order]
            ends = np.searchsorted(b.bucket[order], np.arange(self.buckets + 1))
            parts.append((shown, shares(shown, theta), weight, ends))
        if not _is_plain(basis):
            yield from _projected_by_bucket(parts, basis)
            return
        for g in range(self.buckets):
            at = [slice(ends[g], ends[g + 1]) for *_, ends in parts]
            own = ((shown[:, i], share[:, i], weight[i])
                   for (shown, share, weight, _), i in zip(parts, at, strict=True))  # fmt: skip
            yield _information(own, self.size, basis)

    def restrict(self, bucket: int) -> "Likelihood":
        """The terms of one bucket."""
        parts = (b.take(b.bucket == bucket) for b in self.blocks)
        return replace(self, blocks=tuple(part for part in parts if len(part.bucket)))

    def reweighted(self, by_bucket: Floats) -> "Likelihood":
        """The same terms with each bucket counted `by_bucket` (G,) times."""
        blocks = (replace(b, won=b.won * by_bucket[b.bucket]) for b in self.blocks)
        return replace(self, blocks=tuple(blocks))


@dataclass(frozen=True)
class Point:
    """The likelihood at one theta."""

    likelihood: Likelihood
    theta: Floats
    shares: tuple[Floats, ...]  # π (m, C) of each block of cells

    @property
    def value(self) -> float:
        total = float(self.likelihood.wins @ self.theta)
        for cells in self.likelihood.cells:
            at = self.theta[cells.shown]
            top = at.max(axis=0)
            total -= float(cells.weight @ (top + np.log(np.exp(at - top).sum(axis=0))))
        return total

    @property
    def expected(self) -> Floats:
        """(R,) clicks expected by rank."""
        size, total = self.likelihood.size, np.zeros(self.likelihood.size)
        for cells, share in zip(self.likelihood.cells, self.shares, strict=True):
            for rank, part in zip(cells.shown, share, strict=True):
                total += np.bincount(rank, cells.weight * part, minlength=size)
        return total

    @property
    def gradient(self) -> Floats:
        """(R,): clicks observed less clicks expected."""
        return self.likelihood.wins - self.expected

    def information(
        self, basis: Floats | None = None, weights: Sequence[Floats] | None = None
    ) -> Floats:
        """Minus the Hessian: (R, R) on theta, or (K, K) on phi where theta = basis @ phi.

        `weights`: other clicks in each cell than there were.
        """
        weights = weights or [cells.weight for cells in self.likelihood.cells]
        shown = (cells.shown for cells in self.likelihood.cells)
        terms = zip(shown, self.shares, weights, strict=True)
        return _information(terms, self.likelihood.size, basis)


def _information(
    terms: Iterable[tuple[Indices, Floats, Floats]], size: int, basis: Floats | None
) -> Floats:
    """From shown, shares (m, T) and weight (T,): the Laplacian of the graph whose edges are the
    ranks shown together, weighted by both shares; without a basis (R, R), else (K, K)."""
    edges = (
        (shown[k], shown[m], weight * share[k] * share[m])
        for shown, share, weight in terms
        for k, m in combinations(range(len(shown)), 2)
    )
    if basis is not None and not _is_plain(basis):
        return _projected(edges, basis)
    total = np.zeros(size * size)
    for a, b, tie in edges:
        total += np.bincount(a * size + b, tie, total.size)
    off = total.reshape(size, size)
    out = off + off.T
    np.negative(out, out=out)
    np.fill_diagonal(out, 0.0)
    np.fill_diagonal(out, -out.sum(axis=1))
    return np.ascontiguousarray(out if basis is None else out[1:, 1:])


def _projected(edges: Iterable[tuple[Indices, Indices, Floats]], basis: Floats) -> Floats:
    """(K, K): basis.T @ Laplacian @ basis, without the Laplacian."""
    from scipy.sparse import coo_array

    size, many = basis.shape
    degree, across = np.zeros(size), np.zeros((many, many))
    for a, b, tie in edges:
        degree += np.bincount(a, tie, size) + np.bincount(b, tie, size)
        across += basis.T @ (coo_array((tie, (a, b)), (size, size)) @ basis)
    return np.asarray((basis.T * degree) @ basis - across - across.T)


def _projected_by_bucket(
    parts: Iterable[tuple[Indices, Floats, Floats, Indices]], basis: Floats
) -> Floats:
    """(G, K, K) from shown, shares (m, T), weight (T,) in order of buckets, and their ends."""
    parts = list(parts)
    buckets = len(parts[0][-1]) - 1 if parts else 0
    out = np.zeros((buckets, basis.shape[1], basis.shape[1]))
    for shown, share, weight, ends in parts:
        for k, m in combinations(range(len(shown)), 2):
            apart = basis.take(shown[k], axis=0) - basis.take(shown[m], axis=0)
            scaled = apart * (weight * share[k] * share[m])[:, None]
            for g in range(buckets):
                own = slice(ends[g], ends[g + 1])
                out[g] += apart[own].T @ scaled[own]
    return out


def likelihood(
    counts: Counts, clicks: Literal["every", "single"] = "every", ranks: Ranks | None = None
) -> Likelihood:
    """The likelihood of every click, or only of pairs with a single one.

    `ranks` (ascending) must hold all that pairs were shown at; by default they are all from the
    highest of those to the deepest.
    """
    codes = np.ascontiguousarray(counts.pairs.shown.T)
    click = codes & 1
    pairs, bucket = counts.pairs.pairs, counts.pairs.bucket
    compared = counts.comparisons
    if clicks == "single":
        compared = compared.take(compared.single)
        one = click.sum(axis=0) == 1
        if not one.all():
            codes, click, pairs, bucket = codes[:, one], click[:, one], pairs[one], bucket[one]
    codes = codes >> 1
    won = np.multiply(click, pairs, dtype=np.float64)
    listed = [(codes, won, bucket)]
    if len(codes) > 2:
        many = (codes > 0).sum(axis=0)
        listed = [
            (codes[:m, many == m], won[:m, many == m], bucket[many == m])
            for m in np.unique(many).tolist()
        ]
    if len(compared):
        two = np.stack([compared.clicked, compared.other])
        first = two[0] < two[1]
        weight = compared.weight / UNIT
        won = np.where(np.stack([first, ~first]), weight, 0.0)
        listed.append((np.sort(two, axis=0), won, compared.bucket))
    if ranks is None:
        seen = [shown for shown, _, _ in listed if shown.size]
        ends = [int(shown.min()) for shown in seen], [int(shown.max()) for shown in seen]
        ranks = np.arange(min(ends[0], default=1), max(ends[1], default=0) + 1, dtype=np.int32)
    place = np.zeros(counts.max_rank + 1, np.intp)
    place[ranks] = np.arange(len(ranks))
    blocks = (
        Block(place.take(shown), won, bucket.astype(np.intp))
        for shown, won, bucket in listed
        if shown.size
    )
    return Likelihood(ranks, tuple(blocks), counts.buckets)


def shares(shown: Indices, theta: Floats) -> Floats:
    """π (m, T): the probability that a click falls on each of the ranks shown (m, T).

    For several theta (R, N) at once, (m, T, N).
    """
    at = theta.take(shown, axis=0)
    if len(at) == 2:  # the common case, with half the work
        with np.errstate(over="ignore"):
            np.exp(np.subtract(at[0], at[1], out=at[0]), out=at[0])
        np.divide(1.0, at[0] + 1.0, out=at[1])
        np.subtract(1.0, at[1], out=at[0])
        return at
    at -= at.max(axis=0)
    np.exp(at, out=at)
    at /= at.sum(axis=0)
    return at


def _lost(block: Block) -> Floats:
    """(m, T): the clicks that went to other ranks, on the first appearance at each rank."""
    won = np.zeros_like(block.won)
    for k, m in product(range(len(won)), repeat=2):
        won[k] += block.won[m] * (block.shown[k] == block.shown[m])
    again = block.shown[1:] == block.shown[:-1]
    lost = block.weight - won
    lost[1:][again] = 0.0
    return np.asarray(lost)


def _cells(block: Block, size: int) -> Cells:
    """Pairs shown at the same two ranks as one; longer lists of ranks hardly ever repeat."""
    if len(block.shown) > 2:
        return Cells(block.shown, block.weight)
    total = np.bincount(block.shown[0] * size + block.shown[1], block.weight, size * size)
    at = np.flatnonzero(total > 0)
    return Cells(np.stack(np.divmod(at, size)), np.asarray(total[at], np.float64))


def _is_plain(basis: Floats) -> bool:
    """One parameter for each rank but the first: multiplying by that is waste."""
    size = len(basis)
    return basis.shape[1] == size - 1 and bool((basis == np.eye(size)[:, 1:]).all())
