"""What a ranking would be worth, from the log of another one that was drawn at random.

A policy puts docs at ranks with probabilities; the log has clicks under one policy, and another is
to be judged. Row i is a doc at a rank of a search, which the logging policy showed there with
probability `logged` and the target policy would with `target`.

ips     mean of click · target / logged (Horvitz and Thompson)
snips   the same over the mean weight: a little bias, far less noise
pbm     weights of docs, not of docs at ranks: Σ_r target_r p_r / Σ_r logged_r p_r (Li et al., KDD
        2018), where the position-based model holds; p the propensities
dr      a model's forecast under the target, and the weighted error of its forecast of what was
        logged: right if either the probabilities or the model is
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.notebook import brief
from rankdrift.core.types import Floats, Indices
from rankdrift.core.words import many, percent
from rankdrift.propensities.intervals import Interval, check_level, t_quantile
from rankdrift.propensities.propensities import Propensities

METHODS = ("ips", "snips", "pbm", "dr")


@dataclass(frozen=True)
class PolicyValue:
    """Clicks a row that a policy would get.

    Parameters
    ----------
    method
        How it was worked out.
    interval
        The value, and between what it lies.
    effective
        How many equally weighted rows the weighted ones are worth.
    rows
        How many there are.
    largest
        The largest weight.
    """

    method: str
    interval: Interval
    effective: float
    rows: int
    largest: float

    @property
    def value(self) -> float:
        """Clicks a row."""
        return self.interval.value

    def __repr__(self) -> str:
        sure = f"{percent(max(self.interval.low, 0.0))} to {percent(self.interval.high)}"
        worth = f"{many(self.rows, 'row')} worth {self.effective:,.0f}"
        return brief(self, f"{self.method}: {percent(self.value)} ({sure})", worth)


def policy_value(
    clicks: ArrayLike,
    logged: ArrayLike,
    target: ArrayLike,
    *,
    method: str = "snips",
    propensities: Propensities | None = None,
    forecast: ArrayLike | None = None,
    target_forecast: ArrayLike | None = None,
    groups: Sequence[Any] | None = None,
    clip: float | None = None,
    level: float = 0.95,
) -> PolicyValue:
    """Clicks a row that a policy would get, from the log of another.

    Parameters
    ----------
    clicks
        (N,), whether each result was clicked.
    logged
        (N,), the probability with which the logging policy showed it there, above 0. For pbm
        (N, R): with which it showed the doc at each rank.
    target
        The same of the policy that is judged; 0 is allowed.
    method
        ips, snips, pbm or dr.
    propensities
        For pbm: of ranks 1 to R.
    forecast
        For dr: (N,), the forecast chance of a click on what was logged.
    target_forecast
        For dr: (N,), the mean forecast of what the target policy would show at that place.
    groups
        (N,), what belongs together, such as the search, user or query; by default nothing does.
    clip
        The largest weight allowed: less noise, some bias.
    level
        Of the interval.
    """
    check_level(level)
    if method not in METHODS:
        raise BadOption(f"No method {method!r}. There are {', '.join(METHODS)}.")
    y = _array(clicks, "clicks", 1)
    if not len(y):
        raise BadOption("The log has no row.")
    weight = _weights(len(y), logged, target, method, propensities)
    if clip is not None:
        if not clip >= 1:
            raise BadOption(f"clip is the largest weight and must be 1 or more, not {clip}.")
        weight = np.minimum(weight, clip)
    if not weight.any():
        raise NotIdentified(
            "The target policy shows nothing that the log has: every weight is 0. Only a log whose "
            "policy shows what the target would show can tell."
        )
    of = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    base = np.zeros(len(y))
    if method == "dr":
        if forecast is None or target_forecast is None:
            raise BadOption("dr takes forecast= and target_forecast=, the chances of a click.")
        base = _array(target_forecast, "target_forecast", 1, len(y))
        y = y - _array(forecast, "forecast", 1, len(y))
    part, scale = base + weight * y, 1.0
    value = float(part.mean())
    if method == "snips":
        scale = float(weight.mean())
        value /= scale
        part = weight * (y - value) / scale + value
    error = _error(part - value, of)
    groups_there = int(of.max()) + 1
    reach = t_quantile(level, groups_there - 1) * error if groups_there > 1 else np.inf
    return PolicyValue(
        method,
        Interval(value, value - reach, value + reach, level),
        float(weight.sum() ** 2 / (weight**2).sum()),
        len(y),
        float(weight.max()),
    )


def _weights(
    rows: int,
    logged: ArrayLike,
    target: ArrayLike,
    method: str,
    propensities: Propensities | None,
) -> Floats:
    """(N,): target over logged, of docs at ranks or, for pbm, of docs looked at."""
    wide = 2 if method == "pbm" else 1
    before, after = _array(logged, "logged", wide, rows), _array(target, "target", wide, rows)
    if before.shape != after.shape:
        raise BadOption(f"logged is {before.shape} and target {after.shape}: use the same shape.")
    if before.max() > 1 + 1e-9 or after.max() > 1 + 1e-9 or min(before.min(), after.min()) < 0:
        raise BadOption("logged and target are probabilities, from 0 to 1.")
    if wide == 2:
        if propensities is None:
            raise BadOption("pbm takes propensities=, the curve of the ranks.")
        p = propensities.at(np.arange(1, before.shape[1] + 1))
        before, after = before @ p, after @ p
    if (before <= 0).any():
        never = int((before <= 0).sum())
        raise BadOption(
            f"{many(never, 'row')} of the log had probability 0 of being there. `logged` must be "
            "what the policy that made the log drew with."
        )
    return np.asarray(after / before)


def _error(rest: Floats, of: Indices) -> float:
    """The standard error of a mean, from what belongs together."""
    total = np.bincount(of, rest)
    groups = len(total)
    more = groups / (groups - 1) if groups > 1 else 1.0
    return float(np.sqrt(more * (total**2).sum()) / len(rest))


def _array(values: ArrayLike, name: str, wide: int, rows: int | None = None) -> Floats:
    found = np.asarray(values, dtype=float)
    if found.ndim != wide or (rows is not None and len(found) != rows):
        shape = "one number a row" if wide == 1 else "a number for each rank of each row"
        raise BadOption(f"{name} has the shape {found.shape}: give {shape}.")
    if not np.isfinite(found).all():
        raise BadOption(f"{name} has values that are no numbers.")
    return found
