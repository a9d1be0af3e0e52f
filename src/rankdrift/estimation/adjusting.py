"""Curves corrected for why docs moved: by the old ranker's score, or by the arms of an A/B test.
(`trusting` corrects for clicks that need no relevance.)

A doc that moves up because it got better for this user or at this hour is clicked more at the top
for two reasons, and the plain curve takes both for attention. With the score in the log the choice
among a pair's appearances is

    P ∝ exp(theta_rank + gamma · score + tau · time)

and theta is free of what the score knows. Time must be in: where all docs that move get better over
the day, score and time go together. With two rankers in the log, who of them answered a search was
decided by a lot, so that relevance is the same under both: for every pair and day

    E Σ (click / p_rank) · (h_arm − mean h) = 0,   h_arm the arm's usual log rank of the doc

with h from other days, so that nothing of the day itself is in it. One number is found by that: how
much steeper or flatter than plain the curve is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.rank_blocks import HALF_OCTAVES
from rankdrift.core.registry import Registry
from rankdrift.core.types import Floats
from rankdrift.core.words import many, verb
from rankdrift.counts.counts import UNIT, Counts
from rankdrift.estimation.comparisons import (
    ACROSS,
    LATE,
    LOG2,
    MIDDLE,
    TIMES,
    Comparisons,
    split_comparisons,
)
from rankdrift.estimation.correction import Correction
from rankdrift.estimation.covariance import bucket_influence
from rankdrift.estimation.curves import hats
from rankdrift.estimation.fitting import Fitted
from rankdrift.estimation.score_test import KNOTS, blended_test, fit_logistic, tested
from rankdrift.estimation.trusting import by_trust

FACTOR, BASE = 1.37, 4.0
"""How the harvest codes sizes of differences of scores: see `rankdrift.counts.tables.Splits`."""
FURTHEST = 8.0
"""Differences of scores count up to so many times their root mean square."""
OTHER_SCALE = 2.0
"""So many times as far from what ranks say as scores of one ranker are, those of two are on two
scales."""
ENOUGH_CLICKS = 100.0
STRONG, STEEPEST = 4.0, 3.0
"""How surely rankers must place docs differently, in standard errors; and the largest slope that
is believed."""
WITHIN = 0.5
"""Docs count whose usual rank is within this share of the deepest."""


def by_score(counts: Counts, plain: Fitted, reference: int) -> Correction:
    """What the old ranker's score and the time say."""
    rows = on_one_scale(split_comparisons(counts, "score"))
    scored = rows.clicks if (rows.group % ACROSS // TIMES != MIDDLE).any() else 0.0
    if scored < ENOUGH_CLICKS:
        raise NotIdentified(_lacking(counts, "score", scored))
    ranks, theta = plain.likelihood.ranks, plain.fit.theta
    at, rival = _places(rows, int(ranks[-1]))
    logs = np.log(ranks.astype(float))
    offset = _expected(rows, plain, np.interp(at, logs, theta) - np.interp(rival, logs, theta))
    inside = [k for k in KNOTS if k < ranks[-1]]
    knots = np.log(np.array([*inside, ranks[-1]], float))
    curve = (hats(at, knots) - hats(rival, knots))[:, 1:]
    without = fit_logistic(rows, curve, offset)
    reasons = score_and_time(rows)
    with_ = fit_logistic(rows, np.concatenate([curve, reasons], axis=1), offset)
    free = curve.shape[1]
    onto = hats(logs, knots)[:, 1:]
    onto = onto - onto[int(np.searchsorted(ranks, reference))]
    change = with_.phi[:free] - without.phi
    moved = with_.influence(rows)[:, :free] - without.influence(rows)
    by_time = fit_logistic(rows, np.concatenate([curve, reasons[:, 1:]], axis=1), offset)
    matters = tested(rows, by_time, reasons[:, :1])
    return Correction(ranks, onto @ change, moved @ onto.T, matters.p_value, rows.clicks)


def on_one_scale(rows: Comparisons) -> Comparisons:
    """Without contests of scores that two rankers gave, if these are on two scales.

    A score that is higher goes with a rank that is, by about as much under one ranker as under
    another; what ranks leave unexplained tells scales apart, and no click has a part in it.
    """
    across = rows.group >= ACROSS
    if across.all() or not across.any():
        return rows
    apart, deeper = scores_apart(rows), -rows.away
    left = []
    for part in (~across, across):
        weight, x, y = rows.weight[part], deeper[part], apart[part]
        slope = (weight * x * y).sum() / max((weight * x**2).sum(), 1e-300)
        left.append(float(np.average((y - slope * x) ** 2, weights=weight)))
    return rows.take(~across) if left[1] > OTHER_SCALE**2 * left[0] else rows


def scores_apart(rows: Comparisons) -> Floats:
    """(C,): the score of the clicked less that of the other."""
    score = rows.group % ACROSS // TIMES - MIDDLE
    size = rows.value * BASE ** (np.abs(score) - MIDDLE / 2) / FACTOR
    return np.where(score == 0, 0.0, np.sign(score) * size)


def score_and_time(rows: Comparisons) -> Floats:
    """(C, 1 + LATE): the difference of scores in units of its root mean square, and of times:
    beyond an hour, beyond six, beyond a day."""
    apart, time = scores_apart(rows), rows.group % TIMES - LATE
    unit = float(np.sqrt(np.average(apart**2, weights=rows.weight))) or 1.0
    apart = np.clip(apart / unit, -FURTHEST, FURTHEST)
    late = np.sign(time)[:, None] * (np.abs(time)[:, None] > np.arange(LATE))
    return np.concatenate([apart[:, None], late], axis=1)


def _places(rows: Comparisons, deepest: int) -> tuple[Floats, Floats]:
    """(C,) each: the log rank of the clicked and of the other, about: the middles of their blocks,
    moved to be as far apart as they were."""
    first = np.array(HALF_OCTAVES, float)
    last = np.minimum(np.append(first[1:] - 1, first[-1]), deepest)
    middle = (np.log(first) + np.log(np.maximum(last, first))) / 2
    a, b = middle[rows.clicked], middle[rows.other]
    off = (-rows.away - (a - b)) / 2
    most = np.log(deepest)
    return np.clip(a + off, 0.0, most), np.clip(b - off, 0.0, most)


def _expected(rows: Comparisons, plain: Fitted, otherwise: Floats) -> Floats:
    """(C,): the log odds that the plain curve gives, the mean over contests of the same two blocks
    and a straight line in how far apart they were; `otherwise` where pairs have no such contests.

    Within a block the curve need not be straight: where results load in tens, its middle may be in
    a dip that few of its contests are in, and the score would make up for the difference.
    """
    ranks, theta = plain.likelihood.ranks, plain.fit.theta
    often = -plain.likelihood.at(theta).information()
    np.fill_diagonal(often, 0.0)
    often = np.maximum(often, 0.0)
    blocks = np.eye(len(HALF_OCTAVES))[np.searchsorted(HALF_OCTAVES, ranks, side="right") - 1]
    logs = np.log(ranks.astype(float))
    odds, apart = theta[:, None] - theta, logs[:, None] - logs
    of, of_odds, of_apart, of_square, of_both = (
        blocks.T @ (often * each) @ blocks
        for each in (np.ones_like(apart), odds, apart, apart**2, odds * apart)
    )
    some = of > 0
    of = np.where(some, of, 1.0)
    of_odds, of_apart = of_odds / of, of_apart / of
    spread = np.where(some, of_square / of - of_apart**2, 0.0)
    slope = (of_both / of - of_odds * of_apart) / np.where(spread > 1e-9, spread, np.inf)
    cell = rows.clicked, rows.other
    line = of_odds[cell] + slope[cell] * (-rows.away - of_apart[cell])
    return np.asarray(np.where(some[cell], line, otherwise))


def by_ranker(counts: Counts, plain: Fitted, reference: int) -> Correction:
    """What the arms of an A/B test say."""
    table = counts.splits.of("ranker")
    ranks, theta = plain.likelihood.ranks, plain.fit.theta
    # Where a page ends, docs of the deeper ranker are seen only when they are better than usual.
    inside = np.isin(table.clicked, ranks) & (2.0 ** (table.other / 2) <= ranks[-1] * WITHIN)
    table = table.take(inside)
    clicks = float(np.abs(table.weight).sum()) / UNIT
    if clicks < ENOUGH_CLICKS:
        raise NotIdentified(_lacking(counts, "ranker", clicks))
    place = np.searchsorted(ranks, table.clicked)
    # Clicks times how far down their arm is, (G, U, R) with U usual ranks.
    pull = np.zeros((counts.buckets, int(table.other.max()) + 1, len(ranks)))
    np.add.at(pull, (table.bucket, table.other, place), table.group * (table.weight / UNIT))
    logs = np.log(ranks.astype(float))
    usual = np.arange(pull.shape[1]) * LOG2 / 2
    far_from_usual = logs - usual[:, None]  # (U, R)
    # Weighted by the propensity at its usual rank, a click counts about once, wherever it is.
    level = theta - np.interp(usual, logs, theta)[:, None]
    by_theta = bucket_influence(plain.fit) @ plain.fit.basis.T  # (G, R)
    of_usual = np.stack([np.interp(usual, logs, row) for row in by_theta])  # (G, U)
    off = by_theta[:, None, :] - of_usual[:, :, None]  # (G, U, R)

    def at(slope: float) -> tuple[Floats, Floats]:
        """By bucket (G,): the sum that is to be 0, and how it changes with the slope."""
        worth = np.exp(-level - slope * far_from_usual)
        value = np.tensordot(pull, worth, 2) - np.tensordot(off, pull.sum(axis=0) * worth, 2)
        return value, -np.tensordot(pull, worth * far_from_usual, 2)

    slope = 0.0
    for _ in range(50):
        value, bend = at(slope)
        if abs(bend.sum()) < STRONG * _error(bend) or abs(slope) > STEEPEST:
            raise NotIdentified(
                "The rankers hardly place docs differently, so they cannot tell how steep the "
                f"curve is ({many(round(clicks), 'click')} under both). Use rankers that differ "
                "more, or add "
                "days."
            )
        step = float(np.clip(-value.sum() / bend.sum(), -0.5, 0.5))
        slope += step
        if abs(step) < 1e-10:
            break
    own = -value / bend.sum()
    # The sum at no slope has a known law even where docs hardly differ by ranker.
    none = at(0.0)[0]
    matters = blended_test(none[:, None], np.array([[float((none**2).sum())]]))
    far = logs - np.log(reference)
    return Correction(ranks, slope * far, own[:, None] * far, matters.p_value, clicks)


def _error(by_bucket: Floats) -> float:
    """The standard error of the sum of numbers of independent buckets (G,)."""
    some = by_bucket[by_bucket != 0]
    return float(np.sqrt(len(some) * some.var(ddof=1))) if len(some) > 1 else np.inf


def _lacking(counts: Counts, column: str, clicks: float) -> str:
    said = f"The curve cannot be adjusted by {column}:"
    if clicks:
        n = round(clicks)
        bear = f"{many(n, 'click')} {verb(n, 'bears', 'bear')}"
        return f"{said} only {bear} on it. Harvest more days at once."
    if counts.options.get(column):
        same = "at two ranks by two rankers" if column == "ranker" else "with two known scores"
        return f"{said} no clicked pair was shown {same}. Harvest several days at once."
    days = " and several days at once" if column == "ranker" else ""
    return (
        f"{said} the counts do not have it. Harvest a log with a {column} column{days} "
        f"(--{column} NAME)."
    )


@dataclass(frozen=True)
class Adjustment:
    """A way to correct the curve: its name, what it is in words, and the function that does it."""

    name: str
    words: str
    correction: Callable[[Counts, Fitted, int], Correction]


ADJUSTMENTS: Registry[Adjustment] = Registry("adjustment")
ADJUSTMENTS.register(Adjustment("score", "for the old ranker's score and time", by_score))
ADJUSTMENTS.register(Adjustment("ranker", "by the arms of an A/B test of rankers", by_ranker))
ADJUSTMENTS.register(Adjustment("trust", "for clicks that rank alone brings", by_trust))
