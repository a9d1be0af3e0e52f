"""A curve for each segment, a pooled one, one in between, and whether segments differ at all."""

from collections.abc import Mapping
from dataclasses import replace

from rankdrift.core.errors import BadOption, NotIdentified, RankdriftError, did_you_mean
from rankdrift.core.types import Segment
from rankdrift.counts.counts import Counts
from rankdrift.estimation.fitted_curve import to_propensities
from rankdrift.estimation.fitting import Fitted, Options, fit
from rankdrift.estimation.hotelling import hotelling_test
from rankdrift.estimation.levels import Levelled, level_of
from rankdrift.estimation.shrinkage import shrink, spread_between
from rankdrift.propensities.propensities import Difference, Propensities


def estimate_by(counts: Counts, by: tuple[str, ...], options: Options) -> Propensities:
    """The pooled curve with those of each segment: by itself, and shrunk towards the pool.

    `by`: the segment columns, which the counts must have. Where the data choose the curve, each
    segment chooses its own; one that was given is the pool's everywhere, so that parameters mean
    the same.
    """
    counts = _grouped(counts, by)
    pooled_fit = fit(counts, options)
    pooled = to_propensities(counts, pooled_fit, options)
    same = options if pooled_fit.began else replace(options, curve=pooled_fit.curve)
    pool = level_of(pooled, pooled_fit)
    fits: dict[Segment, Fitted] = {}
    own: dict[Segment, Propensities] = {}
    levelled: dict[Segment, Levelled] = {}
    left_out: dict[Segment, str] = {}
    for segment in counts.segments:
        try:
            part = counts.restrict(segments=[segment])
            fitted = fit(part, same)
            curve = to_propensities(part, fitted, same)
            levelled[segment] = _levelled(part, curve, fitted, pool, same)
            own[segment], fits[segment] = curve, fitted
        except RankdriftError as error:
            left_out[segment] = str(error)
    statistic, df, df_error, p_value = _test(fits, options.reference)
    spread = spread_between(pooled, list(own.values()))
    return replace(
        pooled,
        segment_columns=by,
        by_segment=own,
        shrunk=shrink(pool, levelled),
        difference=Difference(statistic, df, p_value, spread, left_out, df_error),
    )


def _levelled(
    counts: Counts, curve: Propensities, fitted: Fitted, pool: Levelled, options: Options
) -> Levelled:
    """Of a segment, with what it may share with the pool."""
    own = level_of(curve, fitted)
    if fitted.began is None or not pool.detail.any():
        return own
    return own.sharing(pool, fitted, to_propensities(counts, fitted.began, options))


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
    fits: Mapping[Segment, Fitted], reference: int
) -> tuple[float, float, float | None, float]:
    """F, its degrees of freedom and p of all segments having one curve."""
    by_size = sorted(fits.values(), key=lambda one: -one.likelihood.weight)
    most = 1 + max((len(one.likelihood.touched) for one in by_size), default=0) // 4
    try:
        found = hotelling_test(by_size[: max(most, 2)], reference) if len(by_size) > 1 else None
    except NotIdentified:  # no rank but the reference in all of them
        found = None
    if found is None:
        return 0.0, 0.0, None, 1.0
    return found.statistic, float(found.df), float(found.df_error), found.p_value
