"""A curve for each segment, a pooled one, one in between, and whether segments differ at all."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rankdrift.counts import Counts
from rankdrift.errors import BadOption, NotIdentified, RankdriftError, did_you_mean
from rankdrift.propensities import Floats, Propensities, Segment

if TYPE_CHECKING:
    from rankdrift.estimation import Fitted, Options

# Of 0, 1, 2 and 3 chosen by `python -m benchmarks.leaning`: with 0, intervals of leaning curves
# held the truth in 80% to 96%, with this in 91% to 97%. The curves themselves are a little further
# off where segments are alike, and closer where they differ much.
_CAREFUL = 2.0


@dataclass(frozen=True)
class Difference:
    """Do segments differ? `statistic` is F with `df` and `df_error` if they do not.

    Where there are more segments than a quarter of the query buckets, the test is of those with
    the most clicks. `spread` is the standard deviation of log p between segments, over and above
    noise, at a typical rank; `left_out` are segments without an estimate of their own, with the
    reason.
    """

    statistic: float
    df: float
    p_value: float
    spread: float
    left_out: dict[Segment, str]
    df_error: float | None = None


def estimate_by(counts: Counts, by: tuple[str, ...], options: "Options") -> Propensities:
    from rankdrift.estimation import describe, fit

    counts = _grouped(counts, by)
    pooled_fit = fit(counts, options)
    pooled = describe(counts, pooled_fit, options)
    # Every segment has the pool's curve, so that parameters mean the same everywhere.
    same = replace(options, curve=pooled_fit.curve)
    fits: dict[Segment, Fitted] = {}
    own: dict[Segment, Propensities] = {}
    left_out: dict[Segment, str] = {}
    for segment in counts.segments:
        try:
            part = counts.restrict(segments=[segment])
            fitted = fit(part, same)
            own[segment] = describe(part, fitted, same)
            fits[segment] = fitted
        except RankdriftError as error:
            left_out[segment] = str(error)
    leaning, spread = _lean(pooled, own)
    statistic, df, df_error, p_value = _test(fits, options.reference)
    return replace(
        pooled,
        segment_columns=by,
        by_segment=own,
        leaning=leaning,
        difference=Difference(statistic, df, p_value, spread, left_out, df_error),
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


def _test(
    fits: Mapping[Segment, "Fitted"], reference: int
) -> tuple[float, float, float | None, float]:
    """F, its degrees of freedom and p of all segments having one curve."""
    from rankdrift.agreement import agreement

    by_size = sorted(fits.values(), key=lambda one: -one.likelihood.weight)
    most = 1 + max((len(one.likelihood.touched) for one in by_size), default=0) // 4
    try:
        found = agreement(by_size[: max(most, 2)], reference) if len(by_size) > 1 else None
    except NotIdentified:  # no rank but the reference in all of them
        found = None
    if found is None:
        return 0.0, 0.0, None, 1.0
    return found.statistic, float(found.df), float(found.df_error), found.p_value


def _lean(
    pooled: Propensities, own: Mapping[Segment, Propensities]
) -> tuple[dict[Segment, Propensities], float]:
    """Random effects: a segment's curve is the pool's plus a deviation of unknown size.

    The size (one variance for the deviation of log p, the same at every rank compared) is
    estimated by the method of moments on a few ranks that all segments share; each segment then
    leans on the pool in proportion to its own noise. Few segments tell little about that size, so
    they lean as if it were `_CAREFUL` standard errors larger. The second value is the size as
    estimated.
    """
    from rankdrift.agreement import MOST_RANKS, anchors

    shared = pooled.ranks
    for p in own.values():
        shared = np.intersect1d(shared, p.ranks)
    if len(own) < 2 or len(shared) < 2:
        return dict(own), 0.0
    at = anchors(shared, pooled.reference, min(MOST_RANKS, pooled.parameters or 1))
    values = np.stack([p.log_p[np.searchsorted(p.ranks, at)] for p in own.values()])
    noise = np.stack([p.std_error[np.searchsorted(p.ranks, at)] ** 2 for p in own.values()])
    between, error = variance_between(values, noise)
    precision = np.zeros((len(own), len(pooled.ranks)))
    for row, p in zip(precision, own.values(), strict=True):
        row[np.isin(pooled.ranks, p.ranks)] = _inverse(p.std_error**2)[
            np.isin(p.ranks, pooled.ranks)
        ]
    share = precision / np.maximum(precision.sum(axis=0), 1e-300)
    leaning = {
        segment: _shrunk(p, pooled, between + _CAREFUL * error, share, place)
        for place, (segment, p) in enumerate(own.items())
    }
    return leaning, float(np.sqrt(between))


def variance_between(values: Floats, noise: Floats) -> tuple[float, float]:
    """Variance between segments beyond noise (DerSimonian and Laird), from log p (S, A) with
    variances `noise`, and its standard error; each rank counts by the information it has.

    A segment's curve is high or low at many ranks at once, so the error takes them for one.
    """
    weight = _inverse(noise)
    total = weight.sum(axis=0)
    q = (weight * (values - (weight * values).sum(axis=0) / total) ** 2).sum(axis=0)
    scale = total - (weight**2).sum(axis=0) / total
    free = len(values) - 1
    found = max(0.0, float((q - free).sum() / scale.sum()))
    return found, (found + free / float(scale.mean())) * float(np.sqrt(2 / free))


def _shrunk(
    p: Propensities, pooled: Propensities, between: float, share: Floats, place: int
) -> Propensities:
    """own and pool, weighted by how far each can be trusted at each rank.

    `share` (S, R): of the information at each of the pool's ranks, from each segment; `place` is
    this one's. The pool holds the segment itself, and uses all data as well as it can be used, so
    by how much the segment's own error exceeds the pool's is independent of the pool's error.
    """
    from rankdrift.uncertainty import parts_of

    common = np.isin(p.ranks, pooled.ranks)
    at = np.searchsorted(pooled.ranks, p.ranks[common])
    others = np.delete(share[:, at], place, axis=0)
    # The segment's deviation from the pool, which is partly the segment itself.
    apart = between * ((1 - share[place, at]) ** 2 + (others**2).sum(axis=0))
    own, pool = p.deviations[common], pooled.deviations[at]
    extra = np.maximum((own**2).sum(axis=1) - (pool**2).sum(axis=1), 0.0)
    trust = apart / np.maximum(apart + extra, 1e-300)
    log_p = p.log_p.copy()
    log_p[common] = trust * p.log_p[common] + (1 - trust) * pooled.log_p[at]
    noise = trust[:, None] * parts_of(own @ own.T - pool @ pool.T)
    rest = np.diag(np.where(p.ranks[common] == p.reference, 0.0, (1 - trust) * np.sqrt(apart)))
    inside = np.concatenate([pool, noise, rest], axis=1)
    deviations = np.zeros((len(p.ranks), inside.shape[1] + p.deviations.shape[1]))
    deviations[common, : inside.shape[1]] = inside
    deviations[~common, inside.shape[1] :] = p.deviations[~common]
    return replace(
        p, log_p=log_p, deviations=deviations[:, deviations.any(axis=0)],
        method=f"{p.method}, leaning on the pool",
    )  # fmt: skip


def _inverse(variance: Floats) -> Floats:
    return np.asarray(1 / np.maximum(variance, 1e-300))
