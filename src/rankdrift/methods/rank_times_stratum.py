"""Clicks = propensity of the rank × relevance of a stratum, Eq. (1), with every relevance fitted.

A stratum is whatever shares one relevance: a pair of query and doc (EM), a pair of ranks (AllPairs)
or the rank a doc was moved from (swaps). With c clicks and n misses at rank k in stratum s,

    log L = Σ c log(p_k z_s) + n log(1 - p_k z_s),   0 <= p, z <= 1.

In log p and log z it is concave, and each z_s has one equation of its own given p. So z is solved
for and p moves by Newton's method on what is left, with its gradient and Hessian: a few steps to
the maximum that EM would creep up to.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rankdrift.core.errors import NotConverged
from rankdrift.core.types import Bools, Floats, Indices, Ranks

STEPS = 200
# What the log-likelihood may still gain, in all; and the largest change of log p by one EM step.
GAIN = 1e-9
STILL = 1e-7
_INNER = 100  # steps of the equation of z; it takes about six
_SMALL = 1e-12
_DENSE = 50_000  # cells of a table that are no trouble empty
_FLAT = 1e-9  # curvature an appearance; that of real data is far from it
# A step of log p at most; and the curvature lent to each appearance, no more than keeps to that.
_FARTHEST = 2.0
_LENT = 10.0 ** np.arange(-11, 3)


@dataclass(frozen=True, eq=False)
class Strata:
    """N cells: clicks and misses (N,) of a stratum at a rank, by bucket of queries.

    rank (N,) index into `ranks`; stratum (N,) from 0; bucket (N,) from 0. A stratum may be spread
    over buckets, and then has a cell for each.
    """

    ranks: Ranks
    stratum: Indices
    rank: Indices
    bucket: Indices
    clicks: Floats
    misses: Floats
    buckets: int

    @property
    def n_strata(self) -> int:
        """S."""
        return int(self.stratum.max(initial=-1)) + 1

    def take(self, keep: Bools) -> "Strata":
        """Some of the cells; strata that are left are numbered anew."""
        _, stratum = np.unique(self.stratum[keep], return_inverse=True)
        rank, bucket = self.rank[keep], self.bucket[keep]
        clicks, misses = self.clicks[keep], self.misses[keep]
        return Strata(self.ranks, stratum, rank, bucket, clicks, misses, self.buckets)

    def only(self, ranks: Bools) -> "Strata":
        """The cells at some of the ranks, a mask (R,)."""
        left = self.take(ranks[self.rank])
        place = (np.cumsum(ranks) - 1)[left.rank]
        return replace(left, ranks=self.ranks[ranks], rank=place)

    def clicks_by_bucket(self) -> Floats:
        """(G, R): clicks at each rank."""
        return self._sum(self.clicks)

    def appearances(self) -> Floats:
        """(R,): how often anything was shown at each rank."""
        return np.asarray(self._sum(self.clicks + self.misses).sum(axis=0))

    def _sum(self, values: Floats) -> Floats:
        total = np.zeros((self.buckets, len(self.ranks)))
        np.add.at(total, (self.bucket, self.rank), values)
        return total

    def click_rates(self) -> Floats:
        """log of clicks per appearance (R,), to start from."""
        clicks = self.clicks_by_bucket().sum(axis=0)
        return np.asarray(np.log((clicks + 0.5) / (self.appearances() + 1)))


@dataclass(frozen=True, eq=False)
class Fit:
    """The maximum: log_p (R,), log_z (S,), and what shows that it is one.

    information (R, R) on log p with z solved for; at_one (R,) where p has come to rest at 1;
    undetermined (R,) where p may move and the likelihood stays as it is; path, the log-likelihood
    step by step; change, how far one EM step would still move log p.
    """

    log_p: Floats
    log_z: Floats
    information: Floats
    at_one: Bools
    undetermined: Bools
    path: tuple[float, ...]
    change: float

    @property
    def log_likelihood(self) -> float:
        """At the maximum."""
        return self.path[-1]


def maximise(data: Strata, start: Floats) -> Fit:
    """Maximise from log p = `start` (R,): Newton's method that keeps p at 1 or below."""
    cells = _joined(data)
    log_p = np.minimum(start - start.max(), 0.0)
    at = _profile(cells, log_p)
    path = [at.value]
    for _ in range(STEPS):
        at_one = (log_p > -_SMALL) & (at.gradient >= 0)
        step = _newton(at, ~at_one)
        gain = float(step @ at.gradient)
        if gain < GAIN:
            change = _em_change(cells, at, log_p)
            if change < STILL:
                undetermined = _undetermined(at, at_one)
                return Fit(
                    log_p, at.log_z, at.information, at_one, undetermined, tuple(path), change
                )
        log_p, at = _advance(cells, log_p, at, step)
        path.append(at.value)
    raise not_converged(
        f"The likelihood was still rising by {gain:.2g} after {STEPS} steps.", log_p, path
    )


