"""Have all queries one curve? What a query does on odd days it would do on even days again."""

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.types import Floats
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import chance_words, many, off_by
from rankdrift.diagnosis.agreement import ADD_DAYS, EXCLUDED, could_see
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Evidence, Finding
from rankdrift.estimation.comparisons import block_scale, split_comparisons
from rankdrift.estimation.score_test import fit_logistic, pooled_design

# Queries with another curve put the mean off as far as they are also clicked more: by half of how
# far they differ, at the most.
SHARE = 0.5
WANTED = "Count several days in one harvest, or merge counts of days."


def check(data: Data) -> Finding:
    """The scores of a query's slope on odd and on even days, multiplied and added up: chance has
    the mean 0, queries with curves of their own do not."""
    from scipy.special import stdtr

    rows = split_comparisons(data.pooled, "queries")
    if len(np.unique(rows.group)) < 2:
        raise NotIdentified("a query must be seen on odd and on even days.")
    scale = block_scale(rows)
    if len(scale) < 2:
        raise NotIdentified(f"{many(round(rows.clicks), 'click')}: too few to tell queries apart.")
    fit = fit_logistic(rows, pooled_design(rows, scale))
    slope = -rows.away
    bend = fit.chance * (1 - fit.chance) * slope**2
    scores, known = (
        [(rows.by_bucket * (rows.group == day)) @ each for day in (0, 1)]
        for each in ((1 - fit.chance) * slope, bend)
    )
    # The pooled curve takes a little of every query's own.
    product = scores[0] * scores[1] + known[0] * known[1] / max(float(sum(known).sum()), 1e-300)
    together = within_queries(*known)
    total, square = float(product.sum()), float((product**2).sum())
    if not square > 0 or not together > 0:
        raise NotIdentified("no query was seen on odd and on even days.")
    effective = square**2 / float((product**4).sum())
    p_value = float(stdtr(max(effective, 1.0), -total / np.sqrt(square)))
    logs = np.log(np.arange(1, int(scale.last[-1]) + 1))
    depth = float((logs - scale.centre[0]).mean())
    size = float(np.expm1(np.sqrt(max(total / together, 0.0)) * depth))
    noise = float(np.sqrt(np.sqrt(square) / together) * depth)
    most = np.sqrt((max(total, 0.0) + EXCLUDED * np.sqrt(square)) / together) * depth
    chance = chance_words(p_value)
    return Finding(
        None,
        f"Curves of queries differ by no more than chance ({chance}); {could_see(noise)}.",
        alarm=f"Queries have curves of their own ({chance}): their standard deviation is "
        f"{off_by(size)} at a typical rank. Where those with another curve are also clicked more, "
        "the mean is off.",
        advice="Split the log by kind of query (--segment), such as names of brands against "
        "descriptions, and compare the curves.",
        wanted=ADD_DAYS,
        evidence=Evidence(p_value, size, SHARE * float(most)),
        numbers={
            "p_value": p_value,
            "beyond_noise": size,
            "noise": noise,
            "statistic": total / float(np.sqrt(square)),
            "queries": int((product != 0).sum()),
        },
    )


def within_queries(odd: Floats, even: Floats) -> float:
    """The sum over queries of a query's share of `odd` times that of `even`, given sums over the
    queries of each bucket (G,).

    A bucket holds many queries where a log has many, and the product of its sums has those of two
    different queries in it. Two queries are as likely to be in one bucket as in two that stand side
    by side: with the one taken off the other, such products are gone in the mean.

    Parameters
    ----------
    odd, even
        Of the days that are odd and even.
    """
    odd, even = (np.resize(np.append(each, 0.0), len(each) + len(each) % 2) for each in (odd, even))
    return float((np.diff(odd.reshape(-1, 2)) * np.diff(even.reshape(-1, 2))).sum())


ASSUMPTIONS.register(
    Assumption(
        "queries",
        "Have all queries one curve?",
        "queries seen on several days",
        check,
        worst=Verdict.CAUTION,
        wanted=WANTED,
    )
)
