"""Log + Propensities, or a click model -> Judgments."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.naming import names_checked
from rankdrift.core.types import Floats
from rankdrift.harvesting.appearances import Appearances, holds_appearances, open_appearances
from rankdrift.harvesting.taking import take_log
from rankdrift.judging.judgments import Judgments
from rankdrift.judging.modelled import read_modelled
from rankdrift.judging.prior_means import feature_sql, learnt_means, query_level, rank_level
from rankdrift.judging.reading import read_statistics
from rankdrift.judging.shrinkage import Evidence, Posterior, fit_prior, posterior
from rankdrift.judging.statistics import MIN_EXPOSURE, Recency, Statistics
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.propensities.intervals import check_level, t_quantile
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.gains import as_propensities, fingerprint
from rankdrift.ranking.matrix_reading import Wanted


@names_checked
def judge(
    log: Any,
    propensities: Propensities | str | os.PathLike[str] | None = None,
    *,
    model: str | None = None,
    features: Wanted = (),
    by_query: bool = False,
    min_exposure: float = MIN_EXPOSURE,
    last: int | None = None,
    half_life: float | None = None,
    pool: bool = False,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Judgments:
    """Judge how relevant each doc is to each query, from its clicks at whatever ranks it had.

    Clicks are set against the exposure at every rank shown, and shrunk towards what pairs at such
    ranks are like (empirical Bayes), the more, the less a pair was seen. The error of the
    propensities is in the intervals.

    Parameters
    ----------
    log
        From `read_log`, or where a log is, or the files that `appearances_by_day` made of one. A
        pair is a query and a doc: to have judgments by country, make the country a part of the
        query.
    propensities
        Those of `estimate`, or their file. Where they differ by segment, exposure does too.
    model
        Or a click model, such as "dbn"; `compare_models` tells which is right. It is fitted to the
        searches of the log, and says how likely each result was looked at, given the other clicks
        of its search. Its own error is not in the intervals.
    features
        Columns of numbers, or patterns such as `f_*`, from which trees learn what to expect of a
        pair before its own clicks, on other queries than its own; an old score is one. Needs the
        extra `rank`.
    by_query
        Expect of a pair what the other docs of its query are like.
    min_exposure
        Pairs without a click and with less exposure than this are not listed; they count in the
        prior. 0 lists every pair.
    last
        Only so many days, up to the last of the log.
    half_life
        In days: a day so much older than the last one counts half.
    pool
        One curve for all, though the propensities have segments.
    level
        Of the intervals.
    seed
        Of the draw of pairs that the prior is fitted to, where there are very many.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.
    say
        Called with remarks.

    Returns
    -------
    Judgments

    Raises
    ------
    BadLog
        If no row can be used, or none was clicked.
    NotIdentified
        If a segment of the log has no propensities.
    """
    check_level(level)
    recency = Recency(last, half_life)
    if model is not None:
        _refuse_with_model(
            propensities, features=features, last=last, half_life=half_life, pool=pool
        )
        read = _by_model(log, model, progress)
    else:
        # Where pairs differ in what is expected of them, each is needed.
        least = 0.0 if features or by_query else min_exposure
        curve = as_propensities(propensities)
        if curve is None:
            raise BadOption(
                "judge needs propensities: what a look at each rank is worth; or a click model."
            )
        if curve.trust is not None and (by_query or features):
            raise BadOption(
                "With a curve that has trust, a pair is expected to be like those at its ranks: "
                "leave out --by-query and --features, or use a plain curve."
            )
        read = _by_curve(log, curve, features, recency, least, pool, progress)
    found, remarks = read.found, read.remarks
    if say:
        for remark in remarks:
            say(remark)
    expected, of_rest = rank_level(found)
    variance = np.zeros(len(found))
    if by_query:
        expected, variance = query_level(found, expected)
    if features:
        expected = learnt_means(found, expected, seed)
    location = _logit(expected)
    listed = Evidence(found.clicks, found.exposure, found.squares, np.ones(len(found)), found.trust)
    prior = fit_prior(
        _with_rest(listed, found),
        np.concatenate([location, _logit(of_rest)]),
        np.concatenate([variance, np.zeros(len(of_rest))]),
        seed,
    )
    if features or by_query or model is not None:
        keep = (found.clicks > 0) | (found.exposure >= min_exposure)
        found, listed = found.take(keep), listed.take(keep)
        location, variance = location[keep], variance[keep]
    known = posterior(listed, location, prior, variance, level)
    return _judgments(
        found,
        known,
        np.sqrt(prior.spread**2 + variance),
        level=level,
        prior={
            "mean": found.click_rate,
            "relevance": prior.relevance(float(_logit(np.array([found.click_rate]))[0])),
            "shift": prior.shift,
            "spread": prior.spread,
            "weights": list(prior.weights),
            "middles": list(prior.middles),
            "spreads": list(prior.spreads),
        },
        propensities=read.propensities,
        query_columns=read.query_columns,
        options={
            "model": model,
            "features": list(found.feature_names),
            "by_query": by_query,
            "min_exposure": min_exposure,
            "last": last,
            "half_life": half_life,
            "pool": pool,
            "seed": seed,
            "reference": read.reference,
        },
        source=read.source,
        remarks=remarks,
    )


class _Read(NamedTuple):
    """What is known of every pair, and by what: the fingerprint of propensities, if it was them,
    and the rank to which relevance refers."""

    found: Statistics
    query_columns: tuple[str, ...]
    source: dict[str, Any]
    remarks: tuple[str, ...]
    reference: int
    propensities: str | None = None


def _by_curve(
    log: Any,
    curve: Propensities,
    features: Wanted,
    recency: Recency,
    min_exposure: float,
    pool: bool,
    progress: Progress | None,
) -> _Read:
    read = take_appearances_or_log(log)
    carried: dict[str, str] = {}
    if isinstance(read, Log):
        _refuse_segments(read.roles.segment, () if pool else tuple(curve.segment_columns))
        carried = feature_sql(read, features) if features else {}
        query_columns, described = tuple(read.roles.query), read.describe()
        of_log = read.engine.fingerprint()
    else:
        if features:
            raise BadOption(
                "Appearances that were counted by day have no features. Judge the log itself, or "
                "leave out --features."
            )
        query_columns, described = read.query_columns, dict(read.read)
        of_log = read.fingerprint()
    found = read_statistics(
        read,
        curve,
        recency=recency,
        min_exposure=min_exposure,
        pool=pool,
        features=carried,
        progress=progress,
    )
    remarks = found.remarks
    if curve.errors == "none":
        remarks += ("The propensities came without errors, so intervals have none of theirs.",)
    source = {"log": of_log, "read": described}
    return _Read(found, query_columns, source, remarks, curve.reference, fingerprint(curve))


def _by_model(log: Any, model: str, progress: Progress | None) -> _Read:
    read = take_appearances_or_log(log)
    if not isinstance(read, Log):
        raise BadOption(
            "Click models look at whole searches, and appearances that were counted by day have "
            "none. Judge the log itself."
        )
    found = read_modelled(read, model, progress=progress)
    source = {"log": read.engine.fingerprint(), "read": read.describe()}
    remarks = (
        *found.remarks,
        f"What users looked at is taken from the model {model} for certain: intervals have no "
        "error of it. Whether it fits this log, rankdrift models tells.",
    )
    return _Read(found, tuple(read.roles.query), source, remarks, reference=1)


def _refuse_with_model(propensities: Any, **more: Any) -> None:
    if propensities is not None:
        raise BadOption(
            "Propensities and a click model both tell what users look at: give one of the two."
        )
    for name, value in more.items():
        if value:
            raise BadOption(
                f"A click model is fitted to all of the log alike: leave out "
                f"--{name.replace('_', '-')}, or judge by propensities."
            )


def take_appearances_or_log(source: Any) -> Log | Appearances:
    """What `judge` was given, opened.

    Parameters
    ----------
    source
        A log, appearances, or where either is.
    """
    if isinstance(source, Appearances):
        return source
    if not isinstance(source, Log) and holds_appearances(source):
        return open_appearances(source)
    return take_log(source)


def _with_rest(listed: Evidence, found: Statistics) -> Evidence:
    """All pairs: those listed, and the others by bins, each with the means of its pairs."""
    rest = found.rest
    return Evidence(
        np.concatenate([listed.clicks, np.zeros(len(rest["pairs"]))]),
        np.concatenate([listed.exposure, rest["exposure"] / rest["pairs"]]),
        np.concatenate([listed.squares, rest["squares"] / rest["pairs"]]),
        np.concatenate([listed.pairs, rest["pairs"]]),
        None
        if listed.trust is None
        else np.concatenate([listed.trust, rest["trust"] / rest["pairs"]]),
    )


def _judgments(
    found: Statistics, known: Posterior, spread: Floats, *, level: float, **more: Any
) -> Judgments:
    """With the error of the propensities in it.

    Were they e off along a direction, the pair's own clicks would tell a relevance off by its
    share of e, and the prior's mean one off by the pool's share. The posterior is between the two,
    nearer to the clicks the more they settled.
    """
    own = np.clip(1 - (known.logit_sd / spread) ** 2, 0.0, 1.0)
    moved = own[:, None] * found.errors + (1 - own)[:, None] * found.pooled_error
    of_curve = np.sqrt((moved**2).sum(axis=1) + own**2 * found.other_error)
    reach = t_quantile(level, np.inf) * of_curve
    with np.errstate(divide="ignore"):  # a lower end of 0 stays
        low = known.mean * np.exp(-np.hypot(np.log(known.mean / known.low), reach))
    high = np.minimum(known.mean * np.exp(np.hypot(np.log(known.high / known.mean), reach)), 1.0)
    return Judgments(
        queries=found.queries,
        docs=found.docs,
        query=found.query,
        doc=found.doc,
        relevance=known.mean,
        low=low,
        high=high,
        known=own,
        clicks=found.clicks,
        appearances=found.appearances,
        exposure=found.exposure,
        days=found.days,
        logit=known.logit,
        logit_sd=np.hypot(known.logit_sd, of_curve / np.maximum(1 - known.mean, 0.05)),
        rest={name: float(found.rest[name].sum()) for name in ("pairs", "appearances", "exposure")},
        level=level,
        features=found.features,
        feature_names=found.feature_names,
        funnel=found.funnel,
        **more,
    )


def _logit(share: Floats) -> Floats:
    kept = np.clip(share, 1e-9, 1 - 1e-6)
    return np.asarray(np.log(kept / (1 - kept)))


def _refuse_segments(named: tuple[str, ...], of_curves: tuple[str, ...]) -> None:
    if named and named != of_curves:
        curves = f"a curve by {', '.join(of_curves)}" if of_curves else "one curve for all"
        raise BadOption(
            f"The log is read by {', '.join(named)} (--segment), and the propensities have "
            f"{curves}. Leave it out: segments are those of the propensities."
        )
