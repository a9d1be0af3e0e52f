"""How sure the curve is: covariance of phi from the curvature, from query buckets, or by bootstrap.

Clicks of one pair belong together, and pairs of one query may too; the default therefore takes
buckets of queries as the independent units. Everything is relative to the reference rank.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rankdrift.core.errors import NotConverged
from rankdrift.core.types import Floats
from rankdrift.estimation.jackknife import jackknife_solve
from rankdrift.estimation.likelihood import Likelihood, is_plain, shares
from rankdrift.estimation.newton import Fit, maximise

# So much of log L may be left to gain for a bootstrap sample: far below the noise that it is.
GAIN = 1e-6
# Of the information on a parameter, less than this share from other buckets is none.
ALONE = 1e-6
_CHUNK = 2_000_000  # numbers worked on at a time, for each of a few arrays


def model_covariance(fit: Fit) -> Floats:
    """The inverse information: right if every term were independent."""
    return np.asarray(np.linalg.inv(fit.information))


def bucket_covariance(fit: Fit) -> Floats:
    """Sandwich with query buckets as clusters."""
    return jackknife_covariance(bucket_influence(fit)[fit.likelihood.touched])


def bucket_influence(fit: Fit) -> Floats:
    """(G, F): how far phi moves when a bucket joins the others; 0 for buckets without terms.

    Each bucket's pull is divided by the information of the *other* buckets (the jackknife's one
    step), which makes up for its pulling the estimate towards itself; where few buckets touch a
    parameter the plain sandwich is far too small.
    """
    scores = fit.likelihood.bucket_scores(fit.theta) @ fit.basis
    # What only one bucket tells moves nothing, rather than by noise over nothing.
    whole = fit.information + ALONE * np.diag(np.diag(fit.information))
    at_once = _influence_at_once(fit, whole, scores) if is_plain(fit.basis) else None
    return _influence_one_by_one(fit, whole, scores) if at_once is None else at_once


def _influence_at_once(fit: Fit, whole: Floats, scores: Floats) -> Floats | None:
    """With a parameter for each rank but the first; None if that is not reached."""
    from scipy.linalg.lapack import dpotrf

    factor, failed = dpotrf(whole.T, lower=1)
    if failed:
        return None
    times, first = fit.likelihood.bucket_product(fit.theta), np.zeros((len(scores), 1))

    def own(rows: Floats) -> Floats:
        return times(np.concatenate([first, rows], axis=1))[:, 1:]

    influence, reached = jackknife_solve(factor, own, scores)
    return influence if reached.all() else None


def _influence_one_by_one(fit: Fit, whole: Floats, scores: Floats) -> Floats:
    from scipy.linalg.lapack import dposv

    influence = np.zeros_like(scores)
    for bucket, own in enumerate(fit.likelihood.bucket_information(fit.theta, fit.basis)):
        if scores[bucket].any():
            _, influence[bucket], failed = dposv(whole - own, scores[bucket], overwrite_a=True)
            if failed:
                raise NotConverged(
                    f"The errors cannot be estimated: without bucket {bucket} of the queries the "
                    "data do not determine the curve. Use fewer knots, --errors model, or more "
                    "days."
                )
    return influence


def jackknife_root(influence: Floats) -> Floats:
    """(F, G): columns whose outer products add up to the covariance, from the influence (G, F) of
    independent buckets that have terms."""
    n = len(influence)
    return np.asarray(np.sqrt((n - 1) / n) * (influence - influence.mean(axis=0)).T)


def jackknife_covariance(influence: Floats) -> Floats:
    """Covariance from the influence of independent buckets that have terms, (G, F) -> (F, F)."""
    root = jackknife_root(influence)
    return np.asarray(root @ root.T)


def model_variance(fit: Fit, contrasts: Floats) -> Floats:
    """(N,): of each of the contrasts (N, F) of phi, by the inverse information."""
    from scipy.linalg import solve_triangular

    lower = np.linalg.cholesky(fit.information)
    return np.asarray((solve_triangular(lower, contrasts.T, lower=True) ** 2).sum(axis=0))


def no_less(deviations: Floats, least: Floats, weight: Floats) -> Floats:
    """`deviations` (R, N) with columns added, so that no rank's variance is below `least` (R,).

    Variances are seen against the average by `weight` (R,), so that the reference makes no
    difference.
    """
    own = ((deviations - weight @ deviations / weight.sum()) ** 2).sum(axis=1)
    short = np.sqrt(np.maximum(least - own, 0.0))
    return np.concatenate([deviations, np.diag(short)[:, short > 0]], axis=1)


def bootstrap(fit: Fit, samples: int, seed: int) -> Floats:
    """phi (samples, F) refitted with buckets reweighted by unit exponentials.

    Such weights never drop a bucket, so no sample loses a rank. All samples move together:
    each takes Newton steps with the information it has at the full fit, which is close, and the
    gradient at where it is, which is exact.
    """
    terms, basis = fit.likelihood, fit.basis
    weights = np.random.default_rng(seed).exponential(size=(samples, terms.buckets))
    scores = terms.bucket_scores(fit.theta) @ basis
    wins = terms.bucket_wins @ basis
    shared = _shared(fit)
    out = np.empty((samples, len(fit.phi)))
    appearances = sum(cells.shown.size for cells in terms.cells)
    step = max(1, _CHUNK // max(appearances, len(fit.phi) ** 2))
    for first in range(0, samples, step):
        weight = weights[first : first + step]
        of_cells = [by_bucket @ weight.T for by_bucket in terms.by_bucket]
        solve = _solver(fit, shared, weight, of_cells)
        gradient = weight @ scores
        change = solve(gradient)
        phi, before = fit.phi + change, (gradient * change).sum(axis=1)
        for _ in range(20):
            gradient = weight @ wins - _expected(terms, of_cells, basis @ phi.T).T @ basis
            change = solve(gradient)
            phi += change
            gain = (gradient * change).sum(axis=1)
            # Each step leaves the same share of what the one before it gained.
            left = gain * np.minimum(gain / np.maximum(before, 1e-300), 1.0)
            before = gain
            if float(left.max()) < GAIN:
                break
        for late in np.flatnonzero(~(left < GAIN)).tolist():  # thin data: not close after all
            phi[late] = _refitted(fit, weight[late], phi[late])
        out[first : first + step] = phi
    return out


def _shared(fit: Fit) -> Floats | None:
    """(G, F, F): the information from each bucket, unless that is too much to hold."""
    if fit.likelihood.buckets * len(fit.phi) ** 2 > _CHUNK:
        return None
    return np.stack(list(fit.likelihood.bucket_information(fit.theta, fit.basis)))


def _solver(
    fit: Fit, shared: Floats | None, weight: Floats, of_cells: Sequence[Floats]
) -> Callable[[Floats], Floats]:
    """Each sample's own gradient (N, F) -> its Newton step, by its information at the full fit."""
    if shared is not None:
        inverse = np.linalg.inv(np.tensordot(weight, shared, axes=1))
        return lambda right: np.einsum("nij,nj->ni", inverse, right)
    from scipy.linalg import cho_factor, cho_solve

    point, plain = fit.likelihood.at(fit.theta), is_plain(fit.basis)
    factors = [
        cho_factor(point.curvature(fit.basis, plain, [own[:, n] for own in of_cells]), lower=True)
        for n in range(len(weight))
    ]
    return lambda right: np.stack(
        [cho_solve(one, row) for one, row in zip(factors, right, strict=True)]
    )


def _expected(terms: Likelihood, of_cells: Sequence[Floats], theta: Floats) -> Floats:
    """(R, N): clicks expected by each of N samples at its own theta (R, N)."""
    total = np.zeros_like(theta)
    for cells, weight, at in zip(terms.cells, of_cells, terms.incidence, strict=True):
        for place, share in zip(at, shares(cells.shown, theta), strict=True):
            share *= weight
            total += place @ share
    return total


def _refitted(fit: Fit, weight: Floats, otherwise: Floats) -> Floats:
    try:
        return maximise(fit.likelihood.reweighted(weight), fit.basis, fit.phi).phi
    except NotConverged:
        return otherwise


def covariance_root(covariance: Floats) -> Floats:
    """(F, N): columns whose outer products add up to the covariance, also one of low rank; of a
    matrix that is not quite one, to the nearest that is."""
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    unit = np.where(error > 0, error, 1.0)  # one large variance must not drown the small ones
    values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    keep = values > values.max(initial=0.0) * 1e-12
    return np.asarray(error[:, None] * vectors[:, keep] * np.sqrt(values[keep]))
