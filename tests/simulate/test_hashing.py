"""Numbers that follow from their keys alone, the same in every version."""

import numpy as np
import pytest

from rankdrift.simulate.hashing import mix, uniform


def test_mix_is_a_step_of_splitmix64():
    # The first outputs of the generator with seed 1234567, as published with it.
    state, step = 1234567, 0x9E3779B97F4A7C15
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    states = np.array([(state + i * step) % 2**64 for i in range(3)], np.uint64)
    assert mix(states, 0).tolist() == expected


def test_uniform_numbers_depend_on_every_key():
    docs = np.arange(20_000)
    found = uniform(1, 7, docs)
    assert np.array_equal(found, uniform(1, 7, docs)) and len(np.unique(found)) == len(docs)
    assert found.min() >= 0 and found.max() < 1
    # 20,000 uniform numbers: their mean has a deviation of 0.002, and so have correlations, 0.007.
    assert found.mean() == pytest.approx(0.5, abs=0.01)
    for other in (uniform(2, 7, docs), uniform(1, 8, docs), uniform(7, 1, docs)):
        assert abs(np.corrcoef(found, other)[0, 1]) < 0.04
