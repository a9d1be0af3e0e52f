"""95% intervals cover the truth 95% of the time: the short form of `benchmarks.coverage`."""

import numpy as np
import pytest
from support.worlds import power, simulate

from rankdrift.estimation import estimate

pytestmark = pytest.mark.slow

WORLDS = 100
BLOCKS = ((2, 5), (6, 15), (16, 40))
CURVES = ("loglog(1, 3, 10, 40)", "direct")
# Ranks of one world share the noise of the reference rank, so 100 worlds are some 150 independent
# intervals: 95% ± 1.8%. Four times that; errors a quarter too small would give 86%.
COVERED = (0.88, 0.998)
# The mean square of error / standard error, which is 63 / 61 for t from 64 buckets: off by up to
# 0.14 by how worlds differ. Errors a quarter too small would give 1.8, a quarter too large 0.66.
SQUARE = (0.68, 1.45)


@pytest.fixture(scope="module")
def worlds():
    """Covered and error / standard error by rank, (worlds, ranks), NaN where data are thin."""
    found = {curve: ([], []) for curve in CURVES}
    for seed in range(WORLDS):
        # query_effect: clicks of one query go together.
        world = simulate(
            2500, 40, 10_000 + seed, curve=power(0.5), level=0.15, queries=600, query_effect=0.7
        )
        for curve, (covered, z) in found.items():
            p = estimate(world.counts, curve=curve)
            low, high = np.log(p.interval(0.95))
            truth = world.log_p[p.ranks - 1]
            row = np.full((2, 40), np.nan)
            error = np.where(p.std_error > 0, p.std_error, np.nan)
            use = p.supported
            row[0, p.ranks[use] - 1] = ((low <= truth) & (truth <= high))[use]
            row[1, p.ranks[use] - 1] = ((p.log_p - truth) / error)[use]
            covered.append(row[0])
            z.append(row[1])
    return {curve: (np.stack(c), np.stack(z)) for curve, (c, z) in found.items()}


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize(("first", "last"), BLOCKS)
def test_intervals_cover_the_truth(worlds, curve, first, last):
    covered, z = (values[:, first - 1 : last] for values in worlds[curve])
    assert COVERED[0] < np.nanmean(covered) < COVERED[1]
    assert SQUARE[0] < np.nanmean(z**2) < SQUARE[1]


@pytest.mark.parametrize("curve", CURVES)
def test_few_ranks_are_marked_as_thin(worlds, curve):
    covered, _ = worlds[curve]
    assert np.isnan(covered).mean() < 0.1
