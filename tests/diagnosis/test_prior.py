"""Pairs at one rank, by a column, beside pairs that moved: is the column to be believed?"""

import numpy as np
import pytest

from rankdrift import diagnose
from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.assumption import Data
from rankdrift.diagnosis.checks.prior import check
from rankdrift.estimation.fitting import Options, fit
from rankdrift.simulate.counting import count_pairs

pytestmark = pytest.mark.slow


def counts(hidden, seed=5, size=6, many=12_000):
    """Some 2,000 pairs moved and were clicked; where something is hidden, docs at the top are three
    times as relevant as others of their group."""
    rng = np.random.default_rng(seed)
    known = rng.integers(1, 4, many)
    usual = rng.integers(1, size + 1, many)
    mean = 0.05 * 2.0**known * np.where(hidden, 3.0 ** -((usual - 1) / (size - 1)), 0.6)
    z = rng.beta(2, 2 * (1 - mean) / mean)
    rank = np.repeat(usual[:, None], 3, axis=1)
    moves = rng.random(many) < 0.5
    rank[moves, 1] = np.clip(usual[moves] + rng.choice([-2, -1, 1, 2], moves.sum()), 1, size)
    click = rng.random(rank.shape) < rank**-0.6 * z[:, None]
    return count_pairs(
        rank, click, rng.integers(0, 64, many), buckets=64, max_rank=size, known=known
    )


def test_a_column_that_tells_too_little_is_seen():
    found = diagnose(counts(hidden=True), reference=1)
    made = next(one for one in found.checks if one.name == "prior")
    assert made.verdict in (Verdict.CAUTION, Verdict.SERIOUS), made
    assert "does not tell all that the ranker knew" in made.words
    # It is for information: the plain curve does not rest on the column.
    assert found.verdict not in (Verdict.CAUTION, Verdict.SERIOUS)


def test_one_that_tells_all_is_not():
    data = counts(hidden=False)
    fitted = fit(data, Options(curve="loglog"))
    found = check(Data(data, Options(curve=fitted.curve), fitted))
    assert found.evidence.p_value > 0.01
    assert "no difference beyond chance" in found.words
