"""Area under the ROC curve, with ties and weights, of one sample or of a thousand at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdrift.core.errors import BadOption
from rankdrift.core.types import Floats, Indices, SmallInts


@dataclass(frozen=True)
class Sorted:
    """Rows in the order of their score, once for all samples.

    clicked (P,) rows with a click; others (M,) the rest, by ascending score; below, upto (P,):
    how many of `others` score less than each clicked row, and how many no more.
    """

    clicked: Indices
    others: Indices
    below: Indices
    upto: Indices

    def auc(self, weight: NDArray[Any]) -> Floats:
        """(B,) from weights (N, B) of rows: the weight of pairs of a clicked row and another in
        which the clicked one scores more, ties counting half, over that of all pairs.

        NaN for a sample without a clicked row, or without another.
        """
        of_clicked = weight[self.clicked]
        others = np.zeros((len(self.others) + 1, weight.shape[1]), _sums(weight))
        np.cumsum(weight[self.others], axis=0, out=others[1:])
        beaten = others[self.below].astype(np.float64)
        beaten += others[self.upto]
        won = np.einsum("pb,pb->b", of_clicked.astype(np.float64), beaten) / 2
        pairs = of_clicked.sum(axis=0, dtype=np.float64) * others[-1]
        return np.where(pairs > 0, won / np.where(pairs > 0, pairs, 1.0), np.nan)

    def influence(self, unit: ArrayLike, units: int) -> Floats:
        """(U,): how much the AUC moves with each independent unit of rows, to first order.

        The root of the sum of their squares is DeLong's standard error if every row is a unit of
        its own, and what samples of units give, without drawing any, if they are queries.

        Parameters
        ----------
        unit
            (N,): which unit each row belongs to, from 0.
        units
            How many there are.
        """
        of = np.asarray(unit)
        wins = (self.below + self.upto) / 2  # others that each clicked row beats
        # The others that score less than a clicked row come first, so that how often another is
        # beaten is a sum from its place on.
        last = len(self.others) - 1
        ends = [np.bincount(ends, minlength=last + 2) for ends in (self.below, self.upto)]
        lost = len(self.clicked) - (np.cumsum(ends[0]) + np.cumsum(ends[1]))[: last + 1] / 2
        mean = wins.mean() / len(self.others)
        found = np.bincount(
            of[self.clicked], (wins / len(self.others) - mean) / len(self.clicked), units
        )
        found += np.bincount(
            of[self.others], (lost / len(self.clicked) - mean) / len(self.others), units
        )
        return found.astype(np.float64)


def sort(score: ArrayLike, click: ArrayLike) -> Sorted:
    """Rows of scores (N,) and clicks (N,), ready for the AUC of many samples."""
    scores, clicks = np.asarray(score, dtype=float), np.asarray(click, dtype=bool)
    clicked, others = np.flatnonzero(clicks), np.flatnonzero(~clicks)
    others = others[np.argsort(scores[others], kind="stable")]
    ordered = scores[others]
    return Sorted(
        clicked,
        others,
        np.searchsorted(ordered, scores[clicked], "left"),
        np.searchsorted(ordered, scores[clicked], "right"),
    )


def auc(score: ArrayLike, click: ArrayLike, weight: ArrayLike | None = None) -> float:
    """How often a clicked row scores more than one that was not, ties counting half."""
    scores, clicks = np.asarray(score, dtype=float), np.asarray(click, dtype=bool)
    weights = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=float)
    if not scores.shape == clicks.shape == weights.shape or scores.ndim != 1:
        raise BadOption(
            f"score, click and weight must be equally long, not {scores.shape}, {clicks.shape} and "
            f"{weights.shape}."
        )
    if np.isnan(scores).any() or not np.isfinite(weights).all() or (weights < 0).any():
        raise BadOption("Scores must not be missing, and weights must be 0 or more.")
    return float(sort(scores, clicks).auc(weights[:, None])[0])


def draw(n: int, samples: int, rng: np.random.Generator) -> SmallInts:
    """(n, samples): how often each of n things is in a sample of n drawn with replacement."""
    drawn = rng.integers(0, n, (samples, n), dtype=np.int64)
    drawn += n * np.arange(samples)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=n * samples).reshape(samples, n)
    return np.ascontiguousarray(counts.T, dtype=np.int32)


def _sums(weight: NDArray[Any]) -> type[np.float64 | np.int32 | np.int64]:
    """A type that holds every sum of these weights; the smaller, the faster."""
    if weight.dtype.kind not in "iu":
        return np.float64
    return np.int32 if len(weight) * int(weight.max(initial=0)) < 2**31 else np.int64
