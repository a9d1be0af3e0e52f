"""Eq. (3), log-like: value, gradient and Hessian from counts. Arrays in, arrays out.

theta is log p by rank, (R,). Every click is a choice of one rank among those its pair was shown at:

    log L = Σ_clicks ( theta[clicked] − log Σ_k exp theta[shown_k] )

It is concave in theta, and it depends on the clicks only through how many each rank won and how
many fell among the same ranks shown: terms that share those are added up before the fit. A rank
may be shown several times in a pair. Adding a constant to theta changes nothing, so gradients sum
to 0 and so do the rows of the Hessian: its diagonal follows from the rest.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.types import Bools, Clicks, Floats, Indices, Ranks, Segment
from rankdrift.counts.counts import UNIT, Counts, Pairs, RankPairs
from rankdrift.estimation.laplacian import (
    Cells,
    Edges,
    both_halves,
    grounded,
    places_together,
    pool,
    projected,
    same_ranks,
    ungrounded,
)

Codes = NDArray[np.int32]

LARGEST = 700.0  # theta whose exp, and that of −theta, is a double; a fit gives up at 500


@dataclass(frozen=True)
class Block:
    """Pairs with the same number m of appearances; a rank's place is its index in the ranks."""

    codes: Codes  # (m, T), 2·place + click of each appearance, ascending down a column
    times: NDArray[Any]  # (T,) how many pairs there are, or how much they weigh
    bucket: NDArray[np.int32]  # (T,)

    @cached_property
    def shown(self) -> Indices:
        """(m, T) places, ascending down a column."""
        return (self.codes >> 1).astype(np.intp)

    @cached_property
    def won(self) -> Floats:
        """(m, T) the clicks of each appearance."""
        return np.asarray((self.codes & 1) * self.times.astype(np.float64))

    @cached_property
    def weight(self) -> Floats:
        """(T,) clicks among the ranks shown."""
        return np.asarray(self.won.sum(axis=0))

    def take(self, rows: Bools) -> "Block":
        """The rows of a mask."""
        return Block(self.codes[:, rows], self.times[rows], self.bucket[rows])


