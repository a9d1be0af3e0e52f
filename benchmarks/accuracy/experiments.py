"""Experiments of known truth: how often intervals hold and checks object, what fights cost, and
what bandits lose and leave.

python -m benchmarks.accuracy.experiments [analyse | interleave | bandits] [--seeds 50] [--first 0]

analyse     each design in a world whose drift misleads: coverage of the intervals, and how often
            the checks object though all was drawn as planned
interleave  two rankers in the market, by each way of interleaving and by an A/B test of the same
            searches: how many it takes to see the difference
bandits     on queries of the market, beside the old order and shuffles: clicks lost, and what
            their logs tell about propensities
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import duckdb
import numpy as np
import pandas as pd

from rankdrift import estimate, harvest, read_log
from rankdrift.core.errors import RankdriftError
from rankdrift.experiments import (
    Experiment,
    analyse,
    count_wins,
    credit,
    fairpairs,
    interleave,
    run_bandit,
    shuffle,
    swaps,
)
from rankdrift.experiments.interleaving import INTERLEAVINGS
from rankdrift.simulate import market, world

RANKS = 6
DESIGNS = {
    "swaps": Experiment("s", swaps([(1, 2), (2, RANKS)], [0.4, 0.6]), share=0.5),
    "fairpairs": Experiment("f", fairpairs(1, RANKS), share=0.5),
    "shuffle": Experiment("r", shuffle(1, RANKS), share=0.5),
    "shuffle by user": Experiment("u", shuffle(1, RANKS), share=0.5, unit="user"),
}
SHOWN, FOUND = 10, 20  # results of a search that are seen, and those that rankers order
SEARCHES, PASSES = 1_500, 4  # of the market that are interleaved, and how often each
KNOWLEDGE = (0.1, 0.3)  # of the logit of relevance, added to minus the log of the old rank
POWER_REACH = 1.96 + 0.8416  # deviations: seen at 95% in 80% of experiments
POLICIES = ("fixed", "shuffle", "ranked-ts", "cascade-ts", "pbm-ucb", "pbm-ts")


# -- analyse ---------------------------------------------------------------------------------------


def analysed(seeds: Sequence[int]) -> None:
    """Each design: is the truth held at 95%, and do checks object to what is right?"""
    print("| design | seeds | held at 95% | farthest off, mean | checks | objected | p < .05 |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, experiment in DESIGNS.items():
        inside, off, p_values, objected = [], [], [], 0
        for seed in seeds:
            ours = Experiment(f"{name} {seed}", experiment.design, share=0.5, unit=experiment.unit)
            made = world(
                "personalised", pairs=2_000, queries=300, ranks=RANKS, seed=seed, experiment=ours,
                columns=["user"],
            )  # fmt: skip
            found = analyse(read_log(pd.DataFrame(dict(made.columns))), ours)
            truth = made.truth[found.curve.ranks - 1] / made.truth[found.curve.reference - 1]
            low, high = found.curve.interval()
            rest = found.curve.ranks != found.curve.reference
            inside.append(((low <= truth) & (truth <= high))[rest].mean())
            off.append((np.log(found.curve.values / truth))[rest].mean())
            told = [check for check in found.checks if check.p_value is not None]
            p_values += [check.p_value for check in told]
            objected += sum(str(check.verdict) != "good" for check in found.checks)
        p = np.array(p_values)
        print(
            f"| {name} | {len(seeds)} | {np.mean(inside):.1%} | {np.mean(off):+.3f} ± "
            f"{2 * np.std(off) / np.sqrt(len(off)):.3f} | {len(p)} | {objected} "
            f"| {np.mean(p < 0.05):.1%} |"
        )


# -- interleave ------------------------------------------------------------------------------------


def searches_of_market(seed: int) -> tuple[Any, Any]:
    """(N, FOUND): the relevance of what searches found, in the old order; then propensities."""
    with tempfile.TemporaryDirectory() as folder:
        made = market(
            folder, rows=1_500_000, days=1, queries=400, seed=seed, labels=True, features=False
        )
        rows = duckdb.execute(
            "SELECT relevance FROM read_parquet($path) WHERE platform = 'web' AND rank <= $found"
            " AND session IN (SELECT session FROM read_parquet($path) WHERE platform = 'web'"
            " GROUP BY session HAVING count(*) FILTER (rank <= $found) = $found)"
            " ORDER BY session, rank",
            {"path": str(made.paths[0]), "found": FOUND},
        ).fetchnumpy()["relevance"]
    return rows.reshape(-1, FOUND).astype(float), made.propensities["web"][:SHOWN]


def interleaved(seeds: Sequence[int]) -> None:
    """How many searches it takes to see that one ranker is better, beside an A/B test."""
    print(
        "| knowledge | way | clicks a search, old and new | Δ | searches | A/B searches "
        "| A/B over it | power at that many |"
    )
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    z, p = searches_of_market(seeds[0])
    z = z[:SEARCHES]
    random = np.random.default_rng([seeds[0], 22])
    logit = np.log(z / (1 - z))
    for more in (0.0, *KNOWLEDGE):
        score = -np.log(np.arange(1, FOUND + 1)) + more * (logit - logit.mean())
        new = np.argsort(-score, axis=1, kind="stable")
        clicks = [z[:, :SHOWN] @ p, np.take_along_axis(z, new, 1)[:, :SHOWN] @ p]
        by_ab = _searches_of_ab(z, new, p)
        for way in INTERLEAVINGS.names:
            credits = np.concatenate([_credits(way, z, new, p, random) for _ in range(PASSES)])
            met = count_wins(credits)
            needed = met.searches_for(met.delta) if more and met.delta else None
            power = "" if needed is None else f"{_power(way, z, new, p, needed, random):.0%}"
            ratio = "" if needed is None else f"{by_ab / needed:.0f}"
            print(
                f"| {more} | {way} | {clicks[0].mean():.3f}, {clicks[1].mean():.3f} "
                f"| {met.delta:+.4f} ± {2 * met.error:.4f} | {needed or ''} "
                f"| {by_ab if more else ''} | {ratio} | {power} |"
            )


def _searches_of_ab(z: Any, new: Any, p: Any) -> int:
    """Searches, of both arms together, that show a difference of clicks a search: exact moments."""
    chances = z[:, :SHOWN] * p, np.take_along_axis(z, new, 1)[:, :SHOWN] * p
    mean = [each.sum(1) for each in chances]
    spread = [(each * (1 - each)).sum(1).mean() + each.sum(1).var() for each in chances]
    effect = mean[1].mean() - mean[0].mean()
    return int(np.ceil(2 * sum(spread) * (POWER_REACH / effect) ** 2)) if effect else 0


def _credits(way: str, z: Any, new: Any, p: Any, random: Any) -> Any:
    """(N, 2): of each search, one list and its clicks."""
    drawn = random.random((len(z), SHOWN))
    found = np.zeros((len(z), 2))
    old = list(range(FOUND))
    for n, order in enumerate(new):
        shown = interleave(
            [order.tolist(), old], f"{n}", method=way, length=SHOWN, salt=str(drawn[n, 0])
        )
        found[n] = credit(shown, drawn[n] < z[n, list(shown.docs)] * p, method=way)
    return found


def _power(way: str, z: Any, new: Any, p: Any, needed: int, random: Any, draws: int = 200) -> float:
    """In what share of experiments of so many searches the interval leaves out 0, to the right."""
    credits = np.concatenate([_credits(way, z, new, p, random) for _ in range(2)])
    seen = 0
    for _ in range(draws):
        met = count_wins(credits[random.integers(len(credits), size=needed)])
        seen += met.interval.low > 0
    return seen / draws


# -- bandits ---------------------------------------------------------------------------------------


def bandits(seeds: Sequence[int], queries: int = 20, searches: int = 1_000, runs: int = 5) -> None:
    """Clicks lost on queries of the market, and p10 / p1 as the drift of their logs has it."""
    print("| policy | clicks lost of the best order's | p10 / p1 from its log | in truth |")
    print("|---|---:|---|---:|")
    z, p = searches_of_market(seeds[0])
    best = np.sort(z[:queries], axis=1)[:, ::-1][:, :SHOWN] @ p
    for name in POLICIES:
        lost, logs = [], []
        for n in range(queries):
            ran = run_bandit(name, p, z[n], searches=searches, runs=runs, log=True, seed=n)
            lost.append(ran.regret[-1] / (best[n] * searches))
            rows = pd.DataFrame(dict(ran.columns))
            logs.append(
                rows.assign(
                    query=rows["query"] + runs * n, search=f"{n} " + rows.search.astype(str)
                )
            )
        try:
            counts = harvest(read_log(pd.concat(logs, ignore_index=True), day="", max_rank=SHOWN))
            told = str(estimate(counts).ratio(SHOWN, 1))
        except RankdriftError as error:
            told = type(error).__name__
        spread = 2 * np.std(lost) / np.sqrt(queries)
        print(f"| {name} | {np.mean(lost):.1%} ± {spread:.1%} | {told} | {p[-1] / p[0]:.2f} |")


PARTS = {"analyse": analysed, "interleave": interleaved, "bandits": bandits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    for name in asked.which or PARTS:
        print(f"\n{name}\n", flush=True)
        PARTS[name](range(asked.first, asked.first + asked.seeds))


if __name__ == "__main__":
    main()
