"""Do clicks go between blocks of ranks as the model says? Observed against expected wins."""

from typing import Any

import numpy as np

from rankdrift.core.rank_blocks import DOUBLING, block_of
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import ranges
from rankdrift.diagnosis.agreement import LIKELY, SURE
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.estimation.fitting import Fitted
from rankdrift.estimation.hotelling import hotelling
from rankdrift.estimation.likelihood import shares

FAR = 0.03  # of the clicks between two blocks: a share off by more is serious
_ENOUGH = 50  # comparisons between two blocks
_BLOCKS = len(DOUBLING)


def check(data: Data) -> Finding:
    """Wins between every two blocks of ranks, all at once."""
    numbers, between = _misfit(data.fitted)
    if between is None:
        return Finding(Verdict.UNKNOWN, "Too few comparisons between blocks of ranks.", "Add days.")
    p_value = numbers["p_value"]
    far = abs(numbers["observed"] - numbers["expected"]) > FAR
    verdict = Verdict.CAUTION if p_value < LIKELY else Verdict.GOOD
    if p_value < SURE and far:
        verdict = Verdict.SERIOUS
    deepest = int(data.fitted.likelihood.ranks[-1])
    first, second = (_name(block, deepest) for block in between)
    fits = "fit" if verdict == Verdict.GOOD else "do not fit"
    words = (
        f"Wins between blocks of ranks {fits} the model (p = {p_value:.2g}); furthest off are "
        f"ranks {first} against {second}: {numbers['observed']:.1%} of clicks on the former, "
        f"{numbers['expected']:.1%} expected."
    )
    advice = (
        "Try curve='auto' or 'direct'; if the misfit stays, the position-based model itself is in "
        "doubt: split by segment, or filter more (--same, --where)."
    )
    return Finding(verdict, words, advice if verdict != Verdict.GOOD else "", numbers)


def _misfit(fitted: Fitted) -> tuple[dict[str, Any], tuple[int, int] | None]:
    """Hotelling's test of all wins at once, and the two blocks that are furthest off; none where
    there are too few comparisons."""
    theta, terms, basis = fitted.fit.theta, fitted.likelihood, fitted.fit.basis
    in_block, cells = block_of(terms.ranks, DOUBLING), _BLOCKS**2
    residual = np.zeros((terms.buckets, cells))
    expected = np.zeros(cells)
    weight = np.zeros(cells)
    slope = np.zeros((cells, len(fitted.fit.phi)))
    for block in terms.blocks:
        if len(block.shown) != 2:
            continue
        share = shares(block.shown, theta)[0]
        first, second = block.shown
        cell = in_block[first] * _BLOCKS + in_block[second]
        np.add.at(residual, (block.bucket, cell), block.won[0] - block.weight * share)
        expected += np.bincount(cell, weights=block.weight * share, minlength=cells)
        weight += np.bincount(cell, weights=block.weight, minlength=cells)
        change = (block.weight * share * (1 - share))[:, None] * (basis[first] - basis[second])
        np.add.at(slope, cell, change)
    scores = terms.bucket_scores(theta) @ basis
    adjusted = residual - scores @ np.linalg.solve(fitted.fit.information, slope.T)
    # Two blocks that a parameter is there for alone fit exactly, and what is left is rounding.
    free = (adjusted**2).sum(axis=0) > 1e-9 * (residual**2).sum(axis=0)
    used = (weight >= _ENOUGH) & free
    if used.sum() < 2:
        return {}, None
    total = residual.sum(axis=0)
    by_bucket = adjusted[terms.touched][:, used]
    statistic, df, df_error, p_value = hotelling(
        total[used], len(by_bucket) * np.cov(by_bucket, rowvar=False), len(by_bucket)
    )
    off = total[used] / weight[used]
    worst = int(np.argmax(np.abs(off) * np.sqrt(weight[used])))
    numbers = {
        "statistic": statistic,
        "df": df,
        "df_error": df_error,
        "p_value": p_value,
        "observed": float((total[used] + expected[used])[worst] / weight[used][worst]),
        "expected": float(expected[used][worst] / weight[used][worst]),
    }
    return numbers, divmod(int(np.flatnonzero(used)[worst]), _BLOCKS)


def _name(block: int, deepest: int) -> str:
    first, last = DOUBLING[block]
    return ranges(range(first, min(last, deepest) + 1))


ASSUMPTIONS.register(
    Assumption(
        "fit",
        "Do clicks go between blocks of ranks as the model says?",
        "50 comparisons between two blocks of ranks, for two such pairs of blocks",
        check,
    )
)
