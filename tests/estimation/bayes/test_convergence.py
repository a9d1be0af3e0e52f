"""Split R-hat and effective sample sizes of chains whose answers are known."""

import numpy as np
import pytest

from rankdrift.estimation.bayes.convergence import convergence

DRAWS, CHAINS = 2000, 4


def autoregressive(rho, seed=0):
    """Chains of which each draw is rho times the one before, and noise."""
    rng = np.random.default_rng(seed)
    x = np.empty((DRAWS, CHAINS, 3))
    x[0] = rng.standard_normal((CHAINS, 3))
    for i in range(1, DRAWS):
        x[i] = rho * x[i - 1] + np.sqrt(1 - rho**2) * rng.standard_normal((CHAINS, 3))
    return x


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, -0.3])
def test_autocorrelated_draws_are_worth_what_theory_says(rho):
    """An AR(1) chain of N draws is worth N (1 - rho) / (1 + rho)."""
    found = convergence(autoregressive(rho))
    wanted = DRAWS * CHAINS * (1 - rho) / (1 + rho)
    # Estimated with a deviation of about 10%.
    np.testing.assert_allclose(found.bulk, wanted, rtol=0.35)
    assert (found.r_hat < 1.03).all()


def test_chains_that_are_apart_or_differ_in_spread_are_seen():
    apart = autoregressive(0.0)
    apart[:, 0] += 1.0
    assert (convergence(apart).r_hat > 1.1).all()
    wide = autoregressive(0.0)
    wide[:, 0] *= 3.0  # the same mean: only folded draws tell
    assert (convergence(wide).r_hat > 1.05).all()
    drifting = autoregressive(0.0) + np.linspace(0, 2, DRAWS)[:, None, None]  # the same in each
    assert (convergence(drifting).r_hat > 1.1).all()


def test_ranks_do_not_mind_tails_or_units():
    x = autoregressive(0.3)
    plain, stretched = convergence(x), convergence(np.exp(5 * x))
    np.testing.assert_allclose(plain.bulk, stretched.bulk, rtol=1e-6)


def test_what_never_changes_has_converged():
    x = autoregressive(0.0)
    x[..., 1] = 0.0
    found = convergence(x)
    assert found.r_hat[1] == 1.0
    assert found.bulk[1] == DRAWS * CHAINS
    assert found.reached
