"""How many standard errors an interval takes: for one rank, or for a whole curve at once."""

from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.types import Floats

POSTERIOR = "posterior"
"""The errors of a curve whose deviations are draws."""


def simultaneous_quantile(
    deviations: Floats, errors: Floats, level: float, df: float, seed: int = 0, draws: int = 20_000
) -> float:
    """How many standard errors cover the whole curve at once.

    `deviations` (R, F) times independent standard normals has the covariance of the curve.
    """
    rng = np.random.default_rng(seed)
    seen = errors > 0
    alone = t_quantile(level, df)
    if not seen.any():
        return alone
    scaled = deviations[seen] / errors[seen, None]
    largest = np.concatenate(
        [
            np.abs(rng.standard_normal((1_000, scaled.shape[1])) @ scaled.T).max(axis=1)
            for _ in range(draws // 1_000)
        ]
    )
    if np.isfinite(df):
        largest /= np.sqrt(rng.chisquare(df, size=len(largest)) / df)
    return max(alone, float(np.quantile(largest, level)))  # drawn, so it may fall just short


def credible(draws: Floats, level: float) -> tuple[Floats, Floats]:
    """Between what draws (S, ...) lie, with as many below as above."""
    check_level(level)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def credible_band(draws: Floats, level: float) -> tuple[Floats, Floats]:
    """(R,) each: the band that whole draws (S, R) lie in, as many deviations wide at every rank."""
    mean, error = draws.mean(axis=0), draws.std(axis=0)
    off = np.abs(draws - mean) / np.where(error > 0, error, 1.0)
    reach = np.quantile(off.max(axis=1), level) * error
    low, high = credible(draws, level)
    return np.minimum(low, mean - reach), np.maximum(high, mean + reach)


@dataclass(frozen=True)
class Interval:
    """A propensity, or a ratio of two, with its interval; printed as 0.54 (95%: 0.49 to 0.58)."""

    value: float
    low: float
    high: float
    level: float

    def __str__(self) -> str:
        value, low, high = (_two_digits(v) for v in (self.value, self.low, self.high))
        return f"{value} ({100 * self.level:g}%: {low} to {high})"

    def _repr_html_(self) -> str:
        return f"<span>{self}</span>"


def _two_digits(value: float) -> str:
    """With two digits after the point, or more where the first of them would be 0."""
    if not np.isfinite(value) or value >= 1e6:
        return f"{value:.3g}"
    digits = 2 if value >= 0.1 or value <= 0 else min(1 - int(np.floor(np.log10(value))), 9)
    return f"{value:,.{digits}f}"


def check_level(level: float) -> None:
    """Raise BadOption for a level that is no probability between 0 and 1."""
    if not 0 < level < 1:
        raise BadOption(f"level must lie between 0 and 1 (0.95 for 95%), not {level}.")


def t_quantile(level: float, df: float) -> float:
    """How many standard errors to either side."""
    from scipy.special import ndtri, stdtrit

    check_level(level)
    at = (1 + level) / 2
    return float(ndtri(at) if not np.isfinite(df) else stdtrit(df, at))
