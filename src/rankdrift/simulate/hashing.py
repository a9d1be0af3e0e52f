"""Numbers that look random and follow from their keys alone, whatever was drawn before them.

What belongs to a doc or to a pair, such as its price or its relevance, is looked up so.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.types import Floats

Hashes = NDArray[np.uint64]


def mix(state: Hashes | np.uint64, key: int | NDArray[Any]) -> Hashes:
    """A hash of state and key, one each or arrays alike: a step of splitmix64."""
    x: Hashes = (np.asarray(key).astype(np.uint64) + state) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def uniform(*keys: int | NDArray[Any]) -> Floats:
    """Numbers in [0, 1), one for each combination of the keys."""
    state: Hashes = np.zeros(1, np.uint64)
    for key in keys:
        state = mix(state, key)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
