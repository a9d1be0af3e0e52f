"""What the clicks of one day say of a change: their score, where no change is expected.

The curve θ* of the reference is where every day is looked at. A day's clicks have a score s and an
information I there, in the columns of a basis D: the shapes that the curve itself is made of, which
may be a little off, and those that a change is looked for in. In a page that stays the same, scores
of all days point at one and the same place; of a page that changed, those before and after do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankdrift.core.rank_blocks import widening_edges
from rankdrift.core.types import Floats, Ranks, Segment
from rankdrift.counts.counts import Counts
from rankdrift.counts.tables import stack
from rankdrift.estimation.curves import hats
from rankdrift.estimation.fitting import Fitted
from rankdrift.estimation.likelihood import likelihood_of_rows, rows_of
from rankdrift.estimation.part_test import knots_within, shapes_at, steps_at

BLOCKS = 24
"""Blocks of ranks that a change is looked for in: a dip of fifteen ranks is seen."""
PUSHED = {"pushed down": 4, "pulled up": -4}
"""Ranks that results are moved by, as two of the kinds of change: each is one shape, of known size
and direction."""
PUSHES = 3.0
"""A change by the shape of PUSHED at its full size is no rarer than one of a third in others."""
KNOWN = dict.fromkeys(PUSHED, (0.5 / PUSHES, 1 / PUSHES))
"""How much of a kind of change is looked for, where its shape is known: half of it and all."""

AT_ONCE = 1_000_000
"""Numbers, by day, bucket and rank, that are worked on together."""


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
        **{name: PUSHES * (_shifted(theta, by) - theta)[:, None] for name, by in PUSHED.items()},
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


def scores_of(days: Sequence[Counts], segment: Segment, shapes: Shapes) -> Scores:
    """The scores of a segment on days on which it has clicks."""
    step = max(1, AT_ONCE // (max(day.buckets for day in days) * len(shapes.ranks)))
    parts = [
        _together(days[start : start + step], segment, shapes)
        for start in range(0, len(days), step)
    ]
    return Scores(*map(np.concatenate, zip(*parts, strict=True)))


def _together(
    days: Sequence[Counts], segment: Segment, shapes: Shapes
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """The fields of `Scores` of some days, each bucket of each day taken for one of its own."""
    buckets, many = max(day.buckets for day in days), len(days)
    listed, compared = [], []
    for place, day in enumerate(days):
        pairs, rank_pairs = rows_of(day, segment)
        listed.append(replace(pairs, bucket=pairs.bucket + place * buckets))
        compared.append(replace(rank_pairs, bucket=rank_pairs.bucket + place * buckets))
    rows = (stack(listed), stack(compared))
    terms = likelihood_of_rows(*rows, many * buckets, ranks=shapes.ranks)
    by_bucket = (terms.bucket_scores(shapes.theta) @ shapes.basis).reshape(many, buckets, -1)
    clicks = terms.bucket_wins.sum(axis=1).reshape(many, buckets)
    touched = clicks > 0
    units = touched.sum(axis=1)[:, None, None]
    score = by_bucket.sum(axis=1)
    off = (by_bucket - score[:, None] / units) * touched[:, :, None]
    scatter = off.transpose(0, 2, 1) @ off * (units / np.maximum(units - 1, 1))
    blocks = tuple(replace(block, bucket=block.bucket // buckets) for block in terms.blocks)
    by_day = replace(terms, blocks=blocks, buckets=many)
    information = np.stack(list(by_day.bucket_information(shapes.theta, shapes.basis)))
    return score, information, scatter, clicks.sum(axis=1), (clicks**2).sum(axis=1)
