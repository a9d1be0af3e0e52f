"""A curve for users who click what stands at the top because it stands there (trust bias).

    P(click at rank r) = alpha_r z + beta_r = alpha_r (z + rho_r)

alpha is by how much relevance turns into clicks, beta the clicks that no relevance is needed for.
For two ranks a and b of a pair, whatever its z and however often it was shown,

    E[ alpha_b n_b (c_a − n_a beta_a) − alpha_a n_a (c_b − n_b beta_b) ] = 0

and so it is for sums over pairs with weights that do not depend on the day's clicks. Summed as they
are, such equations tell how steep alpha is; weighted by 1 / (relevance on other days), where docs
of little worth count more, they tell rho. Pairs without a click are among them.

What every doc is given at every rank cannot be told from what it is worth: rho is relative to the
deepest rank, where it is 0. A straight line in log rank joins a few knots of rho, and a few knots
of what alpha is off the plain curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.rank_blocks import fine_blocks
from rankdrift.core.types import Floats, Ints
from rankdrift.core.words import many
from rankdrift.counts.counts import UNIT, Counts
from rankdrift.estimation.correction import Correction
from rankdrift.estimation.covariance import bucket_influence, jackknife_covariance
from rankdrift.estimation.curves import hats
from rankdrift.estimation.fitting import Fitted

ALPHA_KNOTS = (1, 3, 8, 20, 50, 120, 300)
RHO_KNOTS = (1, 3, 10, 30, 100, 300)
STEPS, MIDDLE = 4.0, 16  # how the harvest codes relevance: see `rankdrift.counts.tables.Splits`
APART = 0.3  # of logarithms of ranks: no knot is nearer to the last
ENOUGH_CLICKS = 1000.0
FURTHEST = 1.0
"""The longest step of a logarithm of alpha, or of rho as a share of the mean relevance."""
ROUNDS = 100


@dataclass(frozen=True, eq=False)
class _Sums:
    """By bucket, clicks and shows (G, K, B, B): weighted sums of c_a n_b / (m − 1) and of
    n_a n_b / (m − 1) over pairs, by two blocks of ranks; K = 2 weights: 1, and 1 over relevance."""

    clicks: Floats
    shows: Floats
    log_rank: Floats


def by_trust(counts: Counts, plain: Fitted, reference: int) -> Correction:
    """What pairs say, clicked or not, by their docs' relevance on other days."""
    ranks, theta = plain.likelihood.ranks, plain.fit.theta
    sums = _sums(counts, int(ranks[-1]))
    at, logs = sums.log_rank, np.log(ranks.astype(float))

    def shapes(knots: tuple[int, ...]) -> tuple[Floats, Floats]:
        inside = [k for k in np.log(knots) if k < logs[-1] - APART]
        ends = np.array([*(inside or [logs[0]]), logs[-1]])
        return hats(at, ends), hats(logs, ends)

    (wide, onto), (deep, under) = shapes(ALPHA_KNOTS), shapes(RHO_KNOTS)
    wide, onto, deep, under = wide[:, 1:], onto[:, 1:], deep[:, :-1], under[:, :-1]
    offset = np.interp(at, logs, theta)
    found = _solve(sums, offset, wide, deep)
    # Without a bucket, the plain curve is another too.
    by_theta = bucket_influence(plain.fit) @ plain.fit.basis.T
    of_theta = np.stack([np.interp(at, logs, row) for row in by_theta])
    own = _Equations.at(sums, offset, wide, deep, found).influence(of_theta)
    free = wide.shape[1]
    alpha = np.exp(theta + onto @ found[:free])
    rho = under @ found[free:]
    by_alpha = by_theta + own[:, :free] @ onto.T
    onto = onto - onto[int(np.searchsorted(ranks, reference))]
    return Correction(
        ranks,
        onto @ found[:free],
        own[:, :free] @ onto.T,
        _p_value(found[free:], own[own.any(axis=1), free:]),
        float(counts.splits.of("trust").weight.sum() / UNIT),
        # The product does not depend on what alpha is relative to.
        trust=alpha * rho,
        trust_influence=alpha * (rho * by_alpha + own[:, free:] @ under.T),
    )


def _sums(counts: Counts, deepest: int) -> _Sums:
    table = counts.splits.of("trust")
    clicks = float(table.weight.sum()) / UNIT
    if clicks < ENOUGH_CLICKS or len(np.unique(table.group)) < 2:
        raise NotIdentified(_lacking(counts, clicks))
    firsts = fine_blocks(counts.max_rank)
    firsts = firsts[firsts <= deepest]
    lasts = np.minimum(np.append(firsts[1:] - 1, deepest), deepest)
    middle = (np.log(firsts) + np.log(lasts)) / 2
    table = table.take((table.clicked <= deepest) & (table.other <= deepest))
    a, b = (np.searchsorted(firsts, rank) for rank in (table.clicked, table.other))
    size = len(firsts)
    cell = (table.bucket.astype(np.int64) * size + a) * size + b
    weights = np.ones(len(table)), np.exp((MIDDLE - table.group) / STEPS)
    shape = (counts.buckets, size, size)

    def summed(values: Ints) -> Floats:
        each = [
            np.bincount(cell, values / UNIT * weight, counts.buckets * size * size).reshape(shape)
            for weight in weights
        ]
        return np.stack(each, axis=1)

    return _Sums(summed(table.weight), summed(table.value), middle)


