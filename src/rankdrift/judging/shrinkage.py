"""Clicks and exposure -> relevance: empirical Bayes with a logit-normal prior.

Of a pair with c clicks, exposure E = Σ p and squares E₂ = Σ p², q = E₂ / E is the propensity of its
typical row and n = E² / E₂ how many such rows there were:

    log L(z) = c log z + max(n - c, 0) log(1 - q z),    logit z ~ N(location, spread²)

Location is that of the pair's prior mean; where that is not known for sure, its variance is added
to spread². One shift of all locations, and the spread, are those under which the clicks of all
pairs are likeliest. Everything is integrated on a grid of each pair's own, narrowed to where its
posterior is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankdrift.core.types import Bools, Floats, Indices
from rankdrift.propensities.intervals import check_level

POINTS = 97  # of the grid on which a posterior is summed up
_COARSE = 33  # of the grids that find where it is
_NARROWINGS = 3
_DEPTH = 18.0  # further below the top than this, log densities add nothing
_REACH = 9.0  # spreads on either side of the prior's middle, to begin with
_AT_ONCE = 4096  # pairs, so that grids stay in the processor's cache
_TO_FIT = 20_000  # pairs that the prior is fitted to, drawn at random where there are more
_LEAST_SPREAD, _MOST_SPREAD = 0.05, 6.0
_FIRST_SPREAD = 1.5
_ROUNDS = 8  # of the fit, each on grids made for the spread of the one before
_SETTLED = 0.01  # of the log of the spread, and of the shift by spreads


@dataclass(frozen=True, eq=False)
class Evidence:
    """clicks, exposure and squares (N,) of N pairs; pairs (N,): how many pairs each row stands
    for."""

    clicks: Floats
    exposure: Floats
    squares: Floats
    pairs: Floats

    def __len__(self) -> int:
        return len(self.clicks)

    @property
    def propensity(self) -> Floats:
        """q (N,): of a typical row."""
        return np.asarray(self.squares / self.exposure)

    @property
    def misses(self) -> Floats:
        """n - c (N,): typical rows that were not clicked."""
        return np.asarray(np.maximum(self.exposure**2 / self.squares - self.clicks, 0.0))

    def take(self, rows: slice | Bools | Indices) -> Evidence:
        """Some of the rows."""
        return Evidence(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Spread:
    """The prior, as fitted: `shift` of all locations, and `spread`, in logits."""

    shift: float
    spread: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of N relevances: mean, low, high (N,), and the mean and standard deviation of
    their logits."""

    mean: Floats
    low: Floats
    high: Floats
    logit: Floats
    logit_sd: Floats


def fit_spread(
    evidence: Evidence, location: Floats, variance: Floats | float = 0.0, seed: int = 0
) -> Spread:
    """The shift and the spread under which the clicks of all pairs are likeliest.

    Parameters
    ----------
    evidence
        Of all pairs; where there are more rows than `_TO_FIT`, of as many drawn at random.
    location
        (N,): the logit of each pair's prior mean.
    variance
        (N,): of the location, which adds to that of the spread.
    seed
        Of the draw.
    """
    from scipy.optimize import minimize

    rows, pairs = _draw(evidence, seed)
    e, mu = evidence.take(rows), location[rows]
    unsure = np.broadcast_to(np.asarray(variance, float), location.shape)[rows]
    found = np.array([0.0, np.log(_FIRST_SPREAD)])
    bounds = [(-20.0, 20.0), (np.log(_LEAST_SPREAD), np.log(_MOST_SPREAD))]
    for _ in range(_ROUNDS):
        # Wider than the last spread, so that a wider one is seen as well.
        wide = 2 * np.sqrt(np.exp(2 * found[1]) + unsure)
        grids = [_grid(*part) for part in _parts(e, mu + found[0], wide)]
        t = np.concatenate([grid[0] for grid in grids])
        fit = np.concatenate([grid[1] for grid in grids]) + np.log(t[:, 1] - t[:, 0])[:, None]
        t -= mu[:, None]
        before = found
        found = minimize(_misfit, before, (t, fit, pairs, unsure), jac=True, bounds=bounds).x
        change = np.abs(found - before) / (np.exp(found[1]), 1.0)
        if change.max() < _SETTLED:
            break
    return Spread(float(found[0]), float(np.exp(found[1])))


def _draw(evidence: Evidence, seed: int) -> tuple[Indices, Floats]:
    """Rows to fit to, and how many pairs each of them stands for. Rows that stand for many are all
    taken: they are few."""
    many = np.flatnonzero(evidence.pairs > 1)
    one = np.flatnonzero(evidence.pairs == 1)
    if len(one) <= _TO_FIT:
        rows = np.concatenate([one, many])
        return rows, evidence.pairs[rows]
    drawn = np.sort(np.random.default_rng(seed).choice(one, _TO_FIT, replace=False))
    weight = np.full(len(drawn), len(one) / len(drawn))
    return np.concatenate([drawn, many]), np.concatenate([weight, evidence.pairs[many]])


