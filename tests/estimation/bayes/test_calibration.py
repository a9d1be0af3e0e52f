"""Simulation-based calibration in short: parameters from the prior, clicks from them, and the rank
of the truth among draws of the posterior is uniform. `benchmarks.accuracy.posterior` has the long
form."""

import numpy as np
import pytest
from scipy.stats import kstest

from rankdrift.estimation.bayes import model
from rankdrift.estimation.bayes.estimating import evidence_of
from rankdrift.estimation.bayes.sampling import Sampler, find_mode
from rankdrift.simulate.counting import count_pairs

WORLDS = 16
PAIRS = 150
# Kolmogorov and Smirnov's test of 16 ranks, three times: by chance once in 700 runs, and seeds
# are fixed.
UNLIKELY = 0.0005

pytestmark = pytest.mark.slow


def world(seed):
    """Three ranks, one group: half of the pairs moved, and the others were shown up to three times
    at one rank; the truth is log p2/p1, log p3/p1 and log a."""
    rng = np.random.default_rng(seed)
    spread = model.BEND[1] * np.sqrt(model.BEND[0] / rng.chisquare(model.BEND[0]))
    first = rng.normal(*model.SLOPE)
    apart = np.log([2, 1.5])
    second = first + rng.normal(0, spread) * np.sqrt(apart.sum() / 2)
    curve = np.cumsum([0, first * apart[0], second * apart[1]])
    p = np.exp(curve) / (np.exp(8 * curve).sum()) ** (1 / 8)
    a = np.exp(rng.normal(*model.CONCENTRATION))
    odds = np.exp(rng.normal(*model.RELEVANCE))
    start = rng.integers(1, 4, PAIRS)
    rank = np.repeat(start[:, None], 3, axis=1)
    moved = np.arange(PAIRS) < PAIRS / 2
    rank[moved, 1] = start[moved] % 3 + 1
    rank[rng.random(PAIRS) < 0.5, 2] = 0
    # Pairs that moved are in counts if they were clicked: draw until they are.
    click, todo = np.zeros(rank.shape, bool), np.arange(PAIRS)
    while len(todo):
        z = rng.beta(a, a / odds, len(todo))
        seen = np.where(rank[todo] > 0, p[rank[todo] - 1], 0)
        click[todo] = rng.random(seen.shape) < seen * z[:, None]
        todo = todo[moved[todo] & ~click[todo].any(axis=1)]
    some = np.zeros(PAIRS, int)
    counts = count_pairs(rank, click, some, buckets=1, max_rank=3, known=some + 1)
    return counts, np.array([*curve[1:], np.log(a)])


def test_truths_are_spread_evenly_among_draws():
    ranks = []
    for seed in range(WORLDS):
        counts, truth = world(seed)
        evidence = evidence_of(counts, "same")
        posterior = evidence.posterior()
        mode = find_mode(posterior, evidence.start(posterior.layout))
        sampler = Sampler(posterior, mode, chains=8, seed=seed)
        sampler.warm_up(60)
        drawn = sampler.draw(60).reshape(-1, posterior.layout.size)[:, [0, 1, 3]]
        ranks.append((drawn < truth).mean(axis=0))
    for of_one in np.array(ranks).T:
        assert kstest(of_one, "uniform").pvalue > UNLIKELY
