"""A curve for each segment, a pooled one, one in between, and whether segments differ at all."""

import warnings
from collections.abc import Iterable
from dataclasses import replace

from rankdrift.core.errors import BadOption, RankdriftError, Remark, did_you_mean
from rankdrift.core.types import Segment
from rankdrift.counts.counts import Counts
from rankdrift.estimation.bayes.estimating import Options as Bayes
from rankdrift.estimation.bayes.estimating import estimate_posterior
from rankdrift.estimation.fitted_curve import to_propensities
from rankdrift.estimation.fitting import Fitted, Options, fit
from rankdrift.estimation.levels import Levelled, level_of
from rankdrift.estimation.part_test import segments_test
from rankdrift.estimation.score_test import ScoreTest
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
    own: dict[Segment, Propensities] = {}
    levelled: dict[Segment, Levelled] = {}
    left_out: dict[Segment, str] = {}
    for segment in counts.segments:
        try:
            part = counts.restrict(segments=[segment])
            fitted = fit(part, same)
            curve = to_propensities(part, fitted, same)
            levelled[segment] = _levelled(part, curve, fitted, pool, same)
            own[segment] = curve
        except RankdriftError as error:
            left_out[segment] = str(error)
    test = segments_test(counts, pooled_fit, options.clicks)
    return replace(
        pooled,
        segment_columns=by,
        by_segment=own,
        shrunk=shrink(pool, levelled),
        difference=_difference(test, pooled, own.values(), left_out),
    )


def posterior_by(counts: Counts, by: tuple[str, ...], options: Bayes) -> Propensities:
    """The posterior of all segments together, with that of each by its own pairs alone.

    None leans on the pool: what is known beforehand is the same for each. Whether segments differ
    is the test of the likelihood, on pairs that moved.
    """
    counts = _grouped(counts, by)
    pooled = estimate_posterior(counts.pool(), options)
    own: dict[Segment, Propensities] = {}
    left_out: dict[Segment, str] = {}
    for segment in counts.segments:
        part = counts.restrict(segments=[segment]).pool()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Remark)  # which the pool has told of
                own[segment] = estimate_posterior(part, options)
        except RankdriftError as error:
            left_out[segment] = str(error)
    try:
        test = segments_test(counts, fit(counts, Options(reference=options.reference)))
    except RankdriftError:  # that has no maximum, where the posterior still is one
        test = None
    return replace(
        pooled,
        segment_columns=by,
        by_segment=own,
        difference=_difference(test, pooled, own.values(), left_out),
    )


def _difference(
    test: ScoreTest | None,
    pooled: Propensities,
    own: Iterable[Propensities],
    left_out: dict[Segment, str],
) -> Difference:
    return Difference(
        test.statistic if test else 0.0,
        float(test.df) if test else 0.0,
        test.p_value if test else 1.0,
        spread_between(pooled, list(own)),
        left_out,
        test.df_error if test else None,
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
