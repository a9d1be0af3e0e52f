"""curve="auto": knots, and a period if there is one, chosen from the data.

The paper's knots stay. On top of them, look for the one addition that the data ask for most
loudly (a score test, so that nothing has to be refitted to try it), add it if it pays by BIC,
refit, and go on; then take away what no longer pays. A period, such as results loaded 40 at a
time, is tried the same way. Candidates are many, so each must also pay for having been picked.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.types import Floats
from rankdrift.estimation.curves import Curve, Part
from rankdrift.estimation.newton import Fit, maximise

MOST_KNOTS = 60
PERIODS = range(5, 121)
# Ranks near the top are worth a knot each; further down, steps of about 4%.
_SPACING = 1.04


@dataclass(frozen=True)
class _State:
    curve: Curve
    fit: Fit
    cost: float  # BIC: what parameters and choices among candidates cost, less 2 log L


def choose_curve(first: Fit, start: Curve) -> Curve:
    """The curve that the data ask for: `start`, a loglog curve whose fit is `first`, with knots or
    a period added where they pay."""
    terms, ranks = first.likelihood, first.likelihood.ranks
    price = np.log(max(terms.weight, 2.0))
    kept = set(start.parts[0].numbers)

    def state(curve: Curve) -> _State | None:
        try:
            found = maximise(terms, curve.basis(ranks)[:, 1:])
        except ValueError:  # more freedom than the data can bear
            return None
        added = len(set(curve.parts[0].numbers) - kept)
        picks = 2 * np.log(max(len(_candidates(ranks)), 1)) * added
        if len(curve.parts) > 1:
            picks += 2 * np.log(len(PERIODS))
        return _State(curve, found, price * len(found.phi) + picks - 2 * found.log_likelihood)

    now = state(start)
    assert now
    # A jump looks much like a period, and the other way round: whichever explains more comes first.
    starts = (now, _with_period(now, state), _with_jump(now, state))
    now = min((start for start in starts if start), key=lambda start: start.cost)
    now = _grow(now, state)
    now = _with_period(now, state)
    return _shrink(now, kept, state).curve


State = Callable[[Curve], _State | None]


def _loglog(knots: tuple[int, ...], *more: Part) -> Curve:
    return Curve((Part("loglog", knots), *more))


def _candidates(ranks: NDArray[np.int32]) -> NDArray[np.int32]:
    steps = np.unique(
        np.rint(_SPACING ** np.arange(0, np.log(ranks[-1]) / np.log(_SPACING) + 1)).astype(int)
    )
    # Batches end on round numbers more often than not.
    tens = np.concatenate([np.arange(10, ranks[-1], 10), np.arange(11, ranks[-1], 10)])
    both = np.union1d(steps, tens)
    inside: NDArray[np.int32] = both[(both > ranks[0]) & (both < ranks[-1])].astype(np.int32)
    return inside


def _score_tests(fit: Fit, columns: list[Floats]) -> list[float]:
    """For each set of columns (R, c): the gain in 2 log L of adding it, to first order."""
    point, basis = fit.likelihood.at(fit.theta), fit.basis
    gradient, information = point.gradient, point.information()
    cross = information @ basis
    inner = np.linalg.inv(basis.T @ cross)
    gains = []
    for column in columns:
        score = column.T @ gradient
        own = column.T @ information @ column
        shared = column.T @ cross
        left = own - shared @ inner @ shared.T
        gains.append(float(score @ np.linalg.pinv(left, rcond=1e-9, hermitian=True) @ score))
    return gains


def _grow(now: _State, state: State) -> _State:
    ranks = now.fit.likelihood.ranks
    logs = np.log(ranks.astype(float))
    while len(now.curve.parts[0].numbers) < MOST_KNOTS:
        knots = now.curve.parts[0].numbers
        free = [k for k in _candidates(ranks).tolist() if k not in knots]
        if not free:
            break
        # A bend at k: in the span once k is a knot, whatever the other knots are.
        bends = [np.maximum(0.0, logs - np.log(k))[:, None] for k in free]
        gains = _score_tests(now.fit, bends)
        best = free[int(np.argmax(gains))]
        tried = state(_loglog(tuple(sorted((*knots, best))), *now.curve.parts[1:]))
        if tried is None or tried.cost >= now.cost:
            tried = _with_jump(now, state)
            if tried is None or tried.cost >= now.cost:
                break
        now = tried
    return now


def _with_jump(now: _State, state: State) -> _State | None:
    """Two knots at once: a jump from one rank to the next needs both to show at all."""
    ranks, knots = now.fit.likelihood.ranks, now.curve.parts[0].numbers
    at = [int(r) for r in ranks[1:-2]]
    if not at:
        return None
    steps = [(ranks > r).astype(float)[:, None] for r in at]
    best = at[int(np.argmax(_score_tests(now.fit, steps)))]
    return state(_loglog(tuple(sorted({*knots, best, best + 1})), *now.curve.parts[1:]))


def _with_period(now: _State, state: State) -> _State:
    if len(now.curve.parts) > 1:
        return now
    best, gain = best_period(now.fit)
    if best is None or gain <= 0:
        return now
    tried = state(_loglog(now.curve.parts[0].numbers, Part("periodic", (best,))))
    return tried if tried is not None and tried.cost < now.cost else now


def best_period(fit: Fit) -> tuple[int | None, float]:
    """The period that would gain most on top of a fit, and by how much BIC would improve."""
    terms, ranks = fit.likelihood, fit.likelihood.ranks
    periods = [n for n in PERIODS if 3 * n <= len(ranks)]
    if not periods:
        return None, 0.0
    columns = [np.eye(n)[(ranks - 1) % n][:, 1:] for n in periods]
    cost = np.log(max(terms.weight, 2.0)) * (np.array(periods) - 1) + 2 * np.log(len(PERIODS))
    gains = np.array(_score_tests(fit, columns)) - cost
    best = int(np.argmax(gains))
    return periods[best], float(gains[best])


def _shrink(now: _State, kept: set[int], state: State) -> _State:
    """Take added knots away, the least useful first, while that pays."""
    while True:
        knots, more = now.curve.parts[0].numbers, now.curve.parts[1:]
        tries = [
            state(_loglog(tuple(k for k in knots if k != out), *more))
            for out in knots
            if out not in kept
        ]
        if more:
            tries.append(state(_loglog(knots)))
        better = [t for t in tries if t is not None and t.cost < now.cost]
        if not better:
            return now
        now = min(better, key=lambda t: t.cost)
