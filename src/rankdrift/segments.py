"""A curve for each segment, a pooled one, one in between, and whether segments differ at all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rankdrift.counts import Counts
from rankdrift.errors import BadOption, RankdriftError, did_you_mean
from rankdrift.propensities import Floats, Propensities, Segment

if TYPE_CHECKING:
    from rankdrift.estimation import Options


@dataclass(frozen=True)
class Difference:
    """Do segments differ? `statistic` is chi-square with `df` degrees of freedom if they do not.

    `spread` is the standard deviation of log p between segments, over and above noise, at a
    typical knot; `left_out` are segments without an estimate of their own, with the reason.
    """

    statistic: float
    df: float
    p_value: float
    spread: float
    left_out: dict[Segment, str]


def estimate_by(counts: Counts, by: tuple[str, ...], options: "Options") -> Propensities:
    from rankdrift.estimation import describe, fit

    counts = _grouped(counts, by)
    pooled_fit = fit(counts.pool(), options)
    pooled = describe(counts.pool(), pooled_fit, options)
    # Every segment has the pool's curve, so that parameters mean the same everywhere.
    same = replace(options, curve=pooled_fit.curve)
    own: dict[Segment, Propensities] = {}
    left_out: dict[Segment, str] = {}
    for segment in counts.segments:
        try:
            part = counts.restrict(segments=[segment]).pool()
            own[segment] = describe(part, fit(part, same), same)
        except RankdriftError as error:
            left_out[segment] = str(error)
    return combine(pooled, own, left_out, by)


def combine(
    pooled: Propensities,
    own: dict[Segment, Propensities],
    left_out: dict[Segment, str],
    by: Sequence[str],
) -> Propensities:
    """The pooled curve with its segments' curves, own and leaning on the pool."""
    leaning, difference = _lean(pooled, own, left_out)
    return replace(
        pooled,
        segment_columns=tuple(by),
        by_segment=own,
        leaning=leaning,
        difference=difference,
    )


def _grouped(counts: Counts, by: tuple[str, ...]) -> Counts:
    """Counts split by these segment columns only."""
    for name in by:
        if name not in counts.segment_columns:
            raise BadOption(
                f"The counts are not split by {name!r}.{did_you_mean(name, counts.segment_columns)}"
                f" They are split by {', '.join(counts.segment_columns) or 'nothing'}: harvest "
                f"with --segment {name}."
            )
    return counts.regroup(by)


def _lean(
    pooled: Propensities, own: dict[Segment, Propensities], left_out: dict[Segment, str]
) -> tuple[dict[Segment, Propensities], Difference]:
    """Random effects: a segment's curve is the pool's plus a deviation of unknown size.

    The size (one variance for the deviation of log p, the same at every rank compared) is
    estimated by the method of moments on the ranks that all segments share; each segment then
    leans on the pool in proportion to its own noise.
    """
    shared = sorted(set.intersection(*(set(p.ranks.tolist()) for p in own.values()))) if own else []
    at = _anchor_ranks(shared, pooled)
    if len(own) < 2 or not at:
        left = dict(own)
        return left, Difference(0.0, 0.0, 1.0, 0.0, left_out)
    values = np.stack([p.log_p[np.searchsorted(p.ranks, at)] for p in own.values()])
    noise = np.stack([
        (d := p.deviations[np.searchsorted(p.ranks, at)]) @ d.T for p in own.values()
    ])  # fmt: skip
    statistic, df = _wald(values, noise)
    between = _between(values, noise)
    from scipy.special import chdtrc

    leaning = {segment: _shrunk(p, pooled, between) for segment, p in own.items()}
    difference = Difference(
        statistic,
        df,
        float(chdtrc(df, statistic)) if df else 1.0,
        float(np.sqrt(between)),
        left_out,
    )
    return leaning, difference


def _anchor_ranks(shared: list[int], pooled: Propensities) -> list[int]:
    """A few ranks that span the curve: as many as it has parameters, at most eight."""
    usable = [r for r in shared if r != pooled.reference]
    if not usable:
        return []
    many = min(8, pooled.parameters or 1, len(usable))
    wanted = np.geomspace(usable[0], usable[-1], many)
    return sorted({usable[int(np.abs(np.array(usable) - w).argmin())] for w in wanted})


def _wald(values: Floats, noise: Floats) -> tuple[float, float]:
    """Homogeneity of the segments' curves at the anchors."""
    inverse = np.stack([np.linalg.pinv(v, hermitian=True, rcond=1e-10) for v in noise])
    total = np.linalg.pinv(inverse.sum(axis=0), hermitian=True)
    mean = total @ np.einsum("sij,sj->i", inverse, values)
    off = values - mean
    statistic = float(np.einsum("si,sij,sj->", off, inverse, off))
    return statistic, float((len(values) - 1) * values.shape[1])


def _between(values: Floats, noise: Floats) -> float:
    """Variance between segments beyond noise (DerSimonian and Laird), averaged over anchors."""
    variance = np.stack([np.diag(v) for v in noise])
    weight = 1 / np.maximum(variance, 1e-300)
    mean = (weight * values).sum(axis=0) / weight.sum(axis=0)
    q = (weight * (values - mean) ** 2).sum(axis=0)
    scale = weight.sum(axis=0) - (weight**2).sum(axis=0) / weight.sum(axis=0)
    found = (q - (len(values) - 1)) / scale
    return max(0.0, float(found.mean()))


def _shrunk(p: Propensities, pooled: Propensities, between: float) -> Propensities:
    """own and pool, weighted by how far each can be trusted at each rank."""
    common = np.isin(p.ranks, pooled.ranks)
    at = np.searchsorted(pooled.ranks, p.ranks[common])
    noise = (p.deviations[common] ** 2).sum(axis=1)
    trust = np.where(noise > 0, between / np.maximum(between + noise, 1e-300), 1.0)
    log_p, own, pool = (
        p.log_p.copy(),
        p.deviations.copy(),
        np.zeros((len(p.ranks), pooled.deviations.shape[1])),
    )
    log_p[common] = trust * p.log_p[common] + (1 - trust) * pooled.log_p[at]
    own[common] *= trust[:, None]
    pool[common] = (1 - trust)[:, None] * pooled.deviations[at]
    # The segment differs from the pool by an unknown amount: that part of the error remains.
    rest = np.zeros((len(p.ranks), len(p.ranks)))
    rest[np.flatnonzero(common), np.flatnonzero(common)] = (1 - trust) * np.sqrt(between)
    rest[p.ranks == p.reference] = 0.0
    return replace(
        p, log_p=log_p, deviations=np.concatenate([own, pool, rest], axis=1),
        method=f"{p.method}, leaning on the pool",
    )  # fmt: skip
