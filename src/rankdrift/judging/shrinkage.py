"""Clicks and exposure -> relevance: empirical Bayes with a mixture of logit-normals as its prior.

Of a pair with c clicks, exposure E = Σ p and squares E₂ = Σ p², q = E₂ / E is the propensity of its
typical row and n = E² / E₂ how many such rows there were:

    log L(z) = c log z + max(n - c, 0) log(1 - q z),    logit z - location ~ Σ_k w_k N(m_k, s_k²)

Where clicks need no relevance as well, their share of exposure, trust / E, is added to z there.
Location is that of the pair's prior mean; where that is not known for sure, its variance is added
to every s_k². Weights, middles and spreads are those under which the clicks of all pairs are
likeliest, with as many parts as pay for themselves. The posterior is summed up on a grid of each
pair's own, narrowed to where it is. Of all intervals with the share that is asked for the shortest
is taken. That of a pair without clicks begins at 0: nothing speaks against it, and how close to
nothing relevances are, which the prior would have to say, no clicks can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankdrift.core.types import Bools, Floats, Indices
from rankdrift.propensities.intervals import check_level

POINTS = 97  # of the grid on which a posterior is summed up
_COARSE = 33  # of the grids that find where it is
_NARROWINGS = 3
_DEPTH = 18.0  # further below the top than this, log densities add nothing
_REACH = 9.0  # spreads on either side of the prior's middle, to begin with
_AT_ONCE = 4096  # pairs, so that grids stay in the processor's cache
_TO_FIT = 20_000  # pairs that the prior is fitted to, drawn at random where there are more
MOST_PARTS = 3  # of the prior
_STEP = 0.125  # of the grid on which the prior is fitted, in logits
_AWAY: Floats = np.arange(-12.0, 8.0 + _STEP, _STEP)  # that grid: from a pair's location
_LEAST_SPREAD, _MOST_SPREAD = _STEP, 6.0
_FIRST_SPREAD = 1.5
_TAILS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)  # of what is left out: below the end


@dataclass(frozen=True, eq=False)
class Evidence:
    """clicks, exposure and squares (N,) of N pairs; pairs (N,): how many pairs each row stands
    for; trust (N,): clicks to be expected that need no relevance, if there are any."""

    clicks: Floats
    exposure: Floats
    squares: Floats
    pairs: Floats
    trust: Floats | None = None

    def __len__(self) -> int:
        return len(self.clicks)

    @property
    def propensity(self) -> Floats:
        """q (N,): of a typical row."""
        return np.asarray(self.squares / self.exposure)

    @property
    def misses(self) -> Floats:
        """n - c (N,): typical rows that were not clicked."""
        return np.asarray(np.maximum(self.exposure**2 / self.squares - self.clicks, 0.0))

    @property
    def wanted(self) -> Floats:
        """(N,): clicks beyond those that need no relevance."""
        return self.clicks if self.trust is None else np.asarray(self.clicks - self.trust)

    def take(self, rows: slice | Bools | Indices) -> Evidence:
        """Some of the rows."""
        return Evidence(
            self.clicks[rows],
            self.exposure[rows],
            self.squares[rows],
            self.pairs[rows],
            None if self.trust is None else self.trust[rows],
        )

    def log_likelihood(self, t: Floats) -> Floats:
        """(N, M), at logits t (N, M) of relevance."""
        clicks, misses, q = self.clicks[:, None], self.misses[:, None], self.propensity[:, None]
        odds = np.exp(-t)
        if self.trust is None:
            chance = np.minimum(q / (1 + odds), 1 - 1e-12)  # where p is above 1, so could this be
            return np.asarray(misses * np.log1p(-chance) - clicks * np.log1p(odds))
        seems = np.maximum(1 / (1 + odds) + (self.trust / self.exposure)[:, None], 1e-9)
        chance = np.minimum(q * seems, 1 - 1e-12)
        return np.asarray(misses * np.log1p(-chance) + clicks * np.log(seems))


@dataclass(frozen=True)
class Prior:
    """How logits of relevances spread around their locations: parts, each with its weight, its
    middle and its spread."""

    weights: tuple[float, ...]
    middles: tuple[float, ...]
    spreads: tuple[float, ...]

    @property
    def shift(self) -> float:
        """The mean, away from the location."""
        return float(np.dot(self.weights, self.middles))

    @property
    def spread(self) -> float:
        """The standard deviation."""
        squares = np.square(self.middles) + np.square(self.spreads)
        return float(np.sqrt(np.dot(self.weights, squares) - self.shift**2))

    def log_density(self, away: Floats, variance: Floats) -> Floats:
        """At so many logits away (N, M) from locations that have a variance (N,) themselves."""
        found: Floats | None = None
        for weight, middle, spread in zip(self.weights, self.middles, self.spreads, strict=True):
            squared = (spread**2 + variance)[:, None]
            part = np.log(weight) - 0.5 * ((away - middle) ** 2 / squared + np.log(squared))
            found = part if found is None else np.logaddexp(found, part)
        if found is None:
            raise ValueError("a prior has at least one part")
        return found

    def relevance(self, location: float) -> float:
        """The mean of a relevance with this location."""
        u: Floats = np.linspace(-8, 8, 801)
        share = np.exp(-0.5 * u**2) / np.exp(-0.5 * u**2).sum()
        t = location + np.array(self.middles)[:, None] + np.array(self.spreads)[:, None] * u
        return float(np.dot(self.weights, (share / (1 + np.exp(-t))).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of N relevances: mean, low, high (N,), and the mean and standard deviation of
    their logits."""

    mean: Floats
    low: Floats
    high: Floats
    logit: Floats
    logit_sd: Floats


