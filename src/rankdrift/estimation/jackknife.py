"""Solve for every bucket left out at once: systems that differ from one by a bucket's part of it.

    (whole − own_g) x_g = right_g      for each bucket g

A bucket is a small part of the whole. So conjugate gradients, preconditioned by the whole that is
factorised once, reach in a few steps what a factorisation for each bucket would.
"""

from collections.abc import Callable

import numpy as np

from rankdrift.core.types import Bools, Floats

# Of the first error, measured by the whole, this share may be left.
LEFT = 1e-12
# Some ten are enough unless parameters hang on single buckets.
STEPS = 60


def jackknife_solve(
    factor: Floats, own: Callable[[Floats], Floats], right: Floats
) -> tuple[Floats, Bools]:
    """x (G, F) for `right` (G, F) without each bucket, and for which of them it was reached (G,).

    `factor` (F, F) is the lower Cholesky factor of the whole; `own` multiplies each row of (G, F)
    by its bucket's part.
    """
    from scipy.linalg.lapack import dpotrs

    def by_the_whole(rows: Floats) -> Floats:
        return np.asarray(dpotrs(factor, rows.T, lower=1)[0].T)

    x, left = np.zeros_like(right), right
    along = by_the_whole(right)
    whole_along = right  # the whole times `along`, which so need not be multiplied out
    size = (left * along).sum(axis=1)
    enough = LEFT**2 * size
    for _ in range(STEPS):
        if (size <= enough).all():
            break
        change = whole_along - own(along)
        bend = (along * change).sum(axis=1)
        step = np.where((size > enough) & (bend > 0), size / np.where(bend > 0, bend, 1.0), 0.0)
        x = x + step[:, None] * along
        left = left - step[:, None] * change
        better = by_the_whole(left)
        before, size = size, (left * better).sum(axis=1)
        share = (size / np.maximum(before, 1e-300))[:, None]
        along, whole_along = better + share * along, left + share * whole_along
    return x, size <= enough
