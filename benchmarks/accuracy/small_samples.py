"""How much of a bias comes from the sample being finite, and how much from the luck of the seeds.

    python -m benchmarks.accuracy.small_samples [SCENARIO] [--curve CURVE] [--worlds 2000]

For scenarios of pairs with two appearances. With x the difference of the two ranks' rows of the
basis, an estimate solves Σ ψ = 0, ψ = (c_a − n π) x of a pair with n clicks, c_a of them at a, and
π = p_a / (p_a + p_b). Let A = −E ψ' and V = A⁻¹ E ψψ' A⁻¹, sums over all pairs. To first order an
estimate is off by A⁻¹ Σ ψ, at the truth, which has the mean 0 by Eq. (1) and nearly all of the
noise. To second order its mean is

    −A⁻¹ Σ x π (1 − π) (1 − 2π) (P_ab x'A⁻¹x + (P_a + P_b) x'Vx / 2)

and falls as 1 / pairs. Less its first-order part, the bias is known far better than by itself.
"""

import argparse
from dataclasses import dataclass

import numpy as np

from benchmarks import measure
from benchmarks.accuracy.scenarios import SCENARIOS
from benchmarks.accuracy.trials import BLOCKS
from rankdrift.estimation.curves import curve as parse_curve
from rankdrift.estimation.fitting import Options, fit
from rankdrift.simulate import pairs
from rankdrift.simulate.appendix_d import Recipe

BATCHES = 24
DEFAULTS = {
    "ranks": 500,
    "propensities": None,
    "ctr": None,
    "relevance": 0.1,
    "appearances": 2,
    "spread": 0.2,
    "queries": 5_000,
    "query_effect": 0.0,
    "seed": 0,
}


@dataclass(frozen=True, eq=False)
class Theory:
    """truth (R,), log p; basis (R, K); inverse (K, K), A⁻¹; bias (R,), to second order."""

    truth: np.ndarray
    basis: np.ndarray
    inverse: np.ndarray
    bias: np.ndarray


def theory(n: int, curve: str, **options) -> Theory:
    """Of n usable pairs as `rankdrift.simulate.pairs` draws them with these options."""
    world = Recipe.make(n=n, **{**DEFAULTS, **options})
    size = len(world.p)
    one, both = _chances(world)
    at = np.flatnonzero(one)
    one, both = one[at], both[at]
    a, b = np.divmod(at, size)
    basis = parse_curve(curve).basis(np.arange(1, size + 1, dtype=np.int32))[:, 1:]
    x = basis[a] - basis[b]
    share = world.p[a] / (world.p[a] + world.p[b])
    spread = share * (1 - share)
    inverse = np.linalg.inv((x * (one * spread)[:, None]).T @ x)
    variance = inverse @ ((x * ((one - 2 * both) * spread)[:, None]).T @ x) @ inverse
    near, far = (((x @ square) * x).sum(axis=1) for square in (inverse, variance))
    pull = -(spread * (1 - 2 * share) * (both * near + one * far / 2)) @ x
    return Theory(np.log(world.p), basis, inverse, basis @ (inverse @ pull))


def _chances(world: Recipe) -> tuple[np.ndarray, np.ndarray]:
    """(R * R,) each, by the higher and the lower of a pair's ranks: expected clicks of all pairs,
    and how many pairs are expected to be clicked at both."""
    random = np.random.default_rng(12345)
    size = len(world.p)
    one, both = np.zeros(size * size), np.zeros(size * size)
    for _ in range(BATCHES):
        _, rank, mean_z = world.appear(random)
        apart = rank[:, 0] != rank[:, 1]
        rank, mean_z = np.sort(rank[apart], axis=1), mean_z[apart]
        b = 1 / mean_z - 1
        p, square_z = world.p[rank - 1], 2 / ((1 + b) * (2 + b))  # E z² of Beta(1, b)
        cell = (rank[:, 0] - 1) * size + rank[:, 1] - 1
        one += np.bincount(cell, p.sum(axis=1) * mean_z, size * size)
        both += np.bincount(cell, p.prod(axis=1) * square_z, size * size)
    scale = world.n / (one.sum() - both.sum())  # usable are pairs with a click
    return one * scale, both * scale


def parts(
    known: Theory, n: int, curve: str, seeds: range, **options
) -> tuple[np.ndarray, np.ndarray]:
    """(S, R) each: errors of log p, and their first-order parts."""
    off, first = [], []
    for seed in seeds:
        found = fit(pairs(n, seed=seed, **options).counts, Options(curve=curve))
        if found.likelihood.size < len(known.truth):
            continue  # direct: a rank without comparisons, of which nothing is known
        off.append(found.fit.theta - known.truth)
        slope = known.basis.T @ found.likelihood.at(known.truth).gradient
        first.append(known.basis @ (known.inverse @ slope))
    return np.stack(off), np.stack(first)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.small_samples")
    names = [name for name, scenario in SCENARIOS.items() if scenario.bound]
    parser.add_argument("scenario", nargs="?", choices=names, default="batch-dips")
    parser.add_argument("--curve", help="by default all whose assumptions hold")
    parser.add_argument("--worlds", type=int, default=2_000)
    parser.add_argument("--first-seed", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, help="another number of them")
    asked = parser.parse_args()
    scenario = SCENARIOS[asked.scenario]
    options = dict(scenario.bound or {})
    n = asked.pairs or options["n"]
    del options["n"]
    seeds = range(asked.first_seed, asked.first_seed + asked.worlds)
    for curve in [asked.curve] if asked.curve else scenario.holds:
        known = theory(n, curve, **options)
        off, first = parts(known, n, curve, seeds, **options)
        centred = [
            values - values.mean(axis=-1, keepdims=True)
            for values in (known.bias, off, first, off - first)
        ]
        rows = []
        for low, high in BLOCKS:
            block, *told = (values[..., low - 1 : high] for values in centred)
            if block.size:
                means = (values.mean(axis=1) for values in told)
                rows.append((_ranks(low, len(block)), f"{block.mean():+.4f}", *map(_told, means)))
        measure.show(
            f"{asked.scenario}, {curve}: {n:,} pairs, {len(off):,} worlds",
            ("ranks", "expected", "bias", "to first order", "the rest"),
            rows,
            "Of log p relative to its mean over all ranks. Expected: to second order. What is off "
            "to first order is chance.",
        )


def _ranks(low: int, many: int) -> str:
    return f"{low}–{low + many - 1}" if many > 1 else str(low)


def _told(values: np.ndarray) -> str:
    return f"{values.mean():+.4f} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


if __name__ == "__main__":
    main()