def _misfit(
    at: Floats, t: Floats, fit: Floats, pairs: Floats, unsure: Floats
) -> tuple[float, Floats]:
    """Minus the log-likelihood of (shift, log spread) by pair, and its slope."""
    own = np.exp(2 * at[1])
    spread = np.sqrt(own + unsure)
    away = (t - at[0]) / spread[:, None]
    log = fit - 0.5 * away**2
    top = log.max(axis=1, keepdims=True)
    weight = np.exp(log - top)
    total = weight.sum(axis=1)
    weight /= total[:, None]
    likelihood = top[:, 0] + np.log(total) - np.log(spread)
    first, second = (weight * away).sum(axis=1), (weight * away**2).sum(axis=1)
    slope = np.array(
        [(pairs * first / spread).sum(), (pairs * (second - 1) * own / spread**2).sum()]
    )
    return -float((pairs * likelihood).sum()) / pairs.sum(), -slope / pairs.sum()


def posterior(
    evidence: Evidence, location: Floats, spread: Floats | float, level: float = 0.95
) -> Posterior:
    """The relevance of each pair.

    Parameters
    ----------
    evidence
        Of N pairs.
    location
        (N,): the middle of each pair's prior, in logits, the shift included.
    spread
        (N,), or of all pairs alike: of the prior.
    level
        Of the intervals.
    """
    check_level(level)
    every = np.broadcast_to(np.asarray(spread, float), location.shape)
    found = [_summary(*part, level) for part in _parts(evidence, location, every)]
    columns = np.concatenate(found, axis=1) if found else np.zeros((5, 0))
    return Posterior(*columns)


def _summary(e: Evidence, mu: Floats, spread: Floats, level: float) -> Floats:
    """(5, N): mean, low, high, and mean and deviation of the logit."""
    t, fit = _grid(e, mu, spread)
    log = fit - 0.5 * ((t - mu[:, None]) / spread[:, None]) ** 2
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = (weight / (1 + np.exp(-t))).sum(axis=1)
    middle = (weight * t).sum(axis=1)
    deviation = np.sqrt((weight * (t - middle[:, None]) ** 2).sum(axis=1))
    below = np.cumsum(weight, axis=1) - weight / 2
    ends = [_quantile(t, below, share) for share in ((1 - level) / 2, (1 + level) / 2)]
    return np.stack([mean, *(1 / (1 + np.exp(-end)) for end in ends), middle, deviation])


def _quantile(t: Floats, below: Floats, share: float) -> Floats:
    rows = np.arange(len(t))
    after = np.clip((below < share).sum(axis=1), 1, t.shape[1] - 1)
    left, right = below[rows, after - 1], below[rows, after]
    part = np.clip((share - left) / np.maximum(right - left, 1e-300), 0.0, 1.0)
    return np.asarray(t[rows, after - 1] + part * (t[rows, after] - t[rows, after - 1]))


def _grid(e: Evidence, mu: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """(N, POINTS) logits where the posterior is, and their log-likelihood."""
    rate = np.clip(e.clicks / e.exposure, 1e-9, 1 - 1e-6)
    peak = np.log(rate / (1 - rate))
    seen = e.clicks > 0
    low = mu - _REACH * spread
    high = mu + _REACH * spread
    low = np.where(seen, np.minimum(low, peak - 3), low)
    high = np.where(seen, np.maximum(high, peak + 3), high)
    clicks, misses, q = e.clicks[:, None], e.misses[:, None], e.propensity[:, None]
    for _ in range(_NARROWINGS):
        step = (high - low) / (_COARSE - 1)
        t = low[:, None] + step[:, None] * np.arange(_COARSE)
        away = (t - mu[:, None]) / spread[:, None]
        log = _log_likelihood(t, clicks, misses, q) - 0.5 * away**2
        inside = log > log.max(axis=1, keepdims=True) - _DEPTH
        first, last = inside.argmax(axis=1), _COARSE - 1 - inside[:, ::-1].argmax(axis=1)
        low, high = low + (first - 1) * step, low + (last + 1) * step
    t = low[:, None] + ((high - low) / (POINTS - 1))[:, None] * np.arange(POINTS)
    return t, _log_likelihood(t, clicks, misses, q)


def _log_likelihood(t: Floats, clicks: Floats, misses: Floats, q: Floats) -> Floats:
    odds = np.exp(-t)
    chance = np.minimum(q / (1 + odds), 1 - 1e-12)  # where p is above 1, so could this be
    return np.asarray(misses * np.log1p(-chance) - clicks * np.log1p(odds))


def _parts(
    e: Evidence, location: Floats, spread: Floats
) -> Iterator[tuple[Evidence, Floats, Floats]]:
    for start in range(0, len(e), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        yield e.take(rows), location[rows], spread[rows]
