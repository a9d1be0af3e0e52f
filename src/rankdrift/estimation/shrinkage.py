"""Curves of segments shrunk towards the pool, the more the less they can say themselves.

A segment's curve is the pool's plus something of its own (random effects). Who looks further down
does so all the way: what is its own is taken to grow with the logarithm of the rank, its standard
deviation being size · far at a rank that is so `far` from the reference. Few segments hardly tell
the size. So each size counts by how likely the segments make it, and curves average over all sizes.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rankdrift.core.types import Floats, Ranks, Segment
from rankdrift.estimation.covariance import covariance_root
from rankdrift.estimation.hotelling import MOST_RANKS, anchors
from rankdrift.propensities.propensities import Propensities

# Before the segments are looked at the size is half Cauchy with this scale: slopes of log p on log
# rank, some 0.5 to 1, differ by a few tenths, and more if the segments say so. Of 0.2, 0.3, 0.4 and
# 0.5 this one had intervals near 95% at the least error; see `python -m benchmarks.shrinkage`.
USUAL = 0.3
SIZES = USUAL * np.concatenate([[1e-3], np.geomspace(0.02, 20.0, 20)])


def shrink(
    pooled: Propensities, own: Mapping[Segment, Propensities]
) -> tuple[dict[Segment, Propensities], float]:
    """The curves shrunk towards the pool; and the deviation of log p between segments, beyond
    noise, at a typical rank."""
    shared = pooled.ranks
    for p in own.values():
        shared = np.intersect1d(shared, p.ranks)
    if len(own) < 2 or len(shared) < 2:
        return dict(own), 0.0
    at = anchors(shared, pooled.reference, min(MOST_RANKS, pooled.parameters or 1))
    values = np.stack([p.log_p[np.searchsorted(p.ranks, at)] for p in own.values()])
    noise = np.stack([p.std_error[np.searchsorted(p.ranks, at)] ** 2 for p in own.values()])
    far = np.abs(_away(at, pooled.reference))
    chance = chances(values / far, noise / far**2)
    precision = np.zeros((len(own), len(pooled.ranks)))
    for row, p in zip(precision, own.values(), strict=True):
        inside = np.isin(pooled.ranks, p.ranks)
        row[inside] = _inverse(p.std_error**2)[np.isin(p.ranks, pooled.ranks)]
    share = precision / np.maximum(precision.sum(axis=0), 1e-300)
    curves = {
        segment: _shrunk(p, pooled, chance, share, place)
        for place, (segment, p) in enumerate(own.items())
    }
    return curves, float(np.sqrt(variance_between(values, noise)))


def chances(values: Floats, noise: Floats) -> Floats:
    """(len(SIZES),): of each size, by segments' values (S, A) of A ranks with variances `noise`.

    By the restricted likelihood, which the mean of all segments has no part in. A segment is high
    or low at many ranks at once, so that all of them together count for as much as one.
    """
    variance = noise + (SIZES**2)[:, None, None]  # (sizes, S, A)
    weight = 1 / variance
    total = weight.sum(axis=1, keepdims=True)
    off = values - (weight * values).sum(axis=1, keepdims=True) / total
    fit = (np.log(weight) - weight * off**2).sum(axis=1) - np.log(total[:, 0])
    log_chance = fit.mean(axis=1) / 2
    before = np.gradient(SIZES) / (1 + (SIZES / USUAL) ** 2)
    chance = np.exp(log_chance - log_chance.max()) * before
    return np.asarray(chance / chance.sum())


def _shrunk(
    p: Propensities, pooled: Propensities, chance: Floats, share: Floats, place: int
) -> Propensities:
    """own and pool, weighted by how far each can be trusted at each rank.

    `share` (S, R): of the information at each of the pool's ranks, from each segment; `place` is
    this one's. The pool holds the segment itself, and uses all data as well as it can be used, so
    by how much the segment's own error exceeds the pool's is independent of the pool's error.
    """
    common = np.isin(p.ranks, pooled.ranks)
    at = np.searchsorted(pooled.ranks, p.ranks[common])
    others = np.delete(share[:, at], place, axis=0)
    far = _away(p.ranks[common], p.reference)
    # The segment's deviation from the pool, which is partly the segment itself: (sizes, R).
    kept = (1 - share[place, at]) ** 2 + (others**2).sum(axis=0)
    apart = SIZES[:, None] * np.abs(far) * np.sqrt(kept)
    own, pool = p.deviations[common], pooled.deviations[at]
    extra = np.maximum((own**2).sum(axis=1) - (pool**2).sum(axis=1), 0.0)
    trust = apart**2 / np.maximum(apart**2 + extra, 1e-300)
    mean = chance @ trust
    off = p.log_p[common] - pooled.log_p[at]
    log_p = p.log_p.copy()
    log_p[common] = pooled.log_p[at] + mean * off
    rest = (1 - trust) * apart
    inside = np.concatenate(
        [
            pool,
            covariance_root(
                (own @ own.T - pool @ pool.T) * ((chance * trust.T) @ trust)
                + _alike(far) * ((chance * rest.T) @ rest)
            ),
            np.sqrt(chance) * (trust - mean).T * off[:, None],  # because the size is not known
        ],
        axis=1,
    )
    deviations = np.zeros((len(p.ranks), inside.shape[1] + p.deviations.shape[1]))
    deviations[common, : inside.shape[1]] = inside
    deviations[~common, inside.shape[1] :] = p.deviations[~common]
    return replace(
        p,
        log_p=log_p,
        deviations=deviations[:, deviations.any(axis=0)],
        method=f"{p.method}, leaning on the pool",
    )


def _away(ranks: Ranks, reference: int) -> Floats:
    return np.asarray(np.log(ranks / reference))


def _alike(far: Floats) -> Floats:
    """(R, R): how deviations at two ranks go together, as those of a random walk do; not at all on
    different sides of the reference."""
    long = np.abs(far)
    both = (long[:, None] + long - np.abs(far[:, None] - far)) / 2
    return np.asarray(both / np.maximum(np.sqrt(np.outer(long, long)), 1e-300))


def variance_between(values: Floats, noise: Floats) -> float:
    """Variance between segments beyond noise (DerSimonian and Laird), from log p (S, A) with
    variances `noise`; each rank counts by the information it has."""
    weight = _inverse(noise)
    total = weight.sum(axis=0)
    q = (weight * (values - (weight * values).sum(axis=0) / total) ** 2).sum(axis=0)
    scale = total - (weight**2).sum(axis=0) / total
    return max(0.0, float((q - (len(values) - 1)).sum() / scale.sum()))


def _inverse(variance: Floats) -> Floats:
    return np.asarray(1 / np.maximum(variance, 1e-300))
