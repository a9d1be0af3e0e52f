"""The covariance of a curve in few numbers: by its steps from each rank to the next.

Errors of neighbouring ranks are nearly the same; what differs is the error of the step between
them. Steps have a few causes in common (the parameters of the curve), and each may have one of its
own (of a segment that is shrunk, the random walk around the pool): factor analysis. With R ranks
and K causes that is R - 1 times K + 1 numbers instead of R times R.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankdrift.core.types import Floats

# How far the standard error of any ratio of two ranks may be off, as a share of itself.
TOLERANCE = 0.005
_LARGEST = 700.0  # of a step: of more, the exponential is no number
_BITS = 24  # of the largest number kept; sums of fewer than 2**28 such are exact
_FEWEST = 24  # causes tried first: more than most curves have parameters
_ROUNDS = 8  # of factor analysis; more change some hundredths of a percent
_FEW = 20  # times fewer causes than steps, from which it is quicker to look for these alone
_NOTHING = 1e-9  # a share of the largest cause that is rounding


@dataclass(frozen=True)
class Steps:
    """causes (R - 1, K): of each step, from each cause; own (R - 1,): from itself alone.

    All are whole multiples of 2**exponent, so that what they add up to is exact.
    """

    causes: Floats
    own: Floats
    exponent: int

    def deviations(self, reference: int) -> Floats:
        """(R, F), the reference being at this place: their products are the covariance."""
        size = len(self.own) + 1
        walks = np.tri(size, size - 1, -1) * self.own if self.own.any() else np.zeros((size, 0))
        common = np.concatenate([np.zeros((1, self.causes.shape[1])), self.causes.cumsum(axis=0)])
        deviations = np.concatenate([common, walks], axis=1)
        return np.asarray(deviations - deviations[reference])

    def pack(self) -> dict[str, Any]:
        """As plain values: little-endian 32-bit numbers, each less the one before, cause by cause
        and `own` last; their first bytes together, then their second, and so on."""
        whole = np.column_stack([self.causes, self.own]) / 2.0**self.exponent
        change = np.diff(whole, axis=0, prepend=0).T.astype("<i4")
        planes = change.reshape(-1, 1).view(np.uint8).T.tobytes()
        return {
            "steps": len(self.own),
            "causes": self.causes.shape[1],
            "exponent": self.exponent,
            "zlib": b64encode(zlib.compress(planes, 9)).decode(),
        }


def unpack(stored: Mapping[str, Any]) -> Steps:
    """What `pack` made; LookupError, TypeError or ValueError for what it did not."""
    size, causes, exponent = (int(stored[name]) for name in ("steps", "causes", "exponent"))
    wanted = 4 * size * (causes + 1)
    if not (0 <= size < 2**24 and 0 <= causes < 2**24 and wanted < 2**31 and abs(exponent) < 1000):
        raise ValueError("steps of no possible size")
    # No more than is wanted: a few bytes may unpack to any number.
    try:
        text = b64decode(stored["zlib"], validate=True)
        packed = zlib.decompressobj().decompress(text, wanted + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(packed) != wanted:
        raise ValueError(f"{len(packed):,} bytes of steps, not {wanted:,}")
    change = np.frombuffer(packed, np.uint8).reshape(4, -1).T.copy().view("<i4")
    whole = change.reshape(causes + 1, size).T.astype(np.float64).cumsum(axis=0)
    largest = np.abs(whole).max(initial=0)
    if largest > 2**_BITS or largest * 2.0**exponent > _LARGEST:
        raise ValueError("steps larger than any")
    return Steps(whole[:, :-1] * 2.0**exponent, whole[:, -1] * 2.0**exponent, exponent)


def steps_of(deviations: Floats) -> Steps:
    """Those of a curve, so that errors of all ratios are right within TOLERANCE; those that
    `Steps.deviations` was made from, if it was."""
    steps = np.diff(deviations, axis=0)
    causes, own = _told_apart(steps)
    kept = _whole(causes, own)
    if np.array_equal(kept.causes, causes) and np.array_equal(kept.own, own):
        return kept
    return _whole(*_analysed(steps))


def _told_apart(steps: Floats) -> tuple[Floats, Floats]:
    """Where the last columns are of one step each, in order, those are its own."""
    size, places = steps.shape
    last = steps[:, places - size :] if places >= size else steps[:, :0]
    if last.shape[1] and np.count_nonzero(last) == np.count_nonzero(np.diagonal(last)):
        return steps[:, : places - size], np.diagonal(last)
    return steps, np.zeros(size)


def _whole(causes: Floats, own: Floats) -> Steps:
    """Cut to whole multiples, towards 0: so the largest stays below the same power of two."""
    largest = max(np.abs(causes).max(initial=0), np.abs(own).max(initial=0))
    exponent = int(np.frexp(largest)[1]) - _BITS if largest else 0
    unit = 2.0**exponent
    causes, own = (np.trunc(values / unit) * unit + 0.0 for values in (causes, own))  # not -0
    return Steps(causes, own, exponent)


def _analysed(steps: Floats) -> tuple[Floats, Floats]:
    """As few causes as will do, twice as many each time; as many as there are are exact."""
    # Long steps and short ones both matter: each counts by the root of its length.
    length = np.sqrt((steps**2).sum(axis=1))
    scale = np.sqrt(np.where(length > 0, length, 1.0))[:, None]
    left, size, _ = np.linalg.svd(steps / scale, full_matrices=False)
    many = int((size > _NOTHING * size.max(initial=0)).sum())
    causes = _FEWEST
    while causes < many:
        found, own = _factors(steps / scale, causes)
        found, own = found * scale, own * scale[:, 0]
        if _worst(steps, found, own) < TOLERANCE:
            return found, own
        causes *= 2
    return _told_apart(left[:, :many] * size[:many] * scale)


def _factors(steps: Floats, causes: int) -> tuple[Floats, Floats]:
    """Principal factors: by turns, the causes of what steps have in common, and what is left."""
    covariance = steps @ steps.T
    variance, own = np.diagonal(covariance).copy(), np.zeros(len(steps))
    found = np.zeros((len(steps), 0))
    start = np.ones(len(steps))
    for _ in range(_ROUNDS):
        sizes, vectors = _largest(covariance - np.diag(own), min(causes, len(steps) - 1), start)
        found = vectors * np.sqrt(np.maximum(sizes, 0.0))
        own = np.maximum(variance - (found**2).sum(axis=1), 0.0)
        start = vectors.sum(axis=1)
    return found, np.sqrt(own)


def _largest(matrix: Floats, many: int, start: Floats) -> tuple[Floats, Floats]:
    """The largest eigenvalues, with their vectors: from the start where they are few of many."""
    size = len(matrix)
    if _FEW * many < size:
        from scipy.sparse.linalg import eigsh

        sizes, vectors = eigsh(matrix, many, which="LA", v0=start)
    else:
        from scipy.linalg import eigh

        sizes, vectors = eigh(matrix, subset_by_index=[size - many, size - 1])
    return sizes, vectors


def _worst(steps: Floats, causes: Floats, own: Floats) -> float:
    """How far the error of a ratio of two ranks is off at the most, as a share of itself."""
    exact, kept = steps.cumsum(axis=0), causes.cumsum(axis=0)
    before, after = _apart(exact @ exact.T), _apart(kept @ kept.T)
    walk = np.concatenate([[0.0], (own**2).cumsum()])
    after += np.abs(walk[:, None] - walk)
    told = before > 0
    return float(np.abs(np.sqrt(after[told] / before[told]) - 1).max(initial=0.0))


def _apart(covariance: Floats) -> Floats:
    """(R, R): the variance of the difference of each two of R ranks, the first of which is sure."""
    covariance = np.pad(covariance, ((1, 0), (1, 0)))
    variance = np.diagonal(covariance)
    return np.asarray(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))
