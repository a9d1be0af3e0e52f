"""Do 95% intervals cover the truth 95% of the time? Seeded simulations, by block of ranks.

python -m benchmarks.coverage [--worlds 500] [--jobs 2]
"""

import argparse
import json
import os
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from rankdrift.estimation import estimate
from rankdrift.simulate.pairs import pairs

BLOCKS = ((2, 10), (11, 50), (51, 200), (201, 500))
CURVES = ("loglog", "direct")
KNOTS = (1, 2, 4, 8, 20, 50, 100, 200, 300, 500)


def truth_on_knots() -> np.ndarray:
    """A true curve that the log-log knots can follow exactly, so that only noise is judged."""
    knots = np.array(KNOTS, float)
    p = np.minimum(1, 1 / np.log(np.maximum(knots, 2)))
    return np.exp(np.interp(np.log(np.arange(1, 501)), np.log(knots), np.log(p)))


def one(seed: int) -> dict[str, list[list[float]]]:
    world = pairs(40_000, seed=seed, propensities=truth_on_knots(), query_effect=0.7, queries=4_000)
    found = {}
    for curve in CURVES:
        p = estimate(world.counts, curve=curve)
        low, high = p.interval(0.95)
        truth = world.propensities[p.ranks - 1] / world.propensities[0]
        covered = (low <= truth) & (truth <= high)
        rows = []
        for first, last in BLOCKS:
            inside = (p.ranks >= first) & (p.ranks <= last)
            well = inside & p.supported
            rows.append([
                float(covered[well].sum()), float(well.sum()), float(inside.sum()),
                float((p.log_p - np.log(truth))[well].sum()),
            ])  # fmt: skip
        found[curve] = rows
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.worlds)
    total: dict[str, np.ndarray] = {}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one process a core, no pools in it
        os.environ[name] = "1"
    with get_context("spawn").Pool(given.jobs) as pool:
        for found in pool.imap_unordered(one, seeds, chunksize=5):
            for name, rows in found.items():
                total[name] = total.get(name, 0) + np.array(rows)
    print(f"{given.worlds} worlds of 40,000 pairs; share of 95% intervals that cover the truth")
    print(f"{'':22}" + "".join(f"{f'{a}-{b}':>12}" for a, b in BLOCKS))
    for name, sums in total.items():
        print(f"{name:22}" + "".join(f"{row[0] / max(row[1], 1):12.1%}" for row in sums))
    print("share of ranks marked as weakly supported")
    for name, sums in total.items():
        print(f"{name:22}" + "".join(f"{1 - row[1] / row[2]:12.1%}" for row in sums))
    print("mean error of log p")
    for name, sums in total.items():
        print(f"{name:22}" + "".join(f"{row[3] / max(row[1], 1):12.4f}" for row in sums))
    told = {"worlds": given.worlds, **{k: v.tolist() for k, v in total.items()}}
    Path(__file__).with_name("coverage.json").write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