# -- the prior -------------------------------------------------------------------------------------


def fit_prior(
    evidence: Evidence, location: Floats, variance: Floats | float = 0.0, seed: int = 0
) -> Prior:
    """The mixture under which the clicks of all pairs are likeliest; another part is taken where it
    makes them likelier by more than its three numbers cost (BIC).

    Parameters
    ----------
    evidence
        Of all pairs; where there are more rows than `_TO_FIT`, of as many drawn at random.
    location
        (N,): the logit of each pair's prior mean.
    variance
        (N,): of the location, which adds to that of the parts.
    seed
        Of the draw.
    """
    rows, pairs = _draw(evidence, seed)
    unsure = np.broadcast_to(np.asarray(variance, float), location.shape)[rows]
    likely = _likelihoods(evidence.take(rows), location[rows], unsure)
    price = 1.5 * np.log(pairs.sum())
    best, fit = _mixture(likely, pairs, Prior((1.0,), (0.0,), (_FIRST_SPREAD,)))
    for parts in range(2, MOST_PARTS + 1):
        places = np.linspace(-1.0, 1.0, parts) * best.spread + best.shift
        start = Prior((1 / parts,) * parts, tuple(places.tolist()), (0.6 * best.spread,) * parts)
        more, better = _mixture(likely, pairs, start)
        if better < fit + price:
            break
        best, fit = more, better
    return best


def _draw(evidence: Evidence, seed: int) -> tuple[Indices, Floats]:
    """Rows to fit to, and how many of the pairs drawn each of them stands for. Rows that stand for
    many are all taken: they are few."""
    many = np.flatnonzero(evidence.pairs > 1)
    one = np.flatnonzero(evidence.pairs == 1)
    part = 1.0
    if len(one) > _TO_FIT:
        part = _TO_FIT / len(one)
        one = np.sort(np.random.default_rng(seed).choice(one, _TO_FIT, replace=False))
    return np.concatenate([one, many]), np.concatenate(
        [np.ones(len(one)), part * evidence.pairs[many]]
    )


