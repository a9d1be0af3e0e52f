"""What judge asks of the engine beside a plain GROUP BY of the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import logs, measure
from rankdrift.core.database import connect
from rankdrift.core.dialects import DUCKDB
from rankdrift.judging.reading import read_statistics
from rankdrift.log.log import read_log
from rankdrift.propensities.propensities import Propensities

SLOWEST = 2.5  # times the plain GROUP BY
ROUNDS = 3


def run(rows: int) -> dict[str, Any]:
    """A fifth of the rows, so that it does not take long."""
    files = logs.drifting(rows // 5)
    tasks: dict[str, Callable[[], object]] = {
        "plain": partial(_plain, files),
        "ours": partial(_ours, files),
    }
    best = measure.fastest_by(tasks, (time.perf_counter, time.process_time), ROUNDS)
    plain, ours = best["plain"], best["ours"]
    clock, processor = (mine / theirs for mine, theirs in zip(ours, plain, strict=True))
    measure.show(
        f"Clicks and exposure by pair of {rows // 5:,} impressions",
        ("", "seconds", "/ plain", "of processors", "/ plain"),
        (
            ("plain GROUP BY", plain[0], 1.0, plain[1], 1.0),
            ("rankdrift", ours[0], clock, ours[1], processor),
        ),
        "The plain one is SELECT query, doc, count(*), sum(click) in DuckDB, kept in a table. Ours "
        "has exposure, its squares, the curve's errors, days and the funnel besides, reads what "
        f"becomes of every row, and brings the pairs home. Taking turns, best of {ROUNDS}.\n"
        f"Rankdrift / plain, by the clock: {measure.verdict(clock, SLOWEST)}; in processor time, "
        f"which a busy machine changes less: {measure.verdict(processor, SLOWEST)}.",
    )
    return {**best, "by the clock": clock, "processor": processor}


def _plain(files: list[str]) -> None:
    with connect(preserve_insertion_order="false") as con:
        con.execute(
            "CREATE TABLE pairs AS SELECT query, doc, count(*) AS n, sum(click) AS c"
            f" FROM read_parquet([{DUCKDB.literals(files)}]) GROUP BY query, doc"
        )


def _ours(files: list[str]) -> None:
    read_statistics(read_log(files), _curve())


def _curve(ranks: int = 500) -> Propensities:
    """As a curve of one number has it: all its error along one direction."""
    every = np.arange(1, ranks + 1, dtype=np.int32)
    many = np.full(ranks, 1_000)
    return Propensities(
        every, -0.5 * np.log(every), 0.02 * np.log(every)[:, None], many, many,
        np.ones(ranks, bool), 1, "loglog", "buckets",
    )  # fmt: skip
