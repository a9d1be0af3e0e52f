"""What is expected of a pair never looks at its own clicks."""

from dataclasses import replace

import numpy as np
import pytest
from support.judged_logs import true_curve, world

from rankdrift import read_log
from rankdrift.judging.prior_means import feature_sql, learnt_means, query_level
from rankdrift.judging.statistics import read_statistics

WORTH = 2.0  # clicks that the mean of all pairs is worth


@pytest.fixture(scope="module")
def found():
    log = read_log(world(queries=40, shows=40)[0])
    features = feature_sql(log, "f_*")
    return read_statistics(log, true_curve(), min_exposure=0.0, features=features)


def test_the_level_of_a_query_is_that_of_its_other_docs(found, monkeypatch):
    monkeypatch.setattr("rankdrift.judging.prior_means._WORTH", np.array([WORTH]))
    means, variances = query_level(found)
    assert ((means > 0) & (means < 1)).all() and (variances > 0).all()
    pair = int(np.argmax(found.clicks))
    doubled = found.clicks.copy()
    doubled[pair] *= 2
    changed = replace(found, clicks=doubled)
    after, _ = query_level(changed)
    siblings = (found.query == found.query[pair]) & (np.arange(len(found)) != pair)
    assert (after[siblings] > 1.1 * means[siblings]).all()
    # The pair's own mean moves as far as that of all pairs does, by what that is worth.
    looks = found.exposure[siblings].sum()
    moved = (looks + WORTH / found.click_rate) / (looks + WORTH / changed.click_rate)
    assert after[pair] / means[pair] == pytest.approx(moved)


def test_trees_are_learnt_on_other_queries(found):
    start = np.full(len(found), found.click_rate)
    means = learnt_means(found, start)
    assert np.corrcoef(np.log(means), found.features[:, 0])[0, 1] > 0.8
    chosen = found.query == 3
    changed = replace(found, clicks=np.where(chosen, 50.0, found.clicks))
    assert (learnt_means(changed, start)[chosen] == means[chosen]).all()
    assert (learnt_means(found, start, seed=1) != means).any()
