"""What each click is worth: 1 / p of the rank it was made at, Eq. (6), loss-unbiased."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.types import Bools, Floats, Indices, Ints, Ranks, Segment, SmallInts
from rankdrift.core.words import ranges
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.table import all_curves, recommended
from rankdrift.ranking.matrix import Matrix

Beyond = Literal["error", "clip"]
"""A click at a rank without propensity: stop, or take the propensity of the nearest rank."""
GainKind = Literal["ipw", "dr", "poisson", "judgments", "dual"]
"""What is learnt from: clicks worth 1 / p; the same, where what a clip takes away is given back as
features expect it (doubly robust); counts of clicks, with the propensity as exposure; the judged
relevance, in place of clicks; or clicks whose worth is learnt along with the ranker."""
# Of two gains that differ by less than this share, a library is told the same: its table of
# different gains would be as long as the rows.
SAME_GAIN = 0.01


@dataclass(frozen=True)
class Gains:
    """gain (N,): 0 without a click, else 1 / p, at most `clip`. By a curve with trust (click -
    trust) / p, all raised by the same so that the least is 0: DCG of two orders differs as before.

    clicks: how many; effective: how many equally weighted clicks they are worth; clipped: how
    many were worth more than `clip`; borrowed: how many were at a rank without a propensity and
    took that of the nearest rank; raised: by how much all gains are, so that none is below 0.
    """

    gain: Floats
    clicks: int
    effective: float
    largest: float
    clipped: int = 0
    borrowed: int = 0
    raised: float = 0.0

    @property
    def table(self) -> Floats:
        """The different gains, as `gain_table` has them."""
        return gain_table(self.gain)

    def to_dict(self) -> dict[str, Any]:
        """The numbers about the gains as plain values, without the gains themselves."""
        numbers = {name: value for name, value in vars(self).items() if name != "gain"}
        return numbers | {"different": len(self.table) - 1}


class Shared(dict[str, Any]):
    """By library, what it made of some rows: for several lists of the same rows."""


@dataclass(frozen=True)
class Lists:
    """Rows to learn from with the gain (N,) of each; exposure (N,): where gains are counts of
    clicks, how many would be expected whatever the features, else None; clip: the largest weight of
    a click, where weights are learnt along with the ranker; shared: if other lists of the same rows
    will be learnt from too."""

    matrix: Matrix
    gain: Floats
    exposure: Floats | None = None
    clip: float | None = None
    shared: Shared | None = None

    def take(self, keep: Bools) -> Lists:
        """Some of the rows."""
        exposure = None if self.exposure is None else self.exposure[keep]
        return Lists(self.matrix.take(keep), self.gain[keep], exposure, self.clip)

    def together(self) -> Lists:
        """Counts of rows of a query that have the same features added up: one row stands for
        them, and the lists are gone. Gains by search stay as they are."""
        if self.exposure is None:
            return self
        matrix = self.matrix
        key = keys_of_rows(matrix)
        _, first, same = np.unique(key, return_index=True, return_inverse=True)
        kept = np.zeros(len(matrix), bool)
        kept[first] = True
        order = np.argsort(first)
        clicks, exposure = (
            np.bincount(same, values, len(first)).astype(np.float64)[order]
            for values in (self.gain, self.exposure)
        )
        return Lists(matrix.take(kept), clicks, exposure)

    @property
    def sizes(self) -> Ints:
        """(S,): how many results each search shows."""
        return np.diff(self.matrix.starts)

    @property
    def ideal(self) -> Floats:
        """(S,): the DCG of each search in the best order."""
        return ideal_dcg(self.gain, self.matrix.search, self.matrix.n_searches)


def weigh(
    matrix: Matrix,
    propensities: Propensities | None,
    *,
    clip: float | None = None,
    beyond: Beyond = "error",
    pool: bool = False,
) -> Gains:
    """What the click on every row is worth.

    Parameters
    ----------
    matrix
        The rows.
    propensities
        A click at rank r is worth 1 / p_r; None: 1, wherever it was made.
    clip
        The largest weight that a click may have.
    beyond
        What to do with a click at a rank without propensity.
    pool
        Use one curve for all, though the propensities have segments.

    Returns
    -------
    Gains
        The gain of each row, and how many clicks that is worth.

    Raises
    ------
    NotIdentified
        If a click is at a rank, or in a segment, that the propensities say nothing about.
    """
    if clip is not None and not clip >= 1:
        raise BadOption(f"clip is the largest weight allowed and must be 1 or more, not {clip}.")
    if beyond not in get_args(Beyond):
        raise BadOption(f"beyond must be 'error' or 'clip', not {beyond!r}.")
    gain = np.zeros(len(matrix))
    borrowed = 0
    if propensities is None:
        if clip is not None:
            raise BadOption("clip limits 1 / propensity, and there are no propensities.")
        gain[matrix.click] = 1.0
    else:
        for rows, curve in _curves(matrix, propensities, pool, np.flatnonzero(matrix.click)):
            places, of_nearest = _places(curve, matrix.rank[rows], beyond, "clicks")
            gain[rows] = 1 / curve.values[places]
            borrowed += of_nearest
    clipped = int((gain > clip).sum()) if clip is not None else 0
    if clip is not None:
        gain = np.minimum(gain, clip)
    if propensities is not None and propensities.trust is not None:
        return _weigh_with_trust(matrix, propensities, clip, beyond, clipped)
    squares = float((gain**2).sum())
    return Gains(
        gain,
        clicks=matrix.n_clicks,
        effective=float(gain.sum()) ** 2 / squares if squares else 0.0,
        largest=float(gain.max(initial=0.0)),
        clipped=clipped,
        borrowed=borrowed,
    )


def _weigh_with_trust(
    matrix: Matrix, p: Propensities, clip: float | None, beyond: Beyond, clipped: int
) -> Gains:
    """Rows without a click have a gain too. What clicks are worth beside each other is told of
    clicks."""
    assert p.trust is not None
    places, borrowed = _places(p, matrix.rank, beyond, "results")
    weight = 1 / p.values if clip is None else np.minimum(1 / p.values, clip)
    gain = (matrix.click - p.trust[places]) * weight[places]
    clicks = gain[matrix.click]
    squares = float((clicks**2).sum())
    least = float(gain.min(initial=0.0))
    return Gains(
        gain - least,
        clicks=matrix.n_clicks,
        effective=float(clicks.sum()) ** 2 / squares if squares else 0.0,
        largest=float(clicks.max(initial=0.0)),
        clipped=clipped,
        borrowed=borrowed,
        raised=-least,
    )


def looked_at(
    matrix: Matrix, propensities: Propensities, *, beyond: Beyond = "error", pool: bool = False
) -> Floats:
    """(N,): the propensity of every row, clicked or not.

    Parameters
    ----------
    matrix
        The rows.
    propensities, beyond, pool
        As of `weigh`.
    """
    found = np.empty(len(matrix))
    for rows, curve in _curves(matrix, propensities, pool, np.arange(len(matrix))):
        found[rows] = curve.values[_places(curve, matrix.rank[rows], beyond, "results")[0]]
    return found


@dataclass(frozen=True)
class Weighting:
    """How clicks are weighed: the options of `weigh`, for every set of rows alike.

    kind: what is learnt from; relevance (N,): of the rows that are weighed, what features expect
    it to be for "dr", and what it was judged to be for "judgments".
    """

    propensities: Propensities | None
    clip: float | None
    beyond: Beyond
    pool: bool
    kind: GainKind = "ipw"
    relevance: Floats | None = None

    def weigh(self, matrix: Matrix) -> tuple[Lists, Gains]:
        """The rows with their gains, and what is to be said about these."""
        if self.kind == "judgments" and self.relevance is not None:
            gain = _coarse(self.relevance)
            return Lists(matrix, gain), replace(_counted(matrix), largest=float(gain.max()))
        if self.kind == "poisson":
            p = self.looked_at(matrix)
            exposure = p * (matrix.n_clicks / p.sum())
            return Lists(matrix, matrix.click.astype(float), exposure), _counted(matrix)
        if self.kind == "dual":
            return Lists(matrix, matrix.click.astype(float), clip=self.clip), _counted(matrix)
        gains = self.by_clicks(matrix)
        if self.kind == "dr" and self.relevance is not None:
            p = self.looked_at(matrix)
            weight = 1 / p if self.clip is None else np.minimum(1 / p, self.clip)
            robust = self.relevance + (matrix.click - p * self.relevance) * weight
            # Never below 0 but by rounding: p times the weight is 1 at most.
            return Lists(matrix, _coarse(np.maximum(robust, 0.0))), gains
        return Lists(matrix, gains.gain), gains

    def by_clicks(self, matrix: Matrix) -> Gains:
        """What clicks are worth by their weight, whatever is learnt from."""
        return weigh(matrix, self.propensities, clip=self.clip, beyond=self.beyond, pool=self.pool)

    def largest(self, matrix: Matrix) -> float:
        """The largest weight that a click has without a clip."""
        return replace(self, clip=None).by_clicks(matrix).largest

    def looked_at(self, matrix: Matrix) -> Floats:
        """(N,): the propensity of every row; 1 without propensities."""
        if self.propensities is None:
            return np.ones(len(matrix))
        return looked_at(matrix, self.propensities, beyond=self.beyond, pool=self.pool)

    def take(self, keep: Bools) -> Weighting:
        """For some of the rows."""
        return self if self.relevance is None else replace(self, relevance=self.relevance[keep])


def _counted(matrix: Matrix) -> Gains:
    """Of clicks that are counted, each as one."""
    clicks = matrix.n_clicks
    return Gains(matrix.click.astype(float), clicks, effective=float(clicks), largest=1.0)


def _coarse(gain: Floats) -> Floats:
    """The same to within half of SAME_GAIN."""
    there = gain > 0
    steps = np.round(np.log(np.where(there, gain, 1.0)) / SAME_GAIN)
    return np.where(there, np.exp(SAME_GAIN * steps), 0.0)


def _curves(
    matrix: Matrix, p: Propensities, pool: bool, wanted: Indices
) -> Iterator[tuple[Indices, Propensities]]:
    """(rows, the curve that is theirs), of the rows wanted."""
    if pool or not p.segment_columns:
        yield wanted, p
        return
    missing = [c for c in p.segment_columns if c not in matrix.segment_columns]
    if missing:
        raise BadOption(
            f"The propensities differ by {', '.join(p.segment_columns)}, but the rows do not tell "
            f"their {', '.join(missing)}. Read the log with --segment "
            f"{','.join(p.segment_columns)}, or use one curve for all with --pool."
        )
    places = [matrix.segment_columns.index(c) for c in p.segment_columns]
    of_segment = {
        i: tuple(values[place] for place in places) for i, values in enumerate(matrix.segments)
    }
    curves = p.segments
    rows_of: dict[Segment, list[Indices]] = {}
    for i in np.unique(matrix.segment[wanted]):
        rows_of.setdefault(of_segment[int(i)], []).append(wanted[matrix.segment[wanted] == i])
    unknown = {s: sum(map(len, rows)) for s, rows in rows_of.items() if s not in curves}
    if unknown:
        what = "clicks" if matrix.click[wanted].all() else "results"
        missed = ", ".join(f"{'/'.join(map(str, s))} ({n:,} {what})" for s, n in unknown.items())
        known = ", ".join("/".join(map(str, s)) for s in curves) or "none"
        raise NotIdentified(
            f"There are no propensities for the segment {missed}; there are for: {known}. Estimate "
            "with that segment too, leave its rows out (--where), or use one curve for all "
            "segments with --pool."
        )
    for segment, rows in rows_of.items():
        yield np.concatenate(rows), curves[segment]


def _places(p: Propensities, ranks: Ranks, beyond: Beyond, what: str) -> tuple[Indices, int]:
    """Where in the curve each of `ranks` is, and how many of them took the nearest rank; what:
    has these ranks, in words."""
    known = np.isin(ranks, p.ranks)
    if not known.all() and beyond == "error":
        missing = np.unique(ranks[~known])
        raise NotIdentified(
            f"{(~known).sum():,} of {len(ranks):,} {what} are at ranks without a propensity: "
            f"{ranges(missing.tolist())}; the curve covers {ranges(p.ranks.tolist())}. Leave such "
            "rows out (--max-rank), estimate with a loglog curve or --extrapolate-to, or give "
            "them the propensity of the nearest rank with --beyond clip."
        )
    right = np.minimum(np.maximum(np.searchsorted(p.ranks, ranks), 1), len(p.ranks) - 1)
    left = np.maximum(right - 1, 0)
    near = np.where(ranks - p.ranks[left] <= p.ranks[right] - ranks, left, right)
    return near, int((~known).sum())


@dataclass(frozen=True)
class OtherCurves:
    """What clicks would be worth by other curves that the data allows as well.

    rows (C,) those clicked, place (C,) where their curve has their rank, among all curves and
    their K ranks; log_p (K,); deviations: of each curve, as `Propensities` has them; clip: the
    largest weight. Curves of several segments are taken to err each for itself.
    """

    rows: Indices
    place: Indices
    log_p: Floats
    deviations: tuple[Floats, ...]
    clip: float | None

    def draw_log_p(self, samples: int, rng: np.random.Generator) -> Floats:
        """(K, B): the log of so many curves, drawn from the errors of the estimate."""
        moved = [d @ rng.normal(size=(d.shape[1], samples)) for d in self.deviations]
        return np.asarray(self.log_p[:, None] + np.concatenate(moved))

    def draw(self, samples: int, rng: np.random.Generator) -> Floats:
        """(K, B): the weights of so many curves, drawn from the errors of the estimate."""
        weight = np.exp(-self.draw_log_p(samples, rng))
        return weight if self.clip is None else np.minimum(weight, self.clip)


def other_curves(
    matrix: Matrix,
    propensities: Propensities,
    *,
    clip: float | None = None,
    beyond: Beyond = "error",
    pool: bool = False,
) -> OtherCurves | None:
    """The curves that the errors of the propensities allow; None if these have no errors.

    Parameters
    ----------
    matrix
        The rows.
    propensities, clip, beyond, pool
        As of `weigh`.
    """
    return _others(matrix, propensities, np.flatnonzero(matrix.click), clip, beyond, pool)


def curves_of_rows(
    matrix: Matrix, propensities: Propensities, *, pool: bool = False
) -> OtherCurves | None:
    """As `other_curves`, of every row, clicked or not; ranks without propensity take the nearest.

    Parameters
    ----------
    matrix
        The rows.
    propensities, pool
        As of `weigh`.
    """
    return _others(matrix, propensities, np.arange(len(matrix)), None, "clip", pool)


def _others(
    matrix: Matrix,
    propensities: Propensities,
    wanted: Indices,
    clip: float | None,
    beyond: Beyond,
    pool: bool,
) -> OtherCurves | None:
    rows, places, curves, before = [], [], [], 0
    for of_curve, curve in _curves(matrix, propensities, pool, wanted):
        rows.append(of_curve)
        places.append(_places(curve, matrix.rank[of_curve], beyond, "clicks")[0] + before)
        curves.append(curve)
        before += len(curve.ranks)
    if not any(curve.deviations.any() for curve in curves):
        return None
    return OtherCurves(
        np.concatenate(rows),
        np.concatenate(places),
        np.concatenate([curve.log_p for curve in curves]),
        tuple(curve.deviations for curve in curves),
        clip,
    )


def gain_table(*gains: Floats) -> Floats:
    """The different gains, ascending, 0 (no click) first: LightGBM's `label_gain`."""
    return np.unique(np.concatenate([[0.0], *gains]))


