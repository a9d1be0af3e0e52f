"""How well any method could do: the bound on the variance of an estimate of log p.

Ranks are given; the law of a pair's relevance z is unknown and may differ between sets of ranks,
as it does in Appendix D, where pairs further down are less relevant. Of a pair at ranks a and b,
the four outcomes then have three free chances, P_a = p_a E z, P_b = p_b E z and
P_ab = p_a p_b E z², one for each of the unknowns p_a / p_b, E z and E z². Nothing is left over, so
no estimate of log p_a / p_b from n such pairs beats log (clicks at a / clicks at b), whose
information is, with s = P_a + P_b and π = P_a / s,

    n s² π (1 − π) / (s − 2 P_ab).

Different sets of ranks are independent, so their information adds up, to a matrix over ranks. Its
inverse is the bound of `direct`, and that of B'IB is the bound of a curve with the basis B. As
P_ab goes to 0 this is the information of Eq. (3): the paper's likelihood is efficient for small
chances. (For Poisson clicks it always is: Hahn, Econometric Theory 13, 1997.)
"""

import numpy as np

from rankdrift.estimation.curves import curve as parse_curve
from rankdrift.simulate.appendix_d import Recipe

BATCHES = 24


def information(n: int, **options) -> np.ndarray:
    """(R, R), of n usable pairs as `rankdrift.simulate.pairs` draws them with two appearances."""
    given = {
        "ranks": 500,
        "propensities": None,
        "ctr": None,
        "relevance": 0.1,
        "appearances": 2,
        "spread": 0.2,
        "queries": 5_000,
        "query_effect": 0.0,
        "seed": 0,
    }
    world = Recipe.make(n=n, **{**given, **options})
    rng = np.random.default_rng(12345)
    size = len(world.p)
    off = np.zeros(size * size)
    usable = 0.0
    for _ in range(BATCHES):
        _, rank, mean_z = world.appear(rng)
        rank, mean_z = rank[rank[:, 0] != rank[:, 1]], mean_z[rank[:, 0] != rank[:, 1]]
        b = 1 / mean_z - 1
        square_z = 2 / ((1 + b) * (2 + b))  # E z² of Beta(1, b)
        p = world.p[rank - 1]
        one, both = p.sum(axis=1) * mean_z, p.prod(axis=1) * square_z
        share = p[:, 0] / p.sum(axis=1)
        usable += float((one - both).sum())
        weight = one**2 * share * (1 - share) / (one - 2 * both)
        cell = (rank[:, 0] - 1) * size + rank[:, 1] - 1
        off += np.bincount(cell, weights=weight, minlength=size * size)
    found = -off.reshape(size, size)
    found += found.T.copy()
    np.fill_diagonal(found, 0.0)
    np.fill_diagonal(found, -found.sum(axis=1))
    return found * n / usable


def centred_variance(info: np.ndarray, curve: str) -> np.ndarray:
    """(R,) bound on the variance of log p relative to its mean over all ranks."""
    ranks = np.arange(1, len(info) + 1, dtype=np.int32)
    basis = parse_curve(curve).basis(ranks)
    centred = basis - basis.mean(axis=0)
    covariance = centred @ np.linalg.pinv(basis.T @ info @ basis, hermitian=True) @ centred.T
    return np.diag(covariance)
