"""curve="auto" finds what is there, and adds nothing to a straight line."""

import numpy as np
import pytest
from support.worlds import dips, power, simulate

from rankdrift.estimation import estimate

EXACT = 1e-8  # the same numbers summed in another order, through one Newton iteration


def is_sane(found):
    assert np.isfinite(found.log_p).all()
    assert np.isfinite(found.deviations).all()
    assert np.abs(found.log_p).max() < 30  # no 0 in disguise
    assert found.log_p[found.ranks == found.reference].tolist() == [0]


def test_auto_finds_dips_every_forty_ranks_and_follows_them():
    world = simulate(12_000, 160, 3, curve=dips(power(0.4), 40, 2.0), level=0.2)
    auto, loglog = (estimate(world.counts, curve=c) for c in ("auto", "loglog"))
    assert "periodic(40)" in auto.method
    assert auto.log_likelihood > loglog.log_likelihood + 50

    def miss(found):
        off = found.log_p - world.log_p
        return np.std(off[10:])

    assert miss(auto) < 0.7 * miss(loglog)


@pytest.mark.parametrize("seed", range(3))
def test_auto_is_never_less_likely_than_loglog_and_adds_nothing_to_a_straight_line(seed):
    counts = simulate(3000, 60, seed, curve=power(0.7)).counts
    auto, loglog = (estimate(counts, curve=c) for c in ("auto", "loglog"))
    assert auto.log_likelihood >= loglog.log_likelihood - EXACT
    assert auto.parameters <= loglog.parameters + 1
    assert "periodic" not in auto.method


def test_auto_finds_a_jump():
    world = simulate(8000, 60, 1, curve=lambda r: np.where(np.asarray(r) > 30, 0.2, 1.0), level=0.2)
    auto, loglog = (estimate(world.counts, curve=c) for c in ("auto", "loglog"))
    assert auto.log_likelihood > loglog.log_likelihood + 20
    knots = [int(k) for k in auto.method.split("(")[1].split(")")[0].split(",")]
    assert any(28 <= k <= 32 for k in knots)


@pytest.mark.parametrize("first", range(1, 8))
def test_auto_with_few_ranks(first):
    counts = simulate(900, 8, 1).counts.only(np.arange(first, 9, dtype=np.int32))
    found = estimate(counts, curve="auto", reference=first)
    assert found.ranks.tolist() == list(range(first, 9))
    is_sane(found)