def not_converged(why: str, log_p: Floats, path: list[float]) -> NotConverged:
    """An error that carries what there was: `partial` (R,), log p, and the `path` of log L."""
    error = NotConverged(
        f"{why} No propensities are given, for they would not be the estimate. Use a smaller "
        "max_rank, or add days."
    )
    error.partial, error.path = log_p, tuple(path)
    return error


def jackknife_buckets(data: Strata, fit: Fit) -> Floats:
    """(G, R): how far log p moves when a bucket of queries is left out, by one Newton step.

    z is solved for anew without the bucket. Ranks where p is 1 stay there.
    """
    influence, weight = np.zeros((data.buckets, len(data.ranks))), data.appearances()
    for bucket, gradient, information in _without(data, fit):
        rest = _Profile(gradient, information, 0.0, fit.log_z, weight)
        influence[bucket] = _newton(rest, ~fit.at_one)
    return influence


def _without(data: Strata, fit: Fit) -> Iterator[tuple[int, Floats, Floats]]:
    """For each bucket with cells, the gradient and the information of all others."""
    owners = np.zeros(data.n_strata, np.intp)
    owners[data.stratum] = data.bucket
    if (owners[data.stratum] == data.bucket).all():
        yield from _without_own_strata(data, fit)
        return
    cells = _joined(data)
    code = data.stratum * len(data.ranks) + data.rank
    known, place = np.unique(code, return_inverse=True)
    clicks, misses = (np.zeros((data.buckets, len(known))) for _ in range(2))
    np.add.at(clicks, (data.bucket, place), data.clicks)
    np.add.at(misses, (data.bucket, place), data.misses)
    stratum, rank = np.divmod(known, len(data.ranks))
    for bucket in np.unique(data.bucket).tolist():
        rest = replace(
            cells,
            stratum=stratum,
            rank=rank,
            bucket=0 * rank,
            clicks=_less(clicks.sum(axis=0), clicks[bucket]),
            misses=_less(misses.sum(axis=0), misses[bucket]),
        )
        others = _profile(rest, fit.log_p)
        yield bucket, others.gradient, others.information


def _less(total: Floats, part: Floats) -> Floats:
    left = total - part
    return np.where(left > 1e-9 * total, left, 0.0)


def _without_own_strata(data: Strata, fit: Fit) -> Iterator[tuple[int, Floats, Floats]]:
    """Each bucket has strata of its own: the others say what all say less what it says."""
    order = np.argsort(data.bucket, kind="stable")
    edges = np.searchsorted(data.bucket[order], np.arange(data.buckets + 1))
    for bucket in np.flatnonzero(np.diff(edges)).tolist():
        inside = np.zeros(len(data.bucket), bool)
        inside[order[edges[bucket] : edges[bucket + 1]]] = True
        own = _profile(_joined(data.take(inside)), fit.log_p)
        yield bucket, -own.gradient, fit.information - own.information


