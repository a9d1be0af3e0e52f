"""Are clicks so rare that the paper's likelihood, which drops their products, would do too?"""

import numpy as np

from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import off_by, percent
from rankdrift.diagnosis.agreement import MATTERS
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding


def check(data: Data) -> Finding:
    """How far pairs with a single click would be off, from the rates of clicks alone.

    Of a pair shown at two ranks with chances a and b of a click, one click falls on the first
    rather than the second with odds a (1 − b) / b (1 − a): off by log (1 − b) / (1 − a).
    """
    table = data.pooled.by_rank
    seen = (table.impressions > 0) & np.isin(table.rank, data.fitted.likelihood.ranks)
    rate = table.clicks[seen] / np.maximum(table.impressions[seen], 1)
    # Docs that were clicked, which are those compared, are clicked more than the mean doc.
    least = float(np.log1p(-np.minimum(rate.min(initial=1.0), 0.99)))
    top = float(rate.max(initial=0.0))
    off = float(np.expm1(least - np.log1p(-min(top, 0.99))))
    numbers = {"largest_rate": top, "beyond_noise": off}
    rank = int(table.rank[seen][int(rate.argmax())]) if len(rate) else 0
    if off <= MATTERS / 2:
        return Finding(
            Verdict.GOOD,
            f"At most {percent(top)} of results are clicked (rank {rank}).",
            numbers=numbers,
        )
    much = off_by(off) if off >= 1 else f"{off_by(off)} or more"
    return Finding(
        Verdict.CAUTION,
        f"Clicks are frequent: {top:.0%} of results at rank {rank}. The paper's likelihood, of "
        f"pairs with a single click, would be off by {much} at the top.",
        advice="Stay with --clicks every, the default, which does not need clicks to be rare.",
        numbers=numbers,
    )


ASSUMPTIONS.register(
    Assumption(
        "click probabilities",
        "Are clicks rare enough for the paper's likelihood?",
        "nothing more",
        check,
        worst=Verdict.GOOD,
    )
)
