"""The same posterior by NumPyro, with a z for every pair: if RANKDRIFT_NUMPYRO names a Python that
has it."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rankdrift.core.rank_blocks import half_octave_of
from rankdrift.estimation.bayes.estimating import evidence_of
from rankdrift.estimation.bayes.sampling import Sampler, find_mode
from rankdrift.simulate.counting import count_pairs

ORACLE = Path(__file__).parents[2] / "oracle" / "numpyro_posterior.py"
# Of means, in standard errors of the difference; of deviations, their ratio.
FAR, WIDE = 4.0, 0.12

pytestmark = [
    pytest.mark.skipif("RANKDRIFT_NUMPYRO" not in os.environ, reason="no Python that has NumPyro"),
    pytest.mark.slow,
]


def world(seed=4, size=6, many=260):
    rng = np.random.default_rng(seed)
    known = rng.integers(1, 3, many)
    mean = 0.12 * known
    z = rng.beta(1.5, 1.5 * (1 - mean) / mean)
    rank = np.repeat(rng.integers(1, size + 1, many)[:, None], 3, axis=1)
    moves = rng.random(many) < 0.5
    rank[moves, 1] = rank[moves, 0] % size + 1
    click = rng.random(rank.shape) < rank**-0.6 * z[:, None]
    counts = count_pairs(rank, click, np.zeros(many, int), buckets=1, max_rank=size, known=known)
    return counts, rank, click, known


def test_numpyro_finds_the_same():
    counts, rank, click, known = world()
    evidence = evidence_of(counts, "column")
    posterior = evidence.posterior()
    layout = posterior.layout
    sampler = Sampler(posterior, find_mode(posterior, evidence.start(layout)), seed=1)
    sampler.warm_up(300)
    drawn = sampler.draw(1500).reshape(-1, layout.size)
    log_p = layout.log_p(drawn)
    ours = np.concatenate([log_p - log_p[:, :1], drawn[:, layout.concentrations]], axis=1)

    moved = (rank.min(axis=1) < rank.max(axis=1)) & click.any(axis=1)
    usual = np.rint(np.exp(np.log(rank).mean(axis=1))).astype(int)
    _, block = np.unique(half_octave_of(usual[moved]), return_inverse=True)
    alone = rank.min(axis=1) == rank.max(axis=1)
    given = {
        "ranks": evidence.ranks.tolist(),
        "knots": layout.knots.tolist(),
        "moved": [
            [int(b), [[int(r), int(c)] for r, c in zip(rs, cs, strict=True)]]
            for b, rs, cs in zip(block, rank[moved], click[moved], strict=True)
        ],
        "singles": [
            [int(k) - 1, int(r[0]), 3, int(c.sum())]
            for k, r, c in zip(known[alone], rank[alone], click[alone], strict=True)
        ],
    }
    python = os.environ["RANKDRIFT_NUMPYRO"]
    ran = subprocess.run(
        [python, str(ORACLE)], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    theirs = json.loads(ran.stdout)
    mean, deviation, size = (np.array(theirs[n]) for n in ("mean", "deviation", "ess"))
    some = deviation > 0  # all but the first rank, which is the unit
    error = deviation * np.sqrt(1 / size + 1 / 2000)
    off = (ours.mean(axis=0) - mean)[some] / error[some]
    assert np.abs(off).max() < FAR, off
    np.testing.assert_allclose(ours.std(axis=0)[some], deviation[some], rtol=WIDE)
