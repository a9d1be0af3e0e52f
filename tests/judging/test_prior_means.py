"""What is expected of a pair never looks at its own clicks."""

from dataclasses import replace

import numpy as np
import pytest
from support.judged_logs import true_curve, world

from rankdrift import read_log
from rankdrift.judging.prior_means import feature_sql, learnt_means, query_level, rank_level
from rankdrift.judging.reading import read_statistics

WORTH = 2.0  # clicks that the level of all queries is worth


@pytest.fixture(scope="module")
def found():
    log = read_log(world(queries=40, shows=40)[0])
    features = feature_sql(log, "f_*")
    return read_statistics(log, true_curve(), min_exposure=0.0, features=features)


def test_the_level_of_a_query_is_that_of_its_other_docs(found, monkeypatch):
    monkeypatch.setattr("rankdrift.judging.prior_means._WORTH", np.array([WORTH]))
    start = np.full(len(found), found.click_rate)
    means, variances = query_level(found, start)
    assert ((means > 0) & (means < 1)).all() and (variances > 0).all()
    pair = int(np.argmax(found.clicks))
    doubled = found.clicks.copy()
    doubled[pair] *= 2
    after, _ = query_level(replace(found, clicks=doubled), start)
    siblings = (found.query == found.query[pair]) & (np.arange(len(found)) != pair)
    assert (after[siblings] > 1.1 * means[siblings]).all()
    assert (
        np.delete(after, np.flatnonzero(siblings)) == np.delete(means, np.flatnonzero(siblings))
    ).all()


def test_the_rank_a_pair_is_usually_shown_at_tells_what_the_ranker_knows(found):
    # Here the ranker knew nothing, and so little is to be told.
    level, _ = rank_level(found)
    assert np.abs(np.log(level / found.click_rate)).max() < 0.5
    # Were relevance in proportion to the propensity of the usual rank, that would be found.
    typical = found.exposure / found.appearances
    level, rest = rank_level(replace(found, clicks=found.exposure * typical * 0.1))
    middle = (typical > np.quantile(typical, 0.02)) & (typical < np.quantile(typical, 0.98))
    assert level[middle] == pytest.approx(0.1 * typical[middle], rel=0.05)  # but for the ridge
    assert len(rest) == 0


def test_trees_are_learnt_on_other_queries(found):
    start = np.full(len(found), found.click_rate)
    means = learnt_means(found, start)
    assert np.corrcoef(np.log(means), found.features[:, 0])[0, 1] > 0.8
    chosen = found.query == 3
    changed = replace(found, clicks=np.where(chosen, 50.0, found.clicks))
    assert (learnt_means(changed, start)[chosen] == means[chosen]).all()
    assert (learnt_means(found, start, seed=1) != means).any()
