"""Does the prior by which pairs at one rank are used say the same as pairs that moved?

The posterior rests on both, the plain curve on pairs that moved. If the column tells all that the
ranker knew of relevance, they differ by no more than the noise that the others take away.
"""

import numpy as np

from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import chance_words, off_by
from rankdrift.counts.counts import Counts
from rankdrift.diagnosis.agreement import could_see, percent_above, reach_of
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Evidence, Finding
from rankdrift.estimation.bayes.estimating import Options, estimate_posterior
from rankdrift.estimation.fitted_curve import to_propensities

LEAST = 0.25
"""Of the variance of the plain curve, what is granted to the difference at the least."""


def check(data: Data) -> Finding:
    """The posterior with the prior by the column against the plain curve."""
    plain = to_propensities(data.pooled, data.fitted, data.options)
    options = Options("column", reference=data.options.reference)
    found = estimate_posterior(data.pooled, options)
    shared = np.intersect1d(plain.ranks, found.ranks)
    here, there = (np.searchsorted(curve.ranks, shared) for curve in (plain, found))
    weight = np.where(shared == plain.reference, 0.0, plain.clicks[here].astype(float))
    weight /= weight.sum()
    mean = float(weight @ (found.log_p[there] - plain.log_p[here]))
    of_plain, of_found = (
        float(((weight @ curve.deviations[at]) ** 2).sum())
        for curve, at in ((plain, here), (found, there))
    )
    noise = float(np.sqrt(max(of_plain - of_found, LEAST * of_plain)))
    p_value = _two_sided(mean / noise)
    size = float(np.expm1(max(abs(mean) - noise, 0.0)))
    column = data.counts.options["singles"]["prior"]
    who = f"Pairs at one rank, by {column}, and pairs that moved"
    chance = chance_words(p_value)
    return Finding(
        None,
        f"{who}: no difference beyond chance ({chance}); {could_see(noise)}. With both, the error "
        f"of the curve is {np.sqrt(of_found / of_plain):.0%} of that of the plain one.",
        alarm=f"{who}: they differ ({chance}), by {off_by(size)} at a typical rank. The column "
        "does not tell all that the ranker knew of relevance.",
        advice="Do not estimate with --relevance column; the plain curve does not use it.",
        wanted="Add days: so little data cannot exclude a difference that matters.",
        evidence=Evidence(p_value, size, reach_of(mean, noise)),
        numbers={
            "p_value": p_value,
            "beyond_noise": size,
            "noise": noise,
            "percent": percent_above(mean),
            "ranks": shared.tolist(),
            "difference": (found.log_p[there] - plain.log_p[here]).tolist(),
            "error": np.sqrt(
                np.maximum(
                    plain.std_error[here] ** 2 - found.std_error[there] ** 2,
                    LEAST * plain.std_error[here] ** 2,
                )
            ).tolist(),
        },
    )


def _two_sided(z: float) -> float:
    from scipy.special import ndtr

    return float(2 * ndtr(-abs(z)))


def has_prior(counts: Counts) -> bool:
    """Whether pairs at one rank were counted by a column."""
    return bool(len(counts.singles) and counts.options.get("singles", {}).get("prior"))


ASSUMPTIONS.register(
    Assumption(
        "prior",
        "Does the column of --prior tell what the ranker knew of relevance?",
        "a harvest with --prior",
        check,
        asked_of=has_prior,
        worst=Verdict.GOOD,
    )
)
