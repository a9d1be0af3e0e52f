"""Have chains converged? Split R-hat and effective sample size of rank-normalised draws, as
Vehtari, Gelman, Simpson, Carpenter and Bürkner define them (Bayesian Analysis, 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdrift.core.types import Floats

MOST_R_HAT = 1.01
LEAST_ESS = 400.0


@dataclass(frozen=True, eq=False)
class Convergence:
    """(F,) each, of F quantities: r_hat, the worse of bulk and folded; bulk and tail effective
    sample sizes."""

    r_hat: Floats
    bulk: Floats
    tail: Floats

    @property
    def worst(self) -> dict[str, float]:
        """The largest R-hat, and the smallest effective sample sizes."""
        return {
            "r_hat": float(self.r_hat.max()),
            "ess_bulk": float(self.bulk.min()),
            "ess_tail": float(self.tail.min()),
        }

    @property
    def reached(self) -> bool:
        """Whether all of them can be believed."""
        worst = self.worst
        return worst["r_hat"] < MOST_R_HAT and min(worst["ess_bulk"], worst["ess_tail"]) > LEAST_ESS


def convergence(draws: Floats) -> Convergence:
    """Of draws (S, C, F): S draws of each of C chains of F quantities. One that never changes has
    converged."""
    half = len(draws) // 2
    split = np.concatenate([draws[:half], draws[len(draws) - half :]], axis=1)
    constant = (split == split[:1, :1]).all(axis=(0, 1))
    normal = _normal_scores(split)
    folded = _normal_scores(np.abs(split - np.median(split, axis=(0, 1))))
    r_hat = np.maximum(_r_hat(normal), _r_hat(folded))
    low, high = np.quantile(split, [0.05, 0.95], axis=(0, 1))
    tail = np.minimum(_effective(1.0 * (split <= low)), _effective(1.0 * (split <= high)))
    every = float(split.shape[0] * split.shape[1])
    return Convergence(
        np.where(constant, 1.0, r_hat),
        np.where(constant, every, _effective(normal)),
        np.where(constant, every, tail),
    )


def _normal_scores(draws: Floats) -> Floats:
    """Draws of each quantity, all chains together, by their ranks; equal ones share one."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    flat = draws.reshape(-1, draws.shape[2])
    place = rankdata(flat, axis=0)
    return np.asarray(ndtri((place - 0.375) / (len(flat) + 0.25))).reshape(draws.shape)


def _r_hat(draws: Floats) -> Floats:
    size = len(draws)
    within = draws.var(axis=0, ddof=1).mean(axis=0)
    between = draws.mean(axis=0).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((size - 1) / size + between / within))


def _effective(draws: Floats) -> Floats:
    """(F,): from the autocorrelation of all chains, summed in pairs of lags as long as these are
    positive and fall (Geyer)."""
    size, chains, _ = draws.shape
    centred = draws - draws.mean(axis=0)
    wide = 2 ** int(np.ceil(np.log2(2 * size)))
    spectrum = np.fft.rfft(centred, wide, axis=0)
    products = np.fft.irfft(np.abs(spectrum) ** 2, wide, axis=0)[:size] / size  # (S, C, F)
    within = products[0].mean(axis=0) * size / (size - 1)
    total = within * (size - 1) / size + draws.mean(axis=0).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1 - (within - products.mean(axis=1) * size / (size - 1)) / total
    correlation[0] = 1.0
    even = size // 2 * 2
    pairs = correlation[:even:2] + correlation[1:even:2]
    ended = np.maximum.accumulate(pairs <= 0, axis=0)
    falling = np.minimum.accumulate(np.where(ended, 0.0, pairs), axis=0)
    time = np.maximum(2 * falling.sum(axis=0) - 1, 1 / np.log10(size * chains))
    return np.asarray(size * chains / time)
