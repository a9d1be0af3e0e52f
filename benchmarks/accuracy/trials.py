"""One repetition of a scenario, and what many of them add up to."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.accuracy.bounds import centred_variance, information
from benchmarks.accuracy.estimators import ESTIMATORS, Found
from benchmarks.accuracy.scenarios import SCENARIOS
from rankdrift.core.errors import RankdriftError

BLOCKS = ((1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 63), (64, 127), (128, 255), (256, 500))

# Estimators of a fixed curve, and the curve whose bound is theirs.
BOUNDED = {
    "loglog": "loglog",
    "loglog, single": "loglog",
    "loglog + periodic(40)": "loglog + periodic(40)",
    "loglog + batch(40)": "loglog + batch(40)",
    "direct": "direct",
    "direct, single": "direct",
    "choix": "direct",
}


@dataclass(frozen=True, eq=False)
class Trial:
    """off (R,): error of log p relative to its mean over all ranks; covered (R,): whether the
    interval relative to rank 1 holds the truth, NaN where the estimate does not stand by it."""

    off: np.ndarray
    covered: np.ndarray
    seconds: float


def judge(found: Found, truth: np.ndarray, seconds: float) -> Trial:
    off, covered = np.full(len(truth), np.nan), np.full(len(truth), np.nan)
    at = found.ranks - 1
    off[at] = found.log_p - truth[at]
    off -= np.nanmean(off)
    if found.low is not None:
        true = truth[at] - truth[0]
        inside = ((found.low <= true) & (true <= found.high)).astype(float)
        covered[at] = np.where(found.supported & (found.ranks > 1), inside, np.nan)
    return Trial(off, covered, seconds)


def repeat(task: tuple[str, int]) -> dict[str, Any]:
    """One repetition: for each estimator a Trial, or the words it failed with."""
    name, seed = task
    scenario = SCENARIOS[name]
    world = scenario.draw(seed)
    truth = world.by_segment[scenario.truth_of] if scenario.truth_of else world.truth
    done: dict[str, Any] = {}
    for estimator in scenario.estimators:
        start = time.process_time()
        try:
            found = ESTIMATORS[estimator](world)
        except (RankdriftError, RuntimeError, ValueError) as error:
            done[estimator] = str(error)
            continue
        done[estimator] = judge(found, truth, time.process_time() - start)
    return done


def run(name: str, repetitions: int, jobs: int) -> dict[str, Any]:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one process a core
        os.environ[variable] = "1"
    tasks = [(name, seed) for seed in range(repetitions)]
    with get_context("spawn").Pool(jobs) as pool:
        return summarise(name, pool.imap(repeat, tasks, chunksize=4))


def summarise(name: str, trials: Iterable[dict[str, Any]]) -> dict[str, Any]:
    scenario, every = SCENARIOS[name], list(trials)
    info = information(**scenario.bound) if scenario.bound else None
    found: dict[str, Any] = {
        "title": scenario.title,
        "note": scenario.note,
        "repetitions": len(every),
        "estimators": {},
    }
    for estimator in scenario.estimators:
        good = [t[estimator] for t in every if isinstance(t[estimator], Trial)]
        told = [t[estimator] for t in every if isinstance(t[estimator], str)]
        entry: dict[str, Any] = {"failed": len(told), "says": told[0] if told else ""}
        if good:
            entry |= figures(good)
            entry["holds"] = estimator in scenario.holds
            if info is not None and estimator in BOUNDED:
                variance = centred_variance(info, BOUNDED[estimator])
                entry["efficiency"] = efficiency(good, variance)
        found["estimators"][estimator] = entry
    return found


def figures(trials: list[Trial]) -> dict[str, Any]:
    off = np.stack([t.off for t in trials])
    covered = np.stack([t.covered for t in trials])
    ranks = np.arange(1, off.shape[1] + 1)
    blocks, by_block = [], []
    for first, last in (*BLOCKS, (1, len(ranks))):
        inside = (ranks >= first) & (ranks <= last)
        if not inside.any() or not np.isfinite(off[:, inside]).any():
            continue
        part = off[:, inside]
        means = np.nanmean(part[np.isfinite(part).any(axis=1)], axis=1)
        by_block.append(means)
        held = covered[:, inside]
        held = held[np.isfinite(held)]
        blocks.append(
            {
                "first": first,
                "last": min(last, len(ranks)),
                "bias": float(means.mean()),
                "bias_error": float(means.std(ddof=1) / np.sqrt(len(means)))
                if len(means) > 1
                else 0.0,
                "rmse": float(np.sqrt(np.nanmean(part**2))),
                "coverage": float(held.mean()) if len(held) else None,
            }
        )
    return {
        "blocks": blocks[:-1],
        "bias_p": unbiased(by_block[:-1]),
        "rmse": blocks[-1]["rmse"],
        "coverage": blocks[-1]["coverage"],
        "estimated": float(np.isfinite(off).mean()),
        "seconds": float(np.mean([t.seconds for t in trials])),
    }


def unbiased(by_block: list[np.ndarray]) -> float | None:
    """p-value of Hotelling's test that no block has a bias. What is off at one block is off at the
    next, and all are relative to their mean, so that the last adds nothing to the others."""
    if len({len(means) for means in by_block}) > 1 or len(by_block[0]) < 4 * len(by_block):
        return None
    off = np.stack(by_block[:-1], axis=1)
    covariance = np.cov(off, rowvar=False) / len(off)
    return hotelling(off.mean(axis=0), np.atleast_2d(covariance), len(off))[3]


def efficiency(trials: list[Trial], bound: np.ndarray) -> dict[str, float]:
    """Bound over mean square error, both summed over the ranks that every repetition has; and its
    standard error over repetitions."""
    off = np.stack([t.off for t in trials])
    full = np.isfinite(off).all(axis=0)
    squares = (off[:, full] ** 2).sum(axis=1)
    share = float(bound[full].sum() / squares.mean())
    error = share * float(squares.std(ddof=1) / squares.mean() / np.sqrt(len(squares)))
    return {"share": share, "error": error, "ranks": int(full.sum())}


def hotelling(
    off: np.ndarray, covariance: np.ndarray, clusters: int
) -> tuple[float, int, int, float]:
    """F, its degrees of freedom and p of off = 0, the covariance being from that many clusters."""
    from scipy.special import fdtrc

    unit = np.sqrt(np.diag(covariance))
    seen = unit > 0
    values, vectors = np.linalg.eigh(
        covariance[np.ix_(seen, seen)] / np.outer(unit[seen], unit[seen])
    )
    keep = values > values.max(initial=0.0) * 1e-10
    df, n = int(keep.sum()), clusters - 1
    if not df or n <= df:
        return 0.0, df, max(n - df + 1, 0), 1.0
    square = float(((off[seen] / unit[seen] @ vectors[:, keep]) ** 2 / values[keep]).sum())
    statistic = square * (n - df + 1) / (n * df)
    return statistic, df, n - df + 1, float(fdtrc(df, n - df + 1, statistic))
