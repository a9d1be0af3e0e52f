"""What an adjustment changes of a curve."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankdrift.core.types import Floats, Ranks
from rankdrift.estimation.covariance import jackknife_root


@dataclass(frozen=True, eq=False)
class Correction:
    """By how much log p changes at `ranks` (R,): shift (R,), relative to the reference; influence
    (G, R), of each bucket on it; p_value: of no change; clicks: behind it.

    trust (R,), where there is any: the chance of a click that needs no relevance, with the
    influence (G, R) of each bucket.
    """

    ranks: Ranks
    shift: Floats
    influence: Floats
    p_value: float
    clicks: float
    trust: Floats | None = None
    trust_influence: Floats | None = None

    @cached_property
    def _mean(self) -> Floats:
        """(G,): the influence on the mean shift."""
        return np.asarray(self.influence.mean(axis=1))

    @property
    def bias(self) -> float:
        """By how much the plain curve is too high, the mean of log p over ranks."""
        return -float(self.shift.mean())

    @property
    def noise(self) -> float:
        """The standard error of `bias`."""
        touched = self.influence.any(axis=1)
        return float(np.sqrt((jackknife_root(self._mean[touched, None]) ** 2).sum()))

    @property
    def by_bucket(self) -> Floats:
        """(G,): what each bucket of queries adds to bias / noise."""
        touched = self.influence.any(axis=1)
        return np.where(touched, (self.bias / max(touched.sum(), 1) - self._mean) / self.noise, 0.0)

    @property
    def error(self) -> Floats:
        """(R,): the standard error of `shift`."""
        root = jackknife_root(self.influence[self.influence.any(axis=1)])
        return np.asarray(np.sqrt((root**2).sum(axis=1)))
