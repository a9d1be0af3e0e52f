"""Counts -> Propensities: identify, maximise, say how sure."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadOption, NotConverged, NotIdentified, NoUsablePairs, Remark
from rankdrift.core.types import Floats, Ranks
from rankdrift.core.version import __version__
from rankdrift.core.words import ranges
from rankdrift.counts.connection import connect
from rankdrift.counts.counts import Counts
from rankdrift.estimation.covariance import (
    bootstrap,
    bucket_influence,
    covariance_root,
    jackknife_root,
    model_covariance,
    model_variance,
    no_less,
)
from rankdrift.estimation.curves import Curve
from rankdrift.estimation.curves import curve as parse_curve
from rankdrift.estimation.likelihood import Likelihood, likelihood
from rankdrift.estimation.newton import Fit, maximise
from rankdrift.propensities.propensities import (
    ENOUGH_BUCKETS,
    ENOUGH_CLICKS,
    Propensities,
    all_curves,
)

Clicks = Literal["every", "single"]
ERRORS = ("buckets", "model", "bootstrap")


@dataclass(frozen=True)
class Options:
    curve: str | Curve = "loglog"
    clicks: Clicks = "every"
    reference: int = 1
    errors: str = "buckets"
    samples: int = 1000
    seed: int = 0
    extrapolate_to: int | None = None


def estimate(
    counts: Counts,
    *,
    curve: str | Curve = "loglog",
    clicks: Clicks = "every",
    reference: int = 1,
    errors: str = "buckets",
    samples: int = 1000,
    seed: int = 0,
    by: str | Sequence[str] | None = None,
    extrapolate_to: int | None = None,
) -> Propensities:
    """Propensities by maximising Eq. (3), log-like.

    `curve`: "direct", "loglog", "loglog(KNOTS)", "loglog + periodic(N)", "grid(COLUMNS)" or
    "auto". `clicks`: "every" click is a choice, or the paper's "single". `errors`: covariance
    from query "buckets", from the "model" alone, or by "bootstrap" over buckets (`samples`,
    `seed`). `by`: segment columns to have a curve each. Ranks deeper than any data get a value
    only with `extrapolate_to`, and are marked as not supported.
    """
    options = Options(parse_curve(curve), clicks, reference, errors, samples, seed, extrapolate_to)
    _check(options)
    if by:
        from rankdrift.estimation.segments import estimate_by

        found = estimate_by(counts, (by,) if isinstance(by, str) else tuple(by), options)
    else:
        found = fit_curve(counts, options)
    if extrapolate_to is not None and all(curve.pairs[-1] for _, _, curve in all_curves(found)):
        warnings.warn(
            f"There was nothing to draw on to rank {extrapolate_to}: pairs moved down to rank "
            f"{found.ranks[-1]}.",
            Remark,
            stacklevel=2,
        )
    return found


def fit_curve(counts: Counts, options: Options) -> Propensities:
    """One curve for all of `counts`."""
    fitted = fit(counts, options)
    return to_propensities(counts, fitted, options)


@dataclass(frozen=True)
class Fitted:
    """A maximised likelihood, the curve that was used, and the ranks left out with the reason."""

    fit: Fit
    curve: Curve
    gaps: Mapping[int, str]

    @property
    def likelihood(self) -> Likelihood:
        return self.fit.likelihood


def fit(counts: Counts, options: Options) -> Fitted:
    curve = options.curve if isinstance(options.curve, Curve) else parse_curve(options.curve)
    terms = likelihood(counts, options.clicks)
    if not terms.blocks:
        raise NoUsablePairs(
            f"The counts hold no usable pair ({counts.funnel.rows:,} rows were read). A pair must "
            "appear at two ranks and get a click: see `rankdrift inspect`, or add days."
        )
    if curve.is_auto:
        from rankdrift.estimation.auto_curve import choose_curve

        curve = choose_curve(counts, options)
    ranks, gaps = _ranks(counts, terms, curve, options.reference)
    if len(ranks) < terms.size:  # direct: a rank shown outside the block says nothing inside it
        terms = likelihood(counts.only(ranks), options.clicks, ranks)
    curve = curve.at(ranks)
    basis = curve.basis(ranks)[:, 1:]  # the constant is in the span and makes no difference
    try:
        return Fitted(maximise(terms, basis), curve, gaps)
    except NotConverged:
        _refuse_empty_knots(terms, basis, curve)
        raise


def _ranks(
    counts: Counts, terms: Likelihood, curve: Curve, reference: int
) -> tuple[Ranks, dict[int, str]]:
    """The ranks that the curve covers, and those that were shown but are left out."""
    shown = counts.by_rank.rank[counts.by_rank.impressions > 0]
    if not curve.is_direct:
        first, last = int(terms.ranks[0]), int(terms.ranks[-1])
        why = "deeper or higher than any pair that moved"
        outside = np.unique(shown[(shown < first) | (shown > last)])
        gaps = dict.fromkeys(outside.tolist(), why)
        if not first <= reference <= last:
            raise NotIdentified(
                f"The reference rank {reference} is outside the ranks that pairs moved between "
                f"({first}–{last}). Choose one of them with --reference."
            )
        return terms.ranks, gaps
    linked = connect(*terms.victories())
    seen = {rank for block in linked.blocks for rank in block} | set(linked.alone)
    main = next((block for block in linked.blocks if reference in block), None)
    if main is None:
        others = ranges(linked.main) if linked.blocks else "none"
        raise NotIdentified(
            f"Rank {reference}, the reference, cannot be compared with any other rank one by one: "
            f"it must win a click over another and lose one. Ranks that can: {others}. Choose one "
            "with --reference, use a loglog curve, or add days."
        )
    gaps = {}
    for rank in sorted({*shown.tolist(), *seen} - set(main)):
        block = next((b for b in linked.blocks if rank in b), None)
        if block:
            gaps[rank] = f"compares only with ranks {ranges(block)}"
        elif rank in linked.alone:
            gaps[rank] = "never won a click over these ranks, or never lost one"
        else:
            gaps[rank] = "no clicked pair moved to or from it"
    return np.array(main, dtype=np.int32), gaps


def _refuse_empty_knots(terms: Likelihood, basis: Floats, curve: Curve) -> None:
    """Parameters that no comparison touches."""
    if curve.is_direct:
        return
    information = terms.at(np.zeros(terms.size)).information(basis)
    # Each in its own unit: few comparisons deep down are few, not none, beside millions at the top.
    unit = np.sqrt(np.diag(information)) + 1e-300
    values, vectors = np.linalg.eigh(information / unit / unit[:, None])
    if values[0] > 1e-9 * values[-1]:
        return
    loose = np.abs(basis @ (vectors[:, 0] / unit))
    at = terms.ranks[loose > 0.5 * loose.max()]
    raise NotIdentified(
        f"The data say nothing of the curve {str(curve)!r} around ranks {ranges(at.tolist())}: no "
        "comparison involves them. Leave out the knots there (loglog(KNOTS)), use a smaller "
        "--max-rank, or add days."
    )


def to_propensities(counts: Counts, fitted: Fitted, options: Options) -> Propensities:
    """The propensities of a fit, with their uncertainty and what is behind each rank."""
    fit_, curve, terms = fitted.fit, fitted.curve, fitted.likelihood
    parts, df = _parts(fit_, options)
    ranks, basis, supported = terms.ranks, fit_.basis, supported_ranks(fitted)
    if options.extrapolate_to is not None and options.extrapolate_to > ranks[-1]:
        ranks, basis = _extrapolate(curve, ranks, basis, options.extrapolate_to)
        supported = np.concatenate([supported, np.zeros(len(ranks) - len(supported), bool)])
    log_p, deviations = basis @ fit_.phi, basis @ parts
    if options.errors != "model" and not supported.all():
        # Where few buckets touch a rank, how they differ says little of its error, or nothing:
        # such a rank is no surer than by the model.
        won = np.concatenate([terms.wins, np.zeros(len(ranks) - terms.size)])
        least = np.zeros(len(ranks))
        least[~supported] = model_variance(fit_, (basis - won @ basis / won.sum())[~supported])
        deviations = no_less(deviations, least, won)
    place = int(np.searchsorted(ranks, options.reference))
    pairs, clicks = _behind(counts, ranks, options.clicks)
    return Propensities(
        ranks=ranks,
        log_p=log_p - log_p[place],
        deviations=deviations - deviations[place],
        pairs=pairs,
        clicks=clicks,
        supported=supported,
        reference=options.reference,
        method=f"{curve}, {options.clicks}",
        errors=options.errors,
        df=df,
        log_likelihood=fit_.log_likelihood,
        parameters=len(fit_.phi),
        gaps=fitted.gaps,
        provenance=_provenance(counts, curve, options),
    )


def _parts(fit: Fit, options: Options) -> tuple[Floats, float]:
    """(F, N): columns whose outer products add up to the covariance of phi; degrees of freedom."""
    if options.errors == "model":
        return covariance_root(model_covariance(fit)), np.inf
    used = fit.likelihood.touched
    if len(used) < 2:
        raise NotIdentified(
            "All comparisons come from one bucket of queries, so errors cannot be told from them. "
            "Add queries, or use errors='model' and take it that clicks are independent."
        )
    if options.errors == "bootstrap":
        drawn = bootstrap(fit, options.samples, options.seed)
        return covariance_root(np.atleast_2d(np.cov(drawn, rowvar=False))), float(len(used) - 1)
    return jackknife_root(bucket_influence(fit)[used]), float(len(used) - 1)


def _extrapolate(
    curve: Curve, ranks: NDArray[np.int32], basis: Floats, to: int
) -> tuple[NDArray[np.int32], Floats]:
    """The last stretch of a log-log curve, drawn on."""
    if [part.name for part in curve.parts] != ["loglog"]:
        raise BadOption("Only a loglog curve can be drawn on beyond its data (extrapolate_to).")
    knots = curve.parts[0].numbers
    more = np.arange(ranks[-1] + 1, to + 1, dtype=np.int32)
    share = np.log(more / knots[-2]) / np.log(knots[-1] / knots[-2])
    beyond = np.zeros((len(more), len(knots)))
    beyond[:, -2], beyond[:, -1] = 1 - share, share
    return np.concatenate([ranks, more]), np.concatenate([basis, beyond[:, 1:]])


def supported_ranks(fitted: Fitted) -> NDArray[np.bool_]:
    """Ranks with enough clicks won and lost, in enough buckets, for what is estimated there.

    On a curve a rank shares the evidence of the ranks that its parameters serve.
    """
    terms = fitted.likelihood
    serves = fitted.curve.basis(terms.ranks) > 0
    enough_at = []
    for evidence in (terms.bucket_wins, terms.bucket_losses):
        by_parameter = evidence if fitted.curve.is_direct else evidence @ serves
        enough_at.append(by_parameter.sum(axis=0) >= ENOUGH_CLICKS)
        enough_at.append((by_parameter > 0).sum(axis=0) >= min(ENOUGH_BUCKETS, terms.buckets))
    enough = np.logical_and.reduce(enough_at)
    return np.asarray(enough if fitted.curve.is_direct else (~serves | enough).all(axis=1))


def _behind(
    counts: Counts, ranks: Ranks, clicks: Clicks
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs used that were shown at each rank, and the clicks they got there."""
    used, held = counts.pairs, counts.overflow
    if clicks == "single":
        used, held = used.take(used.clicks == 1), held.take(held.single)
    size = max(int(ranks[-1]), counts.max_rank) + 1
    pairs, won = np.zeros(size), np.zeros(size)
    np.add.at(pairs, held.rank, held.pairs)
    np.add.at(won, held.rank, held.clicks)
    before = np.zeros(len(used), np.int32)
    for code in used.shown.T:  # ascending: a rank shown again follows itself
        rank = code >> 1
        pairs += np.bincount(rank, used.pairs * (rank != before), size)
        won += np.bincount(rank, used.pairs * (code & 1), size)
        before = rank
    return pairs[ranks].astype(np.int64), won[ranks].astype(np.int64)


def _provenance(counts: Counts, curve: Curve, options: Options) -> dict[str, Any]:
    return {
        "version": __version__,
        "curve": str(curve),
        "clicks": options.clicks,
        "errors": options.errors,
        **(
            {"samples": options.samples, "seed": options.seed}
            if options.errors == "bootstrap"
            else {}
        ),
        "counts": {
            "version": counts.version,
            "sources": list(counts.sources),
            "days": list(counts.days),
            "options": dict(counts.options),
            "pairs": counts.n_pairs,
            "clicks": counts.n_clicks,
        },
    }


def _check(options: Options) -> None:
    if options.errors not in ERRORS:
        raise BadOption(f"errors is {options.errors!r}. Use {', '.join(ERRORS)}.")
    if options.clicks not in ("every", "single"):
        raise BadOption(f"clicks is {options.clicks!r}. Use 'every' or 'single'.")
    if options.errors == "bootstrap" and options.samples < 20:
        raise BadOption(f"samples must be 20 or more, not {options.samples}.")
    if options.reference < 1 or options.reference != int(options.reference):
        raise BadOption(f"reference is a rank, from 1, not {options.reference}.")


def with_curve(options: Options, curve: Curve | str) -> Options:
    return replace(options, curve=curve)
