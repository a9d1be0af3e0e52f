"""How sure the curve is: covariance of phi from the curvature, from query buckets, or by bootstrap.

Clicks of one pair belong together, and pairs of one query may too; the default therefore takes
buckets of queries as the independent units. Everything is relative to the reference rank.
"""

import numpy as np
from numpy.typing import NDArray

from rankdrift.errors import NotConverged
from rankdrift.likelihood import Block, Floats, Likelihood
from rankdrift.maximise import Fit, maximise
from rankdrift.propensities import t_quantile

# One bootstrap sample may stop when this much of log L is still to be gained: far below the
# noise that the sample itself is.
GAIN = 1e-6
# Of the information on a parameter, less than this share from other buckets is none.
ALONE = 1e-6
_CHUNK = 4_000_000  # samples x terms worked on at a time


def model_covariance(fit: Fit) -> Floats:
    """The inverse information: right if every term were independent."""
    return np.asarray(np.linalg.inv(fit.information))


def bucket_covariance(fit: Fit, likelihood: Likelihood) -> Floats:
    """Sandwich with query buckets as clusters."""
    touched = np.unique(np.concatenate([block.bucket for block in likelihood.blocks]))
    return spread_of(bucket_moves(fit, likelihood)[touched])


def bucket_moves(fit: Fit, likelihood: Likelihood) -> Floats:
    """(G, F): how far phi moves when a bucket joins the others; 0 for buckets without terms.

    Each bucket's pull is divided by the information of the *other* buckets (the jackknife's one
    step), which makes up for its pulling the estimate towards itself; where few buckets touch a
    parameter the plain sandwich is far too small.
    """
    scores = _project(likelihood.bucket_scores(fit.theta), fit)
    moves = np.zeros_like(scores)
    for bucket in np.flatnonzero(np.abs(scores).sum(axis=1) > 0).tolist():
        others = fit.information - _information(likelihood.restrict(bucket), fit)
        # What only this bucket tells moves nothing, rather than by noise over nothing.
        others[np.diag_indices_from(others)] += ALONE * np.diag(fit.information)
        moves[bucket] = _solve(others, scores[bucket])
    return moves


def spread_of(moves: Floats) -> Floats:
    """Covariance from the moves of independent buckets that have terms, (G, F) -> (F, F)."""
    n = len(moves)
    off = moves - moves.mean(axis=0)
    return np.asarray((n - 1) / n * off.T @ off)


def no_less(deviations: Floats, model: Floats, thin: NDArray[np.bool_], weight: Floats) -> Floats:
    """`deviations` (R, F) with columns added, so that thin ranks are no surer than by the model.

    Where few buckets touch a rank, how they differ says little of its error, or nothing. Both are
    seen against the average by `weight` (R,), so that the reference makes no difference.
    """
    variance = [((d - weight @ d / weight.sum()) ** 2).sum(axis=1) for d in (model, deviations)]
    short = np.where(thin, np.sqrt(np.maximum(variance[0] - variance[1], 0.0)), 0.0)
    return np.concatenate([deviations, np.diag(short)[:, short > 0]], axis=1)


