"""A covariance in few numbers is the covariance it was."""

import numpy as np
import pytest

from rankdrift.propensities.steps import TOLERANCE, Steps, steps_of, unpack

ROUNDING = 1e-4  # 24 bits of the longest step, against the shortest ratios here


def errors_of_ratios(deviations):
    return np.sqrt(((deviations[:, None] - deviations) ** 2).sum(axis=2))


def smooth(size, many, seed=0):
    """Curves of a few parameters, as the log-log ones are."""
    rng = np.random.default_rng(seed)
    far = np.log(np.arange(1, size + 1))
    return np.stack([far**k for k in range(1, many + 1)], axis=1) @ rng.normal(size=(many, 64))


def walk(size):
    """What a segment that is shrunk adds: a random walk over the logarithm of the rank."""
    far = np.log(np.arange(1, size + 1))
    return np.linalg.cholesky(np.minimum(far[1:, None], far[1:]))


def with_walk(size):
    both = smooth(size, 4)
    return np.concatenate([both / np.abs(both).max(), np.pad(walk(size), ((1, 0), (0, 0)))], axis=1)


EXAMPLES = {
    "few parameters": smooth(200, 4),
    "a random walk too": with_walk(200),
    "each rank by itself": np.diag([0, *np.linspace(0.1, 2, 99)]),
    "all ranks at random": np.random.default_rng(1).normal(size=(60, 64)),
    "two ranks": np.array([[0.0, 0.0], [0.3, 0.4]]),
    "one rank": np.zeros((1, 3)),
    "no errors": np.zeros((5, 0)),
    "all sure": np.zeros((5, 2)),
}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("reference", [0, -1])
def test_errors_of_all_ratios_are_kept(name, reference):
    given = EXAMPLES[name] - EXAMPLES[name][reference]
    kept = unpack(steps_of(given).pack()).deviations(reference)
    assert not kept[reference].any()
    wanted = errors_of_ratios(given)
    np.testing.assert_allclose(errors_of_ratios(kept), wanted, rtol=TOLERANCE + ROUNDING)


def test_few_causes_are_found_and_exact():
    assert steps_of(EXAMPLES["few parameters"]).causes.shape == (199, 4)
    kept = steps_of(EXAMPLES["few parameters"]).deviations(0)
    wanted = errors_of_ratios(EXAMPLES["few parameters"])
    np.testing.assert_allclose(errors_of_ratios(kept), wanted, rtol=ROUNDING)


def test_a_random_walk_needs_no_cause_a_rank():
    found = steps_of(EXAMPLES["a random walk too"])
    assert found.causes.shape[1] < 50
    assert found.own.all()


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_was_kept_is_kept_the_same(name):
    once = steps_of(EXAMPLES[name]).pack()
    assert steps_of(unpack(once).deviations(0)).pack() == once


@pytest.mark.parametrize("many", [2.0**24 + 1, 2.0**30])
def test_steps_that_are_no_longer_exact_are_not_read(many):
    """No curve is kept with longer ones, whose sums might be rounded: the file was changed."""
    packed = Steps(np.array([[many * 2.0**-40]]), np.zeros(1), -40).pack()
    with pytest.raises(ValueError, match="larger than any"):
        unpack(packed)
