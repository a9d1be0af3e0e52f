"""What a result shown at a rank adds to its pair: a look, its square, and how far errors of the
curve move it.

A click is worth 1 and a look p, of which the relevance is their ratio. Where clicks come about
without relevance as well, P(click) = p z + trust, it is (click - trust) / p: trust is one more
number by rank here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankdrift.core.dialects import Dialect
from rankdrift.core.types import Floats, Segment
from rankdrift.propensities.propensities import Propensities

# How far errors of the curve move a pair's exposure is kept along so many directions at most, and
# no more than explain this share of the variance.
MOST_DIRECTIONS, EXPLAINED = 3, 0.99
UNIT = 2**32
"""What a row adds to its pair is a whole number of 1/UNIT, as a double: up to 2**53, that is two
million looks at the reference rank, such add up to the same in any order."""


@dataclass(frozen=True)
class Exposures:
    """What a row adds to its pair, by segment and rank: a table of numbers, one a sum."""

    segments: tuple[Segment, ...]
    rows: tuple[tuple[int, int, Floats], ...]  # (place of the segment, rank, numbers by `names`)
    directions: int
    other: bool  # whether anything worth counting is along none of the directions
    trust: bool = False  # whether clicks come about without relevance

    @property
    def adds(self) -> dict[tuple[Segment, int], Floats]:
        """What a row adds, by segment and rank."""
        return {(self.segments[s], rank): numbers for s, rank, numbers in self.rows}

    @property
    def names(self) -> list[str]:
        """Of the numbers, inside a plan."""
        along = [f"d{k + 1}" for k in range(self.directions)]
        more = [*(["v"] if self.other else []), *(["t"] if self.trust else [])]
        return ["p", "p2", *along, *more]


def exposures_of(p: Propensities, by_segment: bool) -> Exposures:
    """Along the directions in which the curve's error is largest, and what is left of it.

    Curves of segments have errors of their own, of which nobody knows how they go together: there
    the whole of it is left, which takes them to go together fully.

    Parameters
    ----------
    p
        The curve, or curves.
    by_segment
        Whether each segment has its own.
    """
    curves = dict(p.segments) if by_segment else {(): p}
    directions = np.zeros((len(p.ranks), 0)) if by_segment else _directions(p)
    variance = _variance(p)
    other = by_segment or bool(
        (variance - (directions**2).sum(axis=1)).sum() > (1 - EXPLAINED) * variance.sum()
    )
    rows = []
    for s, curve in enumerate(curves.values()):
        along = np.zeros((len(curve.ranks), 0)) if by_segment else directions
        left = np.maximum(_variance(curve) - (along**2).sum(axis=1), 0.0)[:, None]
        v = curve.values[:, None]
        more = [v * left] if other else []
        more += [curve.trust[:, None]] if curve.trust is not None else []
        table = np.concatenate([v, v**2, v * along, *more], axis=1)
        rows += [(s, int(rank), table[i]) for i, rank in enumerate(curve.ranks)]
    trust = p.trust is not None
    return Exposures(tuple(curves), tuple(rows), directions.shape[1], other, trust)


def _variance(curve: Propensities) -> Floats:
    return np.asarray(np.nan_to_num(curve.deviations**2).sum(axis=1))


def _directions(p: Propensities) -> Floats:
    """(R, K): the largest directions of the error of log p."""
    left, size, _ = np.linalg.svd(np.nan_to_num(p.deviations), full_matrices=False)
    share = np.cumsum(size**2) / max(float((size**2).sum()), 1e-300)
    enough = int(np.searchsorted(share, EXPLAINED)) + 1 if size.any() else 0
    kept = min(enough, MOST_DIRECTIONS, len(size))
    return np.asarray(left[:, :kept] * size[:kept])


def double(value: float) -> str:
    """A literal that means exactly this double; without exponent it would be a decimal."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def exposures_sql(exposures: Exposures, segments: Sequence[str], d: Dialect) -> str:
    """A SELECT of them: e_rank, e_ and the name of each segment, and the numbers by their names.

    Parameters
    ----------
    exposures
        What a row adds.
    segments
        Names of the segments' columns inside a plan.
    d
        The dialect.
    """
    rows = []
    for s, rank, numbers in exposures.rows:
        values_of = (d.literal("" if v is None else f"={v}") for v in exposures.segments[s])
        p, squares, *others = (round(number * UNIT) for number in numbers.tolist())
        cells = [str(rank), *values_of, *map(str, (max(p, 1), max(squares, 1), *others))]
        rows.append(f"({', '.join(cells)})")
    names = ["e_rank", *(f"e_{g}" for g in segments), *exposures.names]
    cast = [f"CAST({name} AS {d.double}) AS {name}" for name in exposures.names]
    return (
        f"SELECT {', '.join([*names[: -len(cast)], *cast])}\n"
        f"FROM (VALUES {', '.join(rows)}) AS rd_curve ({', '.join(names)})"
    )
