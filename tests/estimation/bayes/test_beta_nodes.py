"""Means over a Beta distribution beside its moments, which have a closed form."""

import numpy as np
import pytest

from rankdrift.estimation.bayes.beta_nodes import beta_nodes

A = np.array([0.3, 2.0, 0.05, 1.0, 40.0])
B = np.array([0.7, 8.0, 3.0, 1.0, 900.0])
ROUNDING = 1e-9
STEP = 1e-6
SLOPES = 1e-6  # a difference quotient with this step is off by some 1e-9


def moment(power):
    i = np.arange(power)[:, None]
    return np.prod((A + i) / (A + B + i), axis=0)


@pytest.mark.parametrize("size", [1, 2, 5, 17])
def test_powers_up_to_twice_the_nodes_are_exact(size):
    nodes = beta_nodes(A, B, size)
    for power in range(2 * size):
        found = (nodes.weight * nodes.z**power).sum(axis=1)
        np.testing.assert_allclose(found, moment(power), rtol=ROUNDING)


def test_one_power_more_is_not():
    nodes = beta_nodes(A, B, 2)
    assert (np.abs((nodes.weight * nodes.z**4).sum(axis=1) / moment(4) - 1) > 1e-4).all()


@pytest.mark.parametrize("size", [1, 4, 9])
def test_nodes_change_as_they_say(size):
    nodes = beta_nodes(A, B, size)
    for slopes, (da, db) in ((nodes.by_a, (STEP, 0)), (nodes.by_b, (0, STEP))):
        ahead, behind = beta_nodes(A + da, B + db, size), beta_nodes(A - da, B - db, size)
        for slope, name in zip(slopes, ("z", "weight"), strict=True):
            quotient = (getattr(ahead, name) - getattr(behind, name)) / (2 * STEP)
            np.testing.assert_allclose(slope, quotient, atol=SLOPES)