@dataclass(frozen=True, eq=False)
class _Profile:
    """The profile likelihood: with z solved for, at one log p."""

    gradient: Floats
    information: Floats
    value: float
    log_z: Floats
    weight: Floats  # (R,) appearances


def _profile(cells: Strata, log_p: Floats) -> _Profile:
    size = len(cells.ranks)
    log_z, free = _solve_relevance(cells, log_p)
    log_chance = np.minimum(log_p[cells.rank] + log_z[cells.stratum], 0.0)
    chance = np.exp(log_chance)
    missed = np.where(cells.misses > 0, 1 - chance, 1.0)
    clicked = np.where(cells.clicks > 0, log_chance, 0.0)
    value = float(cells.clicks @ clicked + cells.misses @ np.log(missed))
    pull = cells.clicks - cells.misses * chance / missed
    curve = cells.misses * chance / missed**2
    gradient = np.asarray(np.bincount(cells.rank, pull, minlength=size), float)
    information = np.diag(np.asarray(np.bincount(cells.rank, curve, minlength=size), float))
    within = free[cells.stratum] & (curve > 0)
    information = information - _explained(cells, curve, within, size)
    return _Profile(gradient, information, value, log_z, cells.appearances())


def _explained(cells: Strata, curve: Floats, within: Bools, size: int) -> Floats:
    """Information that goes into z: Σ_s w_s w_s' / Σ_k w_sk over strata whose z is free."""
    from scipy.sparse import csr_array

    shape = (cells.n_strata, size)
    place = (cells.stratum[within], cells.rank[within])
    total = np.bincount(place[0], curve[within], minlength=shape[0])
    scaled = curve[within] / np.sqrt(total[place[0]])
    if shape[0] * shape[1] <= _DENSE:
        dense = np.zeros(shape)
        dense[place] = scaled  # a stratum has one cell a rank
        return np.asarray(dense.T @ dense)
    table = csr_array((scaled, place), shape=shape)
    return np.asarray((table.T @ table).toarray())


def _solve_relevance(cells: Strata, log_p: Floats) -> tuple[Floats, Bools]:
    """log z (S,), and where it is inside its bounds."""
    log_z = solve_factor(
        cells.stratum, cells.n_strata, log_p[cells.rank], cells.clicks, cells.misses
    )
    return np.minimum(log_z, 0.0), log_z < 0


def solve_factor(
    group: Indices, many: int, log_other: Floats, clicks: Floats, misses: Floats
) -> Floats:
    """log of the factor f (many,) of each group's chances of a click, f times `other`:

        clicks = Σ misses · f other / (1 - f other)

    -inf without clicks, inf without misses. The log of the right side is convex and rising in
    log f, so Newton's method from the right of the root walks down to it and never passes it.
    """
    won = np.bincount(group, clicks, minlength=many)
    missed = (misses > 0) & (won[group] > 0) & (log_other > -np.inf)
    of, theta, misses = group[missed], log_other[missed], misses[missed]
    log_f = np.full(many, np.inf)
    np.minimum.at(log_f, of, np.log(won[of] / (won[of] + misses)) - theta)
    seen = np.bincount(of, misses * np.exp(theta), minlength=many)
    going = seen > 0
    log_f[going] = np.minimum(log_f[going], np.log(won[going] / seen[going]))
    log_f[won == 0] = -np.inf
    for _ in range(_INNER):
        still = going[of]
        if not still.any():
            break
        of, theta, misses = of[still], theta[still], misses[still]
        chance = np.exp(theta + log_f[of])
        odds = misses * chance / (1 - chance)
        total = np.bincount(of, odds, minlength=many)[going]
        slope = np.bincount(of, odds / (1 - chance), minlength=many)[going]
        step = np.log(total / won[going]) * total / slope
        log_f[going] -= step
        going[going] = np.abs(step) > _SMALL
    return log_f


