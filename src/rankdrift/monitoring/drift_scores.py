"""What the clicks of one day say of a change: their score, where no change is expected.

The curve θ* of the reference is where every day is looked at. A day's clicks have a score s and an
information I there, in the columns of a basis D: the shapes that the curve itself is made of, which
may be a little off, and those that a change is looked for in. In a page that stays the same, scores
of all days point at one and the same place; of a page that changed, those before and after do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rankdrift.core.rank_blocks import widening_edges
from rankdrift.core.types import Floats, Ranks, Segment
from rankdrift.counts.counts import Counts
from rankdrift.estimation.curves import hats
from rankdrift.estimation.fitting import Fitted
from rankdrift.estimation.likelihood import Likelihood, likelihood_of
from rankdrift.estimation.part_test import knots_within, shapes_at, steps_at

BLOCKS = 24
"""Blocks of ranks that a change is looked for in: a dip of fifteen ranks is seen."""
PUSHED = 4
"""Ranks that results are pushed down or pulled up by, as one of the shapes of a change."""
PUSHES = 3.0
"""A change by the shape of PUSHED at its full size is no rarer than one of a third in others."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """The curve of the reference, and the shapes of changes of log p.

    ranks, theta (R,); basis (R, K); tested: the columns of each kind of change.
    """

    ranks: Ranks
    theta: Floats
    basis: Floats
    tested: Mapping[str, slice]


def shapes_of(fitted: Fitted, deepest: int) -> Shapes:
    """The shapes of changes from a curve fitted to the reference, for ranks down to `deepest`."""
    known = fitted.likelihood.ranks
    ranks = np.arange(1, max(deepest, int(known[-1]), 2) + 1, dtype=np.int32)
    theta = np.interp(ranks, known, fitted.fit.theta)
    logs = np.log(ranks.astype(float))
    edges = widening_edges(1, int(ranks[-1]), BLOCKS)
    kinds = {
        "straight": logs[:, None] / logs[-1],
        "pushed": PUSHES
        * np.stack([_shifted(theta, by) - theta for by in (PUSHED, -PUSHED)], axis=1),
        "smooth": hats(logs, knots_within(ranks)),
        "blocks": np.concatenate(
            [(ranks < edges[1])[:, None].astype(float), steps_at(ranks, edges)], axis=1
        ),
    }
    own = shapes_at(fitted, ranks)
    ends = np.cumsum([own.shape[1], *(kind.shape[1] for kind in kinds.values())]).tolist()
    tested = {name: slice(a, b) for name, a, b in zip(kinds, ends[:-1], ends[1:], strict=True)}
    return Shapes(ranks, theta, np.concatenate([own, *kinds.values()], axis=1), tested)


def _shifted(theta: Floats, by: int) -> Floats:
    """The curve `by` ranks further down; beyond its ends it is as there."""
    return theta[np.clip(np.arange(len(theta)) + by, 0, len(theta) - 1)]


@dataclass(frozen=True, eq=False)
class Scores:
    """What T days say, in the K columns of the shapes.

    score (T, K); information (T, K, K); scatter (T, K, K): of the score between buckets of queries
    within the day, were they one more time as many; weight, squares (T,): clicks, and the sum over
    buckets of their squares.
    """

    score: Floats
    information: Floats
    scatter: Floats
    weight: Floats
    squares: Floats


def scores_of(days: Iterable[Counts], segment: Segment, shapes: Shapes) -> Scores:
    """The scores of a segment on days on which it has clicks."""
    return stacked(
        scored(likelihood_of(day, "every", shapes.ranks, segment), shapes) for day in days
    )


def stacked(days: Iterable[tuple[Floats, Floats, Floats, float, float]]) -> Scores:
    """Those of all days together, from `scored`."""
    return Scores(*(np.array(each) for each in zip(*days, strict=True)))


def scored(day: Likelihood, shapes: Shapes) -> tuple[Floats, Floats, Floats, float, float]:
    """The score, information, scatter, clicks and their squares of one day: see `Scores`."""
    by_bucket = day.bucket_scores(shapes.theta) @ shapes.basis
    clicks = day.bucket_wins.sum(axis=1)
    some = clicks > 0
    touched = by_bucket[some]
    off = touched - touched.mean(axis=0)
    scatter = off.T @ off * (len(touched) / max(len(touched) - 1, 1))
    return (
        by_bucket.sum(axis=0),
        day.at(shapes.theta).information(shapes.basis),
        scatter,
        float(clicks.sum()),
        float((clicks**2).sum()),
    )
