"""The maximum of the likelihood for a curve, whether it was named or is chosen from the data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rankdrift.core.errors import NotConverged, NotIdentified, NoUsablePairs
from rankdrift.core.types import Bools, Clicks, Errors
from rankdrift.core.words import many, verb
from rankdrift.counts.counts import Counts
from rankdrift.estimation.auto_curve import Rival, choose_curve
from rankdrift.estimation.curves import Curve, Part
from rankdrift.estimation.curves import curve as parse_curve
from rankdrift.estimation.identification import (
    covered_ranks,
    refuse_empty_knots,
    supported_ranks,
)
from rankdrift.estimation.likelihood import Likelihood, likelihood_of
from rankdrift.estimation.newton import Fit, maximise


@dataclass(frozen=True)
class Options:
    """The options of `estimate` but `by`, with the same defaults."""

    curve: str | Curve = "auto"
    clicks: Clicks = "every"
    reference: int = 1
    errors: Errors = "buckets"
    samples: int = 1000
    seed: int = 0
    extrapolate_to: int | None = None
    adjust: str | None = None


@dataclass(frozen=True)
class Fitted:
    """A maximised likelihood, the curve that was used, and the ranks left out with the reason.

    Where the data chose the curve: its rivals, and the plain curve that choosing began with.
    """

    fit: Fit
    curve: Curve
    gaps: Mapping[int, str]
    rivals: tuple[Rival, ...] = ()
    began: "Fitted | None" = None

    @property
    def likelihood(self) -> Likelihood:
        """The terms that were fitted."""
        return self.fit.likelihood

    @property
    def supported(self) -> Bools:
        """(R,): ranks with enough clicks, in enough buckets, for what is estimated there."""
        return supported_ranks(self.likelihood, self.curve)


def fit(counts: Counts, options: Options) -> Fitted:
    """The fit of one curve to all of `counts`; NotIdentified or NotConverged if there is none."""
    curve = parse_curve(options.curve)
    if curve.is_auto:
        first = _fit_first(counts, options)
        choice = choose_curve(first.fit, first.curve)
        return Fitted(choice.fit, choice.curve, first.gaps, choice.rivals, first)
    terms = likelihood_of(counts, options.clicks)
    if not terms.blocks:
        raise NoUsablePairs(
            f"The counts hold no usable pair ({many(counts.funnel.rows, 'row')} "
            f"{verb(counts.funnel.rows, 'was', 'were')} read). A pair must "
            "appear at two ranks and get a click: see `rankdrift inspect`, or add days."
        )
    ranks, gaps = covered_ranks(counts, terms, curve, options.reference)
    if len(ranks) < terms.size:  # direct: a rank shown outside the block says nothing inside it
        terms = likelihood_of(counts.only(ranks), options.clicks, ranks)
    curve = curve.at(ranks)
    basis = curve.basis(ranks)[:, 1:]  # the constant is in the span and makes no difference
    try:
        return Fitted(maximise(terms, basis), curve, gaps)
    except NotConverged:
        refuse_empty_knots(terms, basis, curve)
        raise


def _fit_first(counts: Counts, options: Options) -> Fitted:
    """What choosing a curve begins with: the paper's knots, or where the data cannot bear them the
    ends and the middle."""
    try:
        return fit(counts, replace(options, curve="loglog"))
    except (NotConverged, NotIdentified):
        low, high = int(counts.ranks[0]), int(counts.ranks[-1])
        knots = tuple(sorted({low, round(float(np.sqrt(low * high))), high}))
        return fit(counts, replace(options, curve=Curve((Part("loglog", knots),))))
