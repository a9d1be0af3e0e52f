"""Means over a Beta distribution, exact for polynomials: Gauss-Jacobi nodes, many at once.

The chance of any clicks of a pair, given how often it was shown at each rank, is a polynomial of
its relevance z, and of no higher degree than it has appearances. With K nodes the mean over z is
exact up to degree 2K - 1: relevance is integrated out without a draw and without an error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdrift.core.types import Floats, Ints

_STEP = 1e-5  # of a and b, as a share, for the change of the recurrence
_SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class Nodes:
    """z, weight (..., K): the mean of f(z) is the sum of weight times f(z). by_a, by_b: how z and
    weight change with each parameter, a tuple of two arrays each."""

    z: Floats
    weight: Floats
    by_a: tuple[Floats, Floats]
    by_b: tuple[Floats, Floats]


def nodes_for(degree: Ints) -> Ints:
    """How many nodes polynomials of these degrees take."""
    return degree // 2 + 1


def beta_nodes(a: Floats, b: Floats, size: int) -> Nodes:
    """The nodes of Beta(a, b), of any shape, and how they change with a and b.

    Nodes are the eigenvalues of the matrix of the recurrence of Jacobi's polynomials, and weights
    the squares of the first entries of its eigenvectors; both change by perturbation theory.

    Parameters
    ----------
    a, b
        Of one shape, positive.
    size
        How many nodes.
    """
    ones = np.ones_like(a)
    to_a = np.stack([ones, (1 + _STEP) * ones, (1 - _STEP) * ones, ones, ones])
    to_b = to_a[[0, 3, 4, 1, 2]]
    here, *beside = _recurrence(to_a * a, to_b * b, size)
    z, vectors = np.linalg.eigh(here)
    first = vectors[..., 0, :]
    apart = z[..., None, :] - z[..., :, None]
    inverse = np.divide(1.0, apart, out=np.zeros_like(apart), where=apart != 0)
    slope = np.stack([beside[0] - beside[1], beside[2] - beside[3]])
    slope /= (2 * _STEP * np.stack([a, b]))[..., None, None]
    turned = np.swapaxes(vectors, -1, -2) @ slope @ vectors
    moved = 2 * first * (first[..., None, :] @ (turned * inverse))[..., 0, :]
    z_moved = np.diagonal(turned, axis1=-2, axis2=-1)
    by_a, by_b = zip(z_moved, moved, strict=True)
    return Nodes(np.clip(z, _SMALLEST, 1.0), first**2, by_a, by_b)


def _recurrence(a: Floats, b: Floats, size: int) -> Floats:
    """(..., K, K): the symmetric matrix of the recurrence, on (0, 1)."""
    n = np.arange(1, size)
    a, b = a[..., None], b[..., None]
    total = 2 * n + a + b - 2
    middle = ((a - 1) ** 2 - (b - 1) ** 2) / (total * (total + 2))
    # n (n + a - 1) (n + b - 1) (n + a + b - 2) / (total² (total² - 1)), with what a + b near 1 or
    # less would make 0 / 0 left out where n is 1.
    with np.errstate(divide="ignore", invalid="ignore"):
        last = np.where(n == 1, 1.0, (n + a + b - 2) / (total - 1))
    beside = np.sqrt(n * (n + a - 1) * (n + b - 1) * last / (total**2 * (total + 1)))
    matrix = np.zeros((*a.shape[:-1], size, size))
    places = np.arange(size)
    matrix[..., 0, 0] = (a / (a + b))[..., 0]
    matrix[..., places[1:], places[1:]] = (1 + middle) / 2
    matrix[..., places[1:], places[:-1]] = matrix[..., places[:-1], places[1:]] = beside
    return matrix
