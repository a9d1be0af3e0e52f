"""What features expect of a result: clicks, were it looked at, by trees grown on other queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankdrift.core.errors import BadLog
from rankdrift.core.types import Floats
from rankdrift.ranking.backends import Backend, EachTree, Settings
from rankdrift.ranking.gains import Weighting
from rankdrift.ranking.matrix import Matrix

FOLDS = 5  # of queries
LEAVES, MIN_ROWS, SHARE_OF_ROWS = 8, 200, 0.02


def expect_clicks(
    matrix: Matrix,
    weighting: Weighting,
    settings: Settings,
    backend: Backend,
    each: EachTree | None = None,
) -> Floats:
    """(N,): the chance of a click on each row, were it at the rank that propensities refer to.

    Poisson's regression of clicks on features with the log of the propensity as its offset, by
    small trees; those that expect a query's clicks never saw them.

    Parameters
    ----------
    matrix
        The rows.
    weighting
        How likely a row was looked at.
    settings
        Of the trees, but for their size.
    backend
        Whose trees.
    each
        Called with the number of each tree.
    """
    if matrix.n_queries < FOLDS:
        raise BadLog(
            f"What features expect is learnt on other queries, which takes {FOLDS} queries or "
            f"more: there are {matrix.n_queries}. Use gains 'ipw'."
        )
    least = min(MIN_ROWS, max(1, int(SHARE_OF_ROWS * len(matrix))))
    small = replace(settings, leaves=LEAVES, min_rows=least, norm=False, early_stopping=None)
    counting = replace(weighting, kind="poisson", clip=None)
    fold = np.random.default_rng(settings.seed).permutation(matrix.n_queries) % FOLDS
    found = np.empty(len(matrix))
    for out in range(FOLDS):
        apart = fold[matrix.query] == out
        others = matrix.take(~apart)
        grown = backend.grow(counting.weigh(others)[0].together(), None, small, each)
        level = others.n_clicks / counting.looked_at(others).sum()
        found[apart] = level * backend.predict(
            backend.open(grown.text), matrix.x[apart], matrix.features, grown.trees
        )
    return np.minimum(found, 1.0)
