"""How far two estimates of one curve are apart, how surely, and what that usually means."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankdrift.core.notebook import brief
from rankdrift.core.rank_blocks import ONE_TWO_FIVE, block_of, block_weights
from rankdrift.core.types import Bools, Floats, Indices, Ranks
from rankdrift.core.verdicts import Agreement
from rankdrift.core.words import ranges
from rankdrift.diagnosis.agreement import percent_above
from rankdrift.methods.method import Estimate, Kind
from rankdrift.propensities.intervals import simultaneous_quantile, t_quantile

THIN = (
    "There is no rank but the reference at which both have enough clicks: add days, or compare "
    "fewer ranks (--max-rank)."
)
# Where the mean difference is not known better than to this factor, agreement says little.
TOO_WIDE = np.log(1.2)
MOST = 0.8  # of the ranks of a block


@dataclass(frozen=True)
class Distance:
    """How far the curve `first` is above the curve `second`, relative to one rank.

    Over the ranks that both support, in blocks in which most are; if that is the reference alone,
    over those that both have, and without an interval.

    Attributes
    ----------
    first, second
        Names of the methods.
    relative_to
        The rank whose propensity is 1 in both.
    ranks
        Those compared, in words.
    mean_percent, low, high
        The mean over ranks of the difference of log p, weighted by clicks, as a percentage, with
        its interval; None where no joint error is known.
    max_percent, max_rank
        The largest difference of one rank, and which.
    verdict
        They "differ" if there are blocks in `differs_at` or if the mean is not 0, each at half the
        risk; they "agree" if the mean may be 0 and is known to 20%; else one "cannot tell".
    differs_at
        Blocks of ranks where the band of all blocks' differences excludes 0, in words.
    meaning
        What that usually means.
    """

    first: str
    second: str
    relative_to: int
    ranks: str
    mean_percent: float
    low: float | None
    high: float | None
    max_percent: float
    max_rank: int
    verdict: Agreement
    differs_at: str
    meaning: str

    def __repr__(self) -> str:
        apart = f"{self.mean_percent:+.1f}% on average over ranks {self.ranks}"
        return brief(self, f"{self.first} and {self.second}: {self.verdict.value}", apart)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**vars(self), "verdict": self.verdict.value}


def measure(a: Estimate, b: Estimate, level: float) -> Distance | None:
    """How far `a` is above `b`, with intervals at `level` that know of the clicks both rest on.

    None where they have no two ranks in common.
    """
    shared = _well_known(a, b)
    thin = len(shared) < 2
    if thin:
        shared = np.intersect1d(a.curve.ranks, b.curve.ranks)
    unit = a.curve.reference
    if len(shared) < 2 or unit not in shared or unit not in b.curve.ranks:
        return None
    in_a, in_b = np.searchsorted(a.curve.ranks, shared), np.searchsorted(b.curve.ranks, shared)
    apart = a.curve.log_p[in_a] - b.curve.log_p[in_b]
    place = int(np.searchsorted(shared, unit))
    apart = apart - apart[place]
    weight = (a.curve.clicks[in_a] + b.curve.clicks[in_b]).astype(float)
    weight[place] = 0.0
    weight = weight / weight.sum() if weight.any() else (shared != unit) / (len(shared) - 1)
    mean = float(weight @ apart)
    worst = int(np.abs(apart).argmax())
    low = high = None
    verdict, differs = Agreement.CANNOT_TELL, ""
    joint = None if thin else _joint_deviations(a, b, in_a, in_b, place)
    if joint is not None:
        deviations, df = joint
        error = float(np.sqrt(((weight @ deviations) ** 2).sum()))
        reach = t_quantile(level, df) * error
        low, high = percent_above(mean - reach), percent_above(mean + reach)
        half = (1 + level) / 2  # two chances to differ, each with half the risk of being wrong
        block = block_weights(shared, weight)
        outside = _outside(block @ apart, block @ deviations, half, df)
        differs = "; ".join(ranges(shared[of > 0].tolist()) for of in block[outside])
        if outside.any() or abs(mean) > t_quantile(half, df) * error:
            verdict = Agreement.DIFFER
        elif abs(mean) <= reach <= TOO_WIDE:
            verdict = Agreement.AGREE
    return Distance(
        first=a.name,
        second=b.name,
        relative_to=unit,
        ranks=ranges(shared.tolist()),
        mean_percent=percent_above(mean),
        low=low,
        high=high,
        max_percent=percent_above(float(apart[worst])),
        max_rank=int(shared[worst]),
        verdict=verdict,
        differs_at=differs,
        meaning=THIN if thin else meaning(a, b, mean, verdict),
    )


def _well_known(a: Estimate, b: Estimate) -> Ranks:
    """The ranks that both know, in blocks where these are most. Where they are not, those that
    happened to get clicks are known and the others are not: by itself that puts what follows the
    clicks of each rank above what is smooth."""
    known = np.intersect1d(a.curve.ranks[_known(a)], b.curve.ranks[_known(b)])
    ranks = np.union1d(a.curve.ranks, b.curve.ranks)
    of = block_of(ranks, ONE_TWO_FIVE)
    there = np.isin(ranks, known)
    share = np.bincount(of, there) / np.maximum(np.bincount(of), 1)
    return ranks[there & ((share >= MOST)[of] | np.isin(ranks, [a.curve.reference]))]


def _known(estimate: Estimate) -> Bools:
    """(R,): supported, or the reference."""
    curve = estimate.curve
    return np.asarray(curve.supported | (curve.ranks == curve.reference))


def _outside(apart: Floats, deviations: Floats, level: float, df: float) -> Bools:
    """(B,): whether the band of all differences at once excludes 0."""
    error = np.sqrt((deviations**2).sum(axis=1))
    if not error.any():
        return np.zeros(len(apart), bool)
    reach = simultaneous_quantile(deviations, error, level, df)
    return np.asarray(np.abs(apart) > reach * error + 1e-12)


def _joint_deviations(
    a: Estimate, b: Estimate, in_a: Indices, in_b: Indices, place: int
) -> tuple[Floats, float] | None:
    """Deviations of the difference at the shared ranks, relative to the unit, and df.

    The two curves come from the same clicks: buckets of queries that move one move the other.
    """
    df = min(a.curve.df, b.curve.df)
    if a.by_bucket is not None and b.by_bucket is not None:
        off = a.by_bucket[in_a] - b.by_bucket[in_b]
    elif (drawn := _of_one_bootstrap(a, b)) is not None:
        off = drawn[0][in_a] - drawn[1][in_b]
    elif "none" in (a.curve.errors, b.curve.errors):
        return None
    else:  # as if from different clicks
        off = np.concatenate([a.curve.deviations[in_a], -b.curve.deviations[in_b]], axis=1)
    return off - off[place], df


def _of_one_bootstrap(a: Estimate, b: Estimate) -> tuple[Floats, Floats] | None:
    """Both as samples of one bootstrap; that of a jackknife follows from its buckets."""
    weights = a.weights if a.weights is not None else b.weights
    if weights is None:
        return None
    found = []
    for estimate in (a, b):
        if estimate.drawn is not None:
            found.append(estimate.drawn)
        elif estimate.by_bucket is not None:
            scaled = (weights - weights.mean(axis=0)) / np.sqrt(len(weights) - 1)
            # Leaving a bucket out moves the curve the other way than weighting it up.
            found.append(-estimate.by_bucket @ scaled.T)
        else:
            return None
    return found[0], found[1]


# -- in words --------------------------------------------------------------------------------------


def meaning(a: Estimate, b: Estimate, mean: float, verdict: Agreement) -> str:
    """What it usually means that `a` is `mean` (of log p) above `b`, or that they agree."""
    if a.kind.place > b.kind.place:
        a, b, mean = b, a, -mean
    if verdict == Agreement.CANNOT_TELL:
        return _unsure(a, b)
    if b.kind == Kind.CLICK_RATES:
        return _against_ctr(a, mean, verdict)
    if Kind.COMBINED in (a.kind, b.kind) and {a.kind, b.kind} & {Kind.EXPERIMENT, Kind.DRIFT}:
        both, part = (a, b) if a.kind == Kind.COMBINED else (b, a)
        return (
            f"{both.name} rests on the clicks of {part.name} and on others: where the two differ, "
            "so do the experiment and the drift, and that comparison is the one to read."
        )
    if verdict == Agreement.AGREE:
        both_moved = a.kind.same_relevance and b.kind.same_relevance
        if both_moved or a.kind == b.kind == Kind.FEATURES:
            return "They share an assumption, so this is one witness heard twice."
        return "They assume different things, so agreement speaks for both."
    if a.kind == Kind.EXPERIMENT:
        return (
            f"The experiment assumes least. Trust it where its slice is like the rest of the "
            f"traffic; then what {b.name} assumes does not hold here."
        )
    if b.kind == Kind.PAIRS:
        return (
            f"{b.name} fits a relevance to the few clicks of every pair and comes out too flat "
            "unless pairs were shown many times. It says little here."
        )
    if a.kind == b.kind == Kind.FEATURES:
        return (
            f"{a.name} and {b.name} assume the same of features and learn from them differently: "
            "what chance and the size of their trees do is as large as this. Set either beside "
            "an estimate that needs no features, such as auto."
        )
    if b.kind == Kind.FEATURES:
        return _against_em(a, b, mean)
    if a.kind == b.kind == Kind.DRIFT:
        return (
            "Same clicks, another shape: the knots of the one may not follow what the other shows "
            f"rank by rank. {_better_shape(a, b)}"
        )
    return (
        "Both rest on pairs that moved, but weigh them differently: relevance that changes along "
        "with the rank (stock, price, freshness), or dependence on what else is shown, hits them "
        "differently. See `rankdrift diagnose`."
    )


def _unsure(a: Estimate, b: Estimate) -> str:
    unknown = [e.name for e in (a, b) if e.curve.errors == "none"]
    if unknown:
        return (
            f"How sure {' and '.join(unknown)} can be is not known, for no refits were made "
            "(--bootstrap 10)."
        )
    return (
        "Too few clicks to tell them apart or together: add days, or compare fewer ranks "
        "(--max-rank)."
    )


def _against_ctr(a: Estimate, mean: float, verdict: Agreement) -> str:
    if verdict == Agreement.AGREE:
        return (
            f"{a.name} is no different from plain click rates: either results are equally relevant "
            f"at every rank (as if in random order), or {a.name} did not take relevance out."
        )
    if mean > 0:
        return (
            "Click rates fall faster: better results are shown higher, which is the ranker's merit "
            "and not the rank's. Weights made of click rates would be too large deep down."
        )
    return (
        f"Click rates fall more slowly than {a.name}: results deep down are shown to people who "
        "look on, or searches that reach there are of another kind. Compare them by segment."
    )


def _against_em(a: Estimate, b: Estimate, mean: float) -> str:
    if mean > 0:
        return (
            f"{b.name} is lower: the ranker knows more of relevance than the features tell, or its "
            "trees are too few to learn it, and what they cannot explain is put down to the rank. "
            "Add the ranker's own features, or try more trees (in Python)."
        )
    return (
        f"{b.name} is higher: features that go with the rank (the ranker's score, past clicks) "
        "explain as relevance what the rank did, or its trees are so many that they take chance "
        "for relevance. Leave such features out, or try fewer trees (in Python)."
    )


def _better_shape(a: Estimate, b: Estimate) -> str:
    if "auto" in (a.name, b.name):
        return "The check 'curve' of `rankdrift diagnose` says whether auto misses something."
    return "Try auto, which looks for the shape, or a periodic part."
