"""The model of `rankdrift.estimation.bayes` written anew, in NumPyro: run by a Python that has it.

Reads {ranks, knots, blocks, moved, singles} from stdin; prints means and deviations of log p
relative to the first rank, and the log of a. Every pair has its own z, drawn like all else; the
variance of the bends is drawn too; and the chance of no click is a sum of moments.
"""

import itertools
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

jax.config.update("jax_enable_x64", True)
given = json.load(sys.stdin)
ranks, knots = np.array(given["ranks"]), np.array(given["knots"])
x = np.log(knots)
hats = np.stack([np.interp(np.log(ranks), x, unit) for unit in np.eye(len(x))], axis=1)
moved = given["moved"]  # [block, [[rank, click], ...]]
singles = np.array(given["singles"])  # group, rank, shown, clicked
shown = np.zeros((len(moved), len(ranks)))
clicked = np.zeros_like(shown)
for row, (_, seen) in enumerate(moved):
    for rank, click in seen:
        place = int(np.searchsorted(ranks, rank))
        shown[row, place] += 1
        clicked[row, place] += click
block = np.array([b for b, _ in moved])
longest = int(shown.sum(axis=1).max())
places = np.zeros((len(moved), longest), int)
there = np.zeros((len(moved), longest))
for row, (_, seen) in enumerate(moved):
    for i, (rank, _) in enumerate(seen):
        places[row, i], there[row, i] = np.searchsorted(ranks, rank), 1


def no_click(p, a, b):
    """E Π (1 - p z): signs, elementary symmetric polynomials of p, and moments of Beta(a, b)."""
    each = p[places] * there
    total, moment = jnp.ones(len(moved)), jnp.ones(len(moved))
    for size in range(1, longest + 1):
        moment = moment * (a + size - 1) / (a + b + size - 1)
        terms = sum(
            jnp.prod(each[:, list(some)], axis=1)
            for some in itertools.combinations(range(longest), size)
        )
        total = total + (-1) ** size * terms * moment
    return total


def model():
    slope = numpyro.sample("slope", dist.Normal(-0.5, 1.0))
    variance = numpyro.sample("variance", dist.InverseGamma(2.0, 2.0 * 0.25))
    bends = numpyro.sample("bends", dist.Normal(0, 1).expand([len(x) - 2]))
    slopes = [slope]
    for i in range(len(x) - 2):
        apart = (x[i + 2] - x[i]) / 2
        slopes.append(slopes[-1] + jnp.sqrt(variance * apart) * bends[i])
    curve = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.array(slopes) * np.diff(x))])
    log_p = hats @ curve - jax.nn.logsumexp(8 * curve) / 8
    numpyro.deterministic("log_p", log_p - log_p[0])
    p = jnp.exp(log_p)
    log_a = numpyro.sample("log_a", dist.Normal(0, 1).expand([2]))
    a = jnp.exp(log_a)
    of_blocks = numpyro.sample("blocks", dist.Normal(-2, 1.5).expand([int(block.max()) + 1]))
    of_groups = numpyro.sample(
        "groups", dist.Normal(-2, 1.5).expand([int(singles[:, 0].max()) + 1])
    )
    b_moved = a[0] * jnp.exp(-of_blocks[block])
    b_single = a[1] * jnp.exp(-of_groups[singles[:, 0]])
    z = numpyro.sample("z", dist.Beta(a[0], b_moved))
    chance = p[None] * z[:, None]
    log = (clicked * jnp.log(chance) + (shown - clicked) * jnp.log1p(-chance)).sum()
    numpyro.factor("moved", log - jnp.log1p(-no_click(p, a[0], b_moved)).sum())
    at = np.searchsorted(ranks, singles[:, 1])
    z_single = numpyro.sample("z_single", dist.Beta(a[1], b_single))
    numpyro.sample("clicks", dist.Binomial(singles[:, 2], p[at] * z_single), obs=singles[:, 3])


run = MCMC(
    NUTS(model, target_accept_prob=0.9), num_warmup=1000, num_samples=4000, progress_bar=False
)
run.run(jax.random.PRNGKey(0))
drawn = run.get_samples()
sizes = numpyro.diagnostics.summary(run.get_samples(group_by_chain=True))
found = np.concatenate([np.asarray(drawn["log_p"]), np.asarray(drawn["log_a"])], axis=1)
print(
    json.dumps(
        {
            "mean": found.mean(axis=0).tolist(),
            "deviation": found.std(axis=0).tolist(),
            "ess": [
                *np.asarray(sizes["log_p"]["n_eff"]).tolist(),
                *sizes["log_a"]["n_eff"].tolist(),
            ],
        }
    )
)
