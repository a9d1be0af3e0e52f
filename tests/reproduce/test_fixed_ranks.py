"""What AUC at fixed ranks tells, beside a truth that only a simulation has."""

import numpy as np
import pytest
from support.clicklogs import frame, matrix, power

from rankdrift.ranking.auc import auc
from rankdrift.ranking.matrix import Matrix
from rankdrift.reproduce.fixed_ranks import expected_auc, slopes


def test_expected_auc_is_the_mean_over_draws_of_clicks():
    table = frame(searches=400, size=3)
    rows, p = matrix(table, ("f_1",)), power(3)
    score = table["f_1"].to_numpy() + table["f_3"].to_numpy()
    rng, drawn = np.random.default_rng(5), []
    chance = rows.relevance * p[rows.rank - 1]
    for _ in range(400):
        click = rng.random(len(rows)) < chance
        at = [rows.rank == rank for rank in (1, 2)]
        drawn.append(np.average([auc(score[a], click[a]) for a in at],
                                weights=[chance[a].sum() for a in at]))  # fmt: skip
    error = np.std(drawn) / np.sqrt(len(drawn))
    # Four standard errors, and what 400 results compared with themselves may add.
    assert expected_auc(rows, score, p) == pytest.approx(np.mean(drawn), abs=4 * error + 1 / 400)


def test_slopes_tell_rank_from_features():
    """Further up the feature is larger, and relevance less than the feature says."""
    rng = np.random.default_rng(0)
    rank = np.tile(np.arange(1, 41), 50)
    x = rng.normal(size=len(rank)) - np.log(rank)
    logit = x + 0.5 * np.log(rank)
    z = 1 / (1 + np.exp(-logit))
    rows = Matrix.from_arrays(x[:, None], rank=rank, click=z > 2, query=rank * 0, relevance=z)
    alone, given_features = slopes(rows)
    assert alone == pytest.approx(-0.5, abs=0.1)  # noise of 2,000 rows
    assert given_features == pytest.approx(0.5, abs=1e-4)  # features are 32 bits
