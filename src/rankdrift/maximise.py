"""Newton's method on the concave likelihood: a few steps, to the last digit."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankdrift.errors import NotConverged
from rankdrift.identify import ranges
from rankdrift.likelihood import Floats, Likelihood

STEPS = 60
# Newton's decrement is about twice the gain still to be had in log L. With this little the next
# step is the last: it leaves about the square of it.
GAIN = 1e-6
# With clicks on one side only there is no maximum: the likelihood levels off, and so does the gain.
# Then the variance by the curvature is at least 1 / GAIN; that of real data is far from it.
LOOSE = 1e5
# LAPACK's estimate of the largest variance is seldom a third of it; this is on the safe side.
_SUSPECT = 0.01


@dataclass(frozen=True)
class Fit:
    """theta = basis @ phi, (R,), with phi (F,) and basis (R, F)."""

    likelihood: Likelihood
    basis: Floats
    phi: Floats
    steps: int

    @cached_property
    def theta(self) -> Floats:
        return np.asarray(self.basis @ self.phi)

    @cached_property
    def log_likelihood(self) -> float:
        return self.likelihood.at(self.theta).value

    @cached_property
    def information(self) -> Floats:
        """(F, F): on phi, at the maximum."""
        return self.likelihood.at(self.theta).information(self.basis)


def maximise(likelihood: Likelihood, basis: Floats, start: Floats | None = None) -> Fit:
    """The maximum of the likelihood over theta in the span of `basis` (R, F).

    The span must not hold the constant, which makes no difference. `start` is a phi.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    phi = np.zeros(basis.shape[1]) if start is None else start
    point = likelihood.at(basis @ phi)
    gradient = basis.T @ point.gradient
    for step in range(STEPS):
        information = point.information(basis)
        try:
            factor = cho_factor(information, lower=True)
        except (LinAlgError, ValueError):  # singular, or no longer finite
            why = "the data do not determine the curve"
            raise _failed(likelihood, point.theta, why, step) from None
        change = cho_solve(factor, gradient)
        gain = float(gradient @ change)
        if gain < GAIN:
            _refuse_loose(likelihood, point.theta, basis, information, factor[0], step)
            return Fit(likelihood, basis, phi + change, step + 1)
        # Far from the maximum a full step may overshoot: then the slope along it, which only ever
        # falls, has turned steeply down at its end.
        scale = min(1.0, 4.0 / max(float(np.abs(change).max()), 1e-300))
        for _ in range(40):
            tried = phi + scale * change
            point = likelihood.at(basis @ tried)
            gradient = basis.T @ point.gradient
            if float(gradient @ change) >= -0.5 * gain:
                break
            scale /= 2
        phi = tried
        if np.abs(point.theta).max() > 500:
            why = "some propensities run off to 0 or infinity"
            raise _failed(likelihood, point.theta, why, step)
    raise _failed(likelihood, point.theta, "it was still rising", STEPS)


def _refuse_loose(
    likelihood: Likelihood, theta: Floats, basis: Floats, information: Floats, factor: Floats,
    step: int,
) -> None:  # fmt: skip
    from scipy.linalg.lapack import dpocon

    norm = np.abs(information).sum(axis=0).max(initial=0.0)
    largest = 1 / max(dpocon(factor, norm, uplo="L")[0] * norm, 1e-300) if norm else 0.0
    if largest < _SUSPECT * LOOSE:
        return
    variance = np.einsum("rf,fg,rg->r", basis, np.linalg.inv(information), basis, optimize=True)
    at = likelihood.ranks[variance > LOOSE]
    if len(at):
        why = f"the propensities at rank {ranges(at.tolist())} run off to 0 or infinity"
        raise _failed(likelihood, theta, why, step)


def _failed(likelihood: Likelihood, theta: Floats, why: str, step: int) -> NotConverged:
    error = NotConverged(
        f"The likelihood's maximum was not reached after {step} steps: {why}. "
        f"There are {likelihood.weight:,.0f} comparisons over {likelihood.size} ranks. "
        "Use a curve with fewer parameters (loglog with fewer knots), a smaller --max-rank, "
        "or more days."
    )
    error.partial = theta
    return error
