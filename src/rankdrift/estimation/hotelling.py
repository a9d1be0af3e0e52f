"""Do curves from the same queries agree? How they move together from bucket to bucket tells.

What two curves share moves both alike and cancels in their difference. They are compared at a few
ranks only, because a covariance from some 64 buckets bears no test of hundreds of numbers at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import NotIdentified
from rankdrift.core.types import Floats, Ranks
from rankdrift.estimation.covariance import bucket_influence, jackknife_covariance
from rankdrift.estimation.fitting import Fitted

MOST_RANKS = 8
# At most this share of the buckets may be spent on numbers compared: more, and the test has hardly
# any power left.
_SPENT = 0.25


@dataclass(frozen=True)
class HotellingTest:
    """Hotelling's test that curves agree: `statistic` is F with `df` and `df_error` if they do.

    ranks (A,) are where they are compared; off (C-1, A) is log p of the others less that of the
    first; noise (C-1, A) its variance.
    """

    statistic: float
    df: int
    df_error: int
    p_value: float
    ranks: Ranks
    off: Floats
    noise: Floats

    @property
    def beyond_noise(self) -> float:
        """How far apart curves are at a typical rank of these, over and above noise, as a share."""
        square = float((self.off**2 - self.noise).mean())
        return float(np.expm1(np.sqrt(max(square, 0.0))))


def hotelling_test(curves: Sequence[Fitted], reference: int) -> HotellingTest:
    """Whether two curves or more, fitted to the same buckets of queries, agree relative to
    `reference`."""
    shared = curves[0].likelihood.ranks
    for curve in curves[1:]:
        shared = np.intersect1d(shared, curve.likelihood.ranks)
    touched = np.unique(np.concatenate([curve.likelihood.touched for curve in curves]))
    bear = int(_SPENT * len(touched)) // (len(curves) - 1)
    many = min(MOST_RANKS, max(bear, 1), *(len(curve.fit.phi) for curve in curves))
    at = anchors(shared, reference, many)
    first, *others = (_at(curve, at, reference) for curve in curves)
    off = np.stack([values - first[0] for values, _ in others])
    influence = np.concatenate([own - first[1] for _, own in others], axis=1)[touched]
    size = influence.shape[1]
    covariance = jackknife_covariance(influence) if len(influence) > 1 else np.zeros((size, size))
    statistic, df, df_error, p_value = hotelling(off.ravel(), covariance, len(touched))
    noise = np.diag(covariance).reshape(off.shape)
    return HotellingTest(statistic, df, df_error, p_value, at, off, noise)


def anchors(ranks: Ranks, reference: int, many: int) -> Ranks:
    """A few of these ranks that span them, the reference apart, closer together at the top."""
    usable = ranks[ranks != reference]
    if not len(usable) or reference not in ranks:
        raise NotIdentified("The curves do not share the reference rank and another. Add days.")
    wanted = np.geomspace(usable[0], usable[-1], many)
    return np.unique(usable[np.abs(usable[:, None] - wanted).argmin(axis=0)])


def _at(curve: Fitted, at: Ranks, reference: int) -> tuple[Floats, Floats]:
    """log p at these ranks (A,), and the influence of each bucket on it (G, A)."""
    place = np.searchsorted(curve.likelihood.ranks, at)
    zero = int(np.searchsorted(curve.likelihood.ranks, reference))
    contrast = curve.fit.basis[place] - curve.fit.basis[zero]
    return contrast @ curve.fit.phi, bucket_influence(curve.fit) @ contrast.T


def hotelling(off: Floats, covariance: Floats, clusters: int) -> tuple[float, int, int, float]:
    """F, its degrees of freedom and p of off = 0, the covariance being from that many clusters."""
    from scipy.special import fdtrc

    unit = np.sqrt(np.diag(covariance))
    seen: NDArray[np.bool_] = unit > 0
    values, vectors = np.linalg.eigh(
        covariance[np.ix_(seen, seen)] / np.outer(unit[seen], unit[seen])
    )
    keep = values > values.max(initial=0.0) * 1e-10
    df, n = int(keep.sum()), clusters - 1
    if not df or n <= df:
        return 0.0, df, max(n - df + 1, 0), 1.0
    square = float(((off[seen] / unit[seen] @ vectors[:, keep]) ** 2 / values[keep]).sum())
    statistic = square * (n - df + 1) / (n * df)
    return statistic, df, n - df + 1, float(fdtrc(df, n - df + 1, statistic))
