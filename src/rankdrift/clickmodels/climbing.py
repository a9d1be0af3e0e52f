"""Expectation maximisation, with longer steps than its own where those do better (SQUAREM)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rankdrift.core.errors import NotConverged
from rankdrift.core.types import Floats

Numbers = tuple[Floats, ...]
"""The probabilities of a model: some arrays of them."""
Means = tuple[float, ...]
"""Of the priors, one for each array."""

SETTLED = 1e-7
"""A round that makes the mean log-likelihood of a result better by no more ends the climb."""
MOST_ROUNDS = 2_000
_FIRST_ROUNDS = 20  # at most, for the means of the priors to begin with
_MOST_MEANS = 10  # times that the means are found anew
_MEAN_SETTLED = 0.01  # of themselves
_EDGE = 1e-9
_NEAR = 0.1  # of the way to 0 or 1 is left by a long step


class Expected(NamedTuple):
    """What is to be expected, if the numbers are right: how often each of their things could have
    happened, and did; and the log-likelihood of the numbers."""

    successes: Numbers
    trials: Numbers
    likely: float


def climb(
    expect: Callable[[Numbers], Expected],
    start: Sequence[Floats],
    *,
    rows: float,
    strength: float,
    what: str,
) -> Numbers:
    """The probabilities at which rounds of EM change nothing any more.

    Each array has a Beta prior at its pooled mean: climbs go on until the mean is that of what they
    end at. Two rounds show where the numbers are heading; each array is taken further the same way
    by a length of its own (Varadhan and Roland, 2008). If that was too far, the second round
    stands.

    Parameters
    ----------
    expect
        What to expect of the data, given the numbers.
    start
        Where to begin.
    rows
        Results that the likelihood is of.
    strength
        How many trials the prior counts for.
    what
        Whose numbers they are, for the error.

    Raises
    ------
    NotConverged
        If rounds go on making it better.
    """
    at, means = _settle_means(expect, tuple(_inside(np.asarray(x, float)) for x in start), strength)
    for _ in range(_MOST_MEANS):
        before = means
        at, means = _climb_with(expect, at, before, rows=rows, strength=strength, what=what)
        if _alike(before, means):
            break
    return at


def _settle_means(
    expect: Callable[[Numbers], Expected], at: Numbers, strength: float
) -> tuple[Numbers, Means]:
    """The means of the priors, about, by rounds that find them anew each time; and how far the
    numbers came. Long steps that make the clicks less likely are taken back."""

    def step(at: Numbers) -> tuple[Numbers, float, Means]:
        found = expect(at)
        means = _means(found)
        return _maximised(found, means, strength), found.likely, means

    twice, best = at, -np.inf
    before: Means = ()
    means: Means = ()
    for _ in range(_FIRST_ROUNDS // 2):
        once, likely, means = step(at)
        if likely < best:
            at, best = twice, -np.inf
            continue
        twice, best, means = step(once)
        if before and _alike(before, means):
            break
        at, before = tuple(map(_further, at, once, twice)), means
    return twice, means


def _means(found: Expected) -> Means:
    return tuple(map(pooled, found.successes, found.trials))


def _alike(before: Means, means: Means) -> bool:
    return all(abs(a - b) <= _MEAN_SETTLED * a for a, b in zip(before, means, strict=True))


def _climb_with(
    expect: Callable[[Numbers], Expected],
    at: Numbers,
    means: Means,
    *,
    rows: float,
    strength: float,
    what: str,
) -> tuple[Numbers, Means]:
    """The same, with priors at these means; and the means of what it ends at."""

    def step(at: Numbers) -> tuple[Numbers, float, Means]:
        found = expect(at)
        height = found.likely + strength * sum(map(_log_prior, at, means))
        return _maximised(found, means, strength), height / rows, _means(found)

    back: tuple[Numbers, float] | None = None
    for _ in range(MOST_ROUNDS // 2):
        once, good, _ = step(at)
        if back is not None and good < back[1]:
            at, back = back[0], None
            continue
        twice, better, new_means = step(once)
        if better - good < SETTLED:
            return twice, new_means
        at, back = tuple(map(_further, at, once, twice)), (twice, better)
    raise NotConverged(
        f"The model {what} still gets better after {MOST_ROUNDS:,} rounds. Fit it to more "
        "searches, or take other models."
    )


def pooled(successes: Floats, trials: Floats) -> float:
    """The share of successes in all trials; a half where there are none."""
    total = float(trials.sum())
    return float(successes.sum()) / total if total > 0 else 0.5


def shrunk(successes: Floats, trials: Floats, strength: float, mean: float | None = None) -> Floats:
    """Shares, each with a Beta prior at one mean. The more trials, the less it matters.

    Parameters
    ----------
    successes, trials
        Of equal shape.
    strength
        Trials that the prior counts for.
    mean
        By default that of all.
    """
    at = pooled(successes, trials) if mean is None else mean
    return np.asarray((successes + strength * at) / np.maximum(trials + strength, 1e-12))


def _maximised(found: Expected, means: Means, strength: float) -> Numbers:
    return tuple(
        _inside(shrunk(successes, trials, strength, mean))
        for successes, trials, mean in zip(found.successes, found.trials, means, strict=True)
    )


def _log_prior(x: Floats, mean: float) -> float:
    return mean * float(np.log(x).sum()) + (1 - mean) * float(np.log(1.0 - x).sum())


def _inside(x: Floats) -> Floats:
    return np.clip(x, _EDGE, 1 - _EDGE)


def _further(at: Floats, once: Floats, twice: Floats) -> Floats:
    first = once - at
    bend = twice - once - first
    size = float(np.sqrt((bend**2).sum()))
    length = float(np.sqrt((first**2).sum())) / size if size > 0 else 1.0
    if length <= 1:
        return twice
    # Rounds hardly get away from 0 and 1 again, so that steps end some way before.
    low, high = _NEAR * twice, 1.0 - _NEAR * (1.0 - twice)
    return np.clip(at + 2 * length * first + length**2 * bend, low, high)
