"""Counts -> Propensities: identify, maximise, say how sure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankdrift import __version__
from rankdrift.counts import Counts
from rankdrift.curves import Curve
from rankdrift.curves import curve as parse_curve
from rankdrift.errors import BadOption, NotIdentified, NoUsablePairs
from rankdrift.identify import connection, ranges
from rankdrift.likelihood import Floats, Likelihood, likelihood
from rankdrift.maximise import Fit, free_columns, maximise
from rankdrift.propensities import Propensities
from rankdrift.uncertainty import bootstrap, bucket_covariance, model_covariance, no_less, parts_of

Clicks = Literal["every", "single"]
ERRORS = ("buckets", "model", "bootstrap")
# Fewer clicks won or lost at a rank than this, or in fewer buckets, and the interval of that
# rank by itself is not to be taken at its word.
ENOUGH_CLICKS = 10
ENOUGH_BUCKETS = 8


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
        from rankdrift.segments import estimate_by

        return estimate_by(counts, (by,) if isinstance(by, str) else tuple(by), options)
    return fit_curve(counts.pool(), options)


def fit_curve(counts: Counts, options: Options) -> Propensities:
    """One curve for all of `counts`."""
    fitted = fit(counts, options)
    return describe(counts, fitted, options)


@dataclass(frozen=True)
class Fitted:
    """A maximised likelihood, the curve that was used, and the ranks left out with the reason."""

    fit: Fit
    likelihood: Likelihood
    curve: Curve
    gaps: Mapping[int, str]


def fit(counts: Counts, options: Options, start: Floats | None = None) -> Fitted:
    curve = options.curve if isinstance(options.curve, Curve) else parse_curve(options.curve)
    choices = counts.choices(options.clicks)
    if not len(choices.weight):
        raise NoUsablePairs(
            f"The counts hold no usable pair ({counts.funnel.rows:,} rows were read). A pair must "
            "appear at two ranks and get a click: see `rankdrift inspect`, or add days."
        )
    if curve.is_auto:
        from rankdrift.choose import choose_curve

        curve = choose_curve(counts, options)
    ranks, gaps = _ranks(counts, curve, options.reference, options.clicks)
    if gaps:
        keep = np.isin(choices.shown, ranks) | (choices.shown == 0)
        if not keep.all():  # direct only: a term that leaves the block says nothing inside it
            choices = counts.only(ranks).choices(options.clicks)
    terms = likelihood(choices, ranks, counts.buckets)
    curve = curve.at(ranks)
    basis = curve.basis(ranks)
    _refuse_empty_knots(terms, basis, curve, ranks)
    return Fitted(maximise(terms, basis, start), terms, curve, gaps)


def _ranks(
    counts: Counts, curve: Curve, reference: int, clicks: Clicks
) -> tuple[NDArray[np.int32], dict[int, str]]:
    """The ranks that the curve covers, and those that were shown but are left out."""
    linked = connection(counts, clicks)
    seen = sorted({rank for block in linked.blocks for rank in block} | set(linked.alone))
    shown = np.unique(counts.by_rank.rank[counts.by_rank.impressions > 0])
    if not curve.is_direct:
        ranks = np.arange(seen[0], seen[-1] + 1, dtype=np.int32)
        why = "deeper or higher than any pair that moved"
        gaps = {int(r): why for r in shown if not seen[0] <= r <= seen[-1]}
        if not seen[0] <= reference <= seen[-1]:
            raise NotIdentified(
                f"The reference rank {reference} is outside the ranks that pairs moved between "
                f"({seen[0]}–{seen[-1]}). Choose one of them with --reference."
            )
        return ranks, gaps
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


def _refuse_empty_knots(
    terms: Likelihood, basis: Floats, curve: Curve, ranks: NDArray[np.int32]
) -> None:
    """Parameters that no comparison touches."""
    if curve.is_direct:
        return
    free = free_columns(basis)
    information = basis.T @ terms.information(np.zeros(len(ranks))) @ basis
    information = information[np.ix_(free, free)]
    # Each in its own unit: few comparisons deep down are few, not none, beside millions at the top.
    unit = np.sqrt(np.diag(information)) + 1e-300
    values, vectors = np.linalg.eigh(information / unit / unit[:, None])
    if values[0] > 1e-9 * values[-1]:
        return
    loose = vectors[:, 0] / unit
    at = ranks[np.abs(basis[:, free] @ loose) > 0.5 * np.abs(basis[:, free] @ loose).max()]
    raise NotIdentified(
        f"The data say nothing of the curve {str(curve)!r} around ranks {ranges(at.tolist())}: no "
        "comparison involves them. Leave out the knots there (loglog(KNOTS)), use a smaller "
        "--max-rank, or add days."
    )


def describe(counts: Counts, fitted: Fitted, options: Options) -> Propensities:
    """The propensities of a fit, with their uncertainty and what is behind each rank."""
    fit_, curve = fitted.fit, fitted.curve
    covariance, df = _covariance(fitted, options)
    ranks, basis, supported = fitted.likelihood.ranks, fit_.basis, supported_ranks(fitted)
    if options.extrapolate_to is not None and options.extrapolate_to > ranks[-1]:
        ranks, basis = _extrapolate(curve, ranks, basis, options.extrapolate_to)
        supported = np.concatenate([supported, np.zeros(len(ranks) - len(supported), bool)])
    log_p = basis @ fit_.phi
    deviations = basis[:, fit_.free] @ parts_of(covariance)
    if options.errors != "model":
        model = basis[:, fit_.free] @ parts_of(model_covariance(fit_))
        clicks_at = np.zeros(len(ranks))
        clicks_at[: fitted.likelihood.size] = fitted.likelihood.wins()
        deviations = no_less(deviations, model, ~supported, clicks_at)
    place = int(np.searchsorted(ranks, options.reference))
    pairs, clicks = _behind(counts, ranks)
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
        parameters=len(fit_.free),
        gaps=fitted.gaps,
        provenance=_provenance(counts, curve, options),
    )


def _covariance(fitted: Fitted, options: Options) -> tuple[Floats, float]:
    used = len(np.unique(np.concatenate([b.bucket for b in fitted.likelihood.blocks])))
    if options.errors == "model":
        return model_covariance(fitted.fit), np.inf
    if used < 2:
        raise NotIdentified(
            "All comparisons come from one bucket of queries, so errors cannot be told from them. "
            "Add queries, or use errors='model' and take it that clicks are independent."
        )
    if options.errors == "bootstrap":
        drawn = bootstrap(fitted.fit, fitted.likelihood, options.samples, options.seed)
        return np.atleast_2d(np.cov(drawn, rowvar=False)), float(used - 1)
    return bucket_covariance(fitted.fit, fitted.likelihood), float(used - 1)


def _extrapolate(
    curve: Curve, ranks: NDArray[np.int32], basis: Floats, to: int
) -> tuple[NDArray[np.int32], Floats]:
    """The last stretch of a log-log curve, drawn on."""
    if [part.name for part in curve.parts] != ["loglog"]:
        raise BadOption("Only a loglog curve can be drawn on beyond its data (extrapolate_to).")
    knots = curve.parts[0].numbers
    more = np.arange(ranks[-1] + 1, to + 1, dtype=np.int32)
    share = np.log(more / knots[-2]) / np.log(knots[-1] / knots[-2])
    beyond = np.zeros((len(more), basis.shape[1]))
    beyond[:, -2], beyond[:, -1] = 1 - share, share
    return np.concatenate([ranks, more]), np.concatenate([basis, beyond])


def supported_ranks(fitted: Fitted) -> NDArray[np.bool_]:
    """Ranks with enough clicks won and lost, in enough buckets, for what is estimated there.

    On a curve a rank shares the evidence of the ranks that its parameters serve.
    """
    terms = fitted.likelihood
    size = terms.size
    won = np.zeros((terms.buckets, size))
    lost = np.zeros((terms.buckets, size))
    for block in terms.blocks:
        start = (block.bucket * size)[:, None]
        flat = terms.buckets * size
        won += np.bincount(
            block.bucket * size + block.clicked, weights=block.weight, minlength=flat
        ).reshape(won.shape)
        other = block.shown != block.clicked[:, None]
        weight = np.broadcast_to(block.weight[:, None], other.shape)[other]
        at = (start + block.shown)[other]
        lost += np.bincount(at, weights=weight, minlength=flat).reshape(lost.shape)
    serves = fitted.fit.basis > 0
    enough_at = []
    for evidence in (won, lost):
        by_parameter = evidence @ serves
        enough_at.append(by_parameter.sum(axis=0) >= ENOUGH_CLICKS)
        enough_at.append((by_parameter > 0).sum(axis=0) >= min(ENOUGH_BUCKETS, terms.buckets))
    enough = np.logical_and.reduce(enough_at)
    return np.asarray((~serves | enough[None, :]).all(axis=1))


def _behind(
    counts: Counts, ranks: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs shown at each rank, and the clicks they got there."""
    size = max(int(ranks[-1]), counts.max_rank) + 1
    shown = counts.pairs.shown
    rank = shown >> 1
    first = np.ones(rank.shape, bool)
    first[:, 1:] = rank[:, 1:] != rank[:, :-1]
    n = np.broadcast_to(counts.pairs.pairs[:, None], rank.shape)
    pairs = np.bincount(rank[first], weights=n[first], minlength=size)
    clicks = np.bincount(rank.ravel(), weights=(n * (shown & 1)).ravel(), minlength=size)
    weight = counts.comparisons.weight / 2**32
    clicks += np.bincount(counts.comparisons.clicked, weights=weight, minlength=size)
    return (
        np.rint(pairs[ranks]).astype(np.int64),
        np.rint(clicks[ranks]).astype(np.int64),
    )


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