@dataclass(frozen=True, eq=False)
class _Equations:
    """At some alpha and rho: by bucket, what is to be 0 (G, P), how it changes with the parameters
    (G, P, P), and with log alpha of each block (G, P, B)."""

    value: Floats
    slope: Floats
    by_alpha: Floats

    @classmethod
    def at(cls, sums: _Sums, offset: Floats, wide: Floats, deep: Floats, x: Floats) -> _Equations:
        free = wide.shape[1]
        alpha = np.exp(offset + wide @ x[:free])
        beta = alpha * (deep @ x[free:])
        own = alpha[:, None] / (alpha[:, None] + alpha)
        rest = sums.clicks - beta[:, None] * sums.shows
        both = rest + np.swapaxes(rest, 2, 3)
        score = (rest - own * both).sum(axis=3)  # (G, K, B)
        shared = own * own.T * both
        trusted = own * beta * sums.shows  # of b, as it bears on a
        cross = shared + trusted
        down = shared + own.T * beta[:, None] * sums.shows
        eye = np.eye(len(alpha))
        by_alpha = cross - eye * down.sum(axis=3)[..., None]
        flow = own * alpha * sums.shows
        by_rho = flow - eye * flow.sum(axis=3)[..., None]

        def tested(array: Floats) -> Floats:
            """By the columns that each weight is for."""
            first = np.tensordot(array[:, 0], wide, (1, 0))
            second = np.tensordot(array[:, 1], deep, (1, 0))
            return np.moveaxis(np.concatenate([first, second], axis=-1), -1, 1)

        alphas = tested(by_alpha)
        slope = np.concatenate([alphas @ wide, tested(by_rho) @ deep], axis=2)
        return cls(tested(score), slope, alphas)

    def influence(self, of_theta: Floats) -> Floats:
        """(G, P): how far the solution moves when a bucket joins the others, where the plain curve
        moves by of_theta (G, B)."""
        slope = self.slope.sum(axis=0) - self.slope
        by_alpha = self.by_alpha.sum(axis=0) - self.by_alpha
        pull = self.value + np.einsum("gpb,gb->gp", by_alpha, of_theta)
        return np.asarray(-np.linalg.solve(slope, pull[..., None])[..., 0])


def _solve(sums: _Sums, offset: Floats, wide: Floats, deep: Floats) -> Floats:
    """(P,): log alpha less the offset at its knots, then rho at its own."""
    pooled = _Sums(
        sums.clicks.sum(axis=0, keepdims=True), sums.shows.sum(axis=0, keepdims=True), sums.log_rank
    )
    x = np.zeros(wide.shape[1] + deep.shape[1])
    level = pooled.clicks[0, 0].sum() / (np.exp(offset)[:, None] * pooled.shows[0, 0]).sum()
    unit = np.append(np.ones(wide.shape[1]), np.full(deep.shape[1], level))
    for _ in range(ROUNDS):
        now = _Equations.at(pooled, offset, wide, deep, x)
        try:
            step = -np.linalg.solve(now.slope[0] * unit, now.value[0])
        except np.linalg.LinAlgError:
            break
        step = step * min(1.0, FURTHEST / max(float(np.abs(step).max()), 1e-300))
        x = x + unit * step
        if np.abs(step).max() < 1e-9:
            return x
    raise NotIdentified(
        "No curve with trust fits: docs that are clicked often on other days and docs that are not "
        "differ too little to tell what a rank adds to their clicks. Harvest more days at once, or "
        "use the plain curve."
    )


def _p_value(rho: Floats, influence: Floats) -> float:
    """Of all numbers being 0, by Hotelling's test."""
    from scipy.special import fdtrc

    size, buckets = len(rho), len(influence)
    if buckets <= size + 1:
        return 1.0
    square = float(rho @ np.linalg.solve(jackknife_covariance(influence), rho))
    rest = buckets - size
    return float(fdtrc(size, rest, square * rest / (size * (buckets - 1))))


def _lacking(counts: Counts, clicks: float) -> str:
    said = "The curve cannot be adjusted for trust:"
    if clicks >= ENOUGH_CLICKS:
        return (
            f"{said} all docs that moved were clicked about as often as each other on other days, "
            "and only docs that differ tell what a rank adds to their clicks. Use the plain curve."
        )
    if counts.options.get("trust") or clicks:
        return (
            f"{said} only {many(round(clicks), 'click')} on docs that moved are of docs shown on "
            f"other days too, and {ENOUGH_CLICKS:,.0f} are needed. Harvest more days at once."
        )
    return (
        f"{said} the counts do not have pairs without clicks. Harvest several days at once with "
        "--trust."
    )
