"""Systems without each bucket are solved at once, or it is said that they are not."""

import numpy as np
import pytest

from rankdrift.estimation import jackknife as together

# Conjugate gradients leave 1e-12 of the error they start with; the other way there is rounding.
SAME_MOVES = 1e-10


def test_what_is_not_reached_is_told():
    """Of two systems the second needs as many steps as it has directions."""
    own = np.stack([np.zeros((3, 3)), np.diag([0.9, 0.5, 0.1])])
    right = np.ones((2, 3))

    def times(rows):
        return np.einsum("gij,gj->gi", own, rows)

    wanted = [np.linalg.solve(np.eye(3) - each, np.ones(3)) for each in own]
    found, reached = together.jackknife_solve(np.eye(3), times, right)
    assert reached.all()
    np.testing.assert_allclose(found, wanted, rtol=SAME_MOVES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "STEPS", 2)
        found, reached = together.jackknife_solve(np.eye(3), times, right)
    assert reached.tolist() == [True, False]
    np.testing.assert_allclose(found[0], wanted[0], rtol=SAME_MOVES)
