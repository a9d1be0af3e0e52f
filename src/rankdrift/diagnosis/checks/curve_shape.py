"""Can the curve follow the propensities, or would one parameter a rank say more?"""

from dataclasses import replace

import numpy as np

from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.agreement import LIKELY, MATTERS, SURE
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.estimation.fitting import fit
from rankdrift.estimation.newton import maximise


def check(data: Data) -> Finding:
    """The likelihood ratio of one parameter a rank and the curve, over the same ranks."""
    from scipy.special import chdtrc

    base = data.fitted
    direct = fit(data.counts, replace(data.options, curve="direct"))
    inside = direct.likelihood.ranks
    basis = base.fit.basis[np.searchsorted(base.likelihood.ranks, inside)]
    curve = maximise(direct.likelihood, basis[:, basis.any(axis=0)])
    df = len(direct.fit.phi) - len(curve.phi)
    if df <= 0:
        return Finding(Verdict.GOOD, "The curve has a parameter for every rank.")
    gain = 2 * (direct.fit.log_likelihood - curve.log_likelihood)
    # Clicks of one pair are not independent: scale by how much more than the model they vary.
    scores = direct.likelihood.bucket_scores(direct.fit.theta)[:, 1:]
    variance = np.einsum("gi,gi->i", scores, scores)
    scale = float((variance / np.diag(direct.fit.information)).mean()) or 1.0
    scale = max(scale, 1.0)
    p_value = float(chdtrc(df, gain / scale))
    # Mean square, over all comparisons, of how differently the two fits compare their ranks.
    off = direct.fit.theta - curve.theta
    information = direct.likelihood.at(direct.fit.theta).information()
    excess = max(0.0, float(off @ information @ off) - df * scale)
    beyond = float(np.expm1(np.sqrt(excess / (0.5 * np.trace(information)))))
    numbers = {"statistic": gain, "df": df, "p_value": p_value, "beyond_noise": beyond}
    verdict = Verdict.CAUTION if p_value < LIKELY else Verdict.GOOD
    if p_value < SURE and beyond > MATTERS:
        verdict = Verdict.SERIOUS
    if verdict == Verdict.GOOD:
        words = f"One parameter a rank says no more than {base.curve} (p = {p_value:.2g})."
        return Finding(verdict, words, numbers=numbers)
    return Finding(
        verdict,
        f"One parameter a rank says more than {base.curve} (p = {p_value:.2g}): beyond noise they "
        f"differ by {beyond:.1%} in a typical comparison.",
        "The curve is too stiff: use curve='auto' or more knots.",
        numbers,
    )


ASSUMPTIONS.register(
    Assumption(
        "curve",
        "Does the curve say all that one parameter a rank would?",
        "ranks that can be compared one by one",
        check,
    )
)
