"""Newton's method on the concave likelihood: a few steps, to the last digit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankdrift.errors import NotConverged
from rankdrift.identify import ranges
from rankdrift.likelihood import Floats, Likelihood

STEPS = 60
# Newton's decrement is twice the gain still to be had in log L; this many in all.
GAIN = 1e-9
# With clicks on one side only there is no maximum: the likelihood levels off, and so does the gain.
# Then the variance by the curvature is at least 1 / GAIN; that of real data is far from it.
LOOSE = 1e6


@dataclass(frozen=True)
class Fit:
    """theta = basis @ phi, (R,); `information` on the free phi, (F, F)."""

    theta: Floats
    phi: Floats
    basis: Floats
    free: NDArray[np.intp]
    information: Floats
    log_likelihood: float
    steps: int


def maximise(likelihood: Likelihood, basis: Floats, start: Floats | None = None) -> Fit:
    """The maximum of the likelihood over theta in the span of `basis` (R, K)."""
    free = free_columns(basis)
    phi = np.zeros(basis.shape[1]) if start is None else start.copy()
    theta = basis @ phi
    value = likelihood.value(theta)
    for step in range(STEPS):
        gradient = project(basis, likelihood.gradient(theta))[free]
        information = project2(basis, likelihood.information(theta))[np.ix_(free, free)]
        change = _solve(information, gradient)
        if change is None or not np.isfinite(change).all():
            raise _failed(likelihood, theta, "the data do not determine the curve", step)
        gain = float(gradient @ change)
        if gain < GAIN:
            _refuse_loose(likelihood, theta, basis[:, free], information, step)
            phi[free] += change  # the last digits, for nothing
            theta = basis @ phi
            return Fit(theta, phi, basis, free, information, likelihood.value(theta), step)
        # Far from the maximum a full step may overshoot; the likelihood is concave, so
        # halving always ends.
        scale = min(1.0, 4.0 / max(float(np.abs(change).max()), 1e-300))
        for _ in range(40):
            tried = phi.copy()
            tried[free] += scale * change
            theta_tried = basis @ tried
            value_tried = likelihood.value(theta_tried)
            if value_tried >= value:
                break
            scale /= 2
        phi, theta, value = tried, theta_tried, value_tried
        if np.abs(theta).max() > 500:
            raise _failed(likelihood, theta, "some propensities run off to 0 or infinity", step)
    raise _failed(likelihood, theta, "it was still rising", STEPS)


def free_columns(basis: Floats) -> NDArray[np.intp]:
    """All columns but one: the constant is in the span and makes no difference."""
    constant = (
        np.linalg.lstsq(basis, np.ones(len(basis)), rcond=None)[0]
        if not _is_eye(basis)
        else np.ones(basis.shape[1])
    )
    fixed = int(np.argmax(np.abs(constant)))
    return np.delete(np.arange(basis.shape[1]), fixed)


def project(basis: Floats, vector: Floats) -> Floats:
    return vector if _is_eye(basis) else basis.T @ vector


def project2(basis: Floats, matrix: Floats) -> Floats:
    return matrix if _is_eye(basis) else basis.T @ matrix @ basis


def _is_eye(basis: Floats) -> bool:
    """The identity is common (one parameter a rank) and large: multiplying by it is waste."""
    return basis.shape[0] == basis.shape[1] and bool((basis == np.eye(len(basis))).all())


def _solve(information: Floats, gradient: Floats) -> Floats | None:
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        solved: Floats = cho_solve(cho_factor(information, lower=True), gradient)
    except LinAlgError:
        return None
    return solved


def _refuse_loose(
    likelihood: Likelihood, theta: Floats, basis: Floats, information: Floats, step: int
) -> None:
    variance = np.diag(np.linalg.inv(information))
    if variance.max(initial=0.0) > LOOSE:
        at = likelihood.ranks[(basis**2 @ variance) > LOOSE]
        why = f"the propensities at rank {ranges(at.tolist())} run off to 0 or infinity"
        raise _failed(likelihood, theta, why, step)


def _failed(likelihood: Likelihood, theta: Floats, why: str, step: int) -> NotConverged:
    error = NotConverged(
        f"The likelihood's maximum was not reached after {step} steps: {why}. "
        f"There are {likelihood.weight:,.0f} comparisons over {likelihood.size} ranks. "
        "Use a curve with fewer parameters (loglog with fewer knots), a smaller --max-rank, "
        "or more days."
    )
    error.partial = theta  # type: ignore[attr-defined]  # what it had
    return error
