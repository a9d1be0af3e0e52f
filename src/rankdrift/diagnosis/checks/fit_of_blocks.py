"""Do clicks go between blocks of ranks as the model says? Observed against expected wins."""

from typing import Any

import numpy as np

from rankdrift.core.rank_blocks import DOUBLING, block_of
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import chance_words, named_ranks
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Evidence, Finding
from rankdrift.estimation.fitting import Fitted
from rankdrift.estimation.likelihood import shares
from rankdrift.estimation.score_test import blended_test

_ENOUGH = 50  # comparisons between two blocks
_BLOCKS = len(DOUBLING)


def check(data: Data) -> Finding:
    """Wins between every two blocks of ranks, all at once."""
    numbers, between = _misfit(data.fitted)
    if between is None:
        return Finding(
            Verdict.CANNOT_TELL, "Too few clicks between blocks of ranks.", wanted="Add days."
        )
    deepest = int(data.fitted.likelihood.ranks[-1])
    first, second = (_name(block, deepest) for block in between)
    pairs = f"are {first} against {second}"
    former = "the former"
    if first == second:
        pairs, former = f"is the higher of two ranks within {first}", "it"
    chance = chance_words(numbers["p_value"])
    where = (
        f"; furthest off {pairs}: {numbers['observed']:.1%} of clicks on {former}, "
        f"{numbers['expected']:.1%} expected."
    )
    return Finding(
        None,
        f"Wins between blocks of ranks fit the model ({chance}){where}",
        alarm=f"Wins between blocks of ranks do not fit the model ({chance}){where}",
        advice="No curve fits such wins: users are not one kind, or clicks are not about rank "
        "alone. Split by segment, or filter more (--same, --where).",
        evidence=Evidence(numbers["p_value"], numbers["beyond_noise"]),
        numbers=numbers,
    )


def _misfit(fitted: Fitted) -> tuple[dict[str, Any], tuple[int, int] | None]:
    """The test of all wins at once, and the two blocks that are furthest off; none where there are
    too few comparisons."""
    theta, terms, basis = fitted.fit.theta, fitted.likelihood, fitted.fit.basis
    in_block, cells = block_of(terms.ranks, DOUBLING), _BLOCKS**2
    residual = np.zeros((terms.buckets, cells))
    expected, weight, spread = np.zeros(cells), np.zeros(cells), np.zeros(cells)
    slope = np.zeros((cells, len(fitted.fit.phi)))
    for block in terms.blocks:
        if len(block.shown) != 2:
            continue
        share = shares(block.shown, theta)[0]
        first, second = block.shown
        cell = in_block[first] * _BLOCKS + in_block[second]
        bend = block.weight * share * (1 - share)
        np.add.at(residual, (block.bucket, cell), block.won[0] - block.weight * share)
        expected += np.bincount(cell, weights=block.weight * share, minlength=cells)
        weight += np.bincount(cell, weights=block.weight, minlength=cells)
        spread += np.bincount(cell, weights=bend, minlength=cells)
        np.add.at(slope, cell, bend[:, None] * (basis[first] - basis[second]))
    along = np.linalg.solve(fitted.fit.information, slope.T)
    adjusted = residual - terms.bucket_scores(theta) @ basis @ along
    model = np.diag(spread) - slope @ along
    # Two blocks that a parameter is there for alone fit exactly, and what is left is rounding.
    used = (weight >= _ENOUGH) & (np.diag(model) > 1e-6 * spread)
    if used.sum() < 2:
        return {}, None
    test = blended_test(adjusted[:, used], model[np.ix_(used, used)])
    total = residual.sum(axis=0)
    off = total[used] / weight[used]
    worst = int(np.argmax(np.abs(off) * np.sqrt(weight[used])))
    # The log odds between two blocks that wins are off by, less what noise would make of it.
    log_odds = total[used] / np.maximum(spread[used], 1e-300)
    excess = np.average(
        log_odds**2 - np.diag(model)[used] / np.maximum(spread[used], 1e-300) ** 2,
        weights=weight[used],
    )
    numbers = {
        "statistic": test.statistic,
        "df": test.df,
        "df_error": test.df_error,
        "p_value": test.p_value,
        "beyond_noise": float(np.expm1(np.sqrt(max(float(excess), 0.0)))),
        "observed": float((total[used] + expected[used])[worst] / weight[used][worst]),
        "expected": float(expected[used][worst] / weight[used][worst]),
    }
    return numbers, divmod(int(np.flatnonzero(used)[worst]), _BLOCKS)


def _name(block: int, deepest: int) -> str:
    first, last = DOUBLING[block]
    return named_ranks(range(first, min(last, deepest) + 1))


ASSUMPTIONS.register(
    Assumption(
        "fit",
        "Do clicks go between blocks of ranks as the model says?",
        "50 clicks between two blocks of ranks, for two such pairs of blocks",
        check,
    )
)
