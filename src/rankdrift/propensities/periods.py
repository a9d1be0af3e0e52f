"""The curve of each day, week or month, and whether they differ by more than their errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rankdrift.propensities.propensities import Propensities


@dataclass(frozen=True, eq=False)
class Period:
    """The days `first` to `last`, ISO, and their curve; None if they bear none, and `why`."""

    first: str
    last: str
    curve: Propensities | None
    why: str = ""


@dataclass(frozen=True)
class Steadiness:
    """Whether a propensity is the same in all periods: Cochran's Q on its logarithm.

    p_value: of a difference as large as was found if there were none; mean: over the periods, each
    by its error.
    """

    rank: int
    periods: int
    p_value: float
    mean: float


def steadiness(periods: Iterable[Period], rank: int) -> Steadiness | None:
    """Test whether the propensity of a rank is the same in all periods; None without two that have
    one.

    Parameters
    ----------
    periods
        Of `estimate_by_period`.
    rank
        Any but the reference.
    """
    from scipy.special import chdtrc

    curves = [p.curve for p in periods if p.curve is not None and rank in p.curve.ranks]
    places = [int(np.searchsorted(curve.ranks, rank)) for curve in curves]
    log_p = np.array([c.log_p[i] for c, i in zip(curves, places, strict=True)])
    error = np.array([c.std_error[i] for c, i in zip(curves, places, strict=True)])
    usable = np.isfinite(error) & (error > 0)
    if usable.sum() < 2:
        return None
    log_p, weight = log_p[usable], error[usable] ** -2.0
    mean = float(weight @ log_p / weight.sum())
    q = float(weight @ (log_p - mean) ** 2)
    n = int(usable.sum())
    return Steadiness(rank, n, float(chdtrc(n - 1, q)), float(np.exp(mean)))