def _likelihoods(e: Evidence, location: Floats, variance: Floats) -> Floats:
    """(N, places of _AWAY): of each pair, its largest being 1.

    One that is narrower than the grid is made as wide as a step: of a relevance known so well the
    prior needs no more. Where the location is unsure, the likelihood is blurred by as much.
    """
    log = e.log_likelihood(location[:, None] + _AWAY)
    log -= log.max(axis=1, keepdims=True)
    log *= np.minimum(1.0, 1 / (_STEP**2 * np.maximum(e.clicks, 1.0)))[:, None]
    likely = np.exp(log)
    # Half an octave of variances at a time.
    octave = np.where(variance > _STEP**2, np.round(2 * np.log2(np.maximum(variance, 1e-9))), -99)
    for level in np.unique(octave[octave > -99]):
        kernel = np.exp(-0.5 * (_AWAY[:, None] - _AWAY) ** 2 / 2 ** (level / 2))
        here = octave == level
        likely[here] = likely[here] @ (kernel / kernel.sum(axis=0))
    return np.asarray(likely)


def _mixture(likely: Floats, pairs: Floats, start: Prior) -> tuple[Prior, float]:
    """The likeliest mixture with as many parts as the one to start from, and its log-likelihood."""
    from scipy.optimize import minimize

    parts = len(start.weights)
    total = float(pairs.sum())
    usual = start.spread**2

    def misfit(at: Floats) -> tuple[float, Floats]:
        weight, middle, spread = _numbers(at)
        u = (_AWAY - middle[:, None]) / spread[:, None]
        density = np.exp(-0.5 * u**2)
        density /= density.sum(axis=1, keepdims=True)
        prior = weight @ density
        of_pairs = np.maximum(likely @ prior, 1e-300)
        pull = (pairs / of_pairs) @ likely / total  # of each place, on the log-likelihood
        mine = weight[:, None] * density * pull
        sums = mine.sum(axis=1)

        def about(values: Floats) -> Floats:  # the slope: what is pulled against what is there
            return np.asarray((mine * values).sum(axis=1) - sums * (density * values).sum(axis=1))

        # Each part has one pair more, as far away as pairs are on average: few pairs that happen
        # to be alike do not make a part so narrow that intervals miss the next.
        doubt = (np.log(spread) + usual / (2 * spread**2)).sum()
        wider = (usual / spread**2 - 1) / total
        slope = np.concatenate([sums - weight, about(u) / spread, about(u**2) + wider])
        return (doubt - float((pairs * np.log(of_pairs)).sum())) / total, -slope

    first = np.concatenate([np.log(start.weights), start.middles, np.log(start.spreads)])
    bounds = [(-7.0, 7.0)] * parts + [(float(_AWAY[0]), float(_AWAY[-1]))] * parts
    bounds += [(float(np.log(_LEAST_SPREAD)), float(np.log(_MOST_SPREAD)))] * parts
    found = minimize(misfit, first, jac=True, bounds=bounds)
    weight, middle, spread = _numbers(found.x)
    doubt = float((np.log(spread) + usual / (2 * spread**2)).sum())
    numbers = (tuple(values.tolist()) for values in (weight, middle, spread))
    return Prior(*numbers), doubt - float(found.fun) * total


def _numbers(at: Floats) -> tuple[Floats, Floats, Floats]:
    """Weights, middles and spreads."""
    weight, middle, spread = at.reshape(3, -1)
    share = np.exp(weight - weight.max())
    return share / share.sum(), middle, np.exp(spread)


# -- the posterior ---------------------------------------------------------------------------------


def posterior(
    evidence: Evidence,
    location: Floats,
    prior: Prior,
    variance: Floats | float = 0.0,
    level: float = 0.95,
) -> Posterior:
    """The relevance of each pair.

    Parameters
    ----------
    evidence
        Of N pairs.
    location
        (N,): the logit of each pair's prior mean.
    prior
        From `fit_prior`.
    variance
        (N,), or of all pairs alike: of the location.
    level
        Of the intervals.
    """
    check_level(level)
    every = np.broadcast_to(np.asarray(variance, float), location.shape)
    found = [_summary(*part, prior, level) for part in _parts(evidence, location, every)]
    columns = np.concatenate(found, axis=1) if found else np.zeros((5, 0))
    return Posterior(*columns)


