"""The posterior density of a curve, and its slope, with the relevance of every pair integrated out.

A click on pair j at rank r has the chance p_r z_j, Eq. (1). z_j is drawn from Beta(a, b) with a
mean m = a / (a + b) for each group of pairs and a concentration a, both learned: where z is small,
its deviation is m / √a, in proportion to the mean in every group. log p is a line with bends at the
knots, in log rank, and every rank but the first is off that line by a deviation of its own, unless
all ranks are knots; far down, ranks within a twelfth of an octave share one. How much the line
bends, and how far ranks are off it, is learned as well: both are normal with a variance that has an
inverse Gamma prior, and with that integrated out they have a joint t distribution.

Clicks know p times z alone, so that the level of p is a convention: the largest is 1, or a little
less where others are nearly as large, and z is how likely a doc is clicked there. What is reported
is relative to the reference rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankdrift.core.types import Bools, Floats, Indices, Ranks
from rankdrift.estimation.bayes.beta_nodes import beta_nodes
from rankdrift.estimation.bayes.cells import Band, Terms, bands
from rankdrift.estimation.curves import hats

SLOPE = (-0.5, 1.0)
"""Mean and standard deviation of how log p changes with log rank, from the first knot to the
second."""
BEND = (4.0, 0.5)
"""Degrees of freedom and scale of how much that changes from knot to knot, for knots e apart."""
ROUGH = (4.0, 0.1)
"""The same of how far ranks are off the line."""
RELEVANCE = (-2.0, 1.5)
"""Mean and standard deviation of the logit of each group's mean relevance."""
CONCENTRATION = (0.0, 1.0)
"""The same of log a."""
_FINEST = 12  # deviations an octave, at most
_SHARP, _MOST = 8.0, 600.0  # of the smooth maximum; the largest power whose exp is a number
_OUTSIDE = 40.0  # a parameter further out than this is nowhere


def knots_of(ranks: Ranks) -> Ranks:
    """Three an octave, from the first of the ranks to the last."""
    low, high = int(ranks[0]), int(ranks[-1])
    ladder = np.unique(np.rint(2.0 ** (np.arange(0, 3 * 31) / 3)).astype(np.int64))
    return np.array([low, *ladder[(ladder > low) & (ladder < high)], high], np.int32)


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each parameter is: log p at each knot less that at the first, then how far each rank
    but the first is off that line, unless all are knots, then the level of each group's relevance,
    then log a.

    The level is what the pairs of a group tell, so that levels hardly depend on other parameters:
    the log of the mean click rate, m times the geometric mean of p over its appearances; or, of a
    group all of whose pairs are there because they were clicked, log((a + 1) / b), the logit of the
    mean relevance of clicks.

    ranks (R,); knots (K + 1,); concentration (G,): which a each group has, a place from 0; shares
    (G, R): of a group's appearances by rank, or all 0: its pairs are there because they were
    clicked.
    """

    ranks: Ranks
    knots: Ranks
    concentration: Indices
    shares: Floats

    @property
    def at_knots(self) -> slice:
        """log p at each knot but the first."""
        return slice(0, len(self.knots) - 1)

    @property
    def curve(self) -> slice:
        """These, and how far the other ranks are off the line."""
        return slice(0, self.basis.shape[1])

    @property
    def groups(self) -> slice:
        """The level of each group's relevance."""
        first = self.curve.stop
        return slice(first, first + len(self.concentration))

    @property
    def concentrations(self) -> slice:
        """log a."""
        return slice(self.groups.stop, self.size)

    @property
    def size(self) -> int:
        """How many parameters."""
        return int(self.groups.stop + self.concentration.max()) + 1

    @cached_property
    def given(self) -> Bools:
        """(G,): whether a group's pairs are there because they were clicked."""
        return np.asarray(~self.shares.any(axis=1))

    @cached_property
    def which(self) -> Floats:
        """(G, A): 1 for the concentration that each group has."""
        return np.eye(self.size - self.groups.stop)[self.concentration]

    @cached_property
    def basis(self) -> Floats:
        """(R, K): from the parameters of the curve to log p at every rank."""
        line = hats(np.log(self.ranks.astype(float)), np.log(self.knots.astype(float)))[:, 1:]
        if np.isin(self.ranks, self.knots).all():
            return line
        together = np.rint(_FINEST * np.log2(self.ranks.astype(float)))
        off = (together[1:, None] == np.unique(together[1:])).astype(float)
        return np.concatenate([line, np.pad(off, ((1, 0), (0, 0)))], axis=1)

    @cached_property
    def shape(self) -> Floats:
        """From values at the knots to the first slope and to the bends, each in its unit: a bend is
        the change of slope over the root of how far apart the knots are."""
        x = np.log(self.knots.astype(float))
        slopes = np.diff(np.eye(len(x)), axis=0)[:, 1:] / np.diff(x)[:, None]
        apart = (x[2:] - x[:-2]) / 2
        return np.concatenate([slopes[:1], np.diff(slopes, axis=0) / np.sqrt(apart)[:, None]])

    def log_p(self, x: Floats) -> Floats:
        """(..., R): log p of parameters (..., d), below 0."""
        return self.log_p_and_top(x)[0]

    def log_p_and_top(self, x: Floats) -> tuple[Floats, Floats]:
        """The same, and how much each parameter of the curve has to do with the level (..., K): a
        smooth maximum of the curve is 0."""
        found = x[..., self.curve] @ self.basis.T
        power = np.exp(np.minimum(_SHARP * found, _MOST))
        total = power.sum(axis=-1, keepdims=True)
        return found - np.log(total) / _SHARP, (power / total) @ self.basis

    def relevance(self, x: Floats, log_p: Floats) -> Relevance:
        """Of parameters (C, d) and their log p (C, R); NaN where a mean would be above 1."""
        level = x[:, self.groups]
        a = np.exp(x[:, self.concentrations])[:, self.concentration]
        clicked = (a + 1) * np.exp(-level)
        plain = a * np.expm1(log_p @ self.shares.T - level)
        b = np.where(self.given, clicked, np.where(plain > 0, plain, np.nan))
        return Relevance(self.given, a, b)

    def draw_prior(self, rng: np.random.Generator) -> Floats:
        """(d,): parameters drawn from the prior."""
        many = len(self.knots) - 1
        shape = np.concatenate([[rng.normal(*SLOPE)], _drawn(rng, BEND, many - 1)])
        x = np.empty(self.size)
        x[self.at_knots] = np.linalg.solve(self.shape, shape)
        x[many : self.curve.stop] = _drawn(rng, ROUGH, self.curve.stop - many)
        x[self.concentrations] = rng.normal(*CONCENTRATION, size=self.size - self.groups.stop)
        logit = rng.normal(*RELEVANCE, size=len(self.concentration))
        log_a = x[self.concentrations][self.concentration]
        clicked = logit + np.logaddexp(0.0, -log_a)
        plain = -np.logaddexp(0.0, -logit) + self.shares @ self.log_p(x)
        x[self.groups] = np.where(self.given, clicked, plain)
        return x

    def curve_prior(self, x: Floats) -> tuple[Floats, Floats]:
        """(C,) and its slope (C, K) by the parameters of the curve, up to a constant."""
        shape = x[:, self.at_knots] @ self.shape.T
        off = (shape[:, :1] - SLOPE[0]) / SLOPE[1]
        bends, by_bends = _joint_t(shape[:, 1:], BEND)
        rough, by_rough = _joint_t(x[:, self.at_knots.stop : self.curve.stop], ROUGH)
        by_knots = np.concatenate([-off / SLOPE[1], by_bends], axis=1) @ self.shape
        value = bends + rough - off[:, 0] ** 2 / 2
        return value, np.concatenate([by_knots, by_rough], axis=1)


