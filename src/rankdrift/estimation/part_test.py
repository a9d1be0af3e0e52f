"""Do some of the pairs follow the same curve as all of them? And can the curve follow them at all?

The score test of `score_test`, on the likelihood of pairs itself, with every rank by itself: for
what can be told from pairs alone, such as which segment they are of and which way they moved.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.rank_blocks import widening_edges
from rankdrift.core.types import Clicks, Floats, Ints, Ranks
from rankdrift.counts.counts import Counts
from rankdrift.estimation.curves import hats
from rankdrift.estimation.fitting import Fitted
from rankdrift.estimation.likelihood import Likelihood, likelihood_of
from rankdrift.estimation.newton import maximise
from rankdrift.estimation.score_test import KNOTS, ScoreTest, Tested, blended_test, summarised

BLOCKS = 16
"""Blocks of ranks that curves are told apart in, at most: 64 buckets of queries bear no more."""


def part_test(
    counts: Counts,
    part: Counts,
    fitted: Fitted,
    *,
    clicks: Clicks = "every",
    blocks: bool = False,
) -> ScoreTest:
    """Whether a part of the counts follows the curve of all of them.

    Parameters
    ----------
    counts, part
        All, and some of them.
    fitted
        A curve fitted to all or more: its shapes are among those that all pairs share.
    clicks
        Which clicks are choices.
    blocks
        Look for differences in blocks of ranks too, such as dips; otherwise in smooth shapes only.
    """
    whole = likelihood_of(counts, clicks)
    own = likelihood_of(part, clicks, whole.ranks) if len(whole.blocks) else whole
    if not own.blocks or own.weight >= whole.weight:
        raise NotIdentified("There is nothing to compare: one of the two parts has no clicks.")
    ranks = whole.ranks
    edges = widening_edges(int(ranks[0]), int(ranks[-1]), BLOCKS)
    steps = steps_at(ranks, edges)
    logs = np.log(ranks.astype(float))
    smooth = hats(logs, knots_within(ranks))[:, 1:]
    basis = _independent(np.concatenate([shapes_at(fitted, ranks), smooth, steps], axis=1), whole)
    theta = maximise(whole, basis).theta
    scores, information = whole.bucket_scores(theta), whole.at(theta).information()
    own_scores, own_information = own.bucket_scores(theta), own.at(theta).information()
    inverse = np.linalg.pinv(basis.T @ information @ basis, rcond=1e-10, hermitian=True)

    def tested(shapes: Floats) -> Tested:
        along = inverse @ (basis.T @ (own_information @ shapes))
        by_bucket = own_scores @ shapes - scores @ (basis @ along)
        model = shapes.T @ own_information @ (shapes - basis @ along)
        return blended_test(by_bucket, (model + model.T) / 2)

    return summarised(
        tested(logs[:, None]),
        [tested(shapes) for shapes in ((smooth, steps) if blocks else (smooth,))],
        [shapes for shapes in ((smooth, steps) if blocks else (smooth,))],
        ranks,
        edges,
        own.weight,
    )


def curve_test(fitted: Fitted) -> ScoreTest | None:
    """Whether blocks of ranks lie beside the curve; None if the curve has a parameter for each."""
    whole, basis, theta = fitted.likelihood, fitted.fit.basis, fitted.fit.theta
    ranks = whole.ranks
    edges = widening_edges(int(ranks[0]), int(ranks[-1]), BLOCKS)
    steps, logs = steps_at(ranks, edges), np.log(ranks.astype(float))
    if len(fitted.fit.phi) >= len(ranks) - 1:
        return None
    scores, information = whole.bucket_scores(theta), whole.at(theta).information()
    along = np.linalg.solve(fitted.fit.information, basis.T @ (information @ steps))
    model = steps.T @ information @ (steps - basis @ along)
    found = blended_test(scores @ (steps - basis @ along), (model + model.T) / 2)
    if not found.df:
        return None
    return summarised(None, [found], [steps], ranks, edges, whole.weight, logs)


def steps_at(ranks: Ranks, edges: Ints) -> Floats:
    """(R, B − 1): which block a rank is in, the first apart."""
    block = np.searchsorted(edges, ranks, side="right") - 1
    return np.asarray(np.eye(len(edges) - 1)[np.minimum(block, len(edges) - 2)][:, 1:])


def knots_within(ranks: Ranks) -> Floats:
    """(K,): the logarithms of the knots that smooth differences are looked for between."""
    inside = [k for k in KNOTS if ranks[0] < k < ranks[-1]]
    return np.asarray(np.log([ranks[0], *inside, ranks[-1]]))


def shapes_at(fitted: Fitted, ranks: Ranks) -> Floats:
    """The shapes of a fitted curve at these ranks; those outside it are as at its ends."""
    place = np.searchsorted(fitted.likelihood.ranks, ranks).clip(0, fitted.likelihood.size - 1)
    basis = fitted.fit.basis[place]
    return np.asarray(basis if basis.shape[1] <= 4 * BLOCKS else basis[:, :0])


def _independent(columns: Floats, whole: Likelihood) -> Floats:
    """Columns that span the same, as far as clicks tell of them."""
    from scipy.linalg import qr

    at = whole.wins + whole.bucket_losses.sum(axis=0)
    weighed = np.sqrt(at)[:, None] * (columns - at @ columns / max(at.sum(), 1e-300))
    _, upper, order = qr(weighed, mode="economic", pivoting=True)
    size = np.abs(np.diag(upper))
    return np.asarray(columns[:, np.sort(order[: int((size > 1e-6 * size[0]).sum())])])


MOST_SEGMENTS = 20
"""Segments that are tested, those with the most clicks."""


def segments_test(counts: Counts, fitted: Fitted, clicks: Clicks = "every") -> ScoreTest | None:
    """Whether all segments of the counts have one curve: each against all, the most telling of
    them, its p-value for having looked at each. None where there are no two with clicks."""
    by_segment = np.bincount(
        counts.choices(clicks).segment,
        weights=counts.choices(clicks).weight,
        minlength=len(counts.segments),
    )
    largest = [i for i in np.argsort(-by_segment)[:MOST_SEGMENTS].tolist() if by_segment[i]]
    # Two segments differ from all by the same.
    tried = largest[1:] if len(largest) == 2 else largest
    found = []
    for place in tried if len(largest) > 1 else ():
        part = counts.restrict(segments=[counts.segments[place]])
        try:
            found.append(part_test(counts, part, fitted, clicks=clicks, blocks=True))
        except NotIdentified:
            continue
    if not found:
        return None
    best = min(found, key=lambda one: one.p_value)
    return replace(best, p_value=min(1.0, len(found) * best.p_value))