def _summary(e: Evidence, mu: Floats, variance: Floats, prior: Prior, level: float) -> Floats:
    """(5, N): mean, low, high, and mean and deviation of the logit."""
    t, log = _grid(e, mu, variance, prior)
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = (weight / (1 + np.exp(-t))).sum(axis=1)
    middle = (weight * t).sum(axis=1)
    deviation = np.sqrt((weight * (t - middle[:, None]) ** 2).sum(axis=1))
    low, high = _shortest(t, weight, level, e.wanted <= 0)
    return np.stack([mean, np.minimum(low, mean), np.maximum(high, mean), middle, deviation])


def _shortest(
    t: Floats, weight: Floats, level: float, from_nothing: Bools
) -> tuple[Floats, Floats]:
    """Of some intervals of relevances that all hold `level`, the shortest; the one that begins at
    0 where that is asked for (N,)."""
    below = np.cumsum(weight, axis=1) - weight / 2
    low, high = np.zeros(len(t)), _quantile(t, below, level)
    for tail in _TAILS:
        under = tail * (1 - level)
        start = _quantile(t, below, under)
        end = _quantile(t, below, under + level) if tail < 1 else np.ones(len(t))
        shorter = (end - start < 0.999 * (high - low)) & ~from_nothing
        low, high = np.where(shorter, start, low), np.where(shorter, end, high)
    return low, high


def _quantile(t: Floats, below: Floats, share: float) -> Floats:
    """(N,): the relevance that has so large a share below."""
    rows = np.arange(len(t))
    # All rows at once: each is moved above the one before.
    ordered = (np.clip(below, 0.0, 1.0) + 2 * rows[:, None]).ravel()
    after = np.searchsorted(ordered, share + 2 * rows) - rows * t.shape[1]
    after = np.clip(after, 1, t.shape[1] - 1)
    left, right = below[rows, after - 1], below[rows, after]
    part = np.clip((share - left) / np.maximum(right - left, 1e-300), 0.0, 1.0)
    return np.asarray(
        1 / (1 + np.exp(-(t[rows, after - 1] + part * (t[rows, after] - t[rows, after - 1]))))
    )


def _grid(e: Evidence, mu: Floats, variance: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """(N, POINTS) logits where the posterior is, and its log density there."""
    rate = np.clip(e.wanted / e.exposure, 1e-9, 1 - 1e-6)
    peak = np.log(rate / (1 - rate))
    seen = e.clicks > 0
    reach = _REACH * np.sqrt(np.square(prior.spreads)[:, None] + variance)
    middles = mu + np.array(prior.middles)[:, None]
    low, high = (middles - reach).min(axis=0), (middles + reach).max(axis=0)
    low = np.where(seen, np.minimum(low, peak - 3), low)
    high = np.where(seen, np.maximum(high, peak + 3), high)

    def density(t: Floats) -> Floats:
        own = e.log_likelihood(t)
        return np.asarray(own + prior.log_density(t - mu[:, None], variance))

    for _ in range(_NARROWINGS):
        step = (high - low) / (_COARSE - 1)
        log = density(low[:, None] + step[:, None] * np.arange(_COARSE))
        inside = log > log.max(axis=1, keepdims=True) - _DEPTH
        first, last = inside.argmax(axis=1), _COARSE - 1 - inside[:, ::-1].argmax(axis=1)
        low, high = low + (first - 1) * step, low + (last + 1) * step
    t = low[:, None] + ((high - low) / (POINTS - 1))[:, None] * np.arange(POINTS)
    return t, density(t)


def _parts(
    e: Evidence, location: Floats, variance: Floats
) -> Iterator[tuple[Evidence, Floats, Floats]]:
    for start in range(0, len(e), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        yield e.take(rows), location[rows], variance[rows]
