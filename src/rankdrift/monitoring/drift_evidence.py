"""Evidence of a change that may be looked at every day.

Let a change of log p by D_c d have begun with day j, on top of a curve that is a little off by D x.
With W the days j to t, and all the days from the first to t, scores are about normal:

    u = s_W − I_W H⁻¹ s,   V = I_W − I_W H⁻¹ I_W,   H = I + 1,   in the columns c of a kind

the score test of `estimation.score_test` for "the days since j follow another curve". For d normal
with the deviation σ, the probability of u over that without a change is

    Λ_jt = |1 + σ² V / φ|^(−1/2) · exp( u' (φ² / σ² + φ V)⁻¹ u / 2 )

and for a kind of one column whose size a is known,

    Λ_jt = exp( a u / φ − a² V / 2φ )

averaged over kinds of change and over σ or a. While nothing changes, each Λ_jt is worth 1 tomorrow
for every 1 of today, on average, whatever it was: nobody gains by looking often. The evidence is
the sum over the days on which the change may have begun. It grows by 1 a day on average while
nothing changes, so the chance that it has ever passed a limit A within n days is at most n / A.

φ, how much more or less scores vary than if all clicks were independent, is taken from the days
before j: between buckets of queries within days, and more if days differ by more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankdrift.core.types import Floats, Ints
from rankdrift.monitoring.drift_scores import KNOWN, Scores, Shapes

SIZES = (0.1, 0.3)
"""Deviations of a change of log p that is looked for."""
EVERY_DAY = 7
"""Days back that a change may have begun on any of; further back, on one day a week."""
FLOOR = 0.5
"""The least that φ may be: see `estimation.score_test.FLOOR`."""
PRIOR = 32.0
"""Degrees of freedom that days are taken to differ by no more than chance for, to begin with."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Of T days the logarithm of the evidence (T,), −inf where nothing can be said yet, and the
    place (T,) of the day with which the likeliest change began."""

    log: Floats
    began: Ints


def evidence_of(
    scores: Scores, shapes: Shapes, days: Ints, *, reference: int, window: int
) -> Evidence:
    """The evidence of a change as it was on each day.

    Parameters
    ----------
    scores
        Of T days.
    shapes
        What they were scored with.
    days
        (T,), as numbers that ascend by one a day.
    reference
        Days at the beginning in which no change is looked for.
    window
        Days back that a change may have begun at most.
    """
    many, size = scores.score.shape
    score, information = np.cumsum(scores.score, axis=0), np.cumsum(scores.information, axis=0)
    inverse = np.asarray(np.linalg.inv(information + np.eye(size)), np.float64)
    towards = np.einsum("tkl,tl->tk", inverse, score)
    spread = _spread(scores, shapes, information)
    # Each day alone against those before it.
    alone = np.arange(1, many)
    found = _tested(scores.score[1:], scores.information[1:], inverse[1:], towards[1:])
    for name, columns in shapes.tested.items():
        spread[name][1:] *= _between_days(*_part(found, columns), spread[name][alone])
    start, end = _windows(days, reference, window)
    before = (
        np.concatenate([np.zeros((1, size)), score]),
        np.concatenate([np.zeros((1, size, size)), information]),
    )
    log = np.empty(len(start))
    for some in np.array_split(np.arange(len(start)), max(1, len(start) // 500)):
        j, t = start[some], end[some]
        found = _tested(
            score[t] - before[0][j], information[t] - before[1][j], inverse[t], towards[t]
        )
        kinds = [
            _log_ratios_known(*_part(found, columns), spread[name][j], KNOWN[name])
            if name in KNOWN
            else _log_ratios(*_part(found, columns), spread[name][j])
            for name, columns in shapes.tested.items()
        ]
        log[some] = _log_mean(np.concatenate(kinds))
    total, began = np.full(many, -np.inf), np.arange(many)
    for t in np.unique(end).tolist():
        mine = np.flatnonzero(end == t)
        total[t] = np.logaddexp.reduce(log[mine])
        began[t] = start[mine[np.argmax(log[mine])]]
    return Evidence(total, began)


def _windows(days: Ints, reference: int, window: int) -> tuple[Ints, Ints]:
    """(N,), (N,): places of the first and the last day of every window that is looked at. A start
    that was dropped does not come back: otherwise the evidence could grow by looking."""
    start, end = np.tril_indices(len(days))[::-1]
    age = days[end] - days[start]
    kept = (age < EVERY_DAY) | ((age < window) & (days[start] % 7 == 0))
    kept &= (start >= reference) & (age < max(window, 1))
    return start[kept], end[kept]


def _tested(
    score: Floats, information: Floats, inverse: Floats, towards: Floats
) -> tuple[Floats, Floats]:
    """u (N, K) and V (N, K, K) of N windows, from their own score and information, and H⁻¹ and
    H⁻¹ s of all days."""
    u = score - np.einsum("nkl,nl->nk", information, towards)
    return u, information - information @ inverse @ information


def _part(found: tuple[Floats, Floats], columns: slice) -> tuple[Floats, Floats]:
    return found[0][:, columns], found[1][:, columns, columns]


def _spread(scores: Scores, shapes: Shapes, information: Floats) -> dict[str, Floats]:
    """Of each kind of change φ (T,) as the days before each one tell, by buckets of queries, with
    what is not known of it on top; that of the first day is not told."""
    scatter = np.cumsum(scores.scatter, axis=0)
    units = np.cumsum(scores.weight) ** 2 / np.cumsum(scores.squares)
    found = {}
    for name, columns in shapes.tested.items():
        values, vectors = np.linalg.eigh(information[:, columns, columns])
        kept = values > 1e-6 * values[:, -1:]
        along = np.einsum("tki,tkl,tli->ti", vectors, scatter[:, columns, columns], vectors)
        known = np.maximum(kept.sum(axis=1), 1)  # 1: of a flat curve, pushed, nothing is to be told
        phi = np.where(kept, along / np.where(kept, values, 1.0), 0.0).sum(axis=1) / known
        phi = np.maximum(phi, FLOOR) * (1 + np.sqrt(2 / (known * units)))
        found[name] = np.concatenate([[np.inf], phi[:-1]])
    return found


def _between_days(u: Floats, v: Floats, phi: Floats) -> Floats:
    """(T − 1,): how many times as much as φ days differ, by those before each day but the first;
    at least once. u, v: each day against those before it, and its φ."""
    values, w = _along(u, v, phi)
    # What a day hardly tells of says little of how days differ.
    share = values * SIZES[-1] ** 2 / (1 + values * SIZES[-1] ** 2)
    squares = np.where(values > 1e-9, w**2 / np.maximum(values, 1e-9), 0.0)
    more = PRIOR + np.cumsum((share * squares).sum(axis=1))
    usual = PRIOR + np.cumsum(share.sum(axis=1))
    return np.asarray(np.maximum(1.0, np.concatenate([[1.0], (more / usual)[:-1]])))


def _along(u: Floats, v: Floats, phi: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues (N, k) of V / φ, and u / φ (N, k) along its axes."""
    values, vectors = np.linalg.eigh(v / phi[:, None, None])
    return np.maximum(values, 0.0), np.einsum("nki,nk->ni", vectors, u / phi[:, None])


def _log_ratios(u: Floats, v: Floats, phi: Floats) -> Floats:
    """(sizes, N): log Λ for each size of a change."""
    values, w = _along(u, v, phi)
    squares = np.array(SIZES)[:, None, None] ** 2
    grown = 1 + squares * values
    return np.asarray(0.5 * (squares * w**2 / grown - np.log(grown)).sum(axis=2))


def _log_ratios_known(u: Floats, v: Floats, phi: Floats, sizes: Sequence[float]) -> Floats:
    """(sizes, N): log Λ for each size of a change by the only column."""
    a = np.array(sizes)[:, None]
    return np.asarray((a * u[:, 0] - a**2 / 2 * v[:, 0, 0]) / phi)


def _log_mean(logs: Floats) -> Floats:
    """(N,): the logarithm of the mean over the first axis."""
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)))
