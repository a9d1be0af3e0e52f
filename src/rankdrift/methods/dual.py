"""Dual learning as an estimator: the propensities that a ranker learns along with its trees.

Ai et al., SIGIR 2018. How they are learnt is in `rankdrift.ranking.dual`; here are the curve alone
and its intervals. Right if relevance can be learnt from the features and nothing but the features
and chance decides where a result is shown.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.words import many
from rankdrift.counts.counts import BUCKETS
from rankdrift.methods.em_features import bucket_weights
from rankdrift.methods.making_propensities import place_of
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.backends import Settings
from rankdrift.ranking.choosing import SHARE_OF_ROWS, SMALL
from rankdrift.ranking.dual import check_told_apart, learn, learnt_propensities
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.training import rows_to_learn


def dual_learning(
    matrix: Matrix,
    *,
    reference: int = 1,
    trees: int = 100,
    leaves: int = SMALL.leaves,
    min_rows: int | None = None,
    learning_rate: float = 0.1,
    bootstrap: int = 10,
    seed: int = 0,
    threads: int | None = None,
    say: Callable[[str], None] | None = None,
) -> Propensities:
    """Propensities by dual learning: learnt along with the scores of trees on features.

    It assumes that features tell all that relevance and rank have in common, and that they do not
    tell the rank itself.

    Parameters
    ----------
    matrix
        Rows with features, from `rankdrift.read_matrix`; searches without a click are left out.
    reference
        The rank whose propensity is 1.
    trees, leaves, min_rows, learning_rate
        Of LightGBM, rows being the fewest of a leaf; None: a thousand, at most a fiftieth of all.
    bootstrap
        Refits with queries reweighted, for the intervals, each as costly as the estimate; 0 gives
        no intervals.
    seed
        Of the halves of queries, of the bootstrap and of LightGBM.
    threads
        Of LightGBM; None: all cores.
    say
        Called with remarks.

    Returns
    -------
    Propensities
        A value for each rank that was clicked.

    Raises
    ------
    NotIdentified
        If features tell the rank.
    """
    if bootstrap and bootstrap < 5:
        raise BadOption(f"bootstrap must be 0, for no intervals, or 5 or more, not {bootstrap}.")
    say = say or (lambda _: None)
    rows = rows_to_learn(matrix, (), (), say).shuffled(seed)
    least = min(SMALL.min_rows, max(1, int(SHARE_OF_ROWS * len(rows))))
    settings = Settings(
        trees=trees,
        learning_rate=learning_rate,
        leaves=leaves,
        min_rows=least if min_rows is None else min_rows,
        seed=seed,
        threads=threads,
    )
    told = check_told_apart(rows, settings, say)
    clicked = np.unique(rows.rank[rows.click])
    place = place_of(reference, clicked, {})
    log_p = learn(rows, settings, reference=reference, ranker=False)[1]
    curve = learnt_propensities(rows, log_p, settings, None)
    curve = replace(curve, provenance={**curve.provenance, **matrix.source, "ranks told": told})
    bucket = (rows.query_keys >> np.uint64(52)).astype(np.intp)[rows.query] % BUCKETS
    drawn = np.empty((bootstrap, len(clicked)))
    for sample, weight in enumerate(bucket_weights(bootstrap, BUCKETS, seed)):
        found = learn(rows, settings, reference=reference, weight=weight[bucket], ranker=False)[1]
        drawn[sample] = found[clicked - 1]
        if (sample + 1) % 5 == 0:
            say(f"{sample + 1} of {many(bootstrap, 'refit')} for the intervals are done.")
    if not bootstrap:
        return curve
    drawn -= drawn[:, [place]]
    return replace(
        curve,
        deviations=(drawn - drawn.mean(axis=0)).T / np.sqrt(bootstrap - 1),
        errors="bootstrap",
        df=float(bootstrap - 1),
    )