def _drawn(rng: np.random.Generator, prior: tuple[float, float], many: int) -> Floats:
    freedom, scale = prior
    return rng.normal(0, scale * np.sqrt(freedom / rng.chisquare(freedom)), many)


def _joint_t(x: Floats, prior: tuple[float, float]) -> tuple[Floats, Floats]:
    """(C,) the log density of x (C, K), up to a constant, and its slope (C, K)."""
    freedom, scale = prior
    total = freedom * scale**2 + (x**2).sum(axis=1)
    power = (freedom + x.shape[1]) / 2
    return -power * np.log(total), -2 * power * x / total[:, None]


@dataclass(frozen=True, eq=False)
class Relevance:
    """a and b of each group (C, G), and how what follows from them changes with its level and with
    log a. given (G,): as of `Layout`."""

    given: Bools
    a: Floats
    b: Floats

    def by_level(self, by_b: Floats) -> Floats:
        """The slope by the level, from that by b."""
        return by_b * -np.where(self.given, self.b, self.a + self.b)

    def by_log_a(self, by_a: Floats, by_b: Floats) -> Floats:
        """The slope by log a, from those by a and b."""
        of_b = np.where(self.given, self.b * self.a / (self.a + 1), self.b)
        return by_a * self.a + by_b * of_b

    def log_prior(self) -> tuple[Floats, Floats, Floats]:
        """(C,): that logit m is normal, as a density of the level; its slopes (C, G) by the level
        and by log a."""
        a, b, given = self.a, self.b, self.given
        off = (np.log(a) - np.log(b) - RELEVANCE[0]) / RELEVANCE[1]
        value = -(off**2) / 2 + np.where(given, 0.0, np.log1p(a / b))
        pull = -off / RELEVANCE[1]
        by_level = np.where(given, pull, pull * (1 + a / b) + a / b)
        return value.sum(axis=1), by_level, np.where(given, pull / (1 + a), 0.0)