def bootstrap(fit: Fit, likelihood: Likelihood, samples: int, seed: int) -> Floats:
    """phi (samples, F) refitted with buckets reweighted by unit exponentials.

    Such weights never drop a bucket, so no sample loses a rank. All samples move together:
    each takes Newton steps with the information it has at the full fit, which is close, and the
    gradient at where it is, which is exact.
    """
    weights = np.random.default_rng(seed).exponential(size=(samples, likelihood.buckets))
    scores = _project(likelihood.bucket_scores(fit.theta), fit)
    shared = np.stack([
        _information(likelihood.restrict(bucket), fit) for bucket in range(likelihood.buckets)
    ])  # fmt: skip
    basis = fit.basis[:, fit.free]
    out = np.empty((samples, len(fit.free)))
    terms = sum(len(block.weight) for block in likelihood.blocks)
    step = max(1, min(samples, _CHUNK // max(terms, 1)))
    for first in range(0, samples, step):
        weight = weights[first : first + step]
        information = np.tensordot(weight, shared, axes=1)
        phi = fit.phi[fit.free] + _solve(information, weight @ scores)
        for _ in range(20):
            gradient = _gradients(likelihood, basis, phi, weight)
            change = _solve(information, gradient)
            phi += change
            gain = (gradient * change).sum(axis=1)
            if float(gain.max()) < GAIN:
                break
        for late in np.flatnonzero(~(gain < GAIN)).tolist():  # thin data: not close after all
            phi[late] = _refitted(fit, likelihood.reweighted(weight[late]), phi[late])
        out[first : first + step] = phi
    return out


def _refitted(fit: Fit, likelihood: Likelihood, otherwise: Floats) -> Floats:
    try:
        return maximise(likelihood, fit.basis, fit.phi).phi[fit.free]
    except NotConverged:
        return otherwise


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
    largest = np.concatenate([
        np.abs(rng.standard_normal((1_000, scaled.shape[1])) @ scaled.T).max(axis=1)
        for _ in range(draws // 1_000)
    ])  # fmt: skip
    if np.isfinite(df):
        largest /= np.sqrt(rng.chisquare(df, size=len(largest)) / df)
    return max(alone, float(np.quantile(largest, level)))  # drawn, so it may fall just short


def _project(by_rank: Floats, fit: Fit) -> Floats:
    return by_rank @ fit.basis[:, fit.free]


def _information(likelihood: Likelihood, fit: Fit) -> Floats:
    if not likelihood.blocks:
        return np.zeros_like(fit.information)
    basis = fit.basis[:, fit.free]
    return np.asarray(basis.T @ likelihood.information(fit.theta) @ basis)


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Solve for one or many right-hand sides, also where the matrix is singular."""
    try:
        return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0])
    except np.linalg.LinAlgError:
        return np.asarray((np.linalg.pinv(matrix, hermitian=True) @ right[..., None])[..., 0])


def _gradients(likelihood: Likelihood, basis: Floats, phi: Floats, weight: Floats) -> Floats:
    """(N, F): the gradient of each sample at its own phi (N, F), buckets weighted (N, G)."""
    theta = phi @ basis.T
    total = np.zeros_like(phi)
    for block in likelihood.blocks:
        of_term = weight[:, block.bucket] * block.weight
        if block.shown.shape[1] == 2:
            total += _duels(block, basis, theta, of_term)
        else:
            total += _choices(block, basis, theta, of_term)
    return total


def _duels(block: Block, basis: Floats, theta: Floats, of_term: Floats) -> Floats:
    """Two appearances: the loser's share is all that is needed."""
    loser = np.where(block.shown[:, 0] == block.clicked, block.shown[:, 1], block.shown[:, 0])
    share = theta[:, loser] - theta[:, block.clicked]
    np.negative(share, out=share)
    np.exp(share, out=share)
    share += 1
    np.divide(of_term, share, out=share)
    return np.asarray(share @ (basis[block.clicked] - basis[loser]))


def _choices(block: Block, basis: Floats, theta: Floats, of_term: Floats) -> Floats:
    at = theta[:, block.shown]  # (N, T, m)
    at -= at.max(axis=2, keepdims=True)
    np.exp(at, out=at)
    at *= (of_term / at.sum(axis=2))[:, :, None]
    total = of_term @ basis[block.clicked]
    for k in range(block.shown.shape[1]):
        total -= at[:, :, k] @ basis[block.shown[:, k]]
    return np.asarray(total)


def parts_of(covariance: Floats) -> Floats:
    """(F, N): columns whose outer products add up to the covariance (also one of low rank)."""
    error = np.sqrt(np.diag(covariance))
    unit = np.where(error > 0, error, 1.0)  # one large variance must not drown the small ones
    values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    keep = values > values.max(initial=0.0) * 1e-12
    return np.asarray(error[:, None] * vectors[:, keep] * np.sqrt(values[keep]))
