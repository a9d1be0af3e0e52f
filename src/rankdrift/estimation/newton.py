"""Newton's method on the concave likelihood: a few steps, to the last digit."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankdrift.core.errors import NotConverged
from rankdrift.core.types import Floats
from rankdrift.core.words import many, named_ranks, verb
from rankdrift.estimation.likelihood import Likelihood, Point, is_plain

STEPS = 60
# Newton's decrement is about twice the gain still to be had in log L. At the end so much may be
# left at most, and log p is within 1e-7 of its standard error of the maximum.
LEFT = 1e-14
# The curvature is used again where that leaves no more than this share of the gain.
AGAIN = 0.01
# With clicks on one side only there is no maximum: the likelihood levels off, and so does the gain.
# Once it is below GAIN the variance by the curvature is at least 1 / GAIN; that of real data is far
# from it.
GAIN = 1e-6
LOOSE = 1e5
# LAPACK's estimate of the largest variance is seldom a third of it; this is on the safe side.
_SUSPECT = 0.01


@dataclass(frozen=True)
class Fit:
    """The maximum of a likelihood: theta = basis @ phi, (R,), with phi (F,) and basis (R, F)."""

    likelihood: Likelihood
    basis: Floats
    phi: Floats
    steps: int

    @cached_property
    def theta(self) -> Floats:
        """(R,): log p at the maximum, but for a constant."""
        return np.asarray(self.basis @ self.phi)

    @cached_property
    def log_likelihood(self) -> float:
        """log L at the maximum."""
        return self.likelihood.at(self.theta).value

    @cached_property
    def information(self) -> Floats:
        """(F, F): on phi, at the maximum."""
        return self.likelihood.at(self.theta).information(self.basis)


def maximise(likelihood: Likelihood, basis: Floats, start: Floats | None = None) -> Fit:
    """The maximum of the likelihood over theta in the span of `basis` (R, F).

    The span must not hold the constant, which makes no difference. `start` is a phi.
    """
    from scipy.linalg.lapack import dpotrf, dpotrs

    phi = np.zeros(basis.shape[1]) if start is None else start
    if not len(phi):
        return Fit(likelihood, basis, phi, 0)
    plain = is_plain(basis)

    def theta_of(phi: Floats) -> Floats:
        return np.concatenate([[0.0], phi]) if plain else np.asarray(basis @ phi)

    def slope_of(point: Point) -> Floats:
        return point.gradient[1:] if plain else np.asarray(point.gradient @ basis)

    point = likelihood.at(theta_of(phi))
    gradient = slope_of(point)
    curved_at: Floats | None = None  # theta that the curvature is of
    determined = False
    for step in range(STEPS):
        if curved_at is None or left_by(point.theta - curved_at) > AGAIN:
            curved_at = point.theta
            factor = np.empty(0)  # lets go of the old one before there is a new one
            factor, failed = dpotrf(point.curvature(basis, plain), 1, clean=0, overwrite_a=1)
            if failed:  # singular, or no longer finite
                why = "the data do not determine the curve"
                raise _failed(likelihood, point.theta, why)
        change = dpotrs(factor, gradient, 1)[0]
        gain = float(gradient @ change)
        if gain < GAIN and not determined:
            _refuse_loose(likelihood, point.theta, basis, factor)
            determined = True
        if gain * left_by(point.theta + theta_of(change) - curved_at) < LEFT:
            return Fit(likelihood, basis, phi + change, step + 1)
        # Far from the maximum a full step may overshoot: then the slope along it, which only ever
        # falls, has turned steeply down at its end.
        scale = min(1.0, 4.0 / max(float(np.abs(change).max()), 1e-300))
        for _ in range(40):
            tried = phi + scale * change
            point = likelihood.at(theta_of(tried))
            gradient = slope_of(point)
            if float(gradient @ change) >= -0.5 * gain:
                break
            scale /= 2
        phi = tried
        if np.abs(point.theta).max() > 500:
            why = "some propensities run off to 0 or infinity"
            raise _failed(likelihood, point.theta, why)
    raise _failed(likelihood, point.theta, f"the fit still got better after {STEPS} steps")


def left_by(moved: Floats) -> float:
    """At most this share of the gain is left by a step at whose end theta has `moved` (R,) so far
    since its curvature was worked out.

    With d the most that two ranks moved apart, the curvature is within a factor of exp d of that:
    the third derivative of log Σ exp along a direction is at most its second times the range of
    the direction. So the step is within a share exp d − 1 of what is right, and the gain goes by
    its square.
    """
    return math.expm1(min(float(moved.max() - moved.min()), 100.0)) ** 2


def _refuse_loose(likelihood: Likelihood, theta: Floats, basis: Floats, factor: Floats) -> None:
    from scipy.linalg import solve_triangular
    from scipy.linalg.lapack import dpocon

    if 1 / max(dpocon(factor, 1.0, uplo="L")[0], 1e-300) < _SUSPECT * LOOSE:
        return
    # Relative to ranks that both won and lost: they are not the ones to run off.
    won, lost = likelihood.wins, likelihood.bucket_losses.sum(axis=0)
    sound = np.minimum(won, lost)
    off = basis - sound @ basis / sound.sum() if sound.any() else basis
    # By the factor, which is there: the curvature itself may have no inverse in doubles.
    variance = (solve_triangular(factor, off.T, lower=True) ** 2).sum(axis=0)
    loose = variance > LOOSE
    if not loose.any():
        return
    why, advice = "0 or infinity", _FEWER
    if not won[loose].any():
        at = likelihood.ranks[loose & (lost > 0)]
        why = f"0, as {named_ranks(at.tolist())} never won a click"
        advice = _FEWER if loose[-1] else _FROM_THE_TOP
    elif not lost[loose].any():
        at = likelihood.ranks[loose & (won > 0)]
        why = f"infinity, as {named_ranks(at.tolist())} never lost a click to another"
    at = likelihood.ranks[loose]
    runs = verb(len(at), "propensity at {} runs", "propensities at {} run")
    why = f"the {runs.format(named_ranks(at.tolist()))} off to {why}"
    raise _failed(likelihood, theta, why, advice)


_FEWER = (
    "Use a curve with fewer parameters (loglog with fewer knots), a smaller --max-rank, or more "
    "days."
)
_FROM_THE_TOP = (
    "If results there cannot be clicked, or ranks are counted from elsewhere, leave these rows out "
    "(--where) and choose a --reference below; otherwise add days."
)


def _failed(likelihood: Likelihood, theta: Floats, why: str, advice: str = _FEWER) -> NotConverged:
    comparisons = round(likelihood.weight)
    error = NotConverged(
        f"No best curve was found: {why}. "
        f"There {verb(comparisons, 'is', 'are')} {many(comparisons, 'comparison')} over "
        f"{many(likelihood.size, 'rank')}. {advice}"
    )
    error.partial = theta
    return error