class Posterior:
    """The log density of the posterior and its slope, of many parameters (C, d) at once.

    Parameters
    ----------
    layout
        Where each parameter is.
    terms
        The cells, of groups that the layout has.
    clicks
        (R,): all clicks by rank.
    """

    def __init__(self, layout: Layout, terms: Terms, clicks: Floats) -> None:
        self.layout = layout
        self._clicks = clicks
        self._bands: Sequence[Band] = tuple(bands(terms))

    @property
    def cells(self) -> int:
        """How many cells are worked out for each value."""
        return sum(len(band.group) for band in self._bands)

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        """(C,) and (C, d); -inf where there is no density to speak of."""
        layout = self.layout
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_p, top = layout.log_p_and_top(x)
            relevance = layout.relevance(x, log_p)
            # What is nowhere stands for somewhere, and is told apart in the end.
            far = (np.abs(x) >= _OUTSIDE).any(axis=1)
            lost = np.asarray(far | ~np.isfinite(relevance.b).all(axis=1))
            log_p = np.where(lost[:, None], -1.0, log_p)
            a, b = (np.where(lost[:, None], 1.0, each) for each in (relevance.a, relevance.b))
            relevance = replace(relevance, a=a, b=b)
            value, slope = self._value(x, log_p, top, relevance)
        lost |= ~np.isfinite(value) | ~np.isfinite(slope).all(axis=1)
        return np.where(lost, -np.inf, value), np.where(lost[:, None], 0.0, slope)

    def _value(
        self, x: Floats, log_p: Floats, top: Floats, relevance: Relevance
    ) -> tuple[Floats, Floats]:
        layout = self.layout
        p, a, b = np.exp(log_p), relevance.a, relevance.b
        log_a = x[:, layout.concentrations]
        off = (log_a - CONCENTRATION[0]) / CONCENTRATION[1]
        of_curve, by_parameter = layout.curve_prior(x)
        of_relevance, by_level, by_log_a = relevance.log_prior()
        value = of_curve + of_relevance - (off**2).sum(axis=1) / 2 + log_p @ self._clicks
        by_p = self._clicks / p
        by_a, by_b = np.zeros_like(a), np.zeros_like(b)
        for band in self._bands:
            more = _band(band, p, a[:, band.groups], b[:, band.groups])
            value += more[0]
            by_p += more[1]
            by_a[:, band.groups] += more[2]
            by_b[:, band.groups] += more[3]
        by_level = by_level + relevance.by_level(by_b)
        by_curve = by_p * p - by_level @ layout.shares
        by_parameter += by_curve @ layout.basis - by_curve.sum(axis=1, keepdims=True) * top
        by_log_a = (by_log_a + relevance.by_log_a(by_a, by_b)) @ layout.which
        by_log_a -= off / CONCENTRATION[1]
        return value, np.concatenate([by_parameter, by_level, by_log_a], axis=1)


def _band(band: Band, p: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """The log likelihood (C,) of the cells of a band, less Σ clicks log p, and its slope by p
    (C, R), a and b (C, G)."""
    chains, size = len(p), band.size
    nodes = beta_nodes(a, b, size)
    # Cells first, chains and nodes last: what is summed over cells is a product of matrices.
    z = nodes.z.transpose(1, 0, 2)  # (G, C, K)
    weight = nodes.weight.transpose(1, 0, 2)
    at = z[band.column_group]  # (J, C, K)
    p_at = p.T[band.column_rank][:, :, None]
    left = 1 - p_at * at
    power = (band.misses @ np.log(left).reshape(len(at), -1)).reshape(-1, chains, size)
    power += band.clicks[:, None, None] * np.log(z)[band.group]
    np.exp(power, out=power)
    power *= weight[band.group]
    chance = power.sum(axis=2)  # (T, C)
    plain = chance[: band.plain]
    clicked = np.maximum(1 - chance[band.plain :], 1e-300)
    value = band.pairs[: band.plain] @ np.log(plain) - band.pairs[band.plain :] @ np.log(clicked)
    by_chance = band.pairs[:, None] / np.concatenate([plain, clicked])
    power *= by_chance[:, :, None]
    flat = power.reshape(len(power), -1)
    summed = (band.by_group @ flat).reshape(2, -1, chains, size)
    missed = (band.by_column @ flat).reshape(at.shape) / left
    by_z = summed[1] / z
    np.subtract.at(by_z, band.column_group, missed * p_at)
    by_weight = summed[0] / weight
    by_p = np.zeros((p.shape[1], chains))
    np.subtract.at(by_p, band.column_rank, (missed * at).sum(axis=2))
    by = [
        np.einsum("gck,cgk->cg", by_z, dz) + np.einsum("gck,cgk->cg", by_weight, dw)
        for dz, dw in (nodes.by_a, nodes.by_b)
    ]
    return value, by_p.T, by[0], by[1]
