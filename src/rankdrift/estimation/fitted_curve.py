"""Propensities of a fit: the curve at every rank, how sure it is, and the clicks behind it."""

from typing import Any

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.types import Clicks, Floats, Ints, Ranks
from rankdrift.core.version import __version__
from rankdrift.counts.counts import Counts
from rankdrift.estimation.adjusting import ADJUSTMENTS
from rankdrift.estimation.correction import Correction
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
from rankdrift.estimation.fitting import Fitted, Options
from rankdrift.estimation.newton import Fit
from rankdrift.propensities.propensities import Propensities


def to_propensities(counts: Counts, fitted: Fitted, options: Options) -> Propensities:
    """The propensities of a fit, with their uncertainty and what is behind each rank."""
    fit_, curve, terms = fitted.fit, fitted.curve, fitted.likelihood
    root, df = _root(fit_, options)
    deeper = np.arange(terms.ranks[-1] + 1, (options.extrapolate_to or 0) + 1, dtype=np.int32)
    ranks = np.concatenate([terms.ranks, deeper])
    supported = np.concatenate([fitted.supported, np.zeros(len(deeper), bool)])

    def drawn_on(curve: Curve) -> Floats:
        inside = curve.basis(terms.ranks)[:, 1:]
        return np.concatenate([inside, curve.beyond(deeper)[:, 1:]]) if len(deeper) else inside

    basis = drawn_on(curve) if len(deeper) else fit_.basis
    log_p, deviations = basis @ fit_.phi, basis @ root
    # A rival might have been chosen instead: how far it is from the curve is an error too.
    rivals = [
        np.sqrt(rival.chance) * (drawn_on(rival.curve) @ rival.phi - log_p)
        for rival in fitted.rivals
    ]
    trust = trust_error = None
    if options.adjust:
        found = ADJUSTMENTS.get(options.adjust).correction(counts, fitted, options.reference)
        log_p, deviations = _adjusted(log_p, deviations, found, fitted)
        trust, trust_error = _trust(found, fitted, len(deeper))
    deviations = np.column_stack([deviations, *rivals])
    if options.errors != "model" and not supported.all():
        # Where few buckets touch a rank, how they differ says little of its error, or nothing:
        # such a rank is no surer than by the model.
        won = np.concatenate([terms.wins, np.zeros(len(ranks) - terms.size)])
        least = np.zeros(len(ranks))
        least[~supported] = model_variance(fit_, (basis - won @ basis / won.sum())[~supported])
        deviations = no_less(deviations, least, won)
    place = int(np.searchsorted(ranks, options.reference))
    pairs, clicks = behind(counts, ranks, options.clicks)
    return Propensities(
        ranks=ranks,
        log_p=log_p - log_p[place],
        deviations=deviations - deviations[place],
        pairs=pairs,
        clicks=clicks,
        supported=supported,
        reference=options.reference,
        method=f"{curve}, {options.clicks}"
        + (f", adjusted {ADJUSTMENTS.get(options.adjust).words}" if options.adjust else ""),
        errors=options.errors,
        df=df,
        log_likelihood=fit_.log_likelihood,
        parameters=len(fit_.phi),
        gaps=fitted.gaps,
        trust=trust,
        trust_error=trust_error,
        provenance=_provenance(counts, curve, options),
    )


def _adjusted(
    log_p: Floats, deviations: Floats, found: Correction, fitted: Fitted
) -> tuple[Floats, Floats]:
    """log p (R,) corrected for why docs moved, and its deviations (R, N), bucket by bucket; ranks
    drawn on are corrected as the deepest that has data."""
    own = jackknife_root(found.influence[fitted.likelihood.touched])
    deeper = ((0, len(log_p) - len(found.shift)),)
    return (
        log_p + np.pad(found.shift, deeper, mode="edge"),
        deviations + np.pad(own, (*deeper, (0, 0)), mode="edge"),
    )


def _trust(found: Correction, fitted: Fitted, deeper: int) -> tuple[Floats | None, Floats | None]:
    """The clicks that need no relevance and their standard errors, (R,) each; deeper than all data
    there are none, as at the deepest rank."""
    if found.trust is None or found.trust_influence is None:
        return None, None
    root = jackknife_root(found.trust_influence[fitted.likelihood.touched])
    return np.pad(found.trust, (0, deeper)), np.pad(np.sqrt((root**2).sum(axis=1)), (0, deeper))


def _root(fit: Fit, options: Options) -> tuple[Floats, float]:
    """(F, N): columns whose outer products add up to the covariance of phi; degrees of freedom."""
    if options.errors == "model":
        return covariance_root(model_covariance(fit)), np.inf
    used = fit.likelihood.touched
    if len(used) < 2:
        raise NotIdentified(
            "All comparisons come from one bucket of queries, so errors cannot be estimated from "
            "how queries differ. Add queries, or use --errors model, which takes every click to be "
            "independent."
        )
    if options.errors == "bootstrap":
        drawn = bootstrap(fit, options.samples, options.seed)
        return covariance_root(np.atleast_2d(np.cov(drawn, rowvar=False))), float(len(used) - 1)
    return jackknife_root(bucket_influence(fit)[used]), float(len(used) - 1)


def behind(counts: Counts, ranks: Ranks, clicks: Clicks) -> tuple[Ints, Ints]:
    """Pairs used that were shown at each rank, and the clicks they got there."""
    used, overflow = counts.pairs, counts.overflow
    if clicks == "single":
        used, overflow = used.take(used.clicks == 1), overflow.take(overflow.single)
    size = max(int(ranks[-1]), counts.max_rank) + 1
    pairs, won = np.zeros(size), np.zeros(size)
    np.add.at(pairs, overflow.rank, overflow.pairs)
    np.add.at(won, overflow.rank, overflow.clicks)
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
        **({"adjust": options.adjust} if options.adjust else {}),
        **(
            {"samples": options.samples, "seed": options.seed}
            if options.errors == "bootstrap"
            else {}
        ),
        "counts": counts_provenance(counts),
    }


def counts_provenance(counts: Counts) -> dict[str, Any]:
    """What an estimate says of the counts that it was made of."""
    return {
        "version": counts.version,
        "sources": list(counts.sources),
        "days": list(counts.days),
        "options": dict(counts.options),
        "pairs": counts.n_pairs,
        "clicks": counts.n_clicks,
    }