@dataclass(frozen=True)
class Likelihood:
    """The terms of Eq. (3), log-like, by number of appearances; `at` gives it at one theta."""

    ranks: Ranks  # (R,)
    blocks: tuple[Block, ...]
    buckets: int

    @property
    def size(self) -> int:
        """R, the number of ranks."""
        return len(self.ranks)

    @cached_property
    def weight(self) -> float:
        """How many clicks there are."""
        return float(sum(cells.weight.sum() for cells in self.cells))

    @cached_property
    def wins(self) -> Floats:
        """(R,) clicks by rank."""
        total = np.zeros(self.size)
        for cells in self.cells:
            total += np.bincount(cells.shown.ravel(), cells.won.ravel(), self.size)
        return total

    @cached_property
    def cells(self) -> tuple[Cells, ...]:
        """The terms of all buckets together, for each number of appearances."""
        return tuple(pool(block.shown, block.won, self.size) for block in self.blocks)

    @cached_property
    def touched(self) -> Indices:
        """The buckets that have terms, ascending."""
        some = [np.bincount(b.bucket, minlength=self.buckets) for b in self.blocks]
        return np.flatnonzero(sum(some, start=np.zeros(self.buckets, np.intp)))

    def at(self, theta: Floats) -> "Point":
        """The likelihood at one theta (R,)."""
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
        """(N,) ranks that won a click, and those that they won it over."""
        winners, losers = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
        for cells in self.cells:
            for k, m in permutations(range(len(cells.shown)), 2):
                at = np.flatnonzero((cells.won[k] > 0) & (cells.shown[k] != cells.shown[m]))
                winners.append(cells.shown[k].take(at))
                losers.append(cells.shown[m].take(at))
        return self.ranks.take(np.concatenate(winners)), self.ranks.take(np.concatenate(losers))

    def bucket_scores(self, theta: Floats) -> Floats:
        """(G, R): the gradient's parts from each bucket of queries."""
        return self._by_bucket(b.won - b.weight * shares(b.shown, theta) for b in self.blocks)

    def _by_bucket(self, parts: Iterable[Floats]) -> Floats:
        """(G, R): sums of numbers (m, T) of each block's appearances."""
        if not self.blocks:
            return np.zeros((self.buckets, self.size))
        places = np.concatenate([self._places(b).ravel() for b in self.blocks])
        numbers = np.concatenate([part.ravel() for part in parts])
        flat = np.bincount(places, numbers, self.buckets * self.size)
        return np.asarray(flat, np.float64).reshape(self.buckets, self.size)

    def _places(self, block: Block) -> Indices:
        """(m, T): of each appearance in a table of buckets and ranks."""
        return np.asarray(block.bucket * np.intp(self.size) + block.shown)

    @cached_property
    def by_bucket(self) -> tuple[Any, ...]:
        """Sparse (C, G) for each block of cells: the clicks of each bucket in each cell."""
        from scipy.sparse import csr_array

        found = []
        for b, cells in zip(self.blocks, self.cells, strict=True):
            shape, cell = (len(cells.weight), self.buckets), np.arange(len(b.bucket))
            if len(cells.shown) == 2:
                rows, same = same_ranks(b.shown, self.size)
                cell[rows] = np.arange(len(rows))
                cell = cell[same]
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

    def bucket_information(self, theta: Floats, basis: Floats) -> Iterator[Floats]:
        """(K, K) for each bucket: its information on phi, theta = basis @ phi."""
        if is_plain(basis):
            parts = (self.restrict(bucket) for bucket in range(self.buckets))
            return (part.at(theta).information(basis) for part in parts)
        return iter(self._projected_by_bucket(theta, basis))

    def _projected_by_bucket(self, theta: Floats, basis: Floats) -> Floats:
        """(G, K, K): as `projected`, with a graph for each bucket."""
        from scipy.sparse import coo_array

        many = self.buckets * self.size
        degree, across = np.zeros(many), np.zeros((many, basis.shape[1]))
        for b in self.blocks:
            share, at = shares(b.shown, theta), self._places(b)
            for k, m in places_together(len(at), len(b.bucket)):
                tie = (b.weight * share[k] * share[m]).ravel()
                one, other = at[k].ravel(), at[m].ravel()
                degree += np.bincount(one, tie, many) + np.bincount(other, tie, many)
                ties = coo_array((tie, (one, b.shown[m].ravel())), (many, self.size))
                across += ties @ basis
        # Half of B'DB, less B'A: with its transpose, all of it.
        across *= -1.0
        across += (degree.reshape(self.buckets, self.size, 1) * (basis / 2)).reshape(many, -1)
        half = basis.T @ across.reshape(self.buckets, self.size, -1)
        return np.asarray(half + half.transpose(0, 2, 1))

    def bucket_product(self, theta: Floats) -> Callable[[Floats], Floats]:
        """(G, R) -> (G, R): each row times the information of its bucket on theta."""
        parts = []
        for b in self.blocks:
            share = shares(b.shown, theta)
            parts.append((self._places(b), share, b.weight * share))

        def times(rows: Floats) -> Floats:
            total = np.zeros(rows.size)
            for at, share, strength in parts:
                off = rows.ravel().take(at)
                off -= (share * off).sum(axis=0)
                off *= strength
                total += np.bincount(at.ravel(), off.ravel(), total.size)
            return total.reshape(rows.shape)

        return times

    def restrict(self, bucket: int) -> "Likelihood":
        """The terms of one bucket."""
        parts = (b.take(b.bucket == bucket) for b in self.blocks)
        return replace(self, blocks=tuple(part for part in parts if len(part.bucket)))

    def reweighted(self, by_bucket: Floats) -> "Likelihood":
        """The same terms with each bucket counted `by_bucket` (G,) times."""
        blocks = (replace(b, times=b.times * by_bucket[b.bucket]) for b in self.blocks)
        return replace(self, blocks=tuple(blocks))


@dataclass(frozen=True)
class Point:
    """The likelihood at one theta."""

    likelihood: Likelihood
    theta: Floats
    shares: tuple[Floats, ...]  # π (m, C) of each block of cells

    @property
    def value(self) -> float:
        """log L."""
        total = float(self.likelihood.wins @ self.theta)
        for cells in self.likelihood.cells:
            at = self.theta[cells.shown]
            top = at.max(axis=0)
            total -= float(cells.weight @ (top + np.log(np.exp(at - top).sum(axis=0))))
        return total

    @cached_property
    def gradient(self) -> Floats:
        """(R,): clicks observed less clicks expected."""
        total = np.zeros(self.likelihood.size)
        for cells, share in zip(self.likelihood.cells, self.shares, strict=True):
            total += cells.unexpected(share)
        return total

    @property
    def expected(self) -> Floats:
        """(R,) clicks expected by rank."""
        return self.likelihood.wins - self.gradient

    def information(self, basis: Floats | None = None) -> Floats:
        """Minus the Hessian: (R, R) on theta, or (K, K) on phi where theta = basis @ phi."""
        if basis is None:
            return ungrounded(self._edges(None), self.likelihood.size)
        return both_halves(self.curvature(basis, is_plain(basis)))

    def curvature(
        self, basis: Floats, plain: bool, weights: Sequence[Floats] | None = None
    ) -> Floats:
        """(K, K): the lower half of the information on phi; `plain` says that the basis is so.

        `weights`: other clicks in each cell than there were.
        """
        if plain:
            return grounded(self._edges(weights), self.likelihood.size)
        return projected(self._edges(weights), basis)

    def _edges(self, weights: Sequence[Floats] | None) -> Iterator[Edges]:
        cells = self.likelihood.cells
        weights = weights or [each.weight for each in cells]
        parts = zip(cells, self.shares, weights, strict=True)
        return chain.from_iterable(each.edges(share, weight) for each, share, weight in parts)


