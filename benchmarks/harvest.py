"""A harvest beside merely reading the log, and beside the obvious ways to do the same."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from benchmarks import logs, measure, peers

SLOWEST = 4.5  # times a bare scan of the columns
ROUNDS = 5  # a long task meets a busy spell more often than a short one
CHECKED = 5  # times fewer rows in the log with the columns for checks
CHECKED_ROUNDS = 5
MOST_WITH_COLUMNS = 1.15  # times the harvest without them
LEAST_LINEAR = 1.3  # time a row of the large log over that of the small one


def run(rows: int) -> dict[str, Any]:
    small, large = f"{rows // 5:,}", f"{rows:,}"
    days = logs.drifting(rows)
    first = days[: len(days) // 5]
    dense = logs.drifting(rows // 5, queries=logs.FEW_QUERIES, days=len(first))
    sizes = {small: rows // 5, large: rows, f"{small}, few queries": rows // 5}
    timed = _beside_scan(dict(zip(sizes, (first, days, dense), strict=True)), sizes)
    slowest = max(timed[small]["ratio"], timed[large]["ratio"])
    linear = timed[small]["rows a second"] / timed[large]["rows a second"]
    measure.show(
        "Harvest against a bare scan of the same columns",
        ("impressions", "scan s", "harvest s", "harvest / scan", "million rows / s"),
        (
            (name, one["scan"], one["harvest"], one["ratio"], one["rows a second"] / 1e6)
            for name, one in timed.items()
        ),
        f"The scan is SELECT max(column) of {', '.join(logs.COLUMNS)} in DuckDB. Both on the same "
        f"files, taking turns, best of {ROUNDS}; the harvest with its funnel. "
        f"The logs have {logs.QUERIES:,} queries, the last one {logs.FEW_QUERIES:,}.\n"
        f"Harvest / scan of the first two: {measure.verdict(slowest, SLOWEST)}.\n"
        f"Time a row, large log / small log: {measure.verdict(linear, LEAST_LINEAR)}.",
    )
    return {
        "beside a scan": timed,
        "linearity": linear,
        "beside peers": _beside_peers(first, small, timed[small]["scan"]),
    }


def run_with_columns(rows: int) -> dict[str, float]:
    """What the columns that only checks look at cost: to read them, and to count by them."""
    rows //= CHECKED
    files = logs.checked(rows)
    tasks: dict[str, Callable[[], object]] = {
        "without": partial(peers.rankdrift, files, **dict.fromkeys(logs.CHECKED, "")),
        "with": partial(peers.rankdrift, files, **logs.CHECKED),
        "scan without": partial(peers.scan, files),
        "scan with": partial(peers.scan, files, logs.CHECKED.values()),
    }
    best = measure.fastest(tasks, CHECKED_ROUNDS, time.process_time)
    reading = best["scan with"] - best["scan without"]
    harvest, scan = best["with"] / best["without"], best["scan with"] / best["scan without"]
    measure.show(
        f"Score, ranker, user and outcome: {rows:,} impressions with and without them",
        ("", "without s", "with s", "with / without"),
        (
            ("harvest", best["without"], best["with"], harvest),
            ("bare scan", best["scan without"], best["scan with"], scan),
        ),
        f"Processor time, taking turns, best of {CHECKED_ROUNDS}. Splits by day and search are "
        f"made in both. To read the columns is {reading / best['without']:.0%} of a harvest.\n"
        f"Harvest with / without: {measure.verdict(harvest, MOST_WITH_COLUMNS)}.",
    )
    return {**best, "ratio": harvest, "ratio of scans": scan}


def _beside_scan(
    files_of: Mapping[str, list[str]], sizes: Mapping[str, int]
) -> dict[str, dict[str, float]]:
    """All take turns, so that no log's rounds fall into one busy spell."""
    tasks: dict[str, Callable[[], object]] = {}
    for name, files in files_of.items():
        tasks[f"scan {name}"] = partial(peers.scan, files)
        tasks[f"harvest {name}"] = partial(peers.rankdrift, files)
    best = measure.fastest(tasks, ROUNDS)
    timed = {}
    for name, rows in sizes.items():
        scan, harvest = best[f"scan {name}"], best[f"harvest {name}"]
        timed[name] = {
            "scan": scan,
            "harvest": harvest,
            "ratio": harvest / scan,
            "rows a second": rows / harvest,
        }
    return timed


def _beside_peers(files: list[str], rows: str, scan: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in peers.PEERS:
        done = measure.run(sys.executable, "-m", "benchmarks.peers", name, *files)
        if done.out_of_memory:
            found[name] = {"failed": "out of memory", "megabytes": done.megabytes}
        else:
            found[name] = json.loads(done.require().stdout) | {"megabytes": done.megabytes}
    answers = {name: tuple(one["answer"]) for name, one in found.items() if "answer" in one}
    if len(set(answers.values())) != 1:
        raise RuntimeError(f"The answers (pairs, appearances, clicks) differ: {answers}")
    pairs, shown, clicks = answers["rankdrift"]
    measure.show(
        f"The usable pairs of {rows} impressions, each in a process of its own",
        ("", "seconds", "/ scan", "peak MB"),
        (
            (name, *((s, s / scan) if s else (one["failed"], None)), one["megabytes"])
            for name, one in found.items()
            for s in [one.get("seconds")]
        ),
        f"All found the same {pairs:,} pairs with {shown:,} appearances and {clicks:,} clicks. "
        "The others stop there; rankdrift also collects ranks, splits by bucket and keeps the "
        "funnel. One run each, imports not counted.",
    )
    return found
