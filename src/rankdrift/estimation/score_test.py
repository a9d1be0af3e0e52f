"""One test for every check: does a part of the contests follow another curve than all of them?

Contests (`comparisons`) follow a logistic regression without constant: the log odds that a is
clicked rather than b are theta_a − theta_b. The pooled theta, one number a block of ranks, is
fitted to all of them. A difference between parts, x · (f(rank a) − f(rank b)) with x a number of
each part and f a few shapes of a curve, would show in the score of these columns at the pooled fit.
Nothing is fitted to a part alone, so that no part can be too thin:

    u_g = X'(w − E w)_g less what the pooled fit makes of it, by bucket g of queries;   U = Σ u_g
    V_m = X'D X − X'D Z (Z'D Z)⁻¹ Z'D X,   the variance of U if all contests were independent

What buckets say of the variance is blended with V_m's shape, as few buckets say little: in units of
V_m, V = ((g − 1) M + PRIOR φ 1) / (g − 1 + PRIOR), with M the covariance between buckets, φ its
mean diagonal but no less than FLOOR, and g the effective number of buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.types import AnyInts, Floats, Ints
from rankdrift.core.words import many
from rankdrift.estimation.comparisons import BlockScale, Comparisons, block_scale
from rankdrift.estimation.curves import hats

PRIOR = 32.0
"""Buckets that the shape of V_m counts for."""
FLOOR = 0.5
"""Of V_m, which takes every contest for independent: less is luck of the buckets. Where all is well
buckets say 0.4 to 1.0 of it."""
KNOTS = (1, 3, 8, 20, 50, 120, 300)
"""Of the shapes that differences between parts are looked for in, beside a straight line."""
_RIDGE = 1e-6  # of the information, so that what nothing tells stays where it is
_STEPS = 50


@dataclass(frozen=True, eq=False)
class Logistic:
    """The pooled fit. design (C, F); phi (F,); chance (C,), that the clicked one was to be; inverse
    (F, F), of the information."""

    design: Floats
    phi: Floats
    chance: Floats
    inverse: Floats
    spread: Floats  # (C,): weight · chance · (1 − chance)

    def influence(self, rows: Comparisons) -> Floats:
        """(G, F): how far phi moves by each bucket."""
        return np.asarray(
            rows.by_bucket @ ((1 - self.chance)[:, None] * self.design) @ self.inverse
        )


def fit_logistic(rows: Comparisons, design: Floats, offset: Floats | float = 0.0) -> Logistic:
    """The maximum of Σ weight · log chance, chance = 1 / (1 + exp −(offset + design @ phi))."""
    weight, size = rows.weight, design.shape[1]
    phi = np.zeros(size)
    ridge = np.diag(_RIDGE * (0.25 * weight @ design**2) + 1e-9)
    for _ in range(_STEPS):
        chance = _logistic(offset + design @ phi)
        spread = weight * chance * (1 - chance)
        inverse = np.linalg.inv((design.T * spread) @ design + ridge)
        change = inverse @ (design.T @ (weight * (1 - chance)) - ridge @ phi)
        phi = phi + change * min(1.0, 3.0 / max(float(np.abs(change).max(initial=0.0)), 1e-300))
        if np.abs(change).max(initial=0.0) < 1e-9:
            break
    return Logistic(design, phi, chance, np.asarray(inverse, np.float64), spread)


def _logistic(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -500, 500))))


def pooled_design(rows: Comparisons, scale: BlockScale) -> Floats:
    """(C, F): one column a joined block but the first, and how far off the middles of its blocks a
    contest was, which a slope within blocks makes up for."""
    eye = np.eye(len(scale))[:, 1:]
    a, b = scale.of[rows.clicked], scale.of[rows.other]
    off = -rows.away - (scale.centre[a] - scale.centre[b])
    columns = [eye[a] - eye[b]]
    if np.abs(off).max(initial=0.0) > 1e-9:
        columns.append(off[:, None])
    return np.concatenate(columns, axis=1)


@dataclass(frozen=True, eq=False)
class ScoreTest:
    """What came of a test.

    p_value: of no difference in any shape, and straight_p: of none in a straight line of log rank,
    each to both sides. slope, slope_error: how much steeper the curve of parts with a larger
    x is, per unit of x and of log rank; depth: the mean log rank less that of the first, by which a
    slope becomes a mean difference of log p. first, last (J,): blocks of ranks; difference, error
    (J,): of log p there, relative to the first, in the shapes of KNOTS.
    clicks: contests tested. by_bucket (G,): what each bucket of queries adds to
    slope / slope_error.
    """

    p_value: float
    straight_p: float
    statistic: float
    df: int
    df_error: float
    slope: float
    slope_error: float
    depth: float
    first: Ints
    last: Ints
    difference: Floats
    error: Floats
    clicks: float
    by_bucket: Floats

    @property
    def mean(self) -> float:
        """The mean difference of log p over ranks, relative to the first block, per unit of x."""
        return self.slope * self.depth

    @property
    def noise(self) -> float:
        """The standard error of `mean`: how large a difference this test could have seen."""
        return self.slope_error * self.depth

    @property
    def beyond_noise(self) -> float:
        """How large the difference is at a typical rank, in whatever shape, over and above noise,
        as a share."""
        told = self.error > 0  # of the first block there is none: others are relative to it
        apart = self.difference[told] ** 2 - self.error[told] ** 2
        shaped = float(apart.mean()) if len(apart) else 0.0
        return max(float(np.expm1(np.sqrt(max(shaped, 0.0)))), self.straight)

    @property
    def straight(self) -> float:
        """How large the difference is as a straight line of log rank, over and above noise."""
        return float(np.expm1(np.sqrt(max(self.mean**2 - self.noise**2, 0.0))))


def score_test(rows: Comparisons, x: Floats, also: Floats | None = None) -> ScoreTest:
    """Whether contests with a larger `x` (C,) follow another curve; `also` (C, A) are columns that
    may explain them as well as the curve does."""
    scale = block_scale(rows)
    if len(scale) < 2:
        raise NotIdentified(
            f"{many(round(rows.clicks), 'click')} to compare, too few to tell blocks of "
            "ranks apart."
        )
    design = pooled_design(rows, scale)
    if also is not None:
        design = np.concatenate([design, also], axis=1)
    fit = fit_logistic(rows, design)
    a, b = scale.of[rows.clicked], scale.of[rows.other]
    x = x - np.average(x, weights=rows.weight)
    straight = tested(rows, fit, (x * -rows.away)[:, None])
    knots = [k for k in KNOTS if k < scale.last[-1]]
    shapes = hats(scale.centre, np.log(np.array([*knots, max(scale.last[-1], 2)], float)))[:, 1:]
    shaped = tested(rows, fit, x[:, None] * (shapes[a] - shapes[b]))
    edges = np.append(scale.first, scale.last[-1] + 1)
    return summarised(straight, [shaped], [shapes], scale.first, edges, rows.clicks, scale.centre)


def summarised(
    straight: Tested | None,
    shaped: Sequence[Tested],
    shapes: Sequence[Floats],
    ranks: AnyInts,
    edges: AnyInts,
    clicks: float,
    logs: Floats | None = None,
) -> ScoreTest:
    """Several tests of one question as one.

    Parameters
    ----------
    straight
        The test of a straight line in log rank, if there is one.
    shaped, shapes
        Tests of other shapes, and these at `ranks`, (R, K) each.
    ranks, logs
        (R,), and their logarithms if they stand for more than one.
    edges
        (J + 1,): where the blocks begin that the difference is told in.
    clicks
        How many were tested.
    """
    tests = [*([straight] if straight else []), *shaped]
    best = min(tests, key=lambda one: one.p_value)
    at = np.log(ranks.astype(float)) if logs is None else logs
    told, shape = min(zip(shaped, shapes, strict=True), key=lambda one: one[0].p_value)
    block = np.searchsorted(edges, ranks, side="right") - 1
    seen = np.unique(block)
    inside = seen[:, None] == block
    mean = inside / inside.sum(axis=1, keepdims=True)
    stands_for = np.diff(edges)[block] / inside.sum(axis=1)[np.searchsorted(seen, block)]
    rise = mean @ shape
    rise = rise - rise[0]
    slope, error = (
        (float(straight.effect[0]), float(np.sqrt(straight.covariance[0, 0])))
        if straight
        else (0.0, 0.0)
    )
    return ScoreTest(
        p_value=min(1.0, len(tests) * best.p_value),
        straight_p=straight.p_value if straight else 1.0,
        statistic=best.statistic,
        df=best.df,
        df_error=best.df_error,
        slope=slope,
        slope_error=error,
        depth=float(np.average(at - at[0], weights=stands_for)),
        first=np.asarray(edges)[seen].astype(np.int64),
        last=np.asarray(edges)[seen + 1].astype(np.int64) - 1,
        difference=rise @ told.effect,
        error=np.sqrt(np.maximum(np.einsum("jk,kl,jl->j", rise, told.covariance, rise), 0.0)),
        clicks=clicks,
        by_bucket=straight.by_bucket if straight else np.zeros(0),
    )


@dataclass(frozen=True, eq=False)
class Tested:
    """effect (K,) of the columns, to first order, and its covariance (K, K); by_bucket (G,): what
    each bucket adds to the effect of the first column, in standard errors."""

    p_value: float
    statistic: float
    df: int
    df_error: float
    effect: Floats
    covariance: Floats
    by_bucket: Floats


def tested(rows: Comparisons, fit: Logistic, columns: Floats) -> Tested:
    """The score test of `columns` (C, K) on top of a fit."""
    by_bucket = adjusted_scores(rows, fit, columns)
    left = columns - fit.design @ (fit.inverse @ ((fit.design.T * fit.spread) @ columns))
    model = (left.T * fit.spread) @ left
    return blended_test(by_bucket, model)


def adjusted_scores(rows: Comparisons, fit: Logistic, columns: Floats) -> Floats:
    """(G, K): the score of `columns` (C, K) by bucket, less what the fit makes of it."""
    left = columns - fit.design @ (fit.inverse @ ((fit.design.T * fit.spread) @ columns))
    return np.asarray(rows.by_bucket @ ((1 - fit.chance)[:, None] * left))


def blended_test(by_bucket: Floats, model: Floats) -> Tested:
    """Whether scores (G, K) of independent buckets add up to more than chance; `model` (K, K) is
    their variance if all contests were independent."""
    from scipy.special import fdtrc

    size = model.shape[0]
    every, by_bucket = by_bucket, by_bucket[by_bucket.any(axis=1)]
    total = by_bucket.sum(axis=0)
    unit = np.sqrt(np.maximum(np.diag(model), 0.0))
    unit = np.where(unit > 0, unit, 1.0)
    values, vectors = np.linalg.eigh(model / np.outer(unit, unit))
    keep = values > 1e-8 * max(values.max(initial=0.0), 1e-300)
    root = vectors[:, keep] / np.sqrt(np.maximum(values[keep], 1e-300)) / unit[:, None]  # (K, k)
    scores = by_bucket @ root
    many, k = len(scores), int(keep.sum())
    if many < 2 or not k or not np.abs(scores).max() > 0:
        none, loose = np.zeros(size), np.full((size, size), np.inf)
        return Tested(1.0, 0.0, k, 0.0, none, loose, np.zeros(len(every)))
    centred = scores - scores.mean(axis=0)
    between = many / (many - 1) * centred.T @ centred
    length = (scores**2).sum(axis=1)
    # Squares of k normal numbers make it k / (k + 2) of the number of equal buckets.
    effective = (k + 2) / k * float(length.sum() ** 2 / (length**2).sum())
    seen = max(min(effective, float(many)) - 1, 1.0)
    level = max(float(np.trace(between)) / k, FLOOR)
    covariance = (seen * between + PRIOR * level * np.eye(k)) / (seen + PRIOR)
    # The shape is worth PRIOR buckets; the scale is known by what buckets say alone.
    n = seen + PRIOR * (1 - 1 / k)
    along = total @ root
    square = float(along @ np.linalg.solve(covariance, along))
    statistic = square * (n - k + 1) / (n * k)
    effect = root @ along
    of_effect = root @ covariance @ root.T
    return Tested(
        float(fdtrc(k, n - k + 1, statistic)),
        statistic,
        k,
        n - k + 1,
        effect,
        of_effect,
        every @ root @ root[0] / np.sqrt(of_effect[0, 0]),
    )
