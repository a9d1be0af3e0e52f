"""Draws from a density whose slope is known: Hamiltonian Monte Carlo, several chains at once.

From the mode, and with the curvature there as the metric, a posterior of thousands of pairs is
nearly a standard normal, and a few steps give a draw that hardly depends on the one before. What is
left of its shape the warm-up learns. The gradient only steers: what is accepted is decided by the
density itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankdrift.core.types import Floats

Density = Callable[[Floats], tuple[Floats, Floats]]
"""From (C, d) to the log density (C,), -inf where there is none, and its slope (C, d)."""
WANTED = 0.85  # the share of proposals to be accepted
_CLIMBS, _NEAR = 5, 0.01  # ends of climbs this near, in log density, are one
_AT_ONCE = 64  # points whose slope is worked out together, for the curvature
_SMALLEST, _LARGEST = 1e-3, 1.6  # of a step, in standard deviations


@dataclass(frozen=True, eq=False)
class Mode:
    """Where a density is largest: x (d,), and root (d, d), so that x + root @ a standard normal has
    about the density's covariance."""

    x: Floats
    root: Floats


def find_mode(density: Density, start: Floats) -> Mode:
    """The mode that a climb from `start` (d,) reaches, and the curvature there."""
    from scipy.optimize import minimize

    def downhill(x: Floats) -> tuple[float, Floats]:
        value, slope = density(x[None])
        return (float(-value[0]) if np.isfinite(value[0]) else 1e100), -slope[0]

    x, lowest = start, np.inf
    for _ in range(_CLIMBS):  # a step beyond where there is density ends a climb too early
        found = minimize(downhill, x, jac=True, method="L-BFGS-B", options={"maxiter": 1000})
        x, before, lowest = found.x, lowest, float(found.fun)
        if before - lowest < _NEAR:
            break
    size, step = len(x), 1e-4
    points = np.concatenate([x + step * np.eye(size), x - step * np.eye(size)])
    slopes = np.concatenate(
        [density(points[i : i + _AT_ONCE])[1] for i in range(0, len(points), _AT_ONCE)]
    )
    curvature = -(slopes[:size] - slopes[size:]) / (2 * step)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    # A prior keeps every direction curved; what rounding leaves of it is at least this.
    return Mode(x, vectors / np.sqrt(np.maximum(values, 1e-2)))


class Sampler:
    """Chains of draws that go on where they stopped.

    Parameters
    ----------
    density
        What is drawn from.
    mode
        Where it is largest, about.
    chains
        How many, side by side.
    seed
        Of all that is drawn.
    apart
        How far from the mode chains begin, in deviations: further than draws are, so that what has
        not converged shows.
    """

    def __init__(
        self,
        density: Density,
        mode: Mode,
        *,
        chains: int = 4,
        seed: int = 0,
        apart: float = 1.5,
    ) -> None:
        self._density = density
        self._rng = np.random.default_rng(seed)
        self._root = mode.root
        self._step = 0.8
        way = apart * self._rng.standard_normal((chains, len(mode.x))) @ mode.root.T
        for share in (1.0, 2 / 3, 1 / 3, 0.0):  # nearer, where there is no density out there
            self._x = mode.x + share * way
            self._value, self._slope = density(self._x)
            if np.isfinite(self._value).all():
                break
        self.accepted = 0.0

    def warm_up(self, draws: int) -> None:
        """Learn the step, then twice the metric from the draws, then the step again."""
        self._tune(draws // 6)
        for _ in range(2):
            self._learn(self._tune(draws // 3))
        self._tune(draws // 6)

    def _learn(self, seen: Floats) -> None:
        """Take the covariance of these draws (S, C, d), without the first of them, and the metric
        so far for as many draws as four times the parameters."""
        kept = seen[len(seen) // 4 :].reshape(-1, seen.shape[2])
        trust = len(kept) / (len(kept) + 4.0 * kept.shape[1])
        off = kept - kept.mean(axis=0)
        covariance = trust * (off.T @ off) / len(kept) + (1 - trust) * self._root @ self._root.T
        values, vectors = np.linalg.eigh(covariance)
        self._root = vectors * np.sqrt(np.maximum(values, 1e-12))

    def draw(self, draws: int) -> Floats:
        """(S, C, d): so many more draws of each chain."""
        found = np.empty((draws, *self._x.shape))
        accepted = 0.0
        for i in range(draws):
            accepted += float(self._move().mean())
            found[i] = self._x
        self.accepted = accepted / max(draws, 1)
        return found

    def _tune(self, draws: int) -> Floats:
        """Draws by which the step is made such that WANTED are accepted (dual averaging)."""
        centre, mean, error = np.log(2 * self._step), np.log(self._step), 0.0
        found = np.empty((draws, *self._x.shape))
        for i in range(draws):
            chance = float(self._move().mean())
            found[i] = self._x
            error += (WANTED - chance - error) / (i + 10)
            log_step = np.clip(
                centre - np.sqrt(i + 1) / 0.1 * error, np.log(_SMALLEST), np.log(_LARGEST)
            )
            share = (i + 1.0) ** -0.75
            mean = share * log_step + (1 - share) * mean
            self._step = float(np.exp(log_step))
        self._step = float(np.exp(mean))
        return found

    def _move(self) -> Floats:
        """One proposal of each chain, accepted or not; the chance that it was (C,)."""
        rng, root = self._rng, self._root
        # Between a quarter and three quarters of a turn of a standard normal's orbit, in steps that
        # differ a little: so no direction comes back to where it was.
        step = self._step * rng.uniform(0.8, 1.2)
        steps = min(max(1, round(np.pi * rng.uniform(0.25, 0.75) / step)), 200)
        x, value, slope = self._x, self._value, self._slope
        momentum = rng.standard_normal(x.shape)
        energy = value - (momentum**2).sum(axis=1) / 2
        momentum = momentum + step / 2 * (slope @ root)
        for i in range(steps):
            x = x + step * (momentum @ root.T)
            value, slope = self._density(x)
            momentum = momentum + (step if i < steps - 1 else step / 2) * (slope @ root)
        with np.errstate(invalid="ignore", over="ignore"):
            gain = value - (momentum**2).sum(axis=1) / 2 - energy
        chance = np.exp(np.minimum(np.where(np.isnan(gain), -np.inf, gain), 0.0))
        take = rng.uniform(size=len(x)) < chance
        self._x = np.where(take[:, None], x, self._x)
        self._value = np.where(take, value, self._value)
        self._slope = np.where(take[:, None], slope, self._slope)
        return chance
