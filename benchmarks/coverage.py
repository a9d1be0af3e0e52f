"""Do 95% intervals cover the truth 95% of the time? Seeded simulations, by block of ranks.

python -m benchmarks.coverage [--worlds 500] [--jobs 2] [--first-seed 0]
"""

from __future__ import annotations

import argparse
import os
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks import measure
from rankdrift.counts.counts import Counts, merge
from rankdrift.estimation import estimate
from rankdrift.estimation.curves import PAPER_KNOTS, hats
from rankdrift.simulate.counting import count_pairs

BLOCKS = ((2, 10), (11, 50), (51, 200), (201, 500))
CASES = {
    "loglog": {"curve": "loglog"},
    "direct": {"curve": "direct"},
    "loglog, errors by the model": {"curve": "loglog", "errors": "model"},
}
LEAST, MOST = 0.93, 0.97
PAIRS, RANKS, QUERIES, BUCKETS = 40_000, 500, 4_000, 64
_BATCH = 300_000


def truth() -> np.ndarray:
    """A curve that the log-log knots can follow exactly, so that only noise is judged."""
    knots = np.array([k for k in PAPER_KNOTS if k <= RANKS], float)
    p = np.minimum(1, 1 / np.log(np.maximum(knots, 2)))
    return np.exp(hats(np.log(np.arange(1, RANKS + 1)), np.log(knots)) @ np.log(p))


def world(seed: int, pairs: int = PAIRS, queries: int = QUERIES) -> Counts:
    """Eq. (1), prob-click, holds for every appearance, but those of one query belong together:
    its results move up or down together between two searches, its user looks as far down for one
    result as for half of the others, and relevance varies between queries."""
    rng = np.random.default_rng(seed)
    p = truth()
    bucket = rng.integers(0, BUCKETS, queries)
    lift, shift = rng.normal(0, 0.7, queries), rng.normal(0, 0.2, (queries, 2))
    depth = rng.random((queries, 2))
    parts, have = [], 0
    while have < pairs:
        query = rng.integers(0, queries, _BATCH)
        middle = rng.uniform(1, RANKS, _BATCH)[:, None]
        rank = np.rint(middle * np.exp(shift[query]) + middle / 5 * rng.normal(size=(_BATCH, 2)))
        inside = ((rank >= 1) & (rank <= RANKS)).all(axis=1)
        query, rank = query[inside], rank[inside].astype(np.int64)
        looked = (
            np.where(rng.random(rank.shape) < 0.5, depth[query], rng.random(rank.shape))
            < p[rank - 1]
        )
        level = np.minimum(0.1 / (1 + np.log(middle[inside, 0]) / 6) * np.exp(lift[query]), 0.9)
        relevance = 1 - rng.random(len(query)) ** (level / (1 - level))
        click = looked & (rng.random(rank.shape) < relevance[:, None])
        usable = np.flatnonzero(click.any(axis=1) & (rank[:, 0] != rank[:, 1]))[: pairs - have]
        have += len(usable)
        parts.append(
            count_pairs(
                rank[usable], click[usable], bucket[query[usable]], buckets=BUCKETS, max_rank=RANKS
            )
        )
    return merge(parts)


def judge(seed: int, cases: Any = CASES, **size: int) -> dict[str, np.ndarray]:
    """For each case and block of ranks (4, 5): how many well-supported intervals cover the truth,
    how many there are, how many ranks there are, and sums of their errors and squared errors in
    standard errors."""
    counts = world(seed, **size)
    log_p = np.log(truth())
    found = {}
    for name, options in cases.items():
        p = estimate(counts, **options)
        low, high = np.log(p.interval(0.95))
        off = p.log_p - log_p[p.ranks - 1] + log_p[0]
        covered = (low <= p.log_p - off) & (p.log_p - off <= high)
        z = off / np.where(p.std_error > 0, p.std_error, 1.0)
        rows = []
        for first, last in BLOCKS:
            inside = (p.ranks >= first) & (p.ranks <= last)
            well = inside & p.supported
            rows.append(
                [covered[well].sum(), well.sum(), inside.sum(), z[well].sum(), (z[well] ** 2).sum()]
            )
        found[name] = np.array(rows, float)
    return found


def run(rows: int, worlds: int = 500, jobs: int = 2, first_seed: int = 0) -> dict[str, Any]:
    """`rows` has no say: every world is of the paper's size."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one process a core, no pools in it
        os.environ[name] = "1"
    each: dict[str, list[np.ndarray]] = {name: [] for name in CASES}
    with get_context("spawn").Pool(jobs) as pool:
        for found in pool.imap(judge, range(first_seed, first_seed + worlds), chunksize=2):
            for name, sums in found.items():
                each[name].append(sums)
    shares = {name: _shares(np.stack(sums)) for name, sums in each.items()}
    blocks = [f"{first}–{last}" for first, last in BLOCKS]
    measure.show(
        f"Share of 95% intervals that cover the truth, {worlds} worlds of {PAIRS:,} pairs",
        ("", *blocks),
        (
            (name, *(f"{c:.1%} ± {e:.1%}" for c, e in zip(s["covered"], s["error"], strict=True)))
            for name, s in shares.items()
        ),
        f"Wanted: {LEAST:.0%} to {MOST:.0%}, of loglog and direct, on average in each block of "
        "ranks. After ± is the simulation's own standard error, from how worlds differ. The model "
        "takes clicks of one query for independent, which they are not here.",
    )
    measure.show(
        "Behind it",
        ("", *blocks),
        (
            row
            for name, s in shares.items()
            for row in (
                (f"{name}: mean square of error / standard error", *s["square"]),
                (f"{name}: ranks marked as weakly supported", *(f"{w:.1%}" for w in s["weak"])),
            )
        ),
        "With a right standard error from 64 buckets the mean square is about 63 / 61 = 1.03.",
    )
    return {"worlds": worlds, "first seed": first_seed, **shares}


def _shares(sums: np.ndarray) -> dict[str, list[float]]:
    """From (worlds, 4, 5): totals over worlds, and the error that worlds being few leaves."""
    covered, well, ranks, _, square = sums.sum(axis=0).T
    share = covered / np.maximum(well, 1)
    off = sums[:, :, 0] - share * sums[:, :, 1]
    error = np.sqrt((off**2).sum(axis=0)) / np.maximum(well, 1)
    return {
        "covered": share.tolist(),
        "error": error.tolist(),
        "square": (square / np.maximum(well, 1)).tolist(),
        "weak": (1 - well / ranks).tolist(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args()
    run(0, given.worlds, given.jobs, given.first_seed)