def _newton(at: _Profile, free: Bools) -> Floats:
    """Newton's step in the free ranks, damped where the likelihood has no curvature.

    It has none along the scale of p where no z is at its bound, and none at a rank whose clicks
    are of strata with z = 1 that never missed: there it is a straight line.
    """
    step = np.zeros(len(at.gradient))
    if not free.any():
        return step
    information, gradient = at.information[np.ix_(free, free)], at.gradient[free]
    for lent in _LENT:
        damped = information + np.diag(lent * at.weight[free])
        found = np.linalg.solve(damped, gradient)
        if np.abs(found).max() <= _FARTHEST:
            break
    step[free] = found
    return step


def _undetermined(at: _Profile, at_one: Bools) -> Bools:
    """Ranks along which there is neither slope nor curvature, the common scale of p left aside."""
    free = np.flatnonzero(~at_one)
    found = np.zeros(len(at_one), bool)
    if not len(free):
        return found
    unit = np.sqrt(at.weight[free])
    values, vectors = np.linalg.eigh(at.information[np.ix_(free, free)] / unit / unit[:, None])
    flat = vectors[:, values < _FLAT]
    if not at_one.any():
        scale = unit / np.linalg.norm(unit)
        flat = flat - np.outer(scale, scale @ flat)
    found[free] = np.abs(flat).max(axis=1, initial=0.0) > 1e-3
    return found


def _advance(cells: Strata, log_p: Floats, at: _Profile, step: Floats) -> tuple[Floats, _Profile]:
    """As much of the step as makes the likelihood rise; concave, so some of it does."""
    scale = 1.0
    for _ in range(40):
        tried = np.minimum(log_p + scale * step, 0.0)
        found = _profile(cells, tried)
        if found.value >= at.value + 1e-4 * float(at.gradient @ (tried - log_p)):
            return tried, found
        scale /= 2
    return _em_step(cells, at, log_p)


def _em_step(cells: Strata, at: _Profile, log_p: Floats) -> tuple[Floats, _Profile]:
    """p_k = the mean chance of having been seen: never lowers the likelihood."""
    tried = log_p + _em_move(cells, at, log_p)
    return tried, _profile(cells, tried)


def _em_change(cells: Strata, at: _Profile, log_p: Floats) -> float:
    return float(np.abs(_em_move(cells, at, log_p)).max())


def _em_move(cells: Strata, at: _Profile, log_p: Floats) -> Floats:
    p, z = np.exp(log_p[cells.rank]), np.exp(at.log_z[cells.stratum])
    unseen = np.where(p * z < 1, p * (1 - z) / np.maximum(1 - p * z, 1e-300), 1.0)
    size = len(log_p)
    seen = np.bincount(cells.rank, cells.clicks + cells.misses * unseen, minlength=size)
    shown = np.bincount(cells.rank, cells.clicks + cells.misses, minlength=size)
    return np.asarray(np.log(seen / shown) - log_p)


def _joined(data: Strata) -> Strata:
    """Cells with the buckets summed away, without strata that got no click: those have z = 0,
    whatever p is."""
    clicked = np.bincount(data.stratum, data.clicks, minlength=data.n_strata) > 0
    keep = clicked[data.stratum]
    _, stratum = np.unique(data.stratum[keep], return_inverse=True)
    cell = stratum * len(data.ranks) + data.rank[keep]
    cells, place = np.unique(cell, return_inverse=True)

    def total(values: Floats) -> Floats:
        return np.asarray(np.bincount(place, values[keep], minlength=len(cells)), float)

    rank, of = cells % len(data.ranks), cells // len(data.ranks)
    clicks, misses = total(data.clicks), total(data.misses)
    return Strata(data.ranks, of, rank, np.zeros(len(cells), np.intp), clicks, misses, 1)
