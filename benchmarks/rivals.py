"""The other estimators: how fast, how right where they should be, how wrong where they should not.

    python -m benchmarks rivals           how fast
    python -m benchmarks.rivals worlds [NAME …]    how right, all of them or these: a few minutes
    python -m benchmarks.rivals market    the same in the marketplace; also `trees`
    python -m benchmarks.rivals dual [0 10]    intervals of dual learning, from seed 0, ten seeds

AllPairs is timed beside ultr-bias-toolkit's on the same log, regression EM beside LightGBM growing
as many trees. The accuracy of each is measured in small worlds that keep or break what it assumes,
and in the simulated marketplace.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.em_trees import judge_trees
from benchmarks.logs import DATA
from benchmarks.measure import run as run_alone
from benchmarks.measure import show
from rankdrift import Matrix, estimate, harvest, read_log, read_matrix
from rankdrift.core.errors import NoUsablePairs
from rankdrift.methods.click_rates import ctr
from rankdrift.methods.dual import dual_learning
from rankdrift.methods.em_features import Options, regression_em
from rankdrift.methods.em_pairs import em
from rankdrift.methods.experiments import experiment
from rankdrift.methods.intervention_harvesting import (
    _start,
    _strata,
    adjacent_chain,
    all_pairs,
    pivot_one,
)
from rankdrift.methods.interventions import find_interventions
from rankdrift.methods.rank_times_stratum import maximise, solve_factor
from rankdrift.methods.tallies import clicked_pairs, tally
from rankdrift.methods.two_ranks import ratios
from rankdrift.propensities.propensities import Propensities
from rankdrift.simulate import market
from rankdrift.simulate.marketplace import MARKET_QUERY, SAME_QUERY_SAME_RELEVANCE
from tests.support.method_world import Made, made

PEER = ("torch==2.13.0", "ultr-bias-toolkit==0.0.5", "pandas")
SEEDS = range(5)
BOTH_FEATURES = ["f_good", "f_place"]
ROUNDS = 2
TIMES = 3
# name: options of the world. The first keeps all that harvested interventions assume.
WORLDS: dict[str, dict[str, Any]] = {
    "order drifts, pairs shown often": {},
    "pairs shown twice": {"queries": 5000, "searches": 2},
    "features tell all": {"hidden": 0.0, "queries": 300, "searches": 20},
    "docs rise when they are better": {"chase": 0.3},
}


def run(rows: int) -> dict[str, Any]:
    """How fast; `rows` is not used, for these logs are small."""
    return {"all_pairs": time_all_pairs(), "em": time_em()}


# -- speed -----------------------------------------------------------------------------------------


def time_all_pairs() -> dict[str, float]:
    """10 ranks, 200,000 rows; processor time of one thread, the best of `TIMES`."""
    world = made(1, queries=400, searches=50)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        names = {"query": "query_id", "doc": "doc_id", "rank": "position"}
        columns = ["query_id", "doc_id", "position", "click"]
        world.rows.rename(columns=names)[columns].to_csv(path, index=False)
        script = Path(__file__).with_name("rival_peer.py")
        ask = [_peer(), script, path, str(TIMES)]
        told = subprocess.run(ask, capture_output=True, text=True, check=True)
    peer = json.loads(told.stdout)
    all_pairs(find_interventions(world.log(), max_rank=10))  # imports, as torch's are not timed
    columns = world.rows[["query", "doc", "rank", "click"]]
    roles = {"query": "query", "doc": "doc", "rank": "rank", "click": "click", "day": ""}
    counting = seconds = float("inf")
    for _ in range(TIMES):
        start = time.process_time()
        sets = find_interventions(read_log(columns, **roles, threads=1), max_rank=10)
        counting = min(counting, time.process_time() - start)
        whole = all_pairs(sets)
        seconds = min(seconds, time.process_time() - start)
    keep = np.ones(10, bool)
    data, start = _strata(sets, keep), time.process_time()
    for _ in range(20):
        maximise(data, _start(sets, keep))
    fit = (time.process_time() - start) / 20
    measured = {
        "toolkit_seconds": peer["whole"],
        "seconds": seconds,
        "toolkit_fit_seconds": peer["fit"],
        "fit_seconds": fit,
        "times_as_fast": peer["whole"] / seconds,
        "fit_times_as_fast": peer["fit"] / fit,
        "curve_times_as_fast": peer["whole"] / (counting + fit),
        # With the best relevance for every two ranks, which is more than its model allows.
        "toolkit_log_likelihood": _likelihood(data, np.log(np.maximum(peer["p"], 1e-12))),
        "log_likelihood": float(whole.log_likelihood or 0),
        "toolkit_error": float(np.abs(np.log(peer["p"]) - world.log_p).max()),
        "error": float(np.abs(whole.log_p - world.log_p).max()),
    }
    show(
        "AllPairs, 10 ranks, 200,000 rows",
        ["", "ultr-bias-toolkit", "rankdrift"],
        [
            ["sets and maximum, s", peer["whole"], counting + fit],
            ["and intervals, s", None, seconds],
            ["maximum only, ms", 1000 * peer["fit"], 1000 * fit],
            [
                "log-likelihood",
                f"{measured['toolkit_log_likelihood']:.4f}",
                f"{measured['log_likelihood']:.4f}",
            ],
            ["largest error of log p", measured["toolkit_error"], measured["error"]],
        ],
        f"{measured['curve_times_as_fast']:.0f} times as fast (wanted: 50), "
        f"{measured['fit_times_as_fast']:.0f} times for the maximum alone, and "
        f"{measured['times_as_fast']:.0f} times with intervals, which the other does not give.",
    )
    return measured


def _likelihood(data: Any, log_p: Any) -> float:
    log_z = solve_factor(data.stratum, data.n_strata, log_p[data.rank], data.clicks, data.misses)
    chance = np.exp(log_p[data.rank] + log_z[data.stratum])
    return float(data.clicks @ np.log(chance) + data.misses @ np.log1p(-chance))


def _peer() -> Path:
    """An environment with what is measured against, made once."""
    folder = DATA / "rivals-environment"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER], check=True)
    return python


def time_em() -> dict[str, float]:
    """Regression EM beside LightGBM growing as many trees on the same rows, one thread; the best of
    ROUNDS, taking turns."""
    wide = _wide()
    found = regression_em(wide, bootstrap=0, threads=1)
    rounds, trees = found.provenance["rounds"], found.provenance["trees"]
    seconds = alone = np.inf
    for _ in range(ROUNDS):
        start = time.process_time()
        regression_em(wide, bootstrap=0, threads=1)
        seconds = min(seconds, time.process_time() - start)
        start = time.process_time()
        grown = _grow(wide, rounds, trees)
        alone = min(alone, time.process_time() - start)
    leaves = float(np.mean([tree["num_leaves"] for tree in grown.dump_model()["tree_info"]]))
    # By itself, for the peak of this process is that of all that was measured in it before.
    peak = run_alone(sys.executable, "-m", "benchmarks.rivals", "em-once").require().megabytes
    measured = {
        "rows": len(wide),
        "features": 25,
        "trees": rounds * trees,
        "leaves": leaves,
        "seconds": seconds,
        "lightgbm_seconds": alone,
        "overhead": seconds / alone - 1,
        "row_trees_per_second": len(wide) * rounds * trees / seconds,
        "peak_megabytes": peak,
    }
    show(
        f"Regression EM, {len(wide):,} rows, 25 features, {rounds} rounds of {trees} trees",
        ["", "seconds"],
        [["LightGBM alone", alone], ["EM", seconds]],
        f"Overhead {measured['overhead']:.0%} (at most 20%); {len(wide) / seconds:,.0f} rows a "
        f"second in all; peak {peak:,.0f} MB of a process that makes up the log too. LightGBM "
        f"alone grows trees of {leaves:.0f} leaves on the clicks, EM of at most "
        f"{Options().leaves}.",
    )
    return measured


def _wide() -> Matrix:
    """300,000 rows with 25 features, two of which tell something."""
    world = made(2, queries=1000, searches=30)
    told = read_matrix(world.log(threads=1), features=["f_good", "f_place"])
    noise = np.random.default_rng(0).normal(size=(len(told), 23)).astype(np.float32)
    return Matrix.from_arrays(
        np.concatenate([told.x, noise], axis=1),
        rank=told.rank,
        click=told.click,
        query=told.query,
        search=told.search,
    )


def _grow(matrix: Matrix, rounds: int, trees: int) -> Any:
    """LightGBM without any EM: so many times so many trees on the clicks. The last of them."""
    import lightgbm

    params = {**Options(threads=1).params(), "objective": "cross_entropy"}
    clicks = matrix.click.astype(np.float32)
    data = lightgbm.Dataset(matrix.x, label=clicks, params=params).construct()
    for _ in range(rounds):
        booster = lightgbm.Booster(params, data)
        for _ in range(trees):
            booster.update()
    return booster


# -- right and wrong -------------------------------------------------------------------------------


def judge_in_worlds(*only: str) -> dict[str, dict[str, dict[str, float]]]:
    """Mean error of log p over ranks 2 to 10, and its spread between seeds; of all methods, or of
    these."""
    judged: dict[str, dict[str, dict[str, float]]] = {}
    for name, options in WORLDS.items():
        errors: dict[str, list[float]] = {}
        for seed in SEEDS:
            world = made(seed, randomised=0.1, **options)
            for method, estimated in _all_methods(world).items():
                if only and method not in only:
                    continue
                try:
                    curve = estimated()
                except NoUsablePairs:  # of pairs shown so often the posterior has no likelihood
                    continue
                off = curve.log_p - world.log_p[curve.ranks - 1]
                errors.setdefault(method, []).append(float(off[curve.supported][1:].mean()))
        judged[name] = {
            method: {"error": float(np.mean(found)), "spread": float(np.std(found))}
            for method, found in errors.items()
        }
    methods = list(dict.fromkeys(m for found in judged.values() for m in found))
    show(
        "Mean error of log p, ranks 2 to 10 (± between 5 seeds)",
        ["method", *judged],
        [
            [
                m,
                *(
                    f"{f[m]['error']:+.2f} ± {f[m]['spread']:.2f}" if m in f else ""
                    for f in judged.values()
                ),
            ]
            for m in methods
        ],
        "0 is right; below 0 is too steep, above too flat.",
    )
    return judged


def _all_methods(world: Made) -> dict[str, Callable[[], Propensities]]:
    log = world.log(threads=1)
    counts, sets = harvest(log), find_interventions(log, max_rank=10)
    seen = {"bootstrap": 0, "threads": 1}
    both, one = (cache(partial(read_matrix, log, features=f)) for f in (BOTH_FEATURES, "f_good"))
    return {
        "rankdrift, direct": lambda: estimate(counts, curve="direct"),
        "bayes": lambda: estimate(counts, method="bayes"),
        "ratios of two ranks": lambda: ratios(counts),
        "AllPairs": lambda: all_pairs(sets),
        "PivotOne": lambda: pivot_one(sets),
        "AdjacentChain": lambda: adjacent_chain(sets),
        "CTR": lambda: ctr(tally(log)),
        "experiment": lambda: experiment(tally(log, randomised="is_random")),
        "EM, a relevance for each pair": lambda: em(clicked_pairs(log, max_rank=10)),
        "regression EM, all features": lambda: regression_em(both(), **seen),
        "regression EM, one feature": lambda: regression_em(one(), **seen),
        "dual learning, all features": lambda: dual_learning(both(), **seen),
        "dual learning, one feature": lambda: dual_learning(one(), **seen),
    }


def judge_intervals(first: str = "0", seeds: str = "10") -> dict[str, list[list[float]]]:
    """Of dual learning: how often 95% intervals hold the truth, where it should be right; the
    seeds from `first` on, so many."""
    judged: dict[str, list[list[float]]] = {}
    for name in ("pairs shown twice", "features tell all"):
        for seed in range(int(first), int(first) + int(seeds)):
            world = made(seed, randomised=0.1, **WORLDS[name])
            rows = read_matrix(world.log(threads=1), features=BOTH_FEATURES)
            curve = dual_learning(rows, threads=1)
            inside = curve.ranks > 1
            truth = world.log_p[curve.ranks - 1]
            low, high = (np.log(end) for end in curve.interval())
            held = ((low <= truth) & (truth <= high))[inside]
            off = (curve.log_p - truth)[inside]
            found = [off.mean(), np.sqrt((off**2).mean()), curve.std_error[inside].mean()]
            judged.setdefault(name, []).append([*map(float, found), float(held.mean())])
            print(name, seed, *(f"{x:.3f}" for x in judged[name][-1]), flush=True)
    show(
        f"Dual learning: ranks 2 to 10, {seeds} seeds from {first}",
        ["world", "mean error", "root mean square", "claimed", "95% intervals hold the truth"],
        [[name, *(f"{x:.3f}" for x in np.mean(found, axis=0))] for name, found in judged.items()],
        "Errors of log p. Intervals by a bootstrap of 10 refits over queries.",
    )
    return judged


def judge_in_market(rows: int = 2_000_000, depth: int = 120) -> dict[str, dict[str, float]]:
    """Ours and EM in the simulated marketplace, by platform: how far above the truth each is, and
    whether it shows the mobile pages' dips of every 40 ranks."""
    judged: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        made_up = market(folder, rows=rows, days=4, queries=1000, seed=1)
        for platform in ("web", "mobile"):
            log = read_log(
                [str(path) for path in made_up.paths],
                query=MARKET_QUERY,
                same="price",
                day="day",
                time="time",
                search="search",
                max_rank=depth,
                where=f"{SAME_QUERY_SAME_RELEVANCE} AND platform = '{platform}'",
            )
            truth = np.log(made_up.propensities[platform][:depth])
            curves = {
                "direct": estimate(harvest(log), curve="direct"),
                "em": regression_em(read_matrix(log, features="f_*"), bootstrap=0, threads=1),
                "dual": dual_learning(read_matrix(log, features="f_*"), bootstrap=0, threads=1),
                "ctr": ctr(tally(log)),
            }
            judged[platform] = {"truth dip": _dip(np.arange(1, depth + 1), truth)}
            for name, curve in curves.items():
                off = curve.log_p - (truth[curve.ranks - 1] - truth[0])
                weight = curve.clicks * (curve.ranks > 1)
                judged[platform][f"{name} error"] = float(weight @ off / weight.sum())
                judged[platform][f"{name} dip"] = _dip(curve.ranks, curve.log_p)
            both = np.intersect1d(curves["direct"].ranks, curves["em"].ranks)
            above = curves["em"].log_p[np.searchsorted(curves["em"].ranks, both)]
            above = above - curves["direct"].log_p[np.searchsorted(curves["direct"].ranks, both)]
            judged[platform]["em above direct"] = float(above[both > 1].mean())
            judged[platform]["share of ranks em is higher"] = float((above[both > 1] > 0).mean())
    names = list(judged["web"])
    show(
        f"The marketplace, {rows:,} rows, ranks 1 to {depth}",
        ["", *judged],
        [[name, *(f"{found[name]:+.3f}" for found in judged.values())] for name in names],
        "Errors of log p, weighted by clicks; a dip is how far log p at the end of a batch of 40 "
        "is below the batch's beginning, beside the slope in log rank.",
    )
    return judged


def _dip(ranks: Any, log_p: Any) -> float:
    """Ranks 33 to 40 of a batch against ranks 1 to 24 of it, after a straight line in log rank."""
    phase = (ranks - 1) % 40
    late = (phase >= 32).astype(float)
    inside = ((phase < 24) | (phase >= 32)) & (ranks > 8)
    x = np.stack([np.ones(len(ranks)), np.log(ranks), late], axis=1)[inside]
    return float(np.linalg.lstsq(x, log_p[inside], rcond=None)[0][2])


if __name__ == "__main__":
    which = {
        "all-pairs": time_all_pairs,
        "em": time_em,
        "worlds": judge_in_worlds,
        "market": judge_in_market,
        "trees": judge_trees,
    }
    if sys.argv[1:] == ["em-once"]:
        regression_em(_wide(), bootstrap=0, threads=1)
        sys.exit()
    named = {"dual": judge_intervals, "worlds": judge_in_worlds}
    if sys.argv[1:] and sys.argv[1] in named:
        named[sys.argv[1]](*sys.argv[2:])
        sys.exit()
    for name in sys.argv[1:] or which:
        which[name]()
