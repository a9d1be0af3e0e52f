"""Curves of segments shrunk towards the pool, the more the less they can say themselves.

A segment's curve is the pool's plus something of its own (random effects). Who looks further down
does so all the way: what is its own is taken to grow with the logarithm of the rank, its standard
deviation being size · far at a rank that is so `far` from the reference. Few segments hardly tell
the size. So each size counts by how likely the segments make it, and curves average over all sizes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.types import Floats, Ranks, Segment
from rankdrift.estimation.covariance import covariance_root
from rankdrift.estimation.levels import Levelled
from rankdrift.propensities.propensities import Propensities

# Before the segments are looked at the size is half Cauchy with this scale: slopes of log p on log
# rank, some 0.5 to 1, differ by a few tenths, and more if the segments say so. Of 0.2, 0.3, 0.4 and
# 0.5 this one had intervals near 95% at the least error; see `python -m benchmarks.shrinkage`.
USUAL = 0.3
SIZES = USUAL * np.concatenate([[1e-3], np.geomspace(0.02, 20.0, 20)])
MOST_RANKS = 8  # at which segments are compared


def shrink(pooled: Levelled, own: Mapping[Segment, Levelled]) -> dict[Segment, Propensities]:
    """The curves shrunk towards the pool: their levels are, while each keeps its detail."""
    at = _compared_at(pooled.curve, [each.curve for each in own.values()])
    if at is None:
        return {segment: each.curve for segment, each in own.items()}
    place = [np.searchsorted(each.curve.ranks, at) for each in own.values()]
    values = np.stack([e.level[k] for e, k in zip(own.values(), place, strict=True)])
    noise = np.stack([e.error[k] ** 2 for e, k in zip(own.values(), place, strict=True)])
    far = np.abs(_away(at, pooled.curve.reference))
    chance = chances(values / far, noise / far**2)
    precision = np.zeros((len(own), len(pooled.level)))
    for row, each in zip(precision, own.values(), strict=True):
        inside = np.isin(pooled.curve.ranks, each.curve.ranks)
        row[inside] = _inverse(each.error**2)[np.isin(each.curve.ranks, pooled.curve.ranks)]
    share = precision / np.maximum(precision.sum(axis=0), 1e-300)
    return {
        segment: _shrunk(each, pooled, chance, share, place)
        for place, (segment, each) in enumerate(own.items())
    }


def spread_between(pooled: Propensities, own: Sequence[Propensities]) -> float:
    """The deviation of log p between segments, beyond noise, at a typical rank."""
    at = _compared_at(pooled, own)
    if at is None:
        return 0.0
    place = [(p, np.searchsorted(p.ranks, at)) for p in own]
    values = np.stack([p.log_p[k] for p, k in place])
    noise = np.stack([p.std_error[k] ** 2 for p, k in place])
    return float(np.sqrt(variance_between(values, noise)))


def _compared_at(pooled: Propensities, own: Sequence[Propensities]) -> Ranks | None:
    """A few ranks that all have; None if there is nothing to compare."""
    shared = pooled.ranks
    for p in own:
        shared = np.intersect1d(shared, p.ranks)
    if len(own) < 2 or len(shared) < 2:
        return None
    return anchors(shared, pooled.reference, min(MOST_RANKS, pooled.parameters or 1))


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
    own: Levelled, pooled: Levelled, chance: Floats, share: Floats, place: int
) -> Propensities:
    """own and pool, weighted by how far each can be trusted at each rank.

    `share` (S, R): of the information at each of the pool's ranks, from each segment; `place` is
    this one's. The pool holds the segment itself, and uses all data as well as it can be used, so
    by how much the segment's own error exceeds the pool's is independent of the pool's error.
    """
    p = own.curve
    common = np.isin(p.ranks, pooled.curve.ranks)
    at = np.searchsorted(pooled.curve.ranks, p.ranks[common])
    others = np.delete(share[:, at], place, axis=0)
    far = _away(p.ranks[common], p.reference)
    # The segment's deviation from the pool, which is partly the segment itself: (sizes, R).
    kept = (1 - share[place, at]) ** 2 + (others**2).sum(axis=0)
    apart = SIZES[:, None] * np.abs(far) * np.sqrt(kept)
    extra = np.maximum(own.error[common] ** 2 - pooled.error[at] ** 2, 0.0)
    trust = apart**2 / np.maximum(apart**2 + extra, 1e-300)
    mean, square = chance @ trust, chance @ trust**2
    off = own.level[common] - pooled.level[at]
    log_p = p.log_p.copy()
    log_p[common] -= (1 - mean) * off
    # The pool's error has a part in own, so that both weights' squares add up to 1.
    deviations = p.deviations.copy()
    deviations[common] -= (1 - np.sqrt(square))[:, None] * own.deviations[common]
    rest = (1 - trust) * apart
    more = np.concatenate(
        [
            np.sqrt(np.maximum(1 - square, 0.0))[:, None] * pooled.deviations[at],
            covariance_root(_alike(far) * ((chance * rest.T) @ rest)),
            np.sqrt(chance) * (trust - mean).T * off[:, None],  # because the size is not known
        ],
        axis=1,
    )
    columns = np.zeros((len(p.ranks), more.shape[1]))
    columns[common] = more
    deviations = np.concatenate([deviations, columns], axis=1)
    deviations = deviations[:, deviations.any(axis=0)]
    if deviations.shape[1] > len(deviations):  # a column a rank can say as much
        upper: Any = np.linalg.qr(deviations.T, mode="r")
        deviations = upper.T
    return replace(
        p,
        log_p=log_p,
        deviations=deviations,
        method=f"{p.method}, leaning on the pool",
    )


def anchors(ranks: Ranks, reference: int, many: int) -> Ranks:
    """A few of these ranks that span them, the reference apart, closer together at the top."""
    usable = ranks[ranks != reference]
    if not len(usable) or reference not in ranks:
        raise NotIdentified("The curves do not share the reference rank and another. Add days.")
    wanted = np.geomspace(usable[0], usable[-1], many)
    return np.unique(usable[np.abs(usable[:, None] - wanted).argmin(axis=0)])


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