def likelihood_of(
    counts: Counts,
    clicks: Clicks = "every",
    ranks: Ranks | None = None,
    segment: Segment | None = None,
) -> Likelihood:
    """The likelihood of every click, or only of pairs with a single one.

    `ranks` (ascending) must hold all that pairs were shown at; by default they are all from the
    highest of those to the deepest. `segment`: of its clicks alone, without making counts of them.
    """
    listed, compared = counts.pairs, counts.rank_pairs
    if segment is not None:
        listed, compared = rows_of(counts, segment)
    return likelihood_of_rows(listed, compared, counts.buckets, clicks, ranks)


def rows_of(counts: Counts, segment: Segment) -> tuple[Pairs, RankPairs]:
    """The rows of one segment, without making counts of them."""
    place = counts.segments.index(segment)
    listed, compared = counts.pairs, counts.rank_pairs
    return (
        listed.take(listed.segment == place),
        compared.take(compared.segment == place) if len(compared) else compared,
    )


def likelihood_of_rows(
    listed_pairs: Pairs,
    compared: RankPairs,
    buckets: int,
    clicks: Clicks = "every",
    ranks: Ranks | None = None,
) -> Likelihood:
    """As `likelihood_of`, of these rows of counts."""
    codes = np.ascontiguousarray(listed_pairs.shown.T)
    pairs, bucket = listed_pairs.pairs, listed_pairs.bucket
    if clicks == "single":
        compared = compared.take(compared.single) if len(compared) else compared
        one = (codes & 1).sum(axis=0, dtype=np.int32) == 1
        if not one.all():
            codes, pairs, bucket = codes[:, one], pairs[one], bucket[one]
    listed: list[tuple[Codes, NDArray[Any], NDArray[np.int32]]] = [(codes, pairs, bucket)]
    if len(codes) > 2:
        many = (codes > 0).sum(axis=0)
        listed = [
            (codes[:m, many == m], pairs[many == m], bucket[many == m])
            for m in np.unique(many).tolist()
        ]
    if len(compared):
        two = np.stack([2 * compared.clicked + 1, 2 * compared.other])
        listed.append((np.sort(two, axis=0), compared.weight / UNIT, compared.bucket))
    listed = [each for each in listed if each[0].size]
    if ranks is None:
        first = min((int(codes[0].min()) >> 1 for codes, *_ in listed), default=1)
        last = max((int(codes[-1].max()) >> 1 for codes, *_ in listed), default=0)
        ranks = np.arange(first, last + 1, dtype=np.int32)
    blocks = (Block(_placed(codes, ranks), *rest) for codes, *rest in listed)
    return Likelihood(ranks, tuple(blocks), buckets)


def _placed(codes: Codes, ranks: Ranks) -> Codes:
    """2·rank + click with the rank's place instead of the rank."""
    if len(ranks) == ranks[-1] - ranks[0] + 1:
        return np.asarray(codes - 2 * ranks[0])
    return np.asarray(2 * np.searchsorted(ranks, codes >> 1) + (codes & 1), np.int32)


def shares(shown: Indices, theta: Floats) -> Floats:
    """π (m, T): the probability that a click falls on each of the ranks shown (m, T).

    For several theta (R, N) at once, (m, T, N).
    """
    middle = (theta.max(axis=0) + theta.min(axis=0)) / 2
    p: Floats = np.exp(np.clip(theta - middle, -LARGEST, LARGEST))
    at = p.take(shown, axis=0)
    if len(at) == 2:  # the common case, with half the work
        at[0] /= at[0] + at[1]
        np.subtract(1.0, at[0], out=at[1])
        return at
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


def is_plain(basis: Floats) -> bool:
    """One parameter for each rank but the first: multiplying by that is waste."""
    free = basis[1:]
    if free.shape[0] != free.shape[1] or basis[0].any():
        return False
    return bool((free.diagonal() == 1).all()) and np.count_nonzero(free != 0) == len(free)