def labels(gain: Floats, table: Floats) -> SmallInts:
    """The place of each gain in the table: LightGBM takes labels that are whole numbers."""
    return np.searchsorted(table, gain).astype(np.int32)


def keys_of_rows(matrix: Matrix) -> NDArray[np.uint64]:
    """(N,): the same for rows of a query whose features are the same, and hardly for others."""
    factors = np.random.default_rng(0).integers(1, 2**63, 1 + matrix.x.shape[1], np.uint64)
    key: NDArray[np.uint64] = matrix.query.astype(np.uint64) * factors[0]
    for column, factor in zip(matrix.x.T, factors[1:], strict=True):
        key += (column + np.float32(0)).view(np.uint32) * factor  # adding 0 makes 0 of -0
    return key


def ideal_dcg(gain: Floats, search: Ints, searches: int) -> Floats:
    """(S,): the DCG, Eq. (5), of each search when its results are in the best order."""
    order = np.lexsort((-gain, search))
    starts = np.searchsorted(search, np.arange(searches))
    place = np.arange(len(gain)) - starts[search]  # rows of a search are together
    best = gain[order] / np.log2(place + 2)
    return np.bincount(search, best, minlength=searches).astype(np.float64)


def fingerprint(p: Propensities) -> str:
    """The same for propensities that give the same weights, whatever file they came from."""
    digest = hashlib.sha256()
    for pooling, segment, curve in all_curves(recommended(p)):
        digest.update(repr((pooling, segment)).encode())
        digest.update(curve.ranks.astype("<i8").tobytes())
        digest.update(np.char.mod("%.5f", curve.log_p + 0.0).tobytes())
        if curve.trust is not None:
            digest.update(np.char.mod("%.5f", curve.trust + 0.0).tobytes())
    return digest.hexdigest()[:16]


def as_propensities(p: Propensities | str | os.PathLike[str] | None) -> Propensities | None:
    """Propensities as they are, or read from their file."""
    return Propensities.load(p) if isinstance(p, str | os.PathLike) else p


def refuse_trust(p: Propensities | None, who: str) -> None:
    """Raise BadOption for a curve with trust, where all clicks are taken to need relevance.

    Parameters
    ----------
    p
        What was given.
    who
        The verb that cannot take it.
    """
    if p is not None and p.trust is not None:
        raise BadOption(
            f"{who} weighs clicks by 1 / propensity alone, and these propensities have trust: a "
            "row says something without a click too. Give a plain curve, or none; train, judge and "
            "the exports take trust."
        )
