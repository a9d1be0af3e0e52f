"""Types that several packages share, stated once. Shapes are in the docstrings of who uses them."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
AnyInts = NDArray[np.integer[Any]]
Bools = NDArray[np.bool_]
Ranks = NDArray[np.int32]
"""Ranks from 1, the top."""
Indices = NDArray[np.intp]
Segment = tuple[str | None, ...]
"""The values of the segment columns; None where a value is missing."""

Clicks = Literal["every", "single"]
"""Which clicks are choices: every one, or that of pairs with a single one, as in the paper."""
Errors = Literal["buckets", "model", "bootstrap"]
"""What the errors of an estimate rest on."""
CLICKS: tuple[Clicks, ...] = get_args(Clicks)
ERRORS: tuple[Errors, ...] = get_args(Errors)
