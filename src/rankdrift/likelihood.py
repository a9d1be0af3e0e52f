"""Eq. (3), log-like: value, gradient and Hessian from counts. Arrays in, arrays out.

theta is log p by rank, (R,). A term is a choice of one rank among those shown, with a weight:

    log L = Σ_terms w ( theta[clicked] − log Σ_k exp theta[shown_k] )

It is concave in theta. A rank may be shown several times in a term. Adding a constant to theta
changes nothing, so gradients sum to 0 and so do the rows of the Hessian: its diagonal follows
from the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.counts import Choices

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Block:
    """Terms with the same number m of appearances; ranks as indices into `Likelihood.ranks`."""

    shown: Indices  # (T, m)
    clicked: Indices  # (T,)
    weight: Floats  # (T,)
    bucket: Indices  # (T,)
    pair: Indices  # (T,) terms of one pair share a number

    def shares(self, theta: Floats) -> Floats:
        """π (T, m): the probability that the click falls on each appearance."""
        at = theta[self.shown]
        at -= at.max(axis=1, keepdims=True)
        np.exp(at, out=at)
        at /= at.sum(axis=1, keepdims=True)
        return at


@dataclass(frozen=True)
class Likelihood:
    ranks: NDArray[np.int32]  # (R,)
    blocks: tuple[Block, ...]
    buckets: int

    @property
    def size(self) -> int:
        return len(self.ranks)

    @property
    def weight(self) -> float:
        return float(sum(block.weight.sum() for block in self.blocks))

    def value(self, theta: Floats) -> float:
        total = 0.0
        for block in self.blocks:
            at = theta[block.shown]
            top = at.max(axis=1)
            logs = top + np.log(np.exp(at - top[:, None]).sum(axis=1))
            total += float(block.weight @ (theta[block.clicked] - logs))
        return total

    def gradient(self, theta: Floats) -> Floats:
        """(R,): clicks observed less clicks expected, by rank."""
        return self.wins() - self.expected(theta)

    def wins(self) -> Floats:
        return self._sum(
            np.bincount(b.clicked, weights=b.weight, minlength=self.size) for b in self.blocks
        )

    def expected(self, theta: Floats) -> Floats:
        return self._sum(
            np.bincount(
                b.shown.ravel(),
                weights=(b.weight[:, None] * b.shares(theta)).ravel(),
                minlength=self.size,
            )
            for b in self.blocks
        )

    def information(self, theta: Floats) -> Floats:
        """Minus the Hessian, (R, R)."""
        size = self.size
        off = np.zeros(size * size)
        for block in self.blocks:
            share = block.shares(theta)
            for k, m in _pairs_of(block.shown.shape[1]):
                i, j = block.shown[:, k], block.shown[:, m]
                off += np.bincount(
                    i * size + j,
                    weights=block.weight * share[:, k] * share[:, m],
                    minlength=size**2,
                )
        info = -off.reshape(size, size)
        info += info.T.copy()
        np.fill_diagonal(info, 0.0)
        np.fill_diagonal(info, -info.sum(axis=1))
        return info

    def bucket_scores(self, theta: Floats) -> Floats:
        """(G, R): the gradient's parts from each bucket of queries."""
        shape = (self.buckets, self.size)
        flat = np.zeros(self.buckets * self.size)
        for block in self.blocks:
            start = block.bucket * self.size
            flat += np.bincount(start + block.clicked, weights=block.weight, minlength=flat.size)
            lost = (block.weight[:, None] * block.shares(theta)).ravel()
            at = (start[:, None] + block.shown).ravel()
            flat -= np.bincount(at, weights=lost, minlength=flat.size)
        return flat.reshape(shape)

    def bucket_information(self, theta: Floats, basis: Floats) -> Floats:
        """(G, K, K): the information on phi, theta = basis @ phi, from each bucket."""
        out = np.zeros((self.buckets, basis.shape[1], basis.shape[1]))
        for bucket in range(self.buckets):
            part = self.restrict(bucket)
            if part.blocks:
                out[bucket] = basis.T @ part.information(theta) @ basis
        return out

    def restrict(self, bucket: int) -> "Likelihood":
        """The terms of one bucket."""
        parts = []
        for b in self.blocks:
            keep = b.bucket == bucket
            if keep.any():
                parts.append(
                    Block(
                        b.shown[keep], b.clicked[keep], b.weight[keep], b.bucket[keep], b.pair[keep]
                    )
                )
        return Likelihood(self.ranks, tuple(parts), self.buckets)

    def reweighted(self, by_bucket: Floats) -> "Likelihood":
        """The same terms with each bucket counted `by_bucket` (G,) times."""
        return Likelihood(
            self.ranks,
            tuple(
                Block(b.shown, b.clicked, b.weight * by_bucket[b.bucket], b.bucket, b.pair)
                for b in self.blocks
            ),
            self.buckets,
        )

    def _sum(self, parts: Iterator[NDArray[Any]]) -> Floats:
        return sum(parts, start=np.zeros(self.size))


def likelihood(choices: Choices, ranks: NDArray[np.int32], buckets: int) -> Likelihood:
    """The likelihood of these choices over `ranks` (ascending), which must hold all that occur."""
    many = (choices.shown > 0).sum(axis=1)
    place = np.searchsorted(ranks, choices.shown)
    clicked = np.searchsorted(ranks, choices.clicked)
    blocks = []
    for m in np.unique(many).tolist():
        at = np.flatnonzero(many == m)
        blocks.append(
            Block(
                shown=place[at, :m],
                clicked=clicked[at],
                weight=choices.weight[at].astype(np.float64),
                bucket=choices.bucket[at].astype(np.intp),
                pair=choices.pair[at].astype(np.intp),
            )
        )
    return Likelihood(ranks, tuple(blocks), buckets)


def _pairs_of(m: int) -> Iterator[tuple[int, int]]:
    return ((a, b) for a in range(m) for b in range(a + 1, m))
