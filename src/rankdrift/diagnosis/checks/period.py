"""Do propensities repeat every so many ranks, as where results are loaded in batches?"""

from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.estimation.auto_curve import best_period


def check(data: Data) -> Finding:
    """The period that would say most beside the curve, if it pays by BIC."""
    period, gain = best_period(data.fitted.fit)
    numbers = {"period": period, "gain": gain}
    if period is None or gain <= 0:
        return Finding(Verdict.GOOD, "No further period in the curve.", numbers=numbers)
    return Finding(
        Verdict.CAUTION,
        f"Propensities repeat every {period} ranks (BIC better by {gain:.0f}): results seem to be "
        f"loaded or paged {period} at a time.",
        advice=f"Use --curve auto or --curve 'loglog + batch({period})'.",
        numbers=numbers,
    )


ASSUMPTIONS.register(
    Assumption(
        "period",
        "Is there no period that the curve does not have?",
        "nothing more",
        check,
        worst=Verdict.CAUTION,
    )
)
