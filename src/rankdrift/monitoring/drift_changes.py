"""Where on the page propensities changed, and by how much.

Both curves are fitted at once: log p is θ(r) on the days before and θ(r) + d(r) on the newest, each
of straight lines between knots so close that a dip of results loaded at a time fits in between. So
a large change has its full size, which a test where nothing changed would only tell to first order,
and a dip is told of the ranks it is at, not of a whole block.

A constant in d cannot be told. It is taken so that d is 0 in the mean over the clicks of the days
before: what few look at says nothing of what the others did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.rank_blocks import widening_edges
from rankdrift.core.types import Floats, Ints
from rankdrift.core.words import many, verb
from rankdrift.counts.counts import Counts
from rankdrift.estimation.curves import hats
from rankdrift.estimation.likelihood import Likelihood, likelihood_of
from rankdrift.estimation.newton import maximise
from rankdrift.estimation.score_test import blended_test
from rankdrift.propensities.drift import BlockChange

BLOCKS = 16
"""Blocks of ranks that are told of, at most."""
KNOTS = 64
"""Knots of either curve, at most."""
LEAST = 30
"""Clicks that there are in a block, and between two knots, at least: fewer are joined."""
_LARGEST = 600.0  # a logarithm whose exponential is still a number


@dataclass(frozen=True)
class PageChange:
    """The change of each block of ranks; size: how large it is at a typical click, over and above
    noise, as a share; clicks: of the newest days."""

    blocks: tuple[BlockChange, ...]
    size: float
    clicks: float


def page_change(before: Counts, newest: Counts, level: float) -> PageChange:
    """How propensities of the newest days differ from those before, with intervals that hold for
    all blocks at once with the probability `level`."""
    old, new = (likelihood_of(part) for part in (before, newest))
    if not old.blocks or not new.blocks:
        raise NotIdentified("There is nothing to compare: one of the two parts has no clicks.")
    ranks = np.arange(
        min(old.ranks[0], new.ranks[0]), max(old.ranks[-1], new.ranks[-1]) + 1, dtype=np.int32
    )
    old, new = (likelihood_of(part, ranks=ranks) for part in (before, newest))
    edges = _joined(widening_edges(int(ranks[0]), int(ranks[-1]), BLOCKS), new)
    clicks = round(new.weight)
    told_by = f"{many(clicks, 'click')} {verb(clicks, 'is', 'are')}"
    few = f"{told_by} too few to say where something changed."
    if len(edges) < 3:
        raise NotIdentified(few)
    curve, shapes = (_lines(each)[:, 1:] for each in (old, new))
    none = np.zeros((len(ranks), shapes.shape[1]))
    basis = np.block([[curve, none], [curve, shapes]])
    both = _side_by_side(old, new)
    found = maximise(both, basis)
    own = slice(curve.shape[1], None)
    share = old.wins / old.wins.sum()
    inside = np.searchsorted(edges, ranks, side="right") - 1 == np.arange(len(edges) - 1)[:, None]
    told = inside / inside.sum(axis=1, keepdims=True) @ shapes - share @ shapes  # (J, K)
    inverse = np.asarray(np.linalg.inv(found.information), np.float64)[:, own] @ told.T
    by_bucket = both.bucket_scores(found.theta) @ basis @ inverse
    model = told @ inverse[own]
    model = (model + model.T) / 2
    spread = blended_test(by_bucket, model)
    if not spread.df_error:
        raise NotIdentified(few)
    difference = told @ found.phi[own]
    error = np.sqrt(np.maximum(np.diag(model @ spread.covariance @ model), 0.0))
    apart = float(inside @ share @ (difference**2 - error**2))
    return PageChange(
        _blocks(edges, difference, error, spread.df_error, level),
        float(np.expm1(np.sqrt(max(apart, 0.0)))),
        new.weight,
    )


def _joined(edges: Ints, terms: Likelihood) -> Ints:
    """Edges of blocks, less those of blocks in which too few clicks were won, or lost to others."""
    won, lost = terms.wins, terms.bucket_losses.sum(axis=0)
    sound = np.concatenate([np.zeros((2, 1)), np.cumsum([won, lost], axis=1)], axis=1)
    kept = [int(edges[0])]
    at = edges - terms.ranks[0]
    for edge, upto in zip(edges[1:].tolist(), sound[:, at[1:]].T, strict=True):
        if (upto - sound[:, kept[-1] - terms.ranks[0]]).min() >= LEAST:
            kept.append(edge)
    if len(kept) > 1:
        kept[-1] = int(edges[-1])  # what is left at the end goes with the last
    return np.array(kept)


def _lines(terms: Likelihood) -> Floats:
    """(R, K): straight lines between knots, which add up to 1."""
    edges = _joined(widening_edges(int(terms.ranks[0]), int(terms.ranks[-1]), KNOTS), terms)
    knots = np.append(edges[:-1], terms.ranks[-1]).astype(float)
    return hats(terms.ranks.astype(float), np.unique(knots))


def _side_by_side(old: Likelihood, new: Likelihood) -> Likelihood:
    """Both as one of twice the ranks: those of the newest days stand after the others."""
    moved = (replace(block, codes=block.codes + 2 * old.size) for block in new.blocks)
    return Likelihood(
        np.concatenate([old.ranks, new.ranks + old.ranks[-1]]),
        (*old.blocks, *moved),
        max(old.buckets, new.buckets),
    )


def _blocks(
    edges: Ints, difference: Floats, error: Floats, df: float, level: float
) -> tuple[BlockChange, ...]:
    """Blocks with intervals that hold for all of them at once."""
    from scipy.special import stdtrit

    wide = float(stdtrit(max(df, 1.0), 1 - (1 - level) / 2 / max(len(difference), 1)))
    parts = (edges[:-1].tolist(), (edges[1:] - 1).tolist(), difference.tolist(), error.tolist())
    return tuple(
        BlockChange(
            first,
            last,
            float(np.exp(d)),
            float(np.exp(max(d - wide * e, -_LARGEST))),
            float(np.exp(min(d + wide * e, _LARGEST))),
        )
        for first, last, d, e in zip(*parts, strict=True)
    )
